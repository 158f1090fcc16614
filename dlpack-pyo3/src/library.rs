//! The array libraries of Python: how one is found, and by what it makes an array of its own.
//!
//! | file | job |
//! |---|---|
//! | this one | whether a library was imported, and what to say of one that is not installed |
//! | `function` | the `from_dlpack` of any library, by name |
//! | `lossy` | arrays of which an import would lose something: what they are refused with |
//! | `numpy` | NumPy's C API: found once NumPy is there, and by it an array over any tensor |
//! | `paddle` | PaddlePaddle: which of its tensors its exchange table exports as `__dlpack__` does |
//! | `structured` | structured data types of NumPy's, and the layout of records |
//! | `torch` | PyTorch's class of tensors: found once PyTorch is there, and the states of a tensor that DLPack cannot say |
#![expect(unsafe_code, reason = "calls C functions of Python's")]

pub(crate) mod function;
pub(crate) mod lossy;
pub(crate) mod numpy;
pub(crate) mod paddle;
pub(crate) mod structured;
pub(crate) mod torch;

use pyo3::types::{PyDict, PyString, PyType};
use pyo3::{exceptions::PyModuleNotFoundError, ffi, prelude::*};

use crate::error::fail;

/// A module, if it was imported already.
fn imported<'py>(py: Python<'py>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: attached.
    let modules = unsafe { ffi::PyImport_GetModuleDict() };
    // SAFETY: `sys.modules`, which is there for as long as there is an interpreter.
    let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, modules) }?;
    let modules = modules.cast_into::<PyDict>().ok()?;
    modules.get_item(name).ok().flatten()
}

/// A class of a module, if that was imported already.
fn module_class<'py>(
    module: &Bound<'py, PyString>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyType>> {
    let module = imported(module.py(), module)?;
    module.getattr_opt(name).ok()??.cast_into().ok()
}

/// Whether an object is of a class, or of one that derives from it; no class is asked, as `isinstance` would.
fn is_of(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> bool {
    // SAFETY: attached; two classes.
    unsafe { ffi::PyType_IsSubtype(object.get_type_ptr(), class.as_type_ptr()) != 0 }
}

/// That a library is not installed, with what to do about it, if this is what the error of its import says; `why` it is wanted.
#[cold]
fn not_installed(py: Python<'_>, error: PyErr, library: &str, why: &str) -> PyErr {
    let missing = || error.value(py).getattr("name")?.extract::<String>();
    let is_missing = error.is_instance_of::<PyModuleNotFoundError>(py);
    if !is_missing || missing().is_ok_and(|name| name != library) {
        return error;
    }
    let told = fail!(py, PyModuleNotFoundError: "{why}, and `{library}` is not installed: `pip install {library}`");
    let told = told.fetch(py);
    told.set_cause(py, Some(error));
    told
}
