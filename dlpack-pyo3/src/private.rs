//! What the macros call. Hidden, and free to change with every release: `dlpack-derive` is pinned to it.

pub use dlpack_core::__private0::*;
pub use pyo3;

pub use crate::class::{
    Attached, Class, Forgotten, ForgottenTensors, NoClass, NoImport, NoTensors, attached,
    placeholder,
};
pub use crate::export::buffer::{get_buffer, release_buffer};
