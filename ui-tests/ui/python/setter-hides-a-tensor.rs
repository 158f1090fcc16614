use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass]
#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor)]
    rewards: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Batch {
    #[setter]
    fn set_rewards(&mut self, rewards: Vec<f32>) {
        self.rewards = rewards;
    }
}

fn main() {}
