use dlpack_pyo3::ViewMut;
use pyo3::prelude::*;

#[pyfunction]
fn exchange(mut a: ViewMut<f32, 1>, mut b: ViewMut<f32, 1>) {
    core::mem::swap(&mut *a, &mut *b);
}

fn main() {}
