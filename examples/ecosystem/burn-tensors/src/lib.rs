//! Tensors of burn: an array in, burn's arithmetic, and its memory out to NumPy.
//!
//! | from | to | your elements |
//! |---|---|---|
//! | an array, to `attention` | a tensor | are copied, once: a tensor may outlive the call |
//! | an array, to `over` | a tensor | stay where they are: burn's `Bytes` keep the array, which its caller promises not to write to |
//! | the only handle to a packed tensor | an array | stay where they are, by `Tensor::into_data` |
//! | any other tensor | an array | are copied, once, by the same function |
//!
//! ```text
//! cd examples/ecosystem/burn-tensors && maturin develop --release && python attention.py
//! ```
#![deny(unsafe_code)]

use burn_tensor::{AllocationProperty, Bytes, DType, Device, Tensor, TensorData, activation};
use dlpack_pyo3::view::Promise;
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

/// An array that is passed to `over` is never written to again.
struct Frozen;
// SAFETY: the documentation of `over`, the only function with such views, requires that of its callers.
#[expect(unsafe_code, reason = "Python code cannot be checked")]
unsafe impl Promise for Frozen {}

/// The array as a tensor, at the same address. burn reads shared bytes where they are, and copies them before it writes.
fn tensor_over(array: View<f32, 2, Frozen>) -> PyResult<Tensor<2>> {
    let shape = array.shape();
    let owner = bytes::Bytes::from_owner(array.into_slice()?.into_bytes());
    let bytes = Bytes::from_shared(owner, AllocationProperty::Other);
    let data = TensorData::from_bytes(bytes, shape, DType::F32);
    Ok(Tensor::from_data(data, &Device::flex()))
}

/// A tensor over the array itself, out again, with so much added. Do not write to the array again.
#[pyfunction]
fn over(array: View<f32, 2, Frozen>, added: Option<f32>) -> PyResult<Numpy<Taken>> {
    let tensor = tensor_over(array)?;
    let tensor = match added {
        Some(number) => tensor.add_scalar(number),
        None => tensor,
    };
    Ok(Numpy(tensor.into()))
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
    use super::{attention, over, round_trip};
}
