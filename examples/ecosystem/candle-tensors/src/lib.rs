//! Tensors of candle: an array in, candle's arithmetic, and its memory out to NumPy.
//!
//! | from | to | your elements |
//! |---|---|---|
//! | an array | a tensor | are copied, once: candle frees its memory itself |
//! | a tensor that you give away | an array | stay where they are, transposed and cut tensors too |
//! | a tensor that candle keeps | an array | are copied, once, by `Tensor::copy` |
//!
//! ```text
//! cd examples/ecosystem/candle-tensors && maturin develop --release && python layer.py
//! ```
#![forbid(unsafe_code)]

mod taken;

use candle_core::{Device, Result, Tensor};
use dlpack_pyo3::{Numpy, View};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::taken::{Taken, take};

/// A layer whose weight lives in candle.
#[pyclass(frozen, module = "candle_tensors")]
struct Layer {
    weight: Tensor,
}

#[pymethods]
impl Layer {
    #[new]
    fn new(weight: View<f32, 2>) -> PyResult<Self> {
        let weight = tensor(&weight)?;
        Ok(Self { weight })
    }

    /// The softmax of `x @ weight`, over each row.
    fn __call__(&self, py: Python<'_>, x: View<f32, 2>) -> PyResult<Numpy<Taken>> {
        py.detach(|| {
            let x = tensor(&x)?;
            let made = softmax(&x, &self.weight).and_then(take);
            made.map(Numpy).map_err(failed)
        })
    }

    /// A copy of the weight, which candle keeps.
    fn weight(&self) -> PyResult<Numpy<Taken>> {
        let copy = self.weight.copy().and_then(take);
        copy.map(Numpy).map_err(failed)
    }
}

/// Copies an array, whatever its strides, and gives the copy to candle, which takes it as it is.
fn tensor(array: &View<f32, 2>) -> PyResult<Tensor> {
    let [rows, columns] = array.shape();
    Tensor::from_vec(array.to_vec()?, (rows, columns), &Device::Cpu).map_err(failed)
}

fn softmax(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let y = x.matmul(weight)?;
    let y = y.broadcast_sub(&y.max_keepdim(1)?)?.exp()?;
    y.broadcast_div(&y.sum_keepdim(1)?)
}

/// Numbers that were moved into candle, transposed and cut there, and moved out; and the address that they began with.
#[pyfunction]
fn round_trip(rows: u16, columns: u16) -> PyResult<(Numpy<Taken>, usize)> {
    let (rows, columns) = (usize::from(rows), usize::from(columns));
    let numbers: Vec<_> = (0..rows * columns).map(|number| number as f32).collect();
    let address = numbers.as_ptr().addr();
    let tensor = Tensor::from_vec(numbers, (rows, columns), &Device::Cpu);
    let part = tensor.and_then(|tensor| tensor.t()?.narrow(0, 1, columns.saturating_sub(1)));
    let taken = part.and_then(take).map_err(failed)?;
    Ok((Numpy(taken), address))
}

fn failed(error: candle_core::Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// What `import candle_tensors` gets from Rust.
#[pymodule(name = "candle_tensors", gil_used = false)]
mod module {
    #[pymodule_export]
    use super::{Layer, round_trip};
}
