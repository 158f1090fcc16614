//! Attributes for the tensors of an object.
#![expect(unsafe_code, reason = "defines getters, which are C functions")]

use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::{Mutex, PoisonError};
use std::{borrow::Cow, ffi::CString};

use dlpack_core::binding::{text, view_strided};
use dlpack_core::{DLPackTensors, Error, Managed, TensorRef};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::pyclass::boolean_struct::False;
use pyo3::types::{PyTuple, PyType};
use pyo3::{PyClass, ffi, ffi::PyObject, intern, prelude::*};

use crate::class::{Parts, arrays::TensorAttribute, buffer};
use crate::error::{
    DisplayTuple, OrRaise, Raised, bail, catch_into_null, catch_panics, fail,
    none_if_concerns_object, raise_core_error, raise_pyo3_error,
};
use crate::import::{import_argument, numpy};
use crate::keepalive::{
    ContentsBorrow, ExceptionSafeTensor, ObjectGuard, attached::check_interpreter, borrow_contents,
    leak_static,
};
use crate::library::function::KnownLibrary;
use crate::vtable::AnyThread;

/// A class with objects that own several tensors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tensors that could be attributes",
    label = "the class has no `tensor` or `columns` key, or is not `Send` and `Sync`",
    note = "add `#[dlpack(tensor)]` to the fields that Python should see, and check that all are `Send` and `Sync`",
    note = "remove `unsendable`: a consumer may use and release the data on any thread"
)]
pub trait ExportsTensors:
    DLPackTensors + PyClass<Frozen: ContentsBorrow<Self>, ThreadChecker: AnyThread> + Send + Sync
{
}

#[diagnostic::do_not_recommend]
impl<T> ExportsTensors for T where
    T: DLPackTensors + PyClass<Frozen: ContentsBorrow<T>, ThreadChecker: AnyThread> + Send + Sync
{
}

/// Defines an attribute for each tensor, and returns their names. With `parts.arrays` the attributes are arrays of a library.
///
/// An attribute of the same name that the class itself defines is an error, unless `over` names it. Inherited ones are
/// overridden.
pub(crate) fn define_tensor_attributes<'py, T: ExportsTensors>(
    class: &Bound<'py, PyType>,
    parts: &Parts,
) -> PyResult<Bound<'py, PyTuple>> {
    if T::HAS_RECORDS {
        buffer::BufferFunctions::for_records::<T>().define_on(class, parts.over)?;
    }
    install_each(
        class,
        parts,
        T::NAMES,
        T::DOCS,
        get::<T>,
        T::SETTABLE,
        const { setter_of::<T>() },
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
    let own = class.getattr(intern!(py, "__dict__"))?;
    // Two threads that use a class for the first time both come here. The second one finds the attributes of the first.
    let is_first = is_first_call_for(class);
    for (index, name) in names.iter().enumerate() {
        if !parts.over.contains(name) && own.contains(*name)? {
            if is_first {
                return Err(hidden_tensor(class, name));
            }
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
            leak_static(text).as_ptr()
        };
        let attribute = leak_static(TensorAttribute {
            index,
            library: parts.arrays.map(KnownLibrary::new),
        });
        let getter = leak_static(ffi::PyGetSetDef {
            name: kept(name),
            get: Some(get),
            set: set.filter(|_| settable.contains(name)),
            doc: kept(&doc),
            closure: core::ptr::from_ref(attribute).cast_mut().cast(),
        });
        let getter = core::ptr::from_ref(getter).cast_mut();
        // SAFETY: a valid type; the definition lives for the rest of the process and is only read.
        let getter = unsafe { ffi::PyDescr_NewGetSet(class.as_type_ptr(), getter) };
        // SAFETY: a new reference, or null with an exception.
        let getter = unsafe { Bound::from_owned_ptr_or_err(py, getter) }?;
        class.setattr(*name, getter)?;
    }
    PyTuple::new(py, names)
}

/// The addresses of the classes that have the attributes, or are getting them.
static CLASSES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Whether this is the first call for a class, or all others failed.
fn is_first_call_for(class: &Bound<'_, PyType>) -> bool {
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    let address = class.as_ptr().addr();
    let is_first = !classes.contains(&address);
    if is_first {
        classes.push(address);
    }
    is_first
}

/// The error for a class that defines an attribute of the name of a tensor. `#[dlpack_pymethods]` sees the methods of one block only.
#[cold]
fn hidden_tensor(class: &Bound<'_, PyType>, name: &str) -> PyErr {
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    classes.retain(|address| *address != class.as_ptr().addr());
    drop(classes);
    let class_name = class
        .name()
        .map(|name| name.to_string())
        .unwrap_or_default();
    fail!(class.py(), PyAttributeError:
        "`{class_name}.{name}` is an attribute of the class, and hides the tensor `{name}`: remove `#[pyo3(get)]`, `#[pyo3(set)]`, \
         `get_all`, `set_all`, or the getter, setter or method, or give the tensor another name by `tensor(name = \"..\")`")
    .take_exception(class.py())
}

