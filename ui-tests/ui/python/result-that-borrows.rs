use dlpack_pyo3::{DLPack, Numpy, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
struct Samples {
    #[dlpack(data)]
    values: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Samples {
    fn array(&self) -> Numpy<&Vec<f32>> {
        Numpy(&self.values)
    }
}

fn main() {}
