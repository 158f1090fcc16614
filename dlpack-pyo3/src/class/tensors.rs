//! Attributes for the tensors and columns of an object.
#![expect(
    unsafe_code,
    reason = "defines getters, which are C functions, over what a borrow keeps in place"
)]

use core::ffi::c_void;
use std::ffi::CString;

use dlpack_core::{DLPackTensors, Managed};
use pyo3::types::{PyTuple, PyType};
use pyo3::{IntoPyObjectExt, PyClass, ffi, prelude::*};

use crate::error::{OrRaise, answer, py_err};
use crate::hold::borrowing::{Borrowing, share};
use crate::{
    class::tensor::Tensor, export::unordered, hold::forever::keep_for_good, hold::held::Held,
};

/// A class whose objects hold several tensors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tensors to make attributes of",
    label = "the class has no `tensor` or `columns` key, or may not be read from every thread",
    note = "a class that is a tensor itself takes `#[dlpack_pymethods]` without `tensors`"
)]
pub trait ExportsTensors: DLPackTensors + PyClass<Frozen: Borrowing<Self>> + Send + Sync {}

#[diagnostic::do_not_recommend]
impl<T: DLPackTensors + PyClass<Frozen: Borrowing<T>> + Send + Sync> ExportsTensors for T {}

/// Gives the class an attribute for each name, and `__dlpack_tensors__` with all of them.
///
/// An attribute that the class already has under a name is the user's own, and stays.
pub(crate) fn install<T: ExportsTensors>(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    for (index, name) in T::NAMES.iter().enumerate() {
        if class.hasattr(*name)? {
            continue;
        }
        let text = CString::new(*name).expect("the name of a field has no zero byte");
        let doc = CString::new(format!(
            "The tensor `{name}`: it shares the memory of this object, and keeps it."
        ))
        .expect("as the name");
        let getter = keep_for_good(ffi::PyGetSetDef {
            name: keep_for_good(text).as_ptr(),
            get: Some(get::<T>),
            set: None,
            doc: keep_for_good(doc).as_ptr(),
            closure: core::ptr::without_provenance_mut(index),
        });
        let getter = core::ptr::from_ref(getter).cast_mut();
        // SAFETY: a class, and a definition that lives for ever and is only read.
        let getter = unsafe { ffi::PyDescr_NewGetSet(class.as_type_ptr(), getter) };
        // SAFETY: a new reference, or null with an exception.
        let getter = unsafe { Bound::from_owned_ptr_or_err(py, getter) }?;
        class.setattr(*name, getter)?;
    }
    class.setattr("__dlpack_tensors__", PyTuple::new(py, T::NAMES)?)
}

unsafe extern "C" fn get<T: ExportsTensors>(
    object: *mut ffi::PyObject,
    index: *mut c_void,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls a getter attached.
    let py = unsafe { Python::assume_attached() };
    answer(py, || {
        // SAFETY: the descriptor checked that the object is one of its class.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: as above.
        let object = unsafe { object.cast_unchecked::<T>() };
        let name = T::NAMES[index.addr()];
        let tensor = export_named(&object, name).or_raise(py)?;
        let tensor = Tensor::new(tensor).into_py_any(py);
        Ok(tensor.or_raise(py)?.into_ptr())
    })
}

/// The tensor of an object under a name of [`DLPackTensors`](dlpack_core::DLPackTensors).
fn export_named<T>(object: &Bound<'_, T>, name: &str) -> PyResult<Managed>
where
    T: ExportsTensors,
{
    // SAFETY: the guard is dropped last here, or goes into `Held` together with the object.
    let (value, guard) = unsafe { share(object) }?;
    let descriptor = value.describe_tensor(name).map_err(py_err)?;
    let request = unordered(descriptor.device());
    let owner = Held::new(guard, object.as_any());
    // SAFETY: the guard keeps what was described borrowed, and `Held` keeps the object.
    unsafe { dlpack_core::binding::export_with(owner, descriptor, &request) }.map_err(py_err)
}
