//! The array libraries of Python: how each is detected, and how an array of it is created.
//!
//! | file | job |
//! |---|---|
//! | this file | detects imported libraries, and raises the error for one that is not installed |
//! | `function` | the `from_dlpack` function of any library, by name |
//! | `jax` | JAX's array class, detected once JAX is imported |
//! | `lossy` | rejects arrays of which an import would lose something |
//! | `numpy` | NumPy's C API: detected once NumPy is imported; creates arrays over tensors |
//! | `origin` | the library of an array |
//! | `paddle` | PaddlePaddle: which tensors its exchange table exports like `__dlpack__` does |
//! | `structured` | structured data types of NumPy, and the layout of records |
//! | `torch` | PyTorch's tensor class, detected once PyTorch is imported, and tensor states that DLPack cannot describe |
#![expect(unsafe_code, reason = "calls C functions of CPython")]

pub(crate) mod function;
pub(crate) mod jax;
pub(crate) mod lossy;
pub(crate) mod numpy;
pub(crate) mod origin;
pub(crate) mod paddle;
pub(crate) mod structured;
pub(crate) mod torch;

use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{exceptions::PyModuleNotFoundError, ffi, intern, prelude::*, sync::PyOnceLock};

use crate::error::{discard_error, fail};

/// A module, if it has been imported already.
pub(crate) fn imported_module<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    // SAFETY: attached, as `py` shows.
    let modules = unsafe { ffi::PyImport_GetModuleDict() };
    // SAFETY: a borrowed reference to `sys.modules`, which exists as long as the interpreter.
    let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, modules) }?;
    let modules = modules.cast_into::<PyDict>().ok()?;
    modules.get_item(name).ok().flatten()
}

/// A class of a module, looked up until the module has been imported, and kept in `place` from then on.
fn cached_class<'py>(
    place: &'static PyOnceLock<Py<PyType>>,
    module: &Bound<'py, PyString>,
    name: &Bound<'py, PyString>,
) -> Option<&'py Bound<'py, PyType>> {
    let py = module.py();
    let class = place.get(py).or_else(|| {
        let class = module_class(module, name)?;
        Some(place.get_or_init(py, || class.unbind()))
    });
    class.map(|class| class.bind(py))
}

/// A class of a module, if the module has been imported already.
fn module_class<'py>(
    module: &Bound<'py, PyString>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyType>> {
    let module = imported_module(module.py(), module)?;
    module.getattr_opt(name).ok()??.cast_into().ok()
}

/// The classes in the MRO of a class; none if its metaclass hides them. In builds with the stable ABI, `PyTypeMethods::mro` panics
/// for such a class.
pub(crate) fn classes_in_mro<'py>(
    class: &Bound<'py, PyType>,
) -> impl Iterator<Item = Bound<'py, PyType>> + use<'py> {
    let py = class.py();
    let mro = class.getattr(intern!(py, "__mro__"));
    let mro = mro.map_err(|error| discard_error(py, error)).ok();
    let mro = mro.and_then(|mro| mro.cast_into::<PyTuple>().ok());
    let classes = mro.into_iter().flatten();
    classes.filter_map(|class| class.cast_into().ok())
}

/// Replaces the error of an import by one that names the library to install, if that is why the import failed. `why` says what
/// required it.
#[cold]
fn not_installed(py: Python<'_>, error: PyErr, library: &str, why: &str) -> PyErr {
    let missing = || error.value(py).getattr("name")?.extract::<String>();
    let is_missing = error.is_instance_of::<PyModuleNotFoundError>(py);
    if !is_missing || missing().is_ok_and(|name| name != library) {
        return error;
    }
    let told = fail!(py, PyModuleNotFoundError: "{why}, and `{library}` is not installed: `pip install {library}`");
    let told = told.take_exception(py);
    told.set_cause(py, Some(error));
    told
}
