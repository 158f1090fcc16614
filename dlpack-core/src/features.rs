//! What other crates' types are to us: one file a crate, each behind the feature of that crate's name.

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
