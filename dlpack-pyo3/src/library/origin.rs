//! Finds the library of an array, by the module of its class or by its `__array_namespace__`.

use std::sync::Arc;

use pyo3::types::{PyString, PyType};
use pyo3::{intern, prelude::*};

use crate::capi::class_attribute;
use crate::error::discard_error;
use crate::library::function::{CUPY, JAX, Library, TORCH};
use crate::library::{classes_in_mro, imported_module, numpy};

/// The library of an array that has no exchange table.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Numpy,
    Known(&'static Library),
    Found(Arc<Library>),
}

impl Origin {
    /// The library of an array; NumPy for an object of no array library, such as `bytes` or a list.
    ///
    /// # Errors
    ///
    /// The exceptions of the library's `__array_namespace__`, and of its import.
    pub(crate) fn of_array(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if numpy::is_array_or_derived(object) {
            return Ok(Self::Numpy);
        }
        let class = object.get_type();
        // A subclass is an array of its base's library, such as a class of the user that derives from a JAX array.
        for base in classes_in_mro(&class) {
            let known = with_package(&base, |package| Self::of_package(py, package));
            if let Some(known) = known.transpose()?.flatten() {
                return Ok(known);
            }
        }
        let method = intern!(py, "__array_namespace__");
        let found = if class_attribute(&class, method).is_some() {
            Library::of_module(&object.call_method0(method)?)?
        } else if class_attribute(&class, intern!(py, "__dlpack__")).is_some() {
            let module = with_package(&class, |package| {
                // The main module of a program may have imported the function of some library.
                let is_library = package != "__main__";
                is_library.then(|| imported_module(py, &PyString::new(py, package)))
            });
            let module = module.flatten().flatten();
            module.map_or(Ok(None), |module| Library::of_module(&module))?
        } else {
            None
        };
        Ok(found.map_or(Self::Numpy, |library| Self::Found(Arc::new(library))))
    }

    /// The library of a package whose arrays are known; `None` for any other package.
    fn of_package(py: Python<'_>, package: &str) -> PyResult<Option<Self>> {
        let known = match package {
            // The classes of JAX are in another package.
            "jax" | "jaxlib" => &JAX,
            "torch" => &TORCH,
            "cupy" => &CUPY,
            // Their functions are in submodules, whose paths `Library` knows.
            "tensorflow" | "mlx" => {
                let library = Library::named(py, package)?;
                return Ok(Some(Self::Found(Arc::new(library))));
            }
            _ => return Ok(None),
        };
        Ok(Some(Self::Known(known.import_once(py)?)))
    }
}

/// Calls `use_name` with the package that defines a class: the first part of its `__module__`.
fn with_package<R>(class: &Bound<'_, PyType>, use_name: impl FnOnce(&str) -> R) -> Option<R> {
    let py = class.py();
    let module = class_attribute(class, intern!(py, "__module__"))?;
    let module = module.cast_into::<PyString>().ok()?;
    let module = module.to_cow();
    let module = module.map_err(|error| discard_error(py, error)).ok()?;
    module.split('.').next().map(use_name)
}
