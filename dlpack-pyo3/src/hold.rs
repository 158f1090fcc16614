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
//! | `held` | the owner behind an export: the borrow and the object, and how both are released |
//! | `attached` | whether this thread is attached, asked of Python itself |
//! | `waiting` | lets go of Python while a device is waited for |
//! | `forever` | what CPython and consumers point to for as long as the process lives |

pub(crate) mod attached;
pub(crate) mod borrowing;
pub(crate) mod forever;
pub(crate) mod held;
pub(crate) mod waiting;
