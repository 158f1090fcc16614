use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
struct Trace {
    values: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Trace {
    fn push(&mut self, value: f32) {
        self.values.push(value);
    }
}

fn main() {}
