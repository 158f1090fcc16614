//! What other crates' types are to us: one file a crate as a rule, each behind the feature of that crate's name.
//!
//! ```text
//! their number ──── Element                 their container ── Buffer, FromTensor
//! their stream ──── ProducerStream          their device ───── what its loans name
//! ```
//!
//! | file | elements | data | read back |
//! |---|---|---|---|
//! | `numbers` | those of `half` and `num-complex` | | |
//! | `microfloat` | small floats, one a byte | | |
//! | `glam` | vectors, quaternions, matrices | | |
//! | `nalgebra` | small matrices, points | matrices | matrices |
//! | `ndarray` | | arrays with any strides | arrays |
//! | `image` | | images | images |
//! | `cudarc` | | memory of GPUs, and its stream | |
//! | `cuda` | | | memory of GPUs, for work of `cudarc` |
//!
//! and `pyo3`: errors as exceptions.

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
