//! What lives as long as the process.
#![expect(
    unsafe_code,
    reason = "lets a list of references that nobody reads be shared"
)]

use core::any::Any;
use std::sync::{Mutex, PoisonError};

/// What lives as long as the process: CPython keeps pointers to the definitions of methods and getters
/// for as long as there may be a class, and consumers keep the exchange table for ever (XAP-05).
static FOREVER: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

struct Entry(
    #[expect(
        dead_code,
        reason = "held so that it stays reachable, for leak checkers"
    )]
    &'static dyn Any,
);

// SAFETY: never read again.
unsafe impl Send for Entry {}

/// Keeps a value for good, and reachable. Called a few times for each class.
pub(crate) fn keep_for_good<V: Any>(value: V) -> &'static V {
    let entry: &'static V = Box::leak(Box::new(value));
    FOREVER
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Entry(entry));
    entry
}
