//! From an object to a tensor that keeps it alive: what `__dlpack__`, the exchange table and buffers share.
//!
//! ```text
//! __dlpack__ ─────▶ arguments ──▶ ConsumerRequest ─┐
//! exchange table ──────────────▶ Unordered ────────┴─▶ vtable::export: borrow, describe, hand over ──▶ tensor ──▶ capsule
//! ```
//!
//! | file | job |
//! |---|---|
//! | this file | a tensor that shares the memory's own owner |
//! | `method` | the C functions behind `__dlpack__` and `__dlpack_device__`, and the text of `help()` |
//! | `arguments` | parses the arguments of `__dlpack__` |
//! | `capsule` | creates capsules, and reads those of other producers |
//!
//! `crate::error` raises the core's errors, with the core's texts. Errors that only Python code can cause have their text where
//! they are raised.
#![expect(unsafe_code, reason = "describes borrowed contents")]

pub(crate) mod arguments;
pub(crate) mod capsule;
pub(crate) mod method;
mod set_once;

use core::mem::discriminant;

use dlpack_core::Managed;
use dlpack_core::binding::{share_allocation, share_root};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::keepalive::borrow_contents;
use crate::vtable::Exports;

/// A tensor over an object's data that owns the memory but not the object, and whether Rust code may write to the memory; `None` if
/// the memory cannot be owned separately, or if the object cannot be described (an export then reports the error).
pub(crate) fn root_tensor<T: Exports>(object: &Bound<'_, T>) -> PyResult<Option<(Managed, bool)>> {
    let py = object.py();
    // SAFETY: `_guard` outlives `value` and all that is described.
    let (value, _guard) = unsafe { borrow_contents(object) }.or_fetch(py)?;
    let Ok(mut described) = value.describe() else {
        return Ok(None);
    };
    let is_writable = share_allocation(&described).is_some_and(|memory| memory.is_writable());
    let tensor = share_root(&mut described, None).transpose().or_fetch(py)?;
    Ok(tensor.map(|tensor| (tensor, is_writable)))
}

/// Whether an object contains the same variant of an enum as another value; `true` for a struct.
pub(crate) fn is_same_variant<T: Exports>(object: &Bound<'_, T>, other: &T) -> PyResult<bool> {
    // SAFETY: `_guard` outlives `value`.
    let (value, _guard) = unsafe { borrow_contents(object) }.or_fetch(object.py())?;
    Ok(discriminant(value) == discriminant(other))
}
