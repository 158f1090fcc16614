//! The values of attributes: tensors, or arrays of a library over them. Each access creates one.

use dlpack_core::Managed;
use pyo3::{IntoPyObjectExt, prelude::*};

use crate::class::tensor::Tensor;
use crate::exchange::foreign::torch_table;
use crate::library::function::{KnownLibrary, Library};
use crate::library::numpy::array_over_tensor;

/// An attribute of a class, which the data of its descriptor points to.
pub(super) struct TensorAttribute {
    /// The position of its name among those of the class.
    pub(super) index: usize,
    /// The library of its arrays, which is imported on the first access; without one it is a [`Tensor`].
    pub(super) library: Option<KnownLibrary>,
}

impl TensorAttribute {
    /// The attribute's value for a tensor of the object.
    pub(super) fn create_value<'py>(
        &self,
        py: Python<'py>,
        tensor: Managed,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(library) = &self.library else {
            return Tensor::new(tensor).into_bound_py_any(py);
        };
        array_of_tensor(py, library.import_once(py)?, tensor)
    }
}

/// An array of a library over a tensor, which it owns: by the library's C API if it has one, else by its `from_dlpack`.
#[inline(never)]
pub(crate) fn array_of_tensor<'py>(
    py: Python<'py>,
    library: &Library,
    tensor: Managed,
) -> PyResult<Bound<'py, PyAny>> {
    if library.is_numpy() {
        return array_over_tensor(py, tensor);
    }
    let table = library.is_torch().then(|| torch_table(py)).flatten();
    match table {
        Some(table) => table.create_object(py, tensor),
        None => library.create_array(&Tensor::new(tensor).into_bound_py_any(py)?),
    }
}
