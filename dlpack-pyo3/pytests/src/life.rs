//! Classes whose tensors are set.

use dlpack_pyo3::{DLPack, SharedBuffer, dlpack_pymethods, py_err};
use pyo3::prelude::*;

use crate::alive::Alive;

/// Arrays can be put into its fields.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Settings {
    #[dlpack(tensor(set, shape = [rows, _]))]
    mask: Vec<bool>,
    #[dlpack(tensor(set))]
    weights: Option<Vec<[f32; 2]>>,
    #[dlpack(tensor(set, owner))]
    state: SharedBuffer<f64>,
    #[dlpack(tensor(set, shape = [2, _], order = "F"))]
    matrix: Vec<i32>,
    #[dlpack(tensor)]
    fixed: Vec<u8>,
    rows: usize,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Settings {
    #[new]
    fn new(rows: usize) -> PyResult<Self> {
        Ok(Self {
            mask: vec![false; rows * 3],
            weights: None,
            state: SharedBuffer::zeroed(rows).map_err(py_err)?,
            matrix: vec![0, 1, 2, 3],
            fixed: vec![0],
            rows,
            _alive: Alive::new(),
        })
    }

    /// The items as they lie.
    fn items(&self) -> (Vec<bool>, Vec<i32>) {
        (self.mask.clone(), self.matrix.clone())
    }

    /// Calls `function` while a method of this object reads it.
    fn during_read<'py>(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        function.call0()
    }
}
