use dlpack_pyo3::View;
use pyo3::prelude::*;

#[pyfunction]
fn sum(samples: View<f32, 1>) -> PyResult<f32> {
    Ok(samples.as_slice()?.iter().sum())
}

fn main() {}
