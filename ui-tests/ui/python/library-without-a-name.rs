use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor)]
    rewards: Vec<f32>,
}

#[dlpack_pymethods(arrays = "")]
#[pymethods]
impl Batch {}

fn main() {}
