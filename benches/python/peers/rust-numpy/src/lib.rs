//! Functions that take or return arrays, as in rust-numpy's documentation: they use a slice if the array is contiguous, otherwise
//! its iterator.

mod programs;

use std::hint::black_box;

use numpy::{
    Element, IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyReadonlyArray3, PyReadonlyArray4, PyReadonlyArrayDyn, PyReadwriteArray1,
};
use pyo3::prelude::*;

#[pyfunction]
fn any_rank(array: PyReadonlyArrayDyn<'_, f32>) -> usize {
    array.as_array().ndim()
}

#[pyfunction]
fn ranks(arrays: Vec<PyReadonlyArray2<'_, f32>>) -> usize {
    arrays.iter().map(|array| array.as_array().ndim()).sum()
}

#[pyfunction]
fn rank_1(array: PyReadonlyArray1<'_, f32>) -> usize {
    array.as_array().ndim()
}

#[pyfunction]
fn rank_1_mut(array: PyReadwriteArray1<'_, f32>) -> usize {
    array.as_array().ndim()
}

#[pyfunction]
fn ranks_1_mut(written: PyReadwriteArray1<'_, f32>, read: PyReadonlyArray1<'_, f32>) -> usize {
    written.as_array().ndim() + read.as_array().ndim()
}

#[pyfunction]
fn rank_2(array: PyReadonlyArray2<'_, f32>) -> usize {
    array.as_array().ndim()
}

#[pyfunction]
fn rank_3(array: PyReadonlyArray3<'_, f32>) -> usize {
    array.as_array().ndim()
}

#[pyfunction]
fn rank_4(array: PyReadonlyArray4<'_, f32>) -> usize {
    array.as_array().ndim()
}

#[pyfunction]
fn sum(array: PyReadonlyArray1<'_, f32>) -> PyResult<f32> {
    Ok(array.as_slice()?.iter().sum())
}

/// The sum in the order of ndarray, which is not that of the elements.
#[pyfunction]
fn reduce_sum(array: PyReadonlyArray1<'_, f32>) -> f32 {
    array.as_array().sum()
}

#[pyfunction]
fn reduce_max(array: PyReadonlyArray1<'_, f32>) -> f32 {
    array.as_array().fold(f32::MIN, |most, &one| most.max(one))
}

#[pyfunction]
fn largest(array: PyReadonlyArray2<'_, u8>) -> PyResult<Option<u8>> {
    Ok(array.as_slice()?.iter().copied().max())
}

/// As many ones as the argument has numbers.
#[pyfunction]
fn same<'py>(py: Python<'py>, array: PyReadonlyArray1<'py, f32>) -> Bound<'py, PyArray1<f32>> {
    vec![1.0; array.as_array().len()].into_pyarray(py)
}

/// As many numbers as the argument says.
#[pyfunction]
fn give(py: Python<'_>, len: usize) -> Bound<'_, PyArray1<f32>> {
    vec![1.0; len].into_pyarray(py)
}

/// Arrays of 16 by 16 numbers.
#[pyfunction]
fn arrays(py: Python<'_>, count: usize) -> Vec<Bound<'_, PyArray1<f32>>> {
    (0..count).map(|_| give(py, 256)).collect()
}

/// Keeps an array, and returns it from a getter.
#[pyclass(frozen)]
struct Held {
    #[pyo3(get)]
    array: Py<PyArray1<f32>>,
}

#[pymethods]
impl Held {
    #[new]
    fn new(py: Python<'_>, len: usize) -> Self {
        let array = give(py, len).unbind();
        Self { array }
    }
}

/// Copies an array that is set.
#[pyclass]
struct Settable {
    pixels: Vec<f32>,
}

#[pymethods]
impl Settable {
    #[new]
    fn new(len: usize) -> Self {
        let pixels = vec![0.0; len];
        Self { pixels }
    }

    #[setter]
    fn set_pixels(&mut self, array: PyReadonlyArray1<'_, f32>) -> PyResult<()> {
        self.pixels = array.to_vec()?;
        Ok(())
    }
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
mod peer_rust_numpy {
    #[pymodule_export]
    use super::programs::{Environments, Loader, table};
    #[pymodule_export]
    use super::{
        Held, Settable, any_rank, arrays, copy_f32, copy_f64, copy_u8, give, largest, rank_1,
        rank_1_mut, rank_2, rank_3, rank_4, ranks, ranks_1_mut, reduce_max, reduce_sum, same, sum,
    };
}
