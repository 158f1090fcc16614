//! The class that the README shows; `cargo xtask ci` compares the two.

use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

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

#[pymodule(name = "quickstart")]
mod quickstart {
    #[pymodule_export]
    use super::Image;
}
