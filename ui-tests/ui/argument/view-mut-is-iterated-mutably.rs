use dlpack_pyo3::ViewMut;
use pyo3::prelude::*;

#[pyfunction]
fn double(mut samples: ViewMut<f32, 1>) {
    for sample in samples.iter_mut() {
        *sample *= 2.0;
    }
}

fn main() {}
