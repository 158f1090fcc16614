use dlpack_pyo3::View;
use pyo3::prelude::*;

#[pyfunction]
fn same(samples: View<f32, 1>) -> View<f32, 1> {
    samples
}

fn main() {}
