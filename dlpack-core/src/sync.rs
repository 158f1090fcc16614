//! The atomics and locks of code that has a model: those of `core` and `std`, and those of loom in the models.
//!
//! `cargo xtask models` compiles the unit tests with `--cfg loom`. Loom then runs each model once for every order in which
//! its threads can meet, and for every value that an atomic load may return. No other build depends on loom.

#[cfg(not(all(test, loom)))]
mod chosen {
    pub(crate) use core::sync::atomic;
    #[cfg(feature = "std")]
    pub(crate) use std::sync::{Mutex, MutexGuard};
}

#[cfg(all(test, loom))]
mod chosen {
    pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};
}

pub(crate) use chosen::*;

/// Declares statics. Loom makes those of a model anew for each of its runs.
#[cfg(feature = "std")]
macro_rules! statics {
    ($($(#[$doc:meta])* static $name:ident: $type:ty = $value:expr;)*) => {$(
        #[cfg(not(all(test, loom)))]
        $(#[$doc])*
        static $name: $type = $value;

        #[cfg(all(test, loom))]
        loom::lazy_static! {
            $(#[$doc])*
            static ref $name: $type = $value;
        }
    )*};
}
#[cfg(feature = "std")]
pub(crate) use statics;
