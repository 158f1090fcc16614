//! Arrays of other libraries as arguments, for work on our own stream or on their library's current stream.
#![expect(unsafe_code, reason = "borrows the caller's stream")]

use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr};
use dlpack_pyo3::{DeviceView, DeviceViewMut};
use pyo3::prelude::*;

use crate::device::{failed, gpu};
use crate::queue::Stream;
use crate::reading::Reading;

/// Queues a wait of this many nanoseconds, and then a kernel that writes this value to all elements.
#[pyfunction]
#[pyo3(signature = (x, value, stream=None, spin=0))]
pub(crate) fn fill(
    mut x: DeviceViewMut<'_, f32, 1>,
    value: f32,
    stream: Option<&Stream>,
    spin: u64,
) -> PyResult<()> {
    let gpu = gpu()?;
    let stream: Arc<CudaStream> = match stream {
        Some(stream) => Arc::clone(&stream.inner),
        // SAFETY: the stream is used only in this function, whose caller keeps it.
        None => unsafe { x.producer_stream(&gpu.context) }?,
    };
    let mut data = x.on(&stream)?;
    gpu.kernels.spin(&stream, spin).map_err(failed)?;
    gpu.kernels.fill(&stream, &mut data, value).map_err(failed)
}

/// Queues a wait and then a copy, and releases the array while both may be pending.
#[pyfunction]
#[pyo3(signature = (x, stream=None, spin=0))]
pub(crate) fn read(
    mut x: DeviceView<'_, f32, 1>,
    stream: Option<&Stream>,
    spin: u64,
) -> PyResult<Reading> {
    let gpu = gpu()?;
    let stream: Arc<CudaStream> = match stream {
        Some(stream) => Arc::clone(&stream.inner),
        // SAFETY: the script keeps the stream until the copy is made.
        None => unsafe { x.producer_stream(&gpu.context) }?,
    };
    let data = x.on(&stream)?;
    gpu.kernels.spin(&stream, spin).map_err(failed)?;
    let bytes = data.len() * size_of::<f32>();
    let (address, _read) = data.device_ptr(&stream);
    let address = usize::try_from(address).unwrap_or(0);
    Reading::queue(&stream, address, bytes)
}
