//! What keeps an object and its contents in place while a consumer looks at them, on whatever thread its last use ends.
//!
//! An export holds the object by a reference, and the contents by a borrow in PyO3's sense if the class is not frozen.
//! Both are given back in this order:
//!
//! ```text
//! export ── guard ──▶ contents            deleter, or end of the capsule:
//!    └───── Held ───▶ object                guard dropped ──▶ attached? ── yes ──▶ object given back
//!                                                                └─ no ──▶ attach, unless Python has ended
//! ```
//!
//! | file | job |
//! |---|---|
//! | `borrowing` | takes a borrow, shared or exclusive, and ends it: where a borrow is held |
//! | `methods` | what a method says that cannot borrow its object |
//! | `held` | the owners behind an export: the borrow and the object, and how both are released, also beside an exception |
//! | `array` | the owner behind an import of an array of NumPy's: references that also stop its `resize` |
//! | `buffer` | the owner behind an import by Python's buffer protocol: the buffer, which is given back on any thread too |
//! | `ending` | how a capsule ends that nobody consumed |
//! | `attached` | whether this thread is attached, asked of Python itself, and how it lets go while a device is waited for |
//! | this one | what CPython and consumers point to for as long as the process lives |

mod array;
pub(crate) mod attached;
pub(crate) mod borrowing;
mod buffer;
pub(crate) mod ending;
mod held;
pub mod methods;

use std::sync::{Mutex, PoisonError};

pub(crate) use array::HeldArray;
pub(crate) use borrowing::{AnyGuard, Borrowing, Guard, GuardOf, already_borrowed, share};
pub(crate) use buffer::HeldBuffer;
pub(crate) use held::{Held, Owner, Pending, Quiet};

/// Where that lies which lives as long as the process, so that leak checkers reach it: CPython keeps pointers to the
/// definitions of methods and getters for as long as there may be a class, and consumers keep the exchange table for
/// ever.
// XAP-05
static FOREVER: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Keeps a value for good, and reachable. Called a few times for each class.
pub(crate) fn keep_for_good<V: 'static>(value: V) -> &'static V {
    let value: &'static V = Box::leak(Box::new(value));
    let mut forever = FOREVER.lock().unwrap_or_else(PoisonError::into_inner);
    forever.push(core::ptr::from_ref(value).addr());
    value
}
