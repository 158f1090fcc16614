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

#[dlpack_pymethods]
#[pymethods]
impl Image {
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }
}

fn main() {}
