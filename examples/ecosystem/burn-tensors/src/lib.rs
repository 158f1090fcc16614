//! Tensors of burn: an array in, burn's arithmetic, and its memory out to NumPy.
//!
//! | from | to | your elements |
//! |---|---|---|
//! | an array | a tensor | are copied, once: burn frees its memory itself |
//! | a tensor that nobody else has, packed | an array | stay where they are, by `Tensor::into_data` |
//! | any other tensor | an array | are copied, once, by the same function |
//!
//! ```text
//! cd examples/ecosystem/burn-tensors && maturin develop --release && python attention.py
//! ```
#![forbid(unsafe_code)]

use burn_tensor::{Device, Tensor, TensorData, activation};
use dlpack_pyo3::{DLPack, Numpy, View};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What a tensor of burn was.
#[derive(DLPack)]
#[dlpack(data = self.0.as_bytes(), elem = f32, shape = &self.0.shape()[..])]
struct Taken(TensorData);

impl<const N: usize> From<Tensor<N>> for Taken {
    fn from(tensor: Tensor<N>) -> Self {
        Self(tensor.into_data())
    }
}

/// Copies an array, whatever its strides, and gives the copy to burn, which takes it as it is.
fn tensor(array: &View<f32, 2>) -> PyResult<Tensor<2>> {
    let data = TensorData::new(array.to_vec()?, array.shape());
    Ok(Tensor::from_data(data, &Device::flex()))
}

/// What each query finds: `softmax(queries @ keys.T) @ values`.
#[pyfunction]
fn attention(
    py: Python<'_>,
    queries: View<f32, 2>,
    keys: View<f32, 2>,
    values: View<f32, 2>,
) -> PyResult<Numpy<Taken>> {
    let [_, width] = queries.shape();
    let [count, _] = values.shape();
    if keys.shape() != [count, width] {
        // burn panics where shapes do not fit.
        let text = format!(
            "keys are {:?} instead of {:?}",
            keys.shape(),
            [count, width]
        );
        return Err(PyValueError::new_err(text));
    }
    py.detach(|| {
        let scores = tensor(&queries)?.matmul(tensor(&keys)?.transpose());
        let found = activation::softmax(scores, 1).matmul(tensor(&values)?);
        Ok(Numpy(found.into()))
    })
}

/// Numbers that were moved into burn and out again, transposed there or not; and the address that they began with.
#[pyfunction]
fn round_trip(rows: u16, columns: u16, transposed: bool) -> (Numpy<Taken>, usize) {
    let (rows, columns) = (usize::from(rows), usize::from(columns));
    let numbers: Vec<_> = (0..rows * columns).map(|number| number as f32).collect();
    let address = numbers.as_ptr().addr();
    let data = TensorData::new(numbers, [rows, columns]);
    let mut tensor = Tensor::<2>::from_data(data, &Device::flex());
    if transposed {
        tensor = tensor.transpose();
    }
    (Numpy(tensor.into()), address)
}

/// What `import burn_tensors` gets from Rust.
#[pymodule(name = "burn_tensors", gil_used = false)]
mod module {
    #[pymodule_export]
    use super::{attention, round_trip};
}
