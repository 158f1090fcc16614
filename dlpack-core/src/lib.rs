//! Exports Rust types as DLPack tensors: checked, without a copy, without Python.
//!
//! Mark the field that holds the elements, and the field that holds the shape. The derive macro fills in the C struct that
//! NumPy, PyTorch, JAX and other libraries read. The exported tensor has an owner, which is dropped once, when the last
//! consumer releases the tensor. A shape that needs more elements than the data has is an error.
//!
//! ```
//! use dlpack_core::DLPack;
//!
//! #[derive(DLPack)]
//! struct Image {
//!     #[dlpack(data)]
//!     pixels: Vec<f32>,
//!     #[dlpack(shape)]
//!     dims: [usize; 3],
//! }
//!
//! let image = Image { pixels: vec![0.0; 24], dims: [2, 4, 3] };
//! let tensor = image.into_dlpack()?;
//! assert_eq!(tensor.view().shape(), [2, 4, 3]);
//! assert_eq!(tensor.view().strides(), [12, 3, 1]);
//! # Ok::<(), dlpack_core::Error>(())
//! ```
//!
//! [`DLPack`](macro@DLPack), the derive macro, documents the keys of `#[dlpack(..)]`. [`Buffer`] documents how a container
//! lends its elements, and [`Managed`] how a tensor is exported to C and imported. [`soundness`] explains why the crate is
//! sound, and under which limits.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `std` (default) | catches panics in a deleter; without it the crate needs `alloc` only |
//! | `streams` (default) | orders work on CUDA and HIP streams, and copies GPU memory (see [`stream`]); needs `std`. Without it, exports of GPU memory are refused |
//! | `derive` (default) | the derive macros |
//! | `half` | `f16` and `bf16` as elements |
//! | `num-complex` | `Complex<f32>` and `Complex<f64>` as elements; with `half`, `Complex<f16>` too |
//! | `microfloat` | floats of 8 bits as elements, and floats of 6 and 4 bits, padded to one byte each |
//! | `glam` | vectors, quaternions and matrices as elements |
//! | `ndarray` | `Array`, `ArcArray` and `CowArray` as buffers, with any strides; tensors become arrays |
//! | `nalgebra` | matrices and vectors as buffers, the small ones also as elements; tensors become matrices. From 0.34 on `nalgebra` needs a newer Rust than this crate |
//! | `image` | `ImageBuffer` and `DynamicImage` as buffers of (height, width, channels); tensors become images. Needs `std` |
//! | `cudarc` | `CudaSlice`, `CudaView`, `UnifiedSlice` and `PinnedHostSlice` as buffers that know their device and their stream, `CudaStream` as a stream; tensors on a GPU as `CudaView`s (module `cuda`). Builds without CUDA. Needs `streams`, and Rust 1.88, as `cudarc` does |
//! | `pyo3` | `?` converts an [`Error`] to a Python exception in PyO3 functions; the crate `dlpack-pyo3` has everything else for Python |
//!
//! Your crate and this one must use the same version of such a crate. These versions are accepted, and the selected one
//! is re-exported, for example as `dlpack_core::ndarray`: `ndarray` 0.15.6 to 0.17, `nalgebra` 0.33 to 0.35, `glam` 0.33
//! and 0.34, `image` 0.24 and 0.25, `cudarc` 0.19 from 0.19.10 on, `half` 2, `num-complex` 0.4, `microfloat` 0.1 from 0.1.3 on.
//!
//! Types that dereference to a slice need no feature: put `#[dlpack(data)]` on a `bytes::Bytes` or a
//! `memmap2::Mmap`.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    miri,
    feature(core_intrinsics),
    allow(internal_features, reason = "see `load_byte`")
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod abi;
pub mod array;
pub mod binding;
mod describe;
mod device;
mod dtype;
pub mod element;
mod error;
mod export;
mod features;
pub mod import;
pub mod layout;
mod loan;
mod memory;
mod panics;
mod private;
pub mod request;
#[doc = include_str!("../soundness.md")]
pub mod soundness {}
pub mod stream;
mod sync;
pub mod tensor;
mod version;

/// Items for the code that the derive generates. The module name contains the patch version, so that a derive of another
/// release does not compile with this crate.
#[doc(hidden)]
pub mod __private0 {
    pub use crate::private::*;
}
const _: () = assert!(
    matches!(env!("CARGO_PKG_VERSION_PATCH").as_bytes(), b"0"),
    "`__private0` is named by the patch version"
);

pub use describe::descriptor::Descriptor;
pub use describe::parts::Parts;
pub use describe::record::Record;
pub use device::{AsDevice, Device, DeviceType};
pub use dtype::{AsOrder, DataType, Order};
pub use element::Element;
pub use error::Error;
pub use export::DLPack;
pub use export::shaped::Shaped;
pub use export::tensors::DLPackTensors;
#[cfg(feature = "cudarc")]
pub use features::cuda;
pub use import::FromDLPack;
pub use layout::{Layout, Shape, Strides};
pub use loan::{Buffer, Loan, LoanMut, OwnedSlice, SharedBuffer, Writable};
pub use request::{ExportRequest, LegacyPolicy, ReleasePolicy};
pub use stream::{ProducerStream, StreamHandle, StreamRef};
pub use tensor::{Managed, TensorRef};
pub use version::Version;

/// Re-exports a crate with types that implement this crate's traits, in the accepted version.
macro_rules! versions {
    ($($name:literal $version:ident;)*) => {$(
        #[cfg(feature = $name)]
        pub use ::$version;
    )*};
}
versions! {
    "cudarc" cudarc;
    "glam" glam;
    "half" half;
    "image" image;
    "microfloat" microfloat;
    "nalgebra" nalgebra;
    "ndarray" ndarray;
    "num-complex" num_complex;
}

#[cfg(feature = "derive")]
#[doc(inline)]
pub use dlpack_derive::{DLPack, Element, FromDLPack, Record};
