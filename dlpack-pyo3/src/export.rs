//! From an object to a tensor that holds it: what `__dlpack__`, the exchange table and buffers share.
//!
//! ```text
//! __dlpack__ ─────▶ arguments ──▶ ConsumerRequest ─┐
//! exchange table ──────────────▶ Unordered ────────┴─▶ vtable::export: borrow, describe, hand over ──▶ tensor ──▶ capsule
//! ```
//!
//! | file | job |
//! |---|---|
//! | this one | parts of a tensor, and the device of one |
//! | `method` | the C functions behind `__dlpack__` and `__dlpack_device__`, and the text of `help()` |
//! | `arguments` | where the arguments of `__dlpack__` are parsed |
//! | `capsule` | where a capsule is made, and where one is consumed |
//!
//! What core refuses is raised by `crate::error`, with core's text. What only Python can get wrong has its text where it is
//! refused.
#![expect(unsafe_code, reason = "describes and exports what a borrow keeps")]

pub(crate) mod arguments;
pub(crate) mod capsule;
pub(crate) mod method;
mod set_once;

use dlpack_core::binding::{Pick, export_with, pick, share_root};
use dlpack_core::{Device, Managed};
use pyo3::prelude::*;

use crate::error::{OrRaise, Raised, refuse_of};
use crate::handover::{root, unordered};
use crate::hold::{GuardOf, Held, share};
use crate::vtable::{Exports, Vtable};

/// The tensor of an object, held by its memory alone where that keeps itself; else nothing. What is wrong with it, an export says.
pub(crate) fn root_of<T: Exports>(object: &Bound<'_, T>) -> PyResult<Option<Managed>> {
    let py = object.py();
    // SAFETY: the guard is dropped last here.
    let (value, _guard) = unsafe { share(object) }.or_fetch(py)?;
    let Ok(mut described) = value.describe() else {
        return Ok(None);
    };
    share_root(&mut described, None).transpose().or_fetch(py)
}

/// A part of the tensor that an object is nothing but, as `picks` says by its shape.
pub(crate) fn part<T: Exports>(
    object: &Bound<'_, T>,
    picks: impl FnOnce(&[i64]) -> PyResult<Vec<Pick>>,
) -> PyResult<Managed> {
    const { assert!(T::EXTRAS.transparent) };
    let py = object.py();
    // SAFETY: the guard is dropped last here, or goes into `Held` together with the object.
    let (value, guard) = unsafe { share(object) }.or_fetch(py)?;
    let mut part = value.describe().or_fetch(py)?;
    let picks = picks(part.shape())?;
    pick(&mut part, &picks).or_fetch(py)?;
    let request = unordered(part.device());
    let root = root::<GuardOf<T>>(object.as_any(), &part);
    if root.is_none() {
        if let Some(shared) = share_root(&mut part, Some(&request)) {
            return shared.or_fetch(py);
        }
    }
    let owner = Held::new(
        guard,
        &root.unwrap_or_else(|| object.as_any().as_borrowed()),
    );
    // SAFETY: the guard keeps what was described borrowed, and `Held` keeps the object, or what that keeps.
    unsafe { export_with(owner, part, &request) }.or_fetch(py)
}

/// Where the data of an object lies.
///
/// # Safety
///
/// The object is one of the class.
pub(crate) unsafe fn device<G: Send + 'static>(
    object: &Bound<'_, PyAny>,
    class: &Vtable<G>,
) -> Result<Device, Raised> {
    // SAFETY: of this class. The guard is dropped last.
    let (contents, _guard) = unsafe { (class.share)(object) }?;
    // SAFETY: borrowed right above.
    let described = unsafe { (class.describe)(contents) };
    let refused = |error| refuse_of(object.py(), class.name, &error);
    Ok(described.map_err(refused)?.device())
}
