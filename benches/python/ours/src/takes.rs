//! Functions that take an array of anybody's, or give one.

use std::hint::black_box;

use dlpack_pyo3::element::Plain;
use dlpack_pyo3::view::Promise;
use dlpack_pyo3::{Imported, Numpy, View};
use pyo3::prelude::*;

/// These functions hold the GIL, and call no Python.
struct Alone;
// SAFETY: so nobody else runs meanwhile; the bench has one thread.
#[expect(unsafe_code, reason = "what a user writes who wants slices")]
unsafe impl Promise for Alone {}

#[pyfunction]
fn rank(array: View<f32, 2>) -> usize {
    array.rank()
}

#[pyfunction]
fn rank_1(array: View<f32, 1>) -> usize {
    array.rank()
}

#[pyfunction]
fn rank_3(array: View<f32, 3>) -> usize {
    array.rank()
}

#[pyfunction]
fn sum(array: View<f32, 1>) -> f32 {
    array.iter().sum()
}

#[pyfunction]
fn largest(array: View<u8, 2>) -> Option<u8> {
    array.iter().max()
}

/// The same with slices, on a promise.
#[pyfunction]
fn sum_of_slice(array: View<f32, 1, Alone>) -> PyResult<f32> {
    Ok(array.as_slice()?.iter().sum())
}

#[pyfunction]
fn largest_of_slice(array: View<u8, 2, Alone>) -> PyResult<Option<u8>> {
    Ok(array.as_slice()?.iter().copied().max())
}

/// So many numbers.
#[pyfunction]
fn give(len: usize) -> Numpy<Vec<f32>> {
    Numpy(vec![1.0; len])
}

/// A copy in row-major order.
fn copied<T: Plain>(array: &View<T, 2>) -> PyResult<usize> {
    Ok(black_box(array.to_vec()?).len())
}

#[pyfunction]
fn copy_u8(array: View<u8, 2>) -> PyResult<usize> {
    copied(&array)
}

#[pyfunction]
fn copy_f32(array: View<f32, 2>) -> PyResult<usize> {
    copied(&array)
}

#[pyfunction]
fn copy_f64(array: View<f64, 2>) -> PyResult<usize> {
    copied(&array)
}

#[pyfunction]
fn import_u8(array: Imported<Vec<u8>>) -> usize {
    array.len()
}

#[pyfunction]
fn import_f32(array: Imported<Vec<f32>>) -> usize {
    array.len()
}

#[pyfunction]
fn import_f64(array: Imported<Vec<f64>>) -> usize {
    array.len()
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rank, module)?)?;
    module.add_function(wrap_pyfunction!(rank_1, module)?)?;
    module.add_function(wrap_pyfunction!(rank_3, module)?)?;
    module.add_function(wrap_pyfunction!(give, module)?)?;
    module.add_function(wrap_pyfunction!(sum, module)?)?;
    module.add_function(wrap_pyfunction!(largest, module)?)?;
    module.add_function(wrap_pyfunction!(sum_of_slice, module)?)?;
    module.add_function(wrap_pyfunction!(largest_of_slice, module)?)?;
    module.add_function(wrap_pyfunction!(copy_u8, module)?)?;
    module.add_function(wrap_pyfunction!(copy_f32, module)?)?;
    module.add_function(wrap_pyfunction!(copy_f64, module)?)?;
    module.add_function(wrap_pyfunction!(import_u8, module)?)?;
    module.add_function(wrap_pyfunction!(import_f32, module)?)?;
    module.add_function(wrap_pyfunction!(import_f64, module)?)
}
