//! Trait implementations for types of other crates. Each file is compiled with the feature of its name, which is the name of the
//! crate; but `numbers` with `half` or `num-complex`, and `cuda` with `cudarc`.
//!
//! ```text
//! a number type ─── Element                 a container type ── Buffer, FromTensor
//! a stream type ─── ProducerStream          a device type ───── the device of its loans
//! ```
//!
//! | file | elements | data | imported as |
//! |---|---|---|---|
//! | `numbers` | floats and complex numbers of `half` and `num-complex` | | |
//! | `microfloat` | small floats, padded to one byte each | | |
//! | `glam` | vectors, quaternions, matrices | | |
//! | `nalgebra` | small matrices, points | matrices | matrices |
//! | `ndarray` | | arrays with any strides | arrays |
//! | `image` | | images | images |
//! | `cudarc` | | GPU memory, and its stream | |
//! | `cuda` | | | GPU memory, for work of `cudarc` |
//!
//! The file `pyo3` converts errors to Python exceptions.

#[cfg(feature = "cudarc")]
pub mod cuda;
#[cfg(feature = "cudarc")]
mod cudarc;
#[cfg(feature = "glam")]
mod glam;
#[cfg(feature = "image")]
mod image;
#[cfg(feature = "microfloat")]
mod microfloat;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(any(feature = "half", feature = "num-complex"))]
mod numbers;
#[cfg(feature = "pyo3")]
pub(crate) mod pyo3;
