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
//! | `nalgebra` | matrices and vectors as buffers, the small ones also as elements; tensors become matrices. Needs Rust 1.89, as `nalgebra` does |
//! | `image` | `ImageBuffer` and `DynamicImage` as buffers of (height, width, channels); tensors become images. Needs `std` |
//! | `cudarc` | `CudaSlice`, `CudaView`, `UnifiedSlice` and `PinnedHostSlice` as buffers that know their device and their stream, `CudaStream` as a stream; tensors on a GPU as `CudaView`s (module `cuda`). Builds without CUDA. Needs `std`, and Rust 1.88, as `cudarc` does |
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

///
/// # What may stand in `#[dlpack(..)]`
///
/// A key stands on a field as a flag, or on the struct with an expression, in which `self` and the
/// names of the fields are in scope.
///
/// | key | on | says |
/// |---|---|---|
/// | `data` | field, struct | what holds the elements: a [`Buffer`], what derefs to a slice, or `data = &self.map[16..]` |
/// | `shape` | field, struct | the extents: a list or tuple of integers, or `shape = [rows, _, 3]` with one `_` that is found from the length |
/// | `strides`, `byte_strides` | field, struct | in elements or in bytes; `[pitch, _, _]` packs the axes with `_` from the right |
/// | `order` | field, struct | `"C"`, `"F"`, or what is [`AsOrder`] |
/// | `offset`, `byte_offset` | field, struct | elements or bytes in front of the first element |
/// | `elem = T` | struct | reads the bytes as `T`; `elem = bool` looks at each |
/// | `dtype` | field, struct | reads the bytes as a type that is known at run time, what is `Into<DataType>` |
/// | `device` | field, struct | where the data lies, what is [`AsDevice`]; needed only if the data does not know |
/// | `stream` | field, struct | the queue that writes the data, what is [`ProducerStream`] |
/// | `owner` | field | a cheap handle (`Arc`, `Bytes`) that keeps the data, so that a shared export holds it instead of the struct |
/// | `readonly`, `writable` | data field, struct | no consumer may write; an export must be writable |
/// | `tensor`, `tensor(name = "..", ..)` | field, struct | one more tensor, with these keys of its own; see [`DLPackTensors`] |
/// | `columns` | field | a list of [`Record`](trait@Record)s: each of their fields is a tensor |
/// | `via = expr` | struct | a tensor that is computed for each export |
/// | `unsafe(data = ptr, len = n)` | struct | memory at an address; the promise is that of [`Loan::from_raw_parts`] |
/// | `legacy = "refuse"` | struct | no copies for consumers that cannot be told that data is read-only |
/// | `release = "immediate"` | struct | device memory is freed without waiting for the consumer's last use |
/// | `skip` | variant | this variant has no tensor |
/// | `crate = path`, `bound = ".."` | struct | as in serde |
///
/// A struct with a single field and no keys is what the field is. An enum is what its variant holds.
///
/// ```
/// use dlpack_core::DLPack;
///
/// #[derive(DLPack)]
/// #[dlpack(shape = [height, width, 3], byte_strides = [linesize, _, _])]
/// struct Frame {
///     #[dlpack(data)]
///     bytes: Vec<u8>,
///     height: u32,
///     width: u32,
///     linesize: usize,
/// }
///
/// let frame = Frame { bytes: vec![0; 16], height: 2, width: 2, linesize: 8 };
/// assert_eq!(frame.describe()?.strides(), [8, 3, 1]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[cfg(feature = "derive")]
pub use dlpack_derive::DLPack;
#[cfg(feature = "derive")]
pub use dlpack_derive::{Element, FromDLPack, Record};
