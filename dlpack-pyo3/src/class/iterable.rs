//! `for part in obj` and `len(obj)` for classes that declare them, by the methods of a [`Tensor`] over the object.
#![expect(unsafe_code, reason = "defines methods, which are C functions")]

use core::ffi::CStr;

use pyo3::types::{PyString, PyType};
use pyo3::{ffi, ffi::PyObject, intern, prelude::*};

use crate::class::{define_unless_own, tensor::Tensor};
use crate::error::{OrRaise, catch_into_null};
use crate::import::from_dlpack;

const ITER: &CStr = c"__iter__($self, /)
--

The parts along the first axis, as tensors over this object's data.";

const LEN: &CStr = c"__len__($self, /)
--

The length of the first axis.";

/// Defines `__iter__` and `__len__` on a class, while PyO3 creates it.
pub(super) fn define_iteration_methods(class: &Bound<'_, PyType>, over: &[&str]) -> PyResult<()> {
    let methods: [(_, ffi::PyCFunction, _); 2] =
        [(c"__iter__", iter, ITER), (c"__len__", len, LEN)];
    for (name, call, doc) in methods {
        let call = ffi::PyMethodDefPointer { PyCFunction: call };
        define_unless_own(class, name, call, ffi::METH_NOARGS, doc, over)?;
    }
    Ok(())
}

unsafe extern "C" fn iter(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: CPython calls methods attached, with a valid object.
    unsafe { of_tensor(object, |py| intern!(py, "__iter__")) }
}

unsafe extern "C" fn len(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: CPython calls methods attached, with a valid object.
    unsafe { of_tensor(object, |py| intern!(py, "__len__")) }
}

/// Calls a method of a [`Tensor`] over the object.
///
/// # Safety
///
/// The thread is attached, and `object` is a valid object.
unsafe fn of_tensor(
    object: *mut PyObject,
    method: for<'py> fn(Python<'py>) -> &'py Bound<'py, PyString>,
) -> *mut PyObject {
    // SAFETY: attached, by this function's contract.
    let py = unsafe { Python::assume_attached() };
    catch_into_null(py, || {
        // SAFETY: a valid object, by this function's contract.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        let tensor = from_dlpack(&object).map(Tensor::new).or_raise(py)?;
        let tensor = Bound::new(py, tensor).or_raise(py)?;
        let found = tensor.call_method0(method(py)).or_raise(py)?;
        Ok(found.into_ptr())
    })
}
