//! Keeps an exported object alive, and its contents borrowed, until the consumer releases the tensor, on any thread.
//!
//! An export owns a reference to the object. Unless the class is frozen, it also owns one of PyO3's borrow guards for the
//! contents. Both are released in this order:
//!
//! ```text
//! export ── borrow guard ──▶ contents        deleter, or capsule destructor:
//!    └───── ObjectGuard ───▶ object            guard dropped ──▶ attached? ── yes ──▶ object released
//!                                                                   └─ no ──▶ attach, unless Python has shut down
//! ```
//!
//! | file | job |
//! |---|---|
//! | `borrowing` | takes borrows of an object's contents, shared or exclusive, and defines the guards that end them |
//! | `methods` | the error of a method that cannot borrow its object because an array over it is alive |
//! | `guard` | the owners behind an export (object and borrow guard), and their release, also while an exception is pending |
//! | `array` | the owner behind an import of a NumPy array: references that also make `resize` fail |
//! | `buffer` | the owner behind an import through the buffer protocol: the `Py_buffer` |
//! | `destructor` | capsule destructors: release a tensor that no consumer took |
//! | `attached` | whether this thread is attached to the interpreter; the hooks that the core calls for that |
//! | `pending` | hides a pending exception |
//! | this file | values that CPython and consumers point to for the lifetime of the process |

mod array;
pub(crate) mod attached;
pub(crate) mod borrowing;
mod buffer;
pub(crate) mod destructor;
mod guard;
pub mod methods;
mod pending;

use std::sync::{Mutex, PoisonError};

pub(crate) use array::{ArrayKeepalive, BasedArray};
pub(crate) use borrowing::{
    AnyBorrowGuard, BorrowGuard, ContentsBorrow, already_borrowed, borrow_contents,
};
pub(crate) use buffer::BufferKeepalive;
pub(crate) use guard::{ExceptionSafeTensor, ExportOwner, ObjectGuard};
pub(crate) use pending::PendingException;

/// Addresses of leaked values, so that leak checkers can still reach them. CPython keeps pointers to method and getter
/// definitions for as long as the class exists, and consumers keep the exchange table for the lifetime of the process.
// XAP-05
static LEAKED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Leaks a value and records its address in `LEAKED`. Called a few times for each class.
pub(crate) fn leak_static<V: 'static>(value: V) -> &'static V {
    let value: &'static V = Box::leak(Box::new(value));
    let mut leaked = LEAKED.lock().unwrap_or_else(PoisonError::into_inner);
    leaked.push(core::ptr::from_ref(value).addr());
    value
}
