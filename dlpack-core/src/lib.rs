//! DLPack tensors from any Rust type: checked, without a copy, without Python.
//!
//! Mark the field that holds the elements, and the one that holds the shape. What comes out is the
//! C struct that NumPy, PyTorch, JAX and a dozen others read, with an owner that is dropped once,
//! whoever is done last. A shape that reaches outside the data is an error, never a wild pointer.
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
//! What may stand in `#[dlpack(..)]` is told at the derive macro [`DLPack`](macro@DLPack); how data
//! is lent, at [`Buffer`]; how it is handed over and taken back, at [`Managed`]; why all this is sound, and
//! what nobody can promise, at [`soundness`].
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `std` (default) | containment of panics in a deleter, and work on the streams of CUDA and HIP (see [`stream`]); without it the crate needs `alloc` only |
//! | `derive` (default) | the derive macros |
//! | `half` | `f16` and `bf16` as elements |
//! | `num-complex` | `Complex<f32>` and `Complex<f64>` as elements; with `half`, `Complex<f16>` too |
//! | `microfloat` | the floats of 8 bits as elements, and those of 6 and 4 bits, one a byte |
//! | `glam` | vectors, quaternions and matrices as elements |
//! | `ndarray` | `Array`, `ArcArray` and `CowArray` as buffers, with any strides; tensors become arrays |
//! | `nalgebra` | matrices and vectors as buffers, the small ones also as elements; tensors become matrices. From 0.34 on `nalgebra` needs a newer Rust than this crate |
//! | `image` | `ImageBuffer` and `DynamicImage` as buffers of (height, width, channels); tensors become images. Needs `std` |
//! | `cudarc` | `CudaSlice`, `CudaView`, `UnifiedSlice` and `PinnedHostSlice` as buffers that know their device and their stream, `CudaStream` as a stream; tensors on a GPU as `CudaView`s (module `cuda`). Builds without CUDA. Needs `std`, and Rust 1.88, as `cudarc` does |
//! | `pyo3` | `?` makes a Python exception of an [`Error`] in functions of PyO3; what Python reads is in the crate `dlpack-pyo3` |
//!
//! A container is one of ours where both sides mean the same version of its crate. These are taken, and the one that was
//! chosen is re-exported, as `dlpack_core::ndarray` and so on: `ndarray` 0.15.6 to 0.17, `nalgebra` 0.33 to 0.35, `glam` 0.33
//! and 0.34, `image` 0.24 and 0.25, `cudarc` 0.19 from 0.19.10 on, `half` 2, `num-complex` 0.4, `microfloat` 0.1.
//!
//! What dereferences to a slice needs no feature: `bytes::Bytes`, `memmap2::Mmap` and the like can
//! stand behind `#[dlpack(data)]` as they are.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

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
pub mod tensor;
mod version;

/// Named by the patch version, which the derive of the same release writes.
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
pub use export::tensors::DLPackTensors;
#[cfg(feature = "cudarc")]
pub use features::cuda;
pub use import::FromDLPack;
pub use layout::{Layout, Shape, Strides};
pub use loan::{Buffer, Loan, LoanMut, SharedBuffer, Writable};
pub use request::{ExportRequest, LegacyPolicy, ReleasePolicy};
pub use stream::{ProducerStream, StreamHandle, StreamRef};
pub use tensor::{Managed, TensorRef};
pub use version::Version;

/// The version of a crate whose types are elements or buffers here.
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
