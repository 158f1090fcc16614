//! Captured work, as a class.
#![expect(unsafe_code, reason = "a graph may go from one thread to another")]

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaGraph, CudaStream, sys};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::device::failed;

struct Held(CudaGraph);

// SAFETY: the driver's graph functions may be called on any thread, one at a time, which the mutex ensures.
unsafe impl Send for Held {}

/// A graph that can be launched repeatedly.
#[pyclass(frozen, module = "dlpack_gpu")]
pub(crate) struct Graph(Mutex<Held>);

impl Graph {
    pub(crate) fn end(stream: &Arc<CudaStream>) -> PyResult<Self> {
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = stream.end_capture(flags).map_err(failed)?;
        let graph = graph.ok_or_else(|| PyRuntimeError::new_err("the capture is empty"))?;
        Ok(Self(Mutex::new(Held(graph))))
    }
}

#[pymethods]
impl Graph {
    /// Launches the graph on the stream from which it was captured.
    fn launch(&self) -> PyResult<()> {
        let graph = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        graph.0.launch().map_err(failed)
    }
}
