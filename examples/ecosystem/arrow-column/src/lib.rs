//! Columns of Arrow as arrays of NumPy: the values where they are, and which of them are null.
//!
//! | from | to | your elements |
//! |---|---|---|
//! | an array, by `Quotes` | a column | are copied, once: Arrow's buffers never change, and Python's arrays may |
//! | an array, by `Quotes.over` | a column | stay where they are: the buffer keeps the array, which its caller promises not to write to |
//! | a column, or a slice of one | an array | stay where they are: the array keeps the buffer |
//! | the nulls, a bit each | an array of bool, a byte each | are written anew |
//!
//! ```text
//! cd examples/ecosystem/arrow-column && maturin develop --release && python quotes.py
//! ```
#![deny(unsafe_code)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer};
use bytes::Bytes;
use dlpack_pyo3::element::Plain;
use dlpack_pyo3::view::Promise;
use dlpack_pyo3::{DLPack, Numpy, View};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The buffer of a column, to which an array keeps a reference. Whatever types your columns have are variants.
#[derive(DLPack)]
enum Values {
    I64(ScalarBuffer<i64>),
    F64(ScalarBuffer<f64>),
}

impl Values {
    fn of(column: &ArrayRef) -> Option<Self> {
        let integers = column.as_primitive_opt::<Int64Type>();
        let floats = column.as_primitive_opt::<Float64Type>();
        let integers = integers.map(|column| Self::I64(column.values().clone()));
        integers.or_else(|| floats.map(|column| Self::F64(column.values().clone())))
    }
}

/// An array that is passed to `Quotes.over` is never written to again.
struct Frozen;
// SAFETY: the documentation of `Quotes.over`, the only function with such views, requires that of its callers.
#[expect(unsafe_code, reason = "Python code cannot be checked")]
unsafe impl Promise for Frozen {}

/// The array as a buffer, at the same address. The buffer keeps the array; Arrow drops it on any thread.
fn buffer<T: Plain + ArrowNativeType>(array: View<T, 1, Frozen>) -> PyResult<ScalarBuffer<T>> {
    let bytes = Bytes::from_owner(array.into_slice()?.into_bytes());
    Ok(Buffer::from(bytes).into())
}

/// A record batch of quotes: `time`, and a `price` that may be null.
#[pyclass(frozen, module = "arrow_column")]
struct Quotes(RecordBatch);

#[pymethods]
impl Quotes {
    /// Where the price is NaN, there is none.
    #[new]
    fn new(time: View<i64, 1>, price: View<f64, 1>) -> PyResult<Self> {
        let time = Int64Array::from(time.to_vec()?);
        let known = |price: f64| (!price.is_nan()).then_some(price);
        let price: Float64Array = price.iter().map(known).collect();
        Self::from_columns(time, price)
    }

    /// Quotes over the arrays themselves, without a copy. Do not write to them again, not through other arrays over their memory
    /// either: the columns of a record batch never change.
    #[staticmethod]
    fn over(time: View<i64, 1, Frozen>, price: View<f64, 1, Frozen>) -> PyResult<Self> {
        let time = Int64Array::new(buffer(time)?, None);
        let price = buffer(price)?;
        let known: NullBuffer = price.iter().map(|price| !price.is_nan()).collect();
        Self::from_columns(time, Float64Array::new(price, Some(known)))
    }

    /// The values of a column; what stands where there is none is nothing to rely on.
    fn values(&self, name: &str) -> PyResult<Numpy<Values>> {
        let column = self.column(name)?;
        let other = || PyTypeError::new_err(format!("{name} has {}", column.data_type()));
        Values::of(column).map(Numpy).ok_or_else(other)
    }

    /// Where a column has a value.
    fn valid(&self, name: &str) -> PyResult<Numpy<Vec<bool>>> {
        let column = self.column(name)?;
        let valid = (0..column.len()).map(|row| column.is_valid(row));
        Ok(Numpy(valid.collect()))
    }

    /// Some of the rows; nothing is copied.
    fn rows(&self, start: usize, count: usize) -> PyResult<Self> {
        let rows = self.0.num_rows();
        if start.checked_add(count).is_none_or(|end| end > rows) {
            let text = format!("rows from {start}, {count} of them, where there are {rows}");
            return Err(PyValueError::new_err(text));
        }
        Ok(Self(self.0.slice(start, count)))
    }
}

impl Quotes {
    fn from_columns(time: Int64Array, price: Float64Array) -> PyResult<Self> {
        let columns: [(_, ArrayRef); 2] = [("time", Arc::new(time)), ("price", Arc::new(price))];
        match RecordBatch::try_from_iter(columns) {
            Ok(batch) => Ok(Self(batch)),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }

    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        let column = self.0.column_by_name(name);
        column.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

/// What `import arrow_column` gets from Rust.
#[pymodule(name = "arrow_column", gil_used = false)]
mod module {
    #[pymodule_export]
    use super::Quotes;
}
