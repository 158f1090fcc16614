//! Loom models of files of `dlpack-pyo3` that threads share: those very files, compiled without Python.
#![cfg(all(test, loom))]

#[path = "../../src/sync.rs"]
mod sync;

#[path = "../../src/export/set_once.rs"]
mod set_once;

#[allow(
    dead_code,
    reason = "a model has its own lists, and not those of its thread"
)]
#[path = "../../src/view/live.rs"]
mod live;
