//! What the macros call. Hidden, and free to change with every release: `dlpack-derive` is pinned to it.
//!
//! None of it does harm where safe code calls it by hand:
//!
//! | what | because |
//! |---|---|
//! | `Class`, `Otherwise`, `Attributes`, `Offers` | what they find is typed by the class, and `Attributes::of` takes that of its own alone |
//! | `attached`, `Attached`, `Forgotten`, `settable` | they compare types, and do nothing |
//! | `placeholder` | it raises |
//! | `dlpack_pymethods_knowing` | it writes what `dlpack_pymethods` does |
//! | `reduce` | it is Python's to call, as is what it names; and what comes in there is checked |
//! | `pyo3`, `methods` | they are PyO3; the functions of ours in it ask for less, and add words to errors |

pub use dlpack_core::__private0::*;
pub use dlpack_derive::dlpack_pymethods_knowing;
pub use pyo3;

pub use crate::class::hinted::Tensors;
pub use crate::class::pickle::reduce;
pub use crate::class::tensors::settable;
pub use crate::class::{
    Attached, Attributes, Class, Forgotten, Offers, Otherwise, attached, placeholder,
};
#[cfg(feature = "stubs")]
pub use crate::hints::{Array, Capsule};
pub use crate::hold::methods;
