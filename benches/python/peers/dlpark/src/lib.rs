//! A class for each rank, exported with dlpark as in its guide to Python: the data in an `Arc`, a new header for each export, and
//! the C exchange table. And functions that import.

use std::sync::Arc;

use dlpark::ffi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned};
use dlpark::metadata::Fixed;
use dlpark::python::{
    DlpackExchangeProducer, DlpackExporter, ExportRequest, export_dlpack, from_dlpack,
    install_exchange_api,
};
use dlpark::{DlpackFlags, Managed};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;

struct Inner<const N: usize> {
    pixels: Vec<f32>,
    shape: [i64; N],
    strides: [i64; N],
}

impl<const N: usize> Inner<N> {
    fn new(shape: [i64; N]) -> Self {
        let mut strides = [1; N];
        for axis in (1..N).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        let count: i64 = shape.iter().product();
        Self {
            pixels: (0..count).map(|index| index as f32).collect(),
            shape,
            strides,
        }
    }

    /// The common part of both header versions; the crate's builder is generic over them.
    fn export<M: dlpark::ManagedTensorBase>(self: &Arc<Self>) -> PyResult<Managed<M>> {
        let Self {
            pixels,
            shape,
            strides,
        } = &**self;
        let mut tensor = Fixed::new(*shape, *strides)
            .initialize_as::<M>(Arc::clone(self))
            .map_err(|error| PyBufferError::new_err(error.to_string()))?;
        tensor
            .set_data(pixels.as_ptr().cast_mut().cast())
            .set_dtype(DLDataType::F32)
            .set_device(DLDevice::CPU);
        // SAFETY: shape and strides are those of the pixels, which the `Arc` keeps.
        Ok(unsafe { tensor.finish() })
    }
}

macro_rules! class {
    ($name:ident $rank:literal) => {
        #[pyclass(frozen)]
        struct $name(Arc<Inner<$rank>>);

        impl DlpackExporter for $name {
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
                self.0.export()
            }

            fn export_versioned(
                &self,
                _: Python<'_>,
            ) -> PyResult<Managed<DLManagedTensorVersioned>> {
                self.0.export()
            }
        }

        // SAFETY: no borrowed view is offered, and no stream is current on the CPU.
        unsafe impl DlpackExchangeProducer for $name {
            fn managed_tensor_no_sync(
                &self,
                _: Python<'_>,
            ) -> PyResult<Managed<DLManagedTensorVersioned>> {
                self.0.export()
            }

            fn current_work_stream(_: Python<'_>, _: DLDevice) -> PyResult<*mut std::ffi::c_void> {
                Ok(std::ptr::null_mut())
            }
        }

        #[pymethods]
        impl $name {
            #[new]
            fn new(dims: [i64; $rank]) -> Self {
                Self(Arc::new(Inner::new(dims)))
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
    };
}

class!(Image1 1);
class!(Image2 2);
class!(Image3 3);
class!(Image4 4);

/// Objects of 16 by 16 numbers.
#[pyfunction]
fn frames(count: usize) -> Vec<Image2> {
    (0..count).map(|_| Image2::new([16, 16])).collect()
}

#[pyfunction]
fn any_rank(array: &Bound<'_, PyAny>) -> PyResult<usize> {
    let imported = from_dlpack(array.as_borrowed(), None, None)?;
    let tensor = imported
        .validate()
        .map_err(|error| PyBufferError::new_err(error.to_string()))?;
    if tensor.dtype() != DLDataType::F32 {
        return Err(PyTypeError::new_err("an array of float32"));
    }
    Ok(tensor.shape().len())
}

#[pyfunction]
fn ranks(arrays: Vec<Bound<'_, PyAny>>) -> PyResult<usize> {
    arrays.iter().map(any_rank).sum()
}

#[pymodule]
fn peer_dlpark(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Image1>()?;
    module.add_class::<Image2>()?;
    module.add_class::<Image3>()?;
    module.add_class::<Image4>()?;
    module.add_function(wrap_pyfunction!(frames, module)?)?;
    module.add_function(wrap_pyfunction!(any_rank, module)?)?;
    module.add_function(wrap_pyfunction!(ranks, module)?)?;
    install_exchange_api::<Image1>(module.py())?;
    install_exchange_api::<Image2>(module.py())?;
    install_exchange_api::<Image3>(module.py())?;
    install_exchange_api::<Image4>(module.py())
}
