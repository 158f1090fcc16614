//! A stream, as a class: of producers, and of a consumer that releases a tensor as soon as its work is queued.
#![expect(unsafe_code, reason = "calls the driver with memory at addresses")]

use std::sync::Arc;

use cudarc::driver::{CudaStream, result, sys};
use dlpack_pyo3::from_dlpack;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::device::{failed, gpu};
use crate::graph::Graph;
use crate::reading::Reading;

/// A stream of the GPU.
#[pyclass(frozen, module = "dlpack_gpu")]
pub(crate) struct Stream {
    pub(crate) inner: Arc<CudaStream>,
    number: usize,
}

#[pymethods]
impl Stream {
    /// A stream of one of these kinds: `nonblocking`, `blocking`, `default`, `per-thread`; or a stream of other code, by its
    /// handle.
    #[new]
    #[pyo3(signature = (kind, handle=None))]
    fn new(kind: &str, handle: Option<usize>) -> PyResult<Self> {
        let context = &gpu()?.context;
        let inner = match (kind, handle) {
            ("nonblocking", None) => context.new_stream().map_err(failed)?,
            ("blocking", None) => {
                // From now on cudarc tracks readers and writers, as for its own streams.
                context.new_stream().map_err(failed)?;
                let handle =
                    result::stream::create(result::stream::StreamKind::Default).map_err(failed)?;
                // SAFETY: the stream belongs to this context and is never destroyed; there are few.
                unsafe { context.wrap_borrowed_stream(handle) }
            }
            ("default", None) => context.default_stream(),
            ("per-thread", None) => context.per_thread_stream(),
            ("borrowed", Some(handle)) => {
                let handle = core::ptr::without_provenance_mut(handle);
                // SAFETY: the script keeps the stream as long as this object.
                unsafe { context.wrap_borrowed_stream(handle) }
            }
            _ => return Err(PyValueError::new_err(format!("no kind of stream: {kind}"))),
        };
        let number = match inner.cu_stream().addr() {
            0 => 1,
            number => number,
        };
        Ok(Self { inner, number })
    }

    /// The number of the stream for `__dlpack__`.
    #[getter]
    fn raw(&self) -> usize {
        self.number
    }

    /// Keeps the stream busy for this time.
    fn spin(&self, nanoseconds: u64) -> PyResult<()> {
        gpu()?
            .kernels
            .spin(&self.inner, nanoseconds)
            .map_err(failed)
    }

    /// Whether all work of the stream is done.
    fn idle(&self) -> PyResult<bool> {
        self.inner.context().bind_to_thread().map_err(failed)?;
        // SAFETY: the stream is live.
        let code = unsafe { sys::cuStreamQuery(self.inner.cu_stream()) };
        match code {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => code.result().map(|()| true).map_err(failed),
        }
    }

    /// Waits for all work of the stream.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.synchronize()).map_err(failed)
    }

    /// Allocates this many elements in stream order, writes this byte to all of them, and frees them. Returns their address.
    fn churn(&self, n: usize, byte: u8) -> PyResult<u64> {
        self.inner.context().bind_to_thread().map_err(failed)?;
        let stream = self.inner.cu_stream();
        let bytes = n * size_of::<f32>();
        // SAFETY: the stream is live; the memory is not read before it is written.
        let address = unsafe { result::malloc_async(stream, bytes) }.map_err(failed)?;
        // SAFETY: the allocation has this many bytes.
        unsafe { result::memset_d8_async(address, byte, bytes, stream) }.map_err(failed)?;
        // SAFETY: no other code has the address.
        unsafe { result::free_async(address, stream) }.map_err(failed)?;
        Ok(address)
    }

    /// Queues a copy of a tensor, and releases the tensor while the copy may be pending. With `keep` the result keeps the tensor.
    #[pyo3(signature = (object, keep=false))]
    fn read(&self, object: &Bound<'_, PyAny>, keep: bool) -> PyResult<Reading> {
        let tensor = from_dlpack(object)?;
        let view = tensor.view();
        let reading = Reading::queue(&self.inner, view.as_ptr().addr(), view.len_bytes())?;
        Ok(if keep {
            reading.keeping(tensor)
        } else {
            reading
        })
    }

    /// Begins a capture in the mode `global`, `thread` or `relaxed`.
    fn begin_capture(&self, mode: &str) -> PyResult<()> {
        use sys::CUstreamCaptureMode as Mode;
        let mode = match mode {
            "global" => Mode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            "thread" => Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            "relaxed" => Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
            _ => return Err(PyValueError::new_err(format!("no mode of capture: {mode}"))),
        };
        self.inner.begin_capture(mode).map_err(failed)
    }

    /// Ends the capture, and returns its graph.
    fn end_capture(&self) -> PyResult<Graph> {
        Graph::end(&self.inner)
    }
}
