//! What a consumer's copy found in a tensor.
#![expect(unsafe_code, reason = "has the driver copy to an address")]

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaStream, DriverError, PinnedHostSlice, result, sys};
use dlpack_pyo3::Managed;
use pyo3::prelude::*;

use crate::device::failed;

/// A copy that was queued, and may be made later.
#[pyclass(frozen, module = "dlpack_gpu")]
pub(crate) struct Reading {
    stream: Arc<CudaStream>,
    copy: Mutex<PinnedHostSlice<f32>>,
    done: AtomicBool,
    tensor: Mutex<Option<Managed>>,
}

impl Reading {
    pub(crate) fn queue(stream: &Arc<CudaStream>, address: usize, bytes: usize) -> PyResult<Self> {
        let len = bytes / size_of::<f32>();
        let (copy, target) = relaxed(|| {
            // SAFETY: it is written before it is read: by the copy, which `values` waits for.
            let mut copy = unsafe {
                stream
                    .context()
                    .alloc_pinned_with_flags::<f32>(len, sys::CU_MEMHOSTALLOC_PORTABLE)
            }?;
            let target = copy.as_mut_ptr()?;
            Ok((copy, target))
        })
        .map_err(failed)?;
        // SAFETY: both sides have so many bytes. The consumer's memory lives until `drop` has waited.
        let code = unsafe {
            sys::cuMemcpyDtoHAsync_v2(target.cast(), address as u64, bytes, stream.cu_stream())
        };
        code.result().map_err(failed)?;
        Ok(Self {
            stream: Arc::clone(stream),
            copy: Mutex::new(copy),
            done: AtomicBool::new(false),
            tensor: Mutex::new(None),
        })
    }

    pub(crate) fn keeping(mut self, tensor: Managed) -> Self {
        self.tensor = Mutex::new(Some(tensor));
        self
    }
}

/// Does what a capture forbids to everybody who has not said that it is none of its business.
fn relaxed<T>(work: impl FnOnce() -> Result<T, DriverError>) -> Result<T, DriverError> {
    let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: a mode, which is exchanged for the one before.
    let code = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
    code.result()?;
    let done = work();
    // SAFETY: the mode of before.
    let code = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
    code.result().and(done)
}

#[pymethods]
impl Reading {
    /// Drops the tensor, while the copy may not be made yet.
    fn let_go(&self) {
        let tensor = self
            .tensor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(tensor);
    }

    /// The smallest and the largest element, when the stream is done.
    fn values(&self, py: Python<'_>) -> PyResult<(f32, f32)> {
        py.detach(|| self.stream.synchronize()).map_err(failed)?;
        self.done.store(true, Ordering::Relaxed);
        let copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        let values = copy.as_slice().map_err(failed)?;
        let least = values.iter().copied().min_by(f32::total_cmp);
        let greatest = values.iter().copied().max_by(f32::total_cmp);
        Ok((least.unwrap_or(0.0), greatest.unwrap_or(0.0)))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if self.done.load(Ordering::Relaxed) {
            // To wait again would order what the script leaves without order.
            return;
        }
        // The copy may still be under way. Nobody is there to hear of a failure.
        // SAFETY: a stream that lives.
        let _ = unsafe { result::stream::synchronize(self.stream.cu_stream()) };
    }
}
