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
//! is lent, at [`Buffer`]; how it is handed over and taken back, at [`Managed`].
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `std` (default) | containment of panics in a deleter; without it the crate needs `alloc` only |
//! | `derive` (default) | the derive macros |
//! | `half`, `num-complex`, `microfloat` | their numbers as elements |
//! | `glam` | its vectors as elements |
//! | `ndarray`, `nalgebra`, `image`, `bytes` | their containers as buffers |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
pub mod abi;
mod atomic;
mod buffer;
mod copy;
mod descriptor;
mod device;
mod dims;
mod dtype;
mod element;
mod error;
mod export;
mod extent;
mod facts;
mod from;
mod managed;
mod memory;
mod record;
mod request;
mod route;
mod shape;
mod shared;
mod stream;
mod tensors;
mod version;
mod view;

pub use buffer::{Buffer, Loan, LoanMut, Writable};
pub use descriptor::{Descriptor, Parts};
pub use device::{AsDevice, Device, DeviceType};
pub use dims::Dims;
pub use dtype::{AsOrder, DataType, Order};
pub use element::{Axes, Element, Plain};
pub use error::Error;
pub use export::{DLPack, export_with};
pub use from::{FromDLPack, FromInt, FromList, FromTensor};
pub use managed::Managed;
pub use record::Record;
pub use request::{ExportRequest, LegacyPolicy, Plan, ReleasePolicy, Subject, Transfer, plan};
pub use shape::{Int, Shape, Strides};
pub use shared::SharedBuffer;
pub use stream::{ProducerStream, StreamHandle};
pub use tensors::DLPackTensors;
pub use version::{Abi, Version, negotiate};
pub use view::{Items, TensorRef};

#[cfg(feature = "derive")]
pub use dlpack_derive::{DLPack, Element, FromDLPack, Record};