unsafe extern "C" fn get<T: ExportsTensors>(
    object: *mut PyObject,
    attribute: *mut c_void,
) -> *mut PyObject {
    // SAFETY: CPython calls getters attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the descriptor passes the attribute that it was created with, which lives for the rest of the process.
    let attribute = unsafe { &*attribute.cast::<TensorAttribute>() };
    catch_into_null(py, || {
        check_interpreter(py)?;
        // SAFETY: a valid object: the descriptor has checked that it is an instance of its class.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: the descriptor has checked that the object is an instance of its class.
        let object = unsafe { object.cast_unchecked::<T>() };
        create_value(&object, attribute).map(Bound::into_ptr)
    })
}

/// The value of an attribute of an object, which stays borrowed only if the tensor does not own its memory.
#[inline(always)]
fn create_value<'py, T: ExportsTensors>(
    object: &Bound<'py, T>,
    attribute: &TensorAttribute,
) -> Result<Bound<'py, PyAny>, Raised> {
    let (py, name) = (object.py(), T::NAMES[attribute.index]);
    // SAFETY: the guard outlives the description, or is moved into `ObjectGuard` together with the object.
    let (value, guard) = unsafe { borrow_contents(object) }?;
    if T::SHARED.contains(&name) {
        if let Some(array) = attribute.create_over_allocation(py, || value.describe_tensor(name))? {
            return Ok(array);
        }
        if let Some(tensor) = value.share_tensor(name, None).or_raise(py)? {
            return attribute.create_value(py, tensor).or_raise(py);
        }
    }
    // Used where it is: a description is large, and each move of it copies it.
    let mut described = value.describe_tensor(name);
    let described = described.as_mut();
    let described = described.map_err(|error| raise_core_error(py, error))?;
    let owner = ObjectGuard::new(guard, object.as_any());
    // SAFETY: the guard keeps the described memory borrowed, and `ObjectGuard` keeps the object alive.
    unsafe { attribute.create_described(py, described, owner) }
}

/// The setter for the attributes of a class, if any of them can be set.
const fn setter_of<T: ExportsTensors>() -> Option<ffi::setter> {
    if T::SETTABLE.is_empty() {
        None
    } else {
        Some(set::<T>)
    }
}

unsafe extern "C" fn set<T: ExportsTensors>(
    object: *mut PyObject,
    array: *mut PyObject,
    attribute: *mut c_void,
) -> c_int {
    // SAFETY: CPython calls setters attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the descriptor passes the attribute that it was created with, which lives for the rest of the process.
    let attribute = unsafe { &*attribute.cast::<TensorAttribute>() };
    let (name, class) = (T::NAMES[attribute.index], <T as PyClass>::NAME);
    let set = catch_panics(py, || {
        check_interpreter(py)?;
        // SAFETY: a valid object, or null if the attribute is to be deleted.
        let array = unsafe { Bound::from_borrowed_ptr_or_opt(py, array) };
        let attribute = Attribute { py, name, class };
        // SAFETY: a valid object: the descriptor has checked that it is an instance of its class.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: the descriptor has checked that the object is an instance of its class.
        let object = unsafe { object.cast_unchecked::<T>() };
        if let Some(array) = &array {
            if copy_array(&object, name, array)? {
                return Ok(());
            }
        }
        // Imported before the object is borrowed: the array's library may run code that accesses the object's tensors.
        let tensor = attribute.import_array(array.as_ref())?;
        // SAFETY: the guard is dropped after the last use of `value`.
        let excluded = unsafe { T::Frozen::borrow_exclusive(&object) };
        let (value, guard) = excluded.map_err(|raised| attribute.in_use(raised))?;
        let set = value.set_tensor(name, tensor);
        drop(guard);
        set.map_err(|error| attribute.mismatch_error(&error, array.as_ref()))
    });
    if set.is_ok() { 0 } else { -1 }
}

