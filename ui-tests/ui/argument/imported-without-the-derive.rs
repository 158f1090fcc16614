use dlpack_pyo3::Imported;
use pyo3::prelude::*;

struct Points {
    values: Vec<f32>,
}

#[pyfunction]
fn count(points: Imported<Points>) -> usize {
    points.values.len()
}

fn main() {}
