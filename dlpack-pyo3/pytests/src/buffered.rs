//! [`Buffered`]: a class with the buffer protocol, which the stable ABI of Python 3.10 does not have.

use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

use crate::alive::Alive;

/// Has Python's buffer protocol too.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(shape = [_, 2])]
pub(crate) struct Buffered {
    #[dlpack(data)]
    items: Vec<f32>,
    _alive: Alive,
}

#[dlpack_pymethods(buffer)]
#[pymethods]
impl Buffered {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        let _alive = Alive::new();
        Self { items, _alive }
    }

    fn clear(&mut self) {
        self.items = Vec::new();
    }
}