/// Copies a NumPy array to a field without making a tensor of it. Returns `false` if the array has to be imported: it is another
/// object, the field does not take it, or the object is borrowed.
fn copy_array<T: ExportsTensors>(
    object: &Bound<'_, T>,
    name: &str,
    array: &Bound<'_, PyAny>,
) -> Result<bool, Raised> {
    // Code of the user may run before the elements are read, for example for `shape = [rows.count(), _]`.
    let Some((described, _keepalive)) = numpy::read_array(array)? else {
        return Ok(false);
    };
    // SAFETY: the guard is dropped after the last use of `value`.
    match unsafe { T::Frozen::borrow_exclusive(object) } {
        Ok((value, guard)) => {
            let copy = |view: &TensorRef<'_>| value.copy_to_tensor(name, view);
            // SAFETY: `_keepalive` keeps the described memory alive until this function returns. All other writes there come from
            // Python.
            let copied = unsafe { view_strided(&described, copy) };
            drop(guard);
            Ok(copied == Ok(true))
        }
        Err(raised) => {
            raised.clear_exception(object.py());
            Ok(false)
        }
    }
}

/// The attribute that is being set, for error messages.
struct Attribute<'py> {
    py: Python<'py>,
    name: &'static str,
    class: &'static str,
}

impl Attribute<'_> {
    /// Imports the array; `None` for Python's None.
    fn import_array(&self, array: Option<&Bound<'_, PyAny>>) -> Result<Option<Managed>, Raised> {
        let Self { py, name, class } = *self;
        let Some(array) = array else {
            bail!(py, PyAttributeError: "`{name}` of `{class}` cannot be deleted, only set to another array");
        };
        if array.is_none() {
            return Ok(None);
        }
        import_argument(array).or_raise(py).map(Some)
    }

    #[cold]
    fn in_use(&self, raised: Raised) -> Raised {
        let Self { py, name, class } = *self;
        raised.clear_exception(py);
        fail!(py, PyBufferError:
            "`{name}` of `{class}` cannot be set now: an array over the data of this object is alive, or a method of it is \
             running; drop that array first")
    }

    /// The error for an array that does not fit the field. The array is imported once more for the message, which does not
    /// describe an array that can be imported only once, such as a capsule.
    #[cold]
    fn mismatch_error(&self, error: &Error, array: Option<&Bound<'_, PyAny>>) -> Raised {
        let Self { py, name, class } = *self;
        if let Error::OutOfMemory { .. } = error {
            return raise_core_error(py, error);
        }
        if matches!(error, Error::Absent { .. }) || array.is_none_or(|array| array.is_none()) {
            return fail!(py, PyTypeError: "`{name}` of `{class}` cannot be None, only an array");
        }
        let tensor = match none_if_concerns_object(py, self.import_array(array).or_fetch(py)) {
            // The tensor is dropped while the exception below is set.
            Ok(tensor) => tensor.map(ExceptionSafeTensor::new),
            Err(error) => return raise_pyo3_error(py, error),
        };
        let found = tensor.as_ref().map_or(Ok(String::new()), |tensor| {
            let view = tensor.view();
            let (dtype, shape) = (view.dtype(), DisplayTuple(view.shape()));
            text(format_args!(" to an array of {dtype} of shape {shape}"))
        });
        let found = match found.or_raise(py) {
            Ok(found) => found,
            Err(raised) => return raised,
        };
        match error {
            Error::WrongDataType { .. } => {
                fail!(py, PyTypeError: "`{name}` of `{class}` cannot be set{found}: {error}")
            }
            // The methods that the text of the error names are those of Rust.
            Error::NotContiguous { strides, .. } => {
                let is_c_order = tensor.is_some_and(|tensor| tensor.view().is_contiguous());
                let (order, help) = match strides.len() {
                    _ if is_c_order => ("in Fortran order", "numpy.asfortranarray(x)"),
                    0 | 1 => ("contiguous", "numpy.ascontiguousarray(x)"),
                    // The error does not have the order of the field.
                    _ => (
                        "contiguous",
                        "numpy.ascontiguousarray(x), or numpy.asfortranarray(x) for a field in Fortran order",
                    ),
                };
                fail!(py, PyValueError:
                    "`{name}` of `{class}` cannot be set{found}: it is not {order}, with strides {}; pass {help}",
                    DisplayTuple(strides))
            }
            _ => fail!(py, PyValueError: "`{name}` of `{class}` cannot be set{found}: {error}"),
        }
    }
}

/// Implemented if the class `T` is not frozen.
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

/// Panics if a tensor has the name of an attribute that a method gets, sets or deletes: Python would see that attribute alone.
#[doc(hidden)]
#[track_caller]
pub const fn reject_hidden_tensor(tensors: &[&str], attribute: &str) {
    let mut index = 0;
    while index < tensors.len() {
        assert!(
            !is_equal(tensors[index].as_bytes(), attribute.as_bytes()),
            "this method hides the tensor of the same name: give one of them another name, the tensor by `tensor(name = \"..\")`"
        );
        index += 1;
    }
}

const fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let mut index = 0;
    while index < left.len() && index < right.len() && left[index] == right[index] {
        index += 1;
    }
    index == left.len() && index == right.len()
}
