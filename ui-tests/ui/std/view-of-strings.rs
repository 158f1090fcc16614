use dlpack_pyo3::View;
use pyo3::prelude::*;

#[pyfunction]
fn count(names: View<String, 1>) -> usize {
    names.len()
}

fn main() {}
