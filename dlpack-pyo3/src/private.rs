//! What the macros call. Hidden, and free to change with every release: `dlpack-derive` is pinned to it.
//!
//! None of it does harm where safe code calls it by hand:
//!
//! | what | because |
//! |---|---|
//! | `Class`, `Otherwise`, `Attributes`, `Offers` | what they find is typed by the class, and `Attributes::of` takes that of its own alone |
//! | `attached`, `Attached`, `Forgotten` | they compare types, and do nothing |
//! | `placeholder` | it raises |
//! | `dlpack_pymethods_knowing` | it writes what `dlpack_pymethods` does |
//! | `pyo3`, `methods` | they are PyO3; the functions of ours in it ask for less, and add words to errors |

pub use dlpack_core::__private0::*;
pub use pyo3;

pub use dlpack_derive::dlpack_pymethods_knowing;

pub use crate::class::{
    Attached, Attributes, Class, Forgotten, Offers, Otherwise, attached, placeholder,
};
#[cfg(feature = "stubs")]
pub use crate::hints::Capsule;
pub use crate::hold::methods;
