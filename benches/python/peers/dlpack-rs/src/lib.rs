//! A class exported with dlpack-rs: what its readme shows, with a clone of an `Arc` as the value that is given away.

use std::sync::Arc;

use dlpack_rs::pyo3_glue::IntoDLPack;
use dlpack_rs::safe::{TensorInfo, cpu_device, dtype_f32};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

#[pyclass(frozen)]
struct Image(Arc<Inner>);

struct Inner {
    pixels: Vec<f32>,
    shape: [i64; 3],
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

#[pymethods]
impl Image {
    #[new]
    fn new(height: usize, width: usize) -> Self {
        Self(Arc::new(Inner {
            pixels: (0..height * width * 3).map(|index| index as f32).collect(),
            shape: [height as i64, width as i64, 3],
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

#[pymodule]
fn peer_dlpack_rs(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Image>()
}
