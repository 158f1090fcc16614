use dlpack_pyo3::dlpack_pymethods;
use pyo3::prelude::*;

#[pyclass(frozen)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Image {}

fn main() {}
