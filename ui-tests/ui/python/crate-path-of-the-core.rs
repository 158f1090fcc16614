use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
#[dlpack(crate = ::dlpack_core)]
struct Samples {
    #[dlpack(data)]
    values: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Samples {}

fn main() {}
