//! Bytes: how they are had, read while others write, and copied.

pub(crate) mod aligned;
pub(crate) mod atomic;
pub(crate) mod gather;
mod moves;
