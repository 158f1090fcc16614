//! The parts of a C consumer that `ctypes` cannot express: it checks the result before the exception.
#![expect(
    unsafe_code,
    reason = "calls the functions of an exchange table as C code does"
)]

use core::ptr::{null_mut, with_exposed_provenance};

use dlpack_pyo3::DLPack;
use dlpack_pyo3::abi::DLPackExchangeAPI;
use pyo3::prelude::*;

use crate::alive::Alive;

/// The return value of the table's `managed_tensor_from_py_object_no_sync` for an object, whether it wrote a tensor, and the
/// exception that it set. A tensor is released at once.
#[pyfunction]
pub(crate) fn status_of_export(
    table: usize,
    object: &Bound<'_, PyAny>,
) -> (i32, bool, Option<PyErr>) {
    let table = with_exposed_provenance::<DLPackExchangeAPI>(table);
    // SAFETY: the test passes the address that a class of this module publishes.
    let table = unsafe { &*table };
    let mut out = null_mut();
    let function = table.managed_tensor_from_py_object_no_sync;
    let function = function.expect("the table has it");
    // SAFETY: this thread is attached, the object lives, and `out` is writable.
    let status = unsafe { function(object.as_ptr().cast(), &raw mut out) };
    let exception = PyErr::take(object.py());
    if !out.is_null() {
        // SAFETY: the function wrote a pointer that we own.
        let deleter = unsafe { (*out).deleter };
        // SAFETY: the deleter is called once, with its own struct.
        unsafe { deleter.expect("ours has one")(out) };
    }
    (status, !out.is_null(), exception)
}

/// The return value of `managed_tensor_to_py_object_no_sync` for the address of a tensor, whether it made an object, and the
/// exception. The object is dropped.
#[pyfunction]
pub(crate) fn status_of_import(
    py: Python<'_>,
    table: usize,
    tensor: usize,
) -> (i32, bool, Option<PyErr>) {
    let table = with_exposed_provenance::<DLPackExchangeAPI>(table);
    // SAFETY: the test passes the address that a class of this module publishes.
    let table = unsafe { &*table };
    let mut out = null_mut();
    let function = table.managed_tensor_to_py_object_no_sync;
    let function = function.expect("the table has it");
    let tensor = core::ptr::with_exposed_provenance_mut(tensor);
    // SAFETY: this thread is attached, the test passes a valid tensor, and `out` is writable.
    let status = unsafe { function(tensor, &raw mut out) };
    let exception = PyErr::take(py);
    if !out.is_null() {
        // SAFETY: the function wrote a new reference.
        drop(unsafe { Bound::<PyAny>::from_owned_ptr(py, out.cast()) });
    }
    (status, !out.is_null(), exception)
}

#[derive(DLPack)]
struct Loose {
    #[dlpack(data)]
    values: [f32; 6],
    #[dlpack(shape)]
    shape: Vec<usize>,
    _alive: Alive,
}

/// The address of a tensor of six numbers that its receiver must release; an owner lives until then.
#[pyfunction]
pub(crate) fn loose(shape: Vec<usize>) -> PyResult<usize> {
    let owner = Loose {
        values: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        shape,
        _alive: Alive::new(),
    };
    let tensor = owner.into_dlpack()?;
    Ok(tensor.into_raw().as_ptr().expose_provenance())
}
