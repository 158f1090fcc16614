use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor(set))]
    mask: Vec<bool>,
}

#[dlpack_pymethods]
#[pymethods]
impl Batch {}

fn main() {}
