//! The values of attributes: tensors, or arrays of a library over them. Each access creates one.
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use dlpack_core::binding::{export_with, share_allocation, unordered_request};
use dlpack_core::{Descriptor, Error, Managed};
use pyo3::{IntoPyObjectExt, prelude::*};

use crate::class::tensor::Tensor;
use crate::error::{OrRaise, Raised};
use crate::exchange::foreign::torch_table;
use crate::library::function::{KnownLibrary, Library};
use crate::library::numpy::{array_over_memory, array_over_tensor};

/// An attribute of a class, which the data of its descriptor points to.
pub(super) struct TensorAttribute {
    /// The position of its name among those of the class.
    pub(super) index: usize,
    /// The library of its arrays, which is imported on the first access; without one it is a [`Tensor`].
    pub(super) library: Option<KnownLibrary>,
}

impl TensorAttribute {
    /// Whether the attribute is a NumPy array.
    fn is_numpy(&self, py: Python<'_>) -> Result<bool, Raised> {
        let Some(library) = &self.library else {
            return Ok(false);
        };
        Ok(library.import_once(py).or_raise(py)?.is_numpy())
    }

    /// A NumPy array that keeps the shared allocation of a tensor, if there is one and the attribute is such an array. For other
    /// libraries the tensor is not described.
    pub(super) fn create_over_allocation<'py, 'a>(
        &self,
        py: Python<'py>,
        describe: impl FnOnce() -> Result<Descriptor<'a>, Error>,
    ) -> Result<Option<Bound<'py, PyAny>>, Raised> {
        if !self.is_numpy(py)? {
            return Ok(None);
        }
        let described = describe();
        let described = (&described).or_raise(py)?;
        let Some(allocation) = share_allocation(described) else {
            return Ok(None);
        };
        // SAFETY: the handle keeps the allocation, which contains every item of the tensor.
        unsafe { array_over_memory(py, described, || allocation) }.transpose()
    }

    /// The attribute's value for a described tensor, which keeps `owner`.
    ///
    /// # Safety
    ///
    /// The owner keeps the described memory valid until it is dropped.
    pub(super) unsafe fn create_described<'py, O: Send + 'static>(
        &self,
        py: Python<'py>,
        described: &mut Descriptor<'_>,
        owner: O,
    ) -> Result<Bound<'py, PyAny>, Raised> {
        let mut owner = Some(owner);
        let mut take = || owner.take().expect("it is taken once");
        if self.is_numpy(py)? {
            // SAFETY: the owner keeps the described memory valid, by this function's contract.
            if let Some(array) = unsafe { array_over_memory(py, described, &mut take) } {
                return array;
            }
        }
        let request = unordered_request(described.device());
        // SAFETY: the owner keeps the described memory valid, by this function's contract.
        let tensor = unsafe { export_with(take(), described, &request) }.or_raise(py)?;
        self.create_value(py, tensor).or_raise(py)
    }

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
