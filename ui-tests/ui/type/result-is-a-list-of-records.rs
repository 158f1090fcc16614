use dlpack_pyo3::{Numpy, Record};
use pyo3::prelude::*;

#[derive(Record)]
#[repr(C)]
struct Trade {
    price: f64,
    size: u32,
}

#[pyfunction]
fn trades() -> Numpy<Vec<Trade>> {
    Numpy(Vec::new())
}

fn main() {}
