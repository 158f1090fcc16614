//! PyO3 classes that every array library in Python reads without a copy.
//!
//! Derive [`DLPack`](macro@DLPack) on a class, mark the field that holds the elements and the one that holds
//! the shape, and write [`#[dlpack_pymethods]`](macro@dlpack_pymethods) above its `#[pymethods]`.
//!
//! ```no_run,standalone_crate
//! use dlpack_pyo3::{DLPack, dlpack_pymethods};
//! use pyo3::prelude::*;
//!
//! #[pyclass(frozen)]
//! #[derive(DLPack)]
//! struct Image {
//!     #[dlpack(data)]
//!     pixels: Vec<f32>,
//!     #[dlpack(shape)]
//!     dims: [usize; 3],
//! }
//!
//! #[dlpack_pymethods]
//! #[pymethods]
//! impl Image {
//!     #[new]
//!     fn new(height: usize, width: usize) -> Self {
//!         let dims = [height, width, 3];
//!         Self { pixels: vec![0.5; height * width * 3], dims }
//!     }
//! }
//! ```
//!
//! `numpy.from_dlpack(Image(4, 4))`, `torch.from_dlpack(..)`, `jax.dlpack.from_dlpack(..)` and the others
//! then look at the pixels where they are.
//!
//! # What holds what
//!
//! An export keeps the object alive, and borrowed in PyO3's sense, until the consumer is done:
//!
//! | class | held | meanwhile |
//! |---|---|---|
//! | `frozen` | the object | everything works |
//! | other | the object and a shared borrow | `&mut self` methods raise "Already borrowed" |
//! | with `writable` over plain memory | the object and the exclusive borrow | everything else raises |
//! | with an `owner` field | a clone of that field | everything works; the deleter needs no interpreter |
//!
//! What others can still reach is exported read-only; [`SharedBuffer`] is the memory that both sides may write.
//! A consumer may ignore that flag: PyTorch does. Hand out copies or a `SharedBuffer` where that matters.
//!
//! # The rest of the crate
//!
//! Everything of `dlpack-core` is re-exported, so one dependency is enough. [`Tensor`] is the way in: a function
//! that takes one accepts any producer, as [`Imported`] does for types that derive
//! [`FromDLPack`](macro@FromDLPack). [`Protocol`] adds the methods to a class without a macro.
#![cfg_attr(docsrs, feature(doc_cfg))]

// The macros name the crate from outside, and are used inside it too.
extern crate self as dlpack_pyo3;

mod arguments;
mod buffer;
mod capsule;
mod class;
mod error;
mod exchange;
mod export;
mod guard;
mod import;
mod inspect;
mod install;
mod named;
mod tensor;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use class::{Protocol, TensorNames};
pub use dlpack_core::*;
pub use dlpack_derive::dlpack_pymethods;
pub use dlpack_derive::{
    PyDLPack as DLPack, PyElement as Element, PyFromDLPack as FromDLPack, PyRecord as Record,
};
pub use error::py_err;
pub use guard::{borrow_mut_or_buffer_error, borrow_or_buffer_error};
pub use import::{Imported, from_dlpack, from_dlpack_with};
pub use inspect::inspect;
pub use tensor::Tensor;
