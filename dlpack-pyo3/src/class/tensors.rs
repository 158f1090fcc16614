//! Attributes for the tensors and columns of an object.
#![expect(unsafe_code, reason = "defines getters, which are C functions")]

use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::{borrow::Cow, ffi::CString};

use dlpack_core::binding::export_with;
use dlpack_core::{DLPackTensors, DataType, Error, Managed};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::pyclass::boolean_struct::False;
use pyo3::types::{PyTuple, PyType};
use pyo3::{IntoPyObjectExt, PyClass, ffi, ffi::PyObject, prelude::*};

use crate::class::{Parts, arrays, buffer, tensor::Tensor};
use crate::error::{OrRaise, Raised, Tuple, answer, bail, contained, fail, list, refuse};
use crate::handover::unordered;
use crate::hold::{Borrowing, Held, keep_for_good, share};
use crate::import::argument;
use crate::vtable::AnyThread;

/// A class whose objects hold several tensors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tensors to make attributes of",
    label = "the class has no `tensor` or `columns` key, or is not `Send` and `Sync`",
    note = "add `#[dlpack(tensor)]` to the fields that Python should see, and check that all are `Send` and `Sync`",
    note = "remove `unsendable`: a consumer may use and release the data on any thread"
)]
pub trait ExportsTensors:
    DLPackTensors + PyClass<Frozen: Borrowing<Self>, ThreadChecker: AnyThread> + Send + Sync
{
}

#[diagnostic::do_not_recommend]
impl<T> ExportsTensors for T where
    T: DLPackTensors + PyClass<Frozen: Borrowing<T>, ThreadChecker: AnyThread> + Send + Sync
{
}

/// Gives the class an attribute for each name, and all the names; the attributes are arrays of a library, if one is named.
///
/// An attribute that the class already has under a name is the user's own, and stays, unless `over` names it.
pub(crate) fn install<'py, T: ExportsTensors>(
    class: &Bound<'py, PyType>,
    parts: &Parts,
) -> PyResult<Bound<'py, PyTuple>> {
    if T::HAS_RECORDS {
        buffer::Functions::of_records::<T>().install(class)?;
    }
    install_each(
        class,
        parts,
        T::NAMES,
        T::DOCS,
        get::<T>,
        T::SETTABLE,
        const { setter::<T>() },
    )
}

fn install_each<'py>(
    class: &Bound<'py, PyType>,
    parts: &Parts,
    names: &[&str],
    docs: &[&[(&str, &str)]],
    get: ffi::getter,
    settable: &[&str],
    set: Option<ffi::setter>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = class.py();
    for (index, name) in names.iter().enumerate() {
        if !parts.over.contains(name) && class.hasattr(*name)? {
            continue;
        }
        let mut docs = docs.iter().copied().flatten();
        let doc = match docs.find(|(of, _)| of == name) {
            Some((_, doc)) => Cow::Borrowed(*doc),
            None => Cow::Owned(format!(
                "The tensor `{name}`: it shares the memory of this object, and keeps it."
            )),
        };
        let kept = |text: &str| {
            let text = CString::new(text).expect("the name of a field has no zero byte");
            keep_for_good(text).as_ptr()
        };
        let getter = keep_for_good(ffi::PyGetSetDef {
            name: kept(name),
            get: Some(get),
            set: set.filter(|_| settable.contains(name)),
            doc: kept(&doc),
            closure: core::ptr::without_provenance_mut(index),
        });
        let getter = core::ptr::from_ref(getter).cast_mut();
        // SAFETY: a class, and a definition that lives for ever and is only read.
        let getter = unsafe { ffi::PyDescr_NewGetSet(class.as_type_ptr(), getter) };
        // SAFETY: a new reference, or null with an exception.
        let getter = unsafe { Bound::from_owned_ptr_or_err(py, getter) }?;
        let getter = match parts.arrays {
            Some(library) => arrays::property(&getter, library)?,
            None => getter,
        };
        class.setattr(*name, getter)?;
    }
    PyTuple::new(py, names)
}

unsafe extern "C" fn get<T: ExportsTensors>(
    object: *mut PyObject,
    index: *mut c_void,
) -> *mut PyObject {
    // SAFETY: Python calls a getter attached.
    let py = unsafe { Python::assume_attached() };
    answer(py, || {
        // SAFETY: the descriptor checked that the object is one of its class.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: as above.
        let object = unsafe { object.cast_unchecked::<T>() };
        // SAFETY: the guard is dropped last here, or goes into `Held` together with the object.
        let (value, guard) = unsafe { share(&object) }?;
        let name = T::NAMES[index.addr()];
        let tensor = match value.share_tensor(name, None).or_raise(py)? {
            Some(tensor) => tensor,
            None => {
                let descriptor = value.describe_tensor(name).or_raise(py)?;
                let request = unordered(descriptor.device());
                let owner = Held::new(guard, object.as_any());
                // SAFETY: the guard keeps what was described borrowed, and `Held` keeps the object.
                unsafe { export_with(owner, descriptor, &request) }.or_raise(py)?
            }
        };
        Ok(Tensor::new(tensor).into_py_any(py).or_raise(py)?.into_ptr())
    })
}

