use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass]
#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor)]
    observations: Vec<f32>,
    #[dlpack(tensor)]
    rewards: Vec<f32>,
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Batch {}

fn main() {}
