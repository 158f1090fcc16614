//! Functions that take an array of anybody's.

use std::hint::black_box;

use dlpack_pyo3::{Element, Tensor, py_err};
use pyo3::prelude::*;

#[pyfunction]
fn rank(array: Tensor) -> usize {
    array.view().shape().len()
}

#[pyfunction]
fn sum(array: Tensor) -> PyResult<f32> {
    Ok(array.view().iter::<f32>().map_err(py_err)?.sum())
}

#[pyfunction]
fn largest(array: Tensor) -> PyResult<Option<u8>> {
    Ok(array.view().iter::<u8>().map_err(py_err)?.max())
}

/// A copy in row-major order.
fn copied<T: Element>(array: &Tensor) -> PyResult<usize> {
    let copy: Vec<T> = array.view().to_vec().map_err(py_err)?;
    Ok(black_box(copy).len())
}

#[pyfunction]
fn copy_u8(array: Tensor) -> PyResult<usize> {
    copied::<u8>(&array)
}

#[pyfunction]
fn copy_f32(array: Tensor) -> PyResult<usize> {
    copied::<f32>(&array)
}

#[pyfunction]
fn copy_f64(array: Tensor) -> PyResult<usize> {
    copied::<f64>(&array)
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rank, module)?)?;
    module.add_function(wrap_pyfunction!(sum, module)?)?;
    module.add_function(wrap_pyfunction!(largest, module)?)?;
    module.add_function(wrap_pyfunction!(copy_u8, module)?)?;
    module.add_function(wrap_pyfunction!(copy_f32, module)?)?;
    module.add_function(wrap_pyfunction!(copy_f64, module)?)
}
