//! A class for each rank, exported with dlpack-rs as in its readme: a clone of an `Arc` is the value that is moved into the
//! export. And functions that import.

use std::sync::Arc;

use dlpack_rs::pyo3_glue::{IntoDLPack, PyTensor};
use dlpack_rs::safe::{TensorInfo, cpu_device, dtype_f32};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

struct Inner {
    pixels: Vec<f32>,
    shape: Vec<i64>,
}

struct Export(Arc<Inner>);

impl IntoDLPack for Export {
    fn tensor_info(&self) -> TensorInfo {
        TensorInfo::contiguous(
            self.0.pixels.as_ptr().cast_mut().cast(),
            cpu_device(),
            dtype_f32(),
            self.0.shape.to_vec(),
        )
    }
}

/// The crate takes the shape as a list, whatever its rank.
#[pyclass(frozen)]
struct Image(Arc<Inner>);

#[pymethods]
impl Image {
    #[new]
    fn new(shape: Vec<i64>) -> Self {
        let count: i64 = shape.iter().product();
        Self(Arc::new(Inner {
            pixels: (0..count).map(|index| index as f32).collect(),
            shape,
        }))
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = (stream, dl_device, copy);
        let export = Export(Arc::clone(&self.0));
        if max_version.is_some_and(|(major, _)| major >= 1) {
            export.into_capsule_versioned(py, 0)
        } else {
            export.into_capsule(py)
        }
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }
}

/// Objects of 16 by 16 numbers.
#[pyfunction]
fn frames(count: usize) -> Vec<Image> {
    (0..count).map(|_| Image::new(vec![16, 16])).collect()
}

#[pyfunction]
fn any_rank(array: &Bound<'_, PyAny>) -> PyResult<usize> {
    let tensor = PyTensor::from_pyany(array.py(), array)?;
    let dtype = tensor.dtype();
    if (dtype.code, dtype.bits, dtype.lanes) != (2, 32, 1) {
        return Err(PyTypeError::new_err("an array of float32"));
    }
    Ok(tensor.shape().len())
}

#[pyfunction]
fn ranks(arrays: Vec<Bound<'_, PyAny>>) -> PyResult<usize> {
    arrays.iter().map(any_rank).sum()
}

#[pymodule]
mod peer_dlpack_rs {
    #[pymodule_export]
    use super::{Image, any_rank, frames, ranks};
}
