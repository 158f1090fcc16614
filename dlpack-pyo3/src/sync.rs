//! Atomics, locks and statics for code that has Loom models: those of `core` and `std`, and Loom's within the models.

#[cfg(not(all(test, loom)))]
mod chosen {
    pub(crate) use core::sync::atomic;
    pub(crate) use std::sync::Mutex;
}

#[cfg(all(test, loom))]
mod chosen {
    pub(crate) use loom::sync::{Mutex, atomic};
}

pub(crate) use chosen::*;

/// Declares a static. Loom initializes it again for each run of a model.
macro_rules! shared_static {
    ($(#[$doc:meta])* static $name:ident: $type:ty = $value:expr;) => {
        #[cfg(not(all(test, loom)))]
        $(#[$doc])*
        static $name: $type = $value;

        #[cfg(all(test, loom))]
        loom::lazy_static! {
            $(#[$doc])*
            static ref $name: $type = $value;
        }
    };
}
pub(crate) use shared_static;
