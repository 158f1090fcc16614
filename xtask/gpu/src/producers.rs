//! Tensors in each kind of memory, which a slow kernel writes.
#![expect(unsafe_code, reason = "allocates memory that is written at once")]

use std::sync::Arc;

use cudarc::driver::{
    CudaSlice, CudaStream, DevicePtrMut, DriverError, PinnedHostSlice, UnifiedSlice, sys,
};
use dlpack_pyo3::{DLPack, Device, DeviceType, StreamHandle, dlpack_pymethods};
use pyo3::prelude::*;

use crate::device::{failed, gpu};
use crate::queue::Stream;

/// Queues a wait and then a kernel that writes `value` to all elements.
fn spin_write(
    stream: &CudaStream,
    data: &mut impl DevicePtrMut<f32>,
    nanoseconds: u64,
    value: f32,
) -> PyResult<()> {
    let kernels = &gpu()?.kernels;
    kernels
        .spin(stream, nanoseconds)
        .and_then(|()| kernels.fill(stream, data, value))
        .map_err(failed)
}

/// Zeros on the device, completely written.
fn zeros(stream: &Arc<CudaStream>, n: usize) -> Result<CudaSlice<f32>, DriverError> {
    let data = stream.alloc_zeros(n)?;
    stream.synchronize()?;
    Ok(data)
}

macro_rules! on_device {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        #[pyclass(module = "dlpack_gpu")]
        #[derive(DLPack)]
        $(#[$meta])*
        pub(crate) struct $name {
            #[dlpack(data)]
            data: CudaSlice<f32>,
            on: Arc<CudaStream>,
        }

        #[dlpack_pymethods]
        #[pymethods]
        impl $name {
            #[new]
            fn new(stream: &Stream, n: usize) -> PyResult<Self> {
                let on = Arc::clone(&stream.inner);
                let data = zeros(&on, n).map_err(failed)?;
                Ok(Self { data, on })
            }

            /// Queues a wait of this many nanoseconds, and then a kernel that writes this value to all elements.
            fn spin_write(&mut self, nanoseconds: u64, value: f32) -> PyResult<()> {
                spin_write(&self.on, &mut self.data, nanoseconds, value)
            }
        }
    )*};
}

on_device! {
    /// Device memory that is freed after the consumer's work.
    Prod;
    /// Freed without waiting, as by other libraries: the negative control, which must fail.
    #[dlpack(release = "immediate")]
    Immediate;
}

/// Host memory that the device can access.
#[pyclass(module = "dlpack_gpu")]
#[derive(DLPack)]
pub(crate) struct Pinned {
    #[dlpack(data)]
    data: PinnedHostSlice<f32>,
    scratch: CudaSlice<f32>,
    on: Arc<CudaStream>,
}

#[dlpack_pymethods]
#[pymethods]
impl Pinned {
    #[new]
    fn new(stream: &Stream, n: usize) -> PyResult<Self> {
        let on = Arc::clone(&stream.inner);
        let scratch = zeros(&on, n).map_err(failed)?;
        // SAFETY: the memory is written below, before it is read.
        let data = unsafe {
            on.context()
                .alloc_pinned_with_flags(n, sys::CU_MEMHOSTALLOC_PORTABLE)
        };
        let mut data: PinnedHostSlice<f32> = data.map_err(failed)?;
        on.memcpy_dtoh(&scratch, &mut data).map_err(failed)?;
        on.synchronize().map_err(failed)?;
        Ok(Self { data, scratch, on })
    }

    /// Queues a wait of this many nanoseconds, and then a write of this value to all elements.
    fn spin_write(&mut self, nanoseconds: u64, value: f32) -> PyResult<()> {
        spin_write(&self.on, &mut self.scratch, nanoseconds, value)?;
        self.on
            .memcpy_dtoh(&self.scratch, &mut self.data)
            .map_err(failed)
    }
}

/// Managed memory, which migrates between host and device.
#[pyclass(module = "dlpack_gpu")]
#[derive(DLPack)]
pub(crate) struct Managed {
    #[dlpack(data)]
    data: UnifiedSlice<f32>,
    on: Arc<CudaStream>,
}

#[dlpack_pymethods]
#[pymethods]
impl Managed {
    #[new]
    fn new(stream: &Stream, n: usize) -> PyResult<Self> {
        let on = Arc::clone(&stream.inner);
        // SAFETY: the memory is written below, before it is read.
        let data = unsafe { on.context().alloc_unified(n, true) };
        let mut data: UnifiedSlice<f32> = data.map_err(failed)?;
        data.as_mut_slice().map_err(failed)?.fill(0.0);
        Ok(Self { data, on })
    }

    /// Queues a wait of this many nanoseconds, and then a write of this value to all elements.
    fn spin_write(&mut self, nanoseconds: u64, value: f32) -> PyResult<()> {
        spin_write(&self.on, &mut self.data, nanoseconds, value)
    }
}

/// Memory of an AMD GPU, by its address. The script frees it after all consumers.
#[pyclass(frozen, module = "dlpack_gpu")]
#[derive(DLPack)]
#[dlpack(
    // SAFETY: the script passes memory with that many elements, and frees it after its consumers.
    unsafe(data = core::ptr::with_exposed_provenance::<f32>(self.address), len = self.items),
    device = Device::new(DeviceType::ROCM, 0),
    stream = self.stream
)]
pub(crate) struct Rocm {
    address: usize,
    items: usize,
    stream: StreamHandle,
}

#[dlpack_pymethods]
#[pymethods]
impl Rocm {
    #[new]
    fn new(address: usize, items: usize, stream: usize) -> Self {
        // SAFETY: the script passes a stream that outlives its tensors.
        let stream = unsafe { StreamHandle::from_raw(stream) };
        Self {
            address,
            items,
            stream,
        }
    }
}

/// What core keeps of dropped tensors: owners, bytes, owners of unknown end, owners held by graphs, and owners in progress.
#[pyfunction]
pub(crate) fn retained() -> (usize, usize, usize, usize, usize) {
    let kept = dlpack_pyo3::stream::retained();
    (
        kept.owners + kept.in_progress,
        kept.bytes,
        kept.open,
        kept.captured,
        kept.in_progress,
    )
}

/// Enables or disables the thread that drops owners whose consumers are done.
#[pyfunction]
pub(crate) fn collect_in_background(on: bool) {
    dlpack_pyo3::stream::collect_in_background(on);
}

/// The number of owners that are kept because a graph may read their data.
#[pyfunction]
pub(crate) fn captured() -> usize {
    dlpack_pyo3::stream::captured()
}

/// Drops the owners whose consumers are done; returns how many still wait.
#[pyfunction]
pub(crate) fn collect() -> usize {
    dlpack_pyo3::stream::collect()
}

/// Frees what was read in captures. No graph that reads it may be launched any more.
#[pyfunction]
pub(crate) fn release_captured() {
    // SAFETY: the script launches no graph afterwards.
    unsafe { dlpack_pyo3::stream::release_captured() };
}
