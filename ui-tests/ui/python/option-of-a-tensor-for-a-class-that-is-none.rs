use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass]
#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor)]
    actions: Vec<i64>,
    #[dlpack(tensor)]
    rewards: Vec<f32>,
}

#[dlpack_pymethods(info)]
#[pymethods]
impl Batch {}

fn main() {}
