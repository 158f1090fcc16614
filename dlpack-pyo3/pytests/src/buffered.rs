//! Classes whose buffers and arrays are tested.

use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

use crate::alive::Alive;

/// A list of rows of two numbers.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(shape = [_, 2])]
pub(crate) struct Buffered {
    #[dlpack(data)]
    items: Vec<f32>,
    _alive: Alive,
}

#[dlpack_pymethods]
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

/// Defines `__array__` itself.
#[pyclass(frozen, subclass, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Own {
    #[dlpack(data)]
    items: Vec<f32>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Own {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        let _alive = Alive::new();
        Self { items, _alive }
    }

    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn __array__(&self) -> &'static str {
        "own"
    }
}
