use dlpack_pyo3::Numpy;
use pyo3::prelude::*;

#[pyfunction]
fn table() -> Numpy<Vec<Vec<f32>>> {
    Numpy(vec![vec![0.0; 3]; 2])
}

fn main() {}
