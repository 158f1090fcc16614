//! Several tensors in one object: what a learner wants of many steps.

use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

/// Steps in an environment. Each field is an attribute, and a tensor.
#[pyclass(frozen, module = "dlpack_showcase")]
#[derive(DLPack, Default)]
pub struct Batch {
    /// Where the cart is and how fast, and the same of the pole: four numbers a step.
    #[dlpack(tensor(shape = [_, 4]))]
    observations: Vec<f32>,
    #[dlpack(tensor)]
    actions: Vec<i64>,
    /// 1.0 a step, as long as the pole stands.
    #[dlpack(tensor)]
    rewards: Vec<f32>,
    #[dlpack(tensor)]
    fallen: Vec<bool>,
}

impl Batch {
    pub(crate) fn push(&mut self, observation: [f32; 4], right: bool, reward: f32, fallen: bool) {
        self.observations.extend(observation);
        self.actions.push(right.into());
        self.rewards.push(reward);
        self.fallen.push(fallen);
    }
}

#[dlpack_pymethods]
#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.actions.len()
    }
}
