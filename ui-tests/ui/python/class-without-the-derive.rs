use dlpack_pyo3::dlpack_pymethods;
use pyo3::prelude::*;

#[pyclass]
struct Image {
    pixels: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Image {}

fn main() {}
