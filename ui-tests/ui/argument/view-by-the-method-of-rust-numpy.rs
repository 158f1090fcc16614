use dlpack_pyo3::View;
use pyo3::prelude::*;

#[pyfunction]
fn sum(matrix: View<f32, 2>) -> PyResult<f32> {
    Ok(matrix.as_array()?.sum())
}

fn main() {}
