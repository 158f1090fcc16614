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
    #[pyo3(name = "__dlpack__")]
    fn export(&self) -> usize {
        self.pixels.len()
    }
}

fn main() {}
