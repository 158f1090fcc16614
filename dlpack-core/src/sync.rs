//! Atomics and locks for code that is tested with loom: those of `core` and `std`, or those of loom in its models.
//!
//! `cargo xtask models` compiles the unit tests with `--cfg loom`. Loom runs each model once for every interleaving of its
//! threads, and for every value that an atomic load may return. No other build depends on loom.

#[cfg(not(all(test, loom)))]
mod chosen {
    pub(crate) use core::sync::atomic;
    #[cfg(feature = "streams")]
    pub(crate) use std::sync::{Mutex, MutexGuard};
}

#[cfg(all(test, loom))]
mod chosen {
    pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};
}

pub(crate) use chosen::*;

/// Declares statics. In a loom model they are reinitialised for each run of the model.
#[cfg(feature = "streams")]
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
#[cfg(feature = "streams")]
pub(crate) use statics;
