use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[dlpack_pymethods]
#[pyclass(frozen)]
#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
