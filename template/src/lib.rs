//! A class of Rust that every array library of Python reads without a copy.

use dlpack_pyo3::{DLPack, View, dlpack_pymethods};
use pyo3::prelude::*;

/// A picture: `numpy.asarray(Image(480, 640))` is an array of (height, width, 3).
#[pyclass(frozen)]
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

/// The mean of an array of any library, where it lies.
#[pyfunction]
fn mean(array: View<f32, 1>) -> f32 {
    array.iter().sum::<f32>() / array.len() as f32
}

/// What `import {{crate_name}}` gets.
#[pymodule(gil_used = false)]
mod {{crate_name}} {
    #[pymodule_export]
    use super::{Image, mean};
}
