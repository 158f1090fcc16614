//! The values of a consumer's copy of a tensor.
#![expect(unsafe_code, reason = "lets the driver copy to an address")]

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaStream, DriverError, PinnedHostSlice, result, sys};
use dlpack_pyo3::Managed;
use pyo3::prelude::*;

use crate::device::failed;

/// A queued copy.
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
            // SAFETY: the memory is written before it is read, by the copy, for which `values` waits.
            let mut copy = unsafe {
                stream
                    .context()
                    .alloc_pinned_with_flags::<f32>(len, sys::CU_MEMHOSTALLOC_PORTABLE)
            }?;
            let target = copy.as_mut_ptr()?;
            Ok((copy, target))
        })
        .map_err(failed)?;
        // SAFETY: both sides have this many bytes, and the consumer's memory lives until `drop` has waited.
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

/// Makes calls that a capture of another stream forbids to threads without the mode `relaxed`.
fn relaxed<T>(work: impl FnOnce() -> Result<T, DriverError>) -> Result<T, DriverError> {
    let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: `mode` is a valid mode, and is replaced by the previous one.
    let code = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
    code.result()?;
    let done = work();
    // SAFETY: `mode` is the previous mode.
    let code = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
    code.result().and(done)
}

#[pymethods]
impl Reading {
    /// Drops the tensor, while the copy may be pending.
    fn let_go(&self) {
        let tensor = self
            .tensor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(tensor);
    }

    /// The smallest and the largest element, after the stream is done.
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
            // Another wait would order what the script leaves unordered.
            return;
        }
        // The copy may still be pending. There is no caller to which a failure could be reported.
        // SAFETY: the stream is live.
        let _ = unsafe { result::stream::synchronize(self.stream.cu_stream()) };
    }
}
