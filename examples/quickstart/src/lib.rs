//! The README, so that `cargo test` runs its code; the demonstration itself is the binary beside it.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
