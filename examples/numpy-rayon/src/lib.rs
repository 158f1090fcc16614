//! NumPy in, NumPy out: rayon does the work, and Python's other threads run meanwhile.
//!
//! ```text
//! cd examples/numpy-rayon && maturin develop --release && python rows.py
//! ```
//!
//! `ours.rs` and `twin.rs` are the same two functions, with this crate and with rust-numpy; `work.rs` is what both call.
#![forbid(unsafe_code)]

mod ours;
mod twin;
mod work;

/// What `import numpy_rayon` gets from Rust.
#[pyo3::pymodule(gil_used = false)]
mod numpy_rayon {
    #[pymodule_export]
    use crate::ours::{scale, unit_rows};
    #[pymodule_export]
    use crate::twin::twin;
}
