use dlpack_pyo3::ViewMut;
use pyo3::prelude::*;

#[pyfunction]
fn shift(mut image: ViewMut<f32, 2>) {
    let mut first = image.index_mut(0, 0).unwrap();
    let mut second = image.index_mut(0, 0).unwrap();
    first.fill(0.0);
    second.fill(1.0);
}

fn main() {}
