use dlpack_pyo3::View;
use pyo3::prelude::*;

#[pyfunction]
fn first(samples: View<f32, 1>) -> f32 {
    samples[0]
}

fn main() {}