/// What sets attributes of the class, if any can be set.
const fn setter<T: ExportsTensors>() -> Option<ffi::setter> {
    if T::SETTABLE.is_empty() {
        None
    } else {
        Some(set::<T>)
    }
}

unsafe extern "C" fn set<T: ExportsTensors>(
    object: *mut PyObject,
    array: *mut PyObject,
    index: *mut c_void,
) -> c_int {
    // SAFETY: Python calls a setter attached.
    let py = unsafe { Python::assume_attached() };
    let (name, class) = (T::NAMES[index.addr()], <T as PyClass>::NAME);
    let set = contained(py, || {
        // SAFETY: an object, or null where the attribute is to be deleted.
        let array = unsafe { Bound::from_borrowed_ptr_or_opt(py, array) };
        let attribute = Attribute { py, name, class };
        // Before the object is borrowed: code of the array's library may ask for its tensors.
        let (tensor, found) = attribute.take(array.as_ref())?;
        // SAFETY: the descriptor checked that the object is one of its class.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: as above.
        let object = unsafe { object.cast_unchecked::<T>() };
        // SAFETY: the guard is dropped last.
        let excluded = unsafe { T::Frozen::exclude(&object) };
        let (value, _guard) = excluded.map_err(|raised| attribute.in_use(raised))?;
        let set = value.set_tensor(name, tensor);
        set.map_err(|error| attribute.unfit(&error, &found))
    });
    if set.is_ok() { 0 } else { -1 }
}

/// The data type and the shape of an array.
type Found = Option<(DataType, Vec<i64>)>;

/// An attribute that is set, for messages.
struct Attribute<'py> {
    py: Python<'py>,
    name: &'static str,
    class: &'static str,
}

impl Attribute<'_> {
    /// The tensor of an array, or nothing for `None`; and what it is, to be said where it does not fit.
    fn take(&self, array: Option<&Bound<'_, PyAny>>) -> Result<(Option<Managed>, Found), Raised> {
        let Self { py, name, class } = *self;
        let Some(array) = array else {
            bail!(py, PyAttributeError: "`{name}` of `{class}` cannot be deleted, only set to another array");
        };
        if array.is_none() {
            return Ok((None, None));
        }
        let tensor = argument(array).or_raise(py)?;
        let view = tensor.view();
        let found = (view.dtype(), list(py, view.shape().iter().copied())?);
        Ok((Some(tensor), Some(found)))
    }

    #[cold]
    fn in_use(&self, raised: Raised) -> Raised {
        let Self { py, name, class } = *self;
        raised.forget(py);
        fail!(py, PyBufferError:
            "`{name}` of `{class}` cannot be set now: an array over the data of this object is alive, or a method of it is \
             running; drop that array first")
    }

    /// That an array does not fit the field.
    #[cold]
    fn unfit(&self, error: &Error, found: &Found) -> Raised {
        let Self { py, name, class } = *self;
        match (error, found) {
            (Error::OutOfMemory { .. }, _) => refuse(py, error),
            (Error::Absent { .. }, _) | (_, None) => {
                fail!(py, PyTypeError: "`{name}` of `{class}` cannot be None, only an array")
            }
            (Error::WrongDataType { .. }, Some((dtype, shape))) => {
                let shape = Tuple(shape);
                fail!(py, PyTypeError: "`{name}` of `{class}` cannot be set to an array of {dtype} of shape {shape}: {error}")
            }
            (_, Some((dtype, shape))) => {
                let shape = Tuple(shape);
                fail!(py, PyValueError: "`{name}` of `{class}` cannot be set to an array of {dtype} of shape {shape}: {error}")
            }
        }
    }
}

/// That a class `T` can be changed.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{T}` is frozen, so none of its attributes can be set",
    label = "Python would put an array into the field",
    note = "remove `frozen` from `#[pyclass(frozen)]`, or remove `set`"
)]
pub trait Settable<T: ?Sized> {}

#[diagnostic::do_not_recommend]
impl<T: ?Sized> Settable<T> for PhantomData<False> {}

#[doc(hidden)]
pub fn settable<F: Settable<T>, T: ?Sized>(_: F) {}
