//! Functions that take arrays or give one, as rust-numpy's documentation writes them: a slice where the array is contiguous, else its
//! iterator.

use std::hint::black_box;

use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

#[pyfunction]
fn rank(array: PyReadonlyArray2<'_, f32>) -> usize {
    array.as_array().ndim()
}

#[pyfunction]
fn sum(array: PyReadonlyArray1<'_, f32>) -> PyResult<f32> {
    Ok(array.as_slice()?.iter().sum())
}

#[pyfunction]
fn largest(array: PyReadonlyArray2<'_, u8>) -> PyResult<Option<u8>> {
    Ok(array.as_slice()?.iter().copied().max())
}

/// So many numbers.
#[pyfunction]
fn give(py: Python<'_>, len: usize) -> Bound<'_, PyArray1<f32>> {
    vec![1.0; len].into_pyarray(py)
}

/// A copy in row-major order.
fn copied<T: Element + Copy>(array: &PyReadonlyArray2<'_, T>) -> usize {
    let array = array.as_array();
    let copy: Vec<T> = match array.as_slice() {
        Some(items) => items.to_vec(),
        None => array.iter().copied().collect(),
    };
    black_box(copy).len()
}

#[pyfunction]
fn copy_u8(array: PyReadonlyArray2<'_, u8>) -> usize {
    copied(&array)
}

#[pyfunction]
fn copy_f32(array: PyReadonlyArray2<'_, f32>) -> usize {
    copied(&array)
}

#[pyfunction]
fn copy_f64(array: PyReadonlyArray2<'_, f64>) -> usize {
    copied(&array)
}

#[pymodule]
fn peer_rust_numpy(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rank, module)?)?;
    module.add_function(wrap_pyfunction!(sum, module)?)?;
    module.add_function(wrap_pyfunction!(give, module)?)?;
    module.add_function(wrap_pyfunction!(largest, module)?)?;
    module.add_function(wrap_pyfunction!(copy_u8, module)?)?;
    module.add_function(wrap_pyfunction!(copy_f32, module)?)?;
    module.add_function(wrap_pyfunction!(copy_f64, module)?)
}
