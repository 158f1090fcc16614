use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

use std::cell::Cell;

#[pyclass(unsendable)]
#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    seen: Cell<u32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Image {}

fn main() {}

// CAP-19
