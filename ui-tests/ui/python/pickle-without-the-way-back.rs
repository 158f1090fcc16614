use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass]
#[derive(DLPack)]
struct Batch {
    #[dlpack(data)]
    items: Vec<f32>,
    size: usize,
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Batch {}

fn main() {}
