//! Functions that take an array of any library, or return one.

use std::hint::black_box;

use dlpack_pyo3::element::Plain;
use dlpack_pyo3::view::Promise;
use dlpack_pyo3::{Imported, Numpy, View, ViewDyn, ViewMut};
use pyo3::prelude::*;

/// These functions hold the GIL, and call no Python.
pub struct Alone;
// SAFETY: no other code runs while a function holds the GIL, because the bench has one thread.
#[expect(unsafe_code, reason = "as in a user's crate")]
unsafe impl Promise for Alone {}

#[pyfunction]
pub fn any_rank(array: ViewDyn<f32>) -> usize {
    array.rank()
}

#[pyfunction]
pub fn rank_1(array: View<f32, 1>) -> usize {
    array.rank()
}

/// Writes its argument.
#[pyfunction]
pub fn rank_1_mut(array: ViewMut<f32, 1>) -> usize {
    array.rank()
}

/// Writes one argument, and reads the other.
#[pyfunction]
pub fn ranks_1_mut(written: ViewMut<f32, 1>, read: View<f32, 1>) -> usize {
    written.rank() + read.rank()
}

#[pyfunction]
pub fn rank_2(array: View<f32, 2>) -> usize {
    array.rank()
}

#[pyfunction]
pub fn rank_3(array: View<f32, 3>) -> usize {
    array.rank()
}

#[pyfunction]
pub fn rank_4(array: View<f32, 4>) -> usize {
    array.rank()
}

#[pyfunction]
pub fn sum(array: View<f32, 1>) -> f32 {
    array.iter().sum()
}

/// The sum in the order that is fastest.
#[pyfunction]
pub fn reduce_sum(array: View<f32, 1>) -> f32 {
    array.sum()
}

#[pyfunction]
pub fn reduce_max(array: View<f32, 1>) -> Option<f32> {
    array.max()
}

#[pyfunction]
pub fn largest(array: View<u8, 2>) -> Option<u8> {
    array.iter().max()
}

/// The sum with a slice, under a promise.
#[pyfunction]
pub fn sum_of_slice(array: View<f32, 1, Alone>) -> PyResult<f32> {
    Ok(array.as_slice()?.iter().sum())
}

#[pyfunction]
pub fn largest_of_slice(array: View<u8, 2, Alone>) -> PyResult<Option<u8>> {
    Ok(array.as_slice()?.iter().copied().max())
}

/// As many numbers as the argument says.
#[pyfunction]
pub fn give(len: usize) -> Numpy<Vec<f32>> {
    Numpy(vec![1.0; len])
}

/// A copy in row-major order.
fn copied<T: Plain>(array: &View<T, 2>) -> PyResult<usize> {
    Ok(black_box(array.to_vec()?).len())
}

#[pyfunction]
pub fn copy_u8(array: View<u8, 2>) -> PyResult<usize> {
    copied(&array)
}

#[pyfunction]
pub fn copy_f32(array: View<f32, 2>) -> PyResult<usize> {
    copied(&array)
}

#[pyfunction]
pub fn copy_f64(array: View<f64, 2>) -> PyResult<usize> {
    copied(&array)
}

#[pyfunction]
pub fn import_u8(array: Imported<Vec<u8>>) -> usize {
    array.len()
}

#[pyfunction]
pub fn import_f32(array: Imported<Vec<f32>>) -> usize {
    array.len()
}

#[pyfunction]
pub fn import_f64(array: Imported<Vec<f64>>) -> usize {
    array.len()
}
