//! A class exported with dlpark, as its guide to Python shows it: the data in an `Arc`, a new header for
//! each export, and the C exchange table.

use std::sync::Arc;

use dlpark::ffi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned};
use dlpark::metadata::Fixed;
use dlpark::python::{
    DlpackExchangeProducer, DlpackExporter, ExportRequest, export_dlpack, install_exchange_api,
};
use dlpark::{DlpackFlags, Managed};
use pyo3::prelude::*;

#[pyclass(frozen)]
struct Image(Arc<Inner>);

struct Inner {
    pixels: Vec<f32>,
    shape: [i64; 3],
    strides: [i64; 3],
}

impl Image {
    /// What both header versions have in common; the crate's builder is generic over them.
    fn export<M: dlpark::ManagedTensorBase>(&self) -> PyResult<Managed<M>> {
        let Inner {
            pixels,
            shape,
            strides,
        } = &*self.0;
        let mut tensor = Fixed::new(*shape, *strides)
            .initialize_as::<M>(Arc::clone(&self.0))
            .map_err(|error| pyo3::exceptions::PyBufferError::new_err(error.to_string()))?;
        tensor
            .set_data(pixels.as_ptr().cast_mut().cast())
            .set_dtype(DLDataType::F32)
            .set_device(DLDevice::CPU);
        // SAFETY: shape and strides are those of the pixels, which the `Arc` keeps.
        Ok(unsafe { tensor.finish() })
    }
}

impl DlpackExporter for Image {
    fn device(&self) -> DLDevice {
        DLDevice::CPU
    }

    fn flags(&self) -> DlpackFlags {
        DlpackFlags::empty()
    }

    fn prepare_export(&self, _: Python<'_>, _: &ExportRequest<'_>) -> PyResult<()> {
        Ok(())
    }

    fn export_legacy(&self, _: Python<'_>) -> PyResult<Managed<DLManagedTensor>> {
        self.export()
    }

    fn export_versioned(&self, _: Python<'_>) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.export()
    }
}

// SAFETY: no borrowed view is offered, and no stream is current on the CPU.
unsafe impl DlpackExchangeProducer for Image {
    fn managed_tensor_no_sync(&self, _: Python<'_>) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.export()
    }

    fn current_work_stream(_: Python<'_>, _: DLDevice) -> PyResult<*mut std::ffi::c_void> {
        Ok(std::ptr::null_mut())
    }
}

#[pymethods]
impl Image {
    #[new]
    fn new(height: usize, width: usize) -> Self {
        let (h, w) = (height as i64, width as i64);
        Self(Arc::new(Inner {
            pixels: (0..height * width * 3).map(|index| index as f32).collect(),
            shape: [h, w, 3],
            strides: [w * 3, 3, 1],
        }))
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        export_dlpack(
            self,
            py,
            ExportRequest::parse(stream, max_version, dl_device, copy)?,
        )
    }

    fn __dlpack_device__(&self) -> (u32, i32) {
        (1, 0)
    }
}

#[pymodule]
fn peer_dlpark(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Image>()?;
    install_exchange_api::<Image>(module.py())
}
