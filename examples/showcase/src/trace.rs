//! A class that changes: it grows, except while an array over it lives.

use dlpack_pyo3::{DLPack, borrow_mut_or_buffer_error, dlpack_pymethods};
use pyo3::prelude::*;

/// Measurements, one after another.
#[pyclass(module = "dlpack_showcase")]
#[derive(DLPack)]
pub struct Trace {
    values: Vec<f64>,
}

#[dlpack_pymethods(iterable)]
#[pymethods]
impl Trace {
    /// None yet.
    #[new]
    fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// Adds one. RuntimeError while an array looks at the others: they might have to move.
    fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// Adds several. BufferError while an array looks at the others, as `bytearray.extend` has it.
    fn extend(slf: &Bound<'_, Self>, values: Vec<f64>) -> PyResult<()> {
        borrow_mut_or_buffer_error(slf)?.values.extend(values);
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.values.len()
    }
}
