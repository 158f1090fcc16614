//! Python functions for the users of your module: `#[pymodule_export] use dlpack_pyo3::functions::collect;`.
//!
//! | function | purpose |
//! |---|---|
//! | [`collect`](fn@collect) | frees GPU memory whose consumers are done |
//! | [`captured`](fn@captured) | counts the owners that graphs keep alive |
//!
//! Few programs need them: a thread frees the memory once a consumer names its stream again. Call `collect` now and then if
//! consumers name no stream (-1) or capture graphs. Both functions cover this extension module only: each module has its own
//! list of deferred owners.
//!
//! ```no_run,standalone_crate
//! #[pyo3::pymodule]
//! mod images {
//!     #[pymodule_export]
//!     use dlpack_pyo3::Tensor;
//!     #[pymodule_export]
//!     use dlpack_pyo3::functions::{captured, collect};
//! }
//! ```
//!
//! [`stream::release_captured`] is not exported to Python, because it is `unsafe`.

use dlpack_core::stream;
use pyo3::prelude::*;

/// Free GPU memory that consumers are done with, and return how many owners still wait for theirs.
///
/// A thread does the same where the end of a consumer's work is known. Call this to have memory back sooner, where consumers
/// name no stream (-1), and when a graph that has read a tensor is deleted.
/// Other threads of Python run meanwhile. Do not call it while a stream captures a graph: that can break the capture.
#[pyfunction]
pub fn collect(py: Python<'_>) -> usize {
    py.detach(stream::collect)
}

/// Return how many owners are kept because a graph, of CUDA or HIP, can still read their memory.
///
/// They are freed when the graph is gone, by `collect`.
#[pyfunction]
#[must_use]
pub fn captured() -> usize {
    stream::captured()
}
