use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor)]
    rewards: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Batch {
    #[getter]
    fn get_rewards(&self) -> Vec<f32> {
        self.rewards.clone()
    }
}

fn main() {}
