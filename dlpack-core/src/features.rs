//! What other crates' types are to us: one file a crate, each behind the feature of that crate's name.
//!
//! ```text
//! their number ──── Element                 their container ── Buffer, FromTensor
//! their stream ──── ProducerStream          their device ───── what its loans name
//! ```
//!
//! | file | elements | data | read back |
//! |---|---|---|---|
//! | `half`, `num_complex` | numbers | | |
//! | `microfloat` | small floats, one a byte | | |
//! | `glam` | vectors, quaternions, matrices | | |
//! | `nalgebra` | small matrices, points | matrices | matrices |
//! | `ndarray` | | arrays with any strides | arrays |
//! | `image` | | images | images |
//! | `cudarc` | | memory of GPUs, and its stream | |

#[cfg(feature = "cudarc")]
mod cudarc;
#[cfg(feature = "glam")]
mod glam;
#[cfg(feature = "half")]
mod half;
#[cfg(feature = "image")]
mod image;
#[cfg(feature = "microfloat")]
mod microfloat;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "num-complex")]
mod num_complex;
