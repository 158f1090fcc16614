use dlpack_pyo3::View;
use pyo3::prelude::*;

#[pyfunction]
fn corner(image: View<f32, 2>) -> f32 {
    image.at([0, 0, 0])
}

fn main() {}
