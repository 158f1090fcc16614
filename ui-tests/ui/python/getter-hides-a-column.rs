use dlpack_pyo3::{DLPack, Record, dlpack_pymethods};
use pyo3::prelude::*;

#[derive(Record)]
#[repr(C)]
struct Trade {
    price: f64,
    size: u32,
}

#[pyclass(frozen)]
#[derive(DLPack)]
struct Tape {
    #[dlpack(columns)]
    trades: Vec<Trade>,
}

#[dlpack_pymethods]
#[pymethods]
impl Tape {
    #[getter(price)]
    fn mean_price(&self) -> f64 {
        self.trades[0].price
    }
}

fn main() {}
