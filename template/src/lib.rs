//! A class that every Python array library reads without a copy.

use dlpack_pyo3::{DLPack, View, dlpack_pymethods};
use pyo3::prelude::*;

/// An image: `numpy.asarray(Image(480, 640))` is an array of shape (height, width, 3).
#[pyclass(frozen, module = "{{crate_name}}")]
#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

#[dlpack_pymethods]
#[pymethods]
impl Image {
    #[new]
    fn new(height: usize, width: usize) -> Self {
        let dims = [height, width, 3];
        Self {
            pixels: vec![0.5; height * width * 3],
            dims,
        }
    }
}

/// The mean of an array of any library, read in place.
#[pyfunction]
fn mean(array: View<f32, 1>) -> f32 {
    array.iter().sum::<f32>() / array.len() as f32
}

/// The Python module.
#[pymodule(gil_used = false)]
mod {{crate_name}} {
    /// Type stubs name it, and pickle finds it here.
    #[pymodule_export]
    use dlpack_pyo3::Tensor;

    #[pymodule_export]
    use super::{Image, mean};
}
