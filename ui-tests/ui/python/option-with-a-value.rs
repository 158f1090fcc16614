use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[dlpack_pymethods(info = true)]
#[pymethods]
impl Image {
    #[new]
    fn new() -> Self {
        Self { pixels: vec![], dims: [0, 0] }
    }
}

fn main() {}
