//! `torch.from_dlpack(cuda_python.Image(480, 640))`: a picture that stays in the GPU's memory.
#![forbid(unsafe_code)]

use cudarc::driver::{CudaContext, CudaSlice, DriverError};
use dlpack_pyo3::{DLPack, Device, dlpack_pymethods, stream};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Rows and columns of grey.
#[pyclass(frozen)]
#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: CudaSlice<f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[dlpack_pymethods]
#[pymethods]
impl Image {
    #[new]
    fn new(height: usize, width: usize) -> PyResult<Self> {
        // Where there is no driver, cudarc panics.
        stream::available(Device::cuda(0))?;
        Self::queued(height, width).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

impl Image {
    /// Queues the work that makes the pixels, and waits for none of it.
    fn queued(height: usize, width: usize) -> Result<Self, DriverError> {
        let stream = CudaContext::new(0)?.new_stream()?;
        let pixels = stream.clone_htod(&vec![0.5; height * width])?;
        let dims = [height, width];
        Ok(Self { pixels, dims })
    }
}

#[pymodule]
mod cuda_python {
    #[pymodule_export]
    use super::Image;
    #[pymodule_export]
    use dlpack_pyo3::functions::collect;
}
