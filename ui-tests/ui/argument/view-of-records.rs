use dlpack_pyo3::View;
use pyo3::prelude::*;

struct Point {
    x: f32,
}

#[pyfunction]
fn first(points: View<Point, 1>) -> f32 {
    points.at([0]).x
}

fn main() {}
