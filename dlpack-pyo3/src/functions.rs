//! Functions for the users of your module, in Python: `#[pymodule_export] use dlpack_pyo3::functions::collect;`.
//!
//! | function | what it is for |
//! |---|---|
//! | [`collect`](fn@collect) | frees memory of a GPU whose consumers are done, now |
//! | [`captured`](fn@captured) | counts what graphs keep |
//!
//! Few programs need them: a thread frees what is done, if a consumer has named its stream again. Call `collect` now and then where consumers
//! name no stream (-1) or capture graphs.
//! They look at this extension module alone: each one has its own list of what waits.
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
//! [`stream::release_captured`] is not among them: it is `unsafe`, and Python has no word for that.

use dlpack_core::stream;
use pyo3::prelude::*;

/// Free memory of the GPU whose consumers are done, and return how many owners still wait for theirs.
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
