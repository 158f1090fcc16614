//! What the macros call. Hidden, and free to change with every release: `dlpack-derive` is pinned to it.
//!
//! None of it does harm where safe code calls it by hand:
//!
//! | what | because |
//! |---|---|
//! | `Class`, `Otherwise`, `Attributes`, `Offers` | what they find is typed by the class, and `Attributes::of` takes that of its own alone |
//! | `attached`, `Attached`, `Forgotten` | they compare types, and do nothing |
//! | `placeholder` | it raises |
//! | `pyo3` | it is PyO3 |

pub use dlpack_core::__private0::*;
pub use pyo3;

pub use crate::class::{
    Attached, Attributes, Class, Forgotten, Offers, Otherwise, attached, placeholder,
};
