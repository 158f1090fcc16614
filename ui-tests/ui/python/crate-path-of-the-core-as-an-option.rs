use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
struct Samples {
    #[dlpack(data)]
    values: Vec<f32>,
}

#[dlpack_pymethods(crate = ::dlpack_core)]
#[pymethods]
impl Samples {}

fn main() {}
