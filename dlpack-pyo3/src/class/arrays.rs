//! Attributes that are arrays of a library. Each access creates one, over the tensor that the attribute would return.

use pyo3::types::{PyCFunction, PyDict, PyTuple};
use pyo3::{intern, prelude::*};

use crate::class::array::numpy_of;
use crate::library::function::{KnownLibrary, Library};

/// A property that wraps the descriptor of a tensor attribute. The library is imported on the first access.
pub(super) fn array_property<'py>(
    tensor: &Bound<'py, PyAny>,
    library: &'static str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let (descriptor, library) = (tensor.clone().unbind(), KnownLibrary::new(library));
    let get = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        let py = arguments.py();
        let object = arguments.get_item(0)?;
        let class = object.get_type();
        let descriptor = descriptor.bind(py);
        let tensor = descriptor.call_method1(intern!(py, "__get__"), (object, class))?;
        array_in_library(library.import_once(py)?, &tensor).map(Bound::unbind)
    };
    let get = PyCFunction::new_closure(py, None, None, get)?;
    let (set, delete, doc) = (
        tensor.getattr(intern!(py, "__set__"))?,
        py.None(),
        tensor.getattr(intern!(py, "__doc__"))?,
    );
    py.import(intern!(py, "builtins"))?
        .call_method1(intern!(py, "property"), (get, set, delete, doc))
}

/// An array of a library over the tensor that an object exports.
fn array_in_library<'py>(
    library: &Library,
    object: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if library.is_numpy() {
        return numpy_of(object);
    }
    library.create_array(object)
}
