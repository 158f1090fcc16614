//! Attributes for the tensors and columns of an object.
#![expect(unsafe_code, reason = "defines getters, which are C functions")]

use core::ffi::c_void;
use std::{borrow::Cow, ffi::CString};

use dlpack_core::{DLPackTensors, binding::export_with};
use pyo3::types::{PyTuple, PyType};
use pyo3::{IntoPyObjectExt, PyClass, ffi, ffi::PyObject, prelude::*};

use crate::error::{OrRaise, answer};
use crate::hold::{Borrowing, Held, keep_for_good, share};
use crate::vtable::AnyThread;
use crate::{class::Parts, class::arrays, class::tensor::Tensor, export::unordered};

/// A class whose objects hold several tensors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tensors to make attributes of",
    label = "the class has no `tensor` or `columns` key, or may not be read from every thread",
    note = "add `#[dlpack(tensor)]` to the fields that Python shall see, and see that all are `Send` and `Sync`",
    note = "a class that is `unsendable` cannot have any: a consumer may use and release its data on any thread; remove the word"
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
    install_each(class, parts, T::NAMES, T::DOCS, get::<T>)
}

fn install_each<'py>(
    class: &Bound<'py, PyType>,
    parts: &Parts,
    names: &[&str],
    docs: &[&[(&str, &str)]],
    get: ffi::getter,
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
        let text = |text: &str| {
            let text = CString::new(text).expect("the name of a field has no zero byte");
            keep_for_good(text).as_ptr()
        };
        let getter = keep_for_good(ffi::PyGetSetDef {
            name: text(name),
            get: Some(get),
            set: None,
            doc: text(&doc),
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
        let descriptor = value.describe_tensor(T::NAMES[index.addr()]).or_raise(py)?;
        let request = unordered(descriptor.device());
        let owner = Held::new(guard, object.as_any());
        // SAFETY: the guard keeps what was described borrowed, and `Held` keeps the object.
        let tensor = unsafe { export_with(owner, descriptor, &request) }.or_raise(py)?;
        Ok(Tensor::new(tensor).into_py_any(py).or_raise(py)?.into_ptr())
    })
}
