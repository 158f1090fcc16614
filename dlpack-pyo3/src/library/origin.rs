//! Finds the library of an array, by the module of its class or by its `__array_namespace__`.

use std::sync::Arc;

use pyo3::types::{PyString, PyType};
use pyo3::{intern, prelude::*};

use crate::capi::class_attribute;
use crate::error::discard_error;
use crate::library::function::{CUPY, JAX, Library, TORCH};
use crate::library::{imported_module, numpy};

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
        // A subclass is an array of its base's library: a `torch.nn.Parameter`, or a class of a user's own.
        let roots = class.mro().iter().filter_map(|class| root_module(&class));
        for root in roots {
            let known = match root.as_str() {
                "numpy" => return Ok(Self::Numpy),
                // The classes of JAX are in another package.
                "jax" | "jaxlib" => &JAX,
                "torch" => &TORCH,
                "cupy" => &CUPY,
                // Their functions are in submodules, whose paths `Library` knows.
                "tensorflow" | "mlx" => {
                    return Ok(Self::Found(Arc::new(Library::named(py, &root)?)));
                }
                _ => continue,
            };
            return Ok(Self::Known(known.import_once(py)?));
        }
        let method = intern!(py, "__array_namespace__");
        let found = if class_attribute(&class, method).is_some() {
            Library::of_module(&object.call_method0(method)?)?
        } else {
            let module =
                root_module(&class).and_then(|root| imported_module(py, &PyString::new(py, &root)));
            module.map_or(Ok(None), |module| Library::of_module(&module))?
        };
        Ok(found.map_or(Self::Numpy, |library| Self::Found(Arc::new(library))))
    }
}

/// The package that defines a class: the first part of its `__module__`.
fn root_module(class: &Bound<'_, PyAny>) -> Option<String> {
    let py = class.py();
    let class = class.cast::<PyType>().ok()?;
    let module = class_attribute(class, intern!(py, "__module__"))?;
    let module = module.cast_into::<PyString>().ok()?;
    let module = module
        .to_cow()
        .map_err(|error| discard_error(py, error))
        .ok()?;
    module.split('.').next().map(str::to_owned)
}
