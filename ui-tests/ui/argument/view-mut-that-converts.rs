use dlpack_pyo3::{ViewMut, view::Convert};
use pyo3::prelude::*;

#[pyfunction]
fn clear(mut samples: ViewMut<f32, 1, Convert>) {
    samples.fill(0.0);
}

fn main() {}
