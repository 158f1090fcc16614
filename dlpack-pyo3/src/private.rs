//! What generated code calls. Hidden, and changed without notice: `dlpack-derive` is pinned to the same release.
//!
//! Safe code that calls any of it by hand can do no harm:
//!
//! | item | because |
//! |---|---|
//! | `Class`, `ClassDefaults`, `Attributes`, `Offers` | their types name the class, and `Attributes::of` only accepts constants of the same class |
//! | `attached`, `Attached`, `UndeclaredMethods`, `settable` | they compare types, and do nothing at run time |
//! | `placeholder` | it only raises an exception |
//! | `reject_hidden_tensor` | it compares names when it is compiled |
//! | `dlpack_pymethods_knowing` | it expands to what `dlpack_pymethods` does |
//! | `reduce` | Python code can call it too, like the functions that it refers to; they validate their arguments |
//! | `pyo3`, `methods` | they re-export PyO3; our functions in `methods` require less, and add to the messages of errors |

pub use dlpack_core::__private0::*;
pub use dlpack_derive::dlpack_pymethods_knowing;
pub use pyo3;

pub use crate::class::hinted::{Tensors, placeholder};
pub use crate::class::pickle::reduce;
pub use crate::class::tensors::{reject_hidden_tensor, settable};
pub use crate::class::{
    Attached, Attributes, Class, ClassDefaults, Offers, UndeclaredMethods, attached,
};
#[cfg(feature = "stubs")]
pub use crate::hints::{ArrayOf, Capsule, Memoryview};
pub use crate::keepalive::methods;
