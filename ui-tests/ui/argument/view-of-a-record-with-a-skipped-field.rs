use dlpack_pyo3::{Record, View};
use pyo3::prelude::*;

#[derive(Record, Clone, Copy)]
#[repr(C)]
struct Trade {
    price: f64,
    #[dlpack(skip)]
    checksum: u32,
}

#[pyfunction]
fn take(trades: View<Trade, 1>) {
    drop(trades);
}

fn main() {}
