//! From an object to a tensor that holds it: what `__dlpack__`, the exchange table and buffers share.
//!
//! The usual call takes the short way, which is compiled for each class ([`Vtable::usual`]); the long way is here, one
//! function for all classes, and answers whatever was asked:
//!
//! ```text
//! __dlpack__ ──▶ arguments ──▶ nothing special? ──▶ Vtable::usual ──▶ capsule
//!                   │                                    │ none
//!                   └────────▶ request ──▶ export ◀──────┘ ──▶ capsule, exchange table
//!                                borrow, describe, hand over
//! ```
//!
//! | file | job |
//! |---|---|
//! | this one | the long way |
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

use dlpack_core::binding::{
    Handover, Pick, export_with, hand_over, kept_by, pick, unordered as unordered_stream,
};
use dlpack_core::{Descriptor, Device, Error, ExportRequest, Managed};
use pyo3::prelude::*;

use crate::error::{OrRaise, Raised, refuse_of};
use crate::hold::{GuardOf, Held, share};
use crate::vtable::{Exclusive, Exports, Vtable};

/// Exports what an object holds, together with whatever keeps it in place: by the table of its class, the long way.
///
/// Without a request it is exported as it is, and the order of work on streams is the consumer's affair.
///
/// # Safety
///
/// The object is one of the class.
// XAP-10
pub(crate) unsafe fn export<G: Send + 'static>(
    object: &Bound<'_, PyAny>,
    class: &Vtable<G>,
    request: Option<&ExportRequest>,
) -> Result<Handover, Raised> {
    let exclude = |exclusive: &Exclusive<G>| {
        // SAFETY: of this class. The guard is dropped last here, or goes into `Held` together with the object.
        let (contents, guard) = unsafe { (exclusive.exclude)(object) }?;
        // SAFETY: borrowed right above, so that the consumer may write.
        let described = &mut unsafe { (exclusive.describe)(contents) };
        // SAFETY: as below.
        unsafe { finish(guard, object, class.name, described, request) }
    };
    if let Some(exclusive) = class.exclusive.as_ref().filter(|it| it.always) {
        return exclude(exclusive);
    }
    // SAFETY: of this class. The guard is dropped last here, or goes into `Held` together with the object.
    let (contents, guard) = unsafe { (class.share)(object) }?;
    if let Some(share_field) = class.share_field {
        // SAFETY: borrowed right above.
        if let Some(shared) = unsafe { share_field(contents, request) } {
            return shared.map(Handover::Other).or_raise(object.py());
        }
    }
    // SAFETY: borrowed right above.
    let mut described = unsafe { (class.describe)(contents) };
    if let Ok(descriptor) = &described {
        let read_only = descriptor.is_read_only();
        if let Some(exclusive) = class.exclusive.as_ref().filter(|_| read_only) {
            drop(described);
            drop(guard);
            return exclude(exclusive);
        }
    }
    let root = match &described {
        Ok(descriptor) if class.transparent => root::<G>(object, descriptor),
        _ => object.as_borrowed(),
    };
    // SAFETY: the guard keeps what was described borrowed, and `Held` keeps the object, or what that keeps.
    unsafe { finish(guard, &root, class.name, &mut described, request) }
}

/// The descriptor stays where it was made, and is read field by field: it is large to move.
///
/// # Safety
///
/// The described memory stays in place, and readable or writable as the descriptor says, until the
/// guard is dropped, and then the object.
unsafe fn finish<G: Send + 'static>(
    guard: G,
    object: &Bound<'_, PyAny>,
    class: &str,
    described: &mut Result<Descriptor<'_>, Error>,
    request: Option<&ExportRequest>,
) -> Result<Handover, Raised> {
    let refused = |error: &mut Error| refuse_of(object.py(), class, error);
    let descriptor = described.as_mut().map_err(refused)?;
    let mut order = None;
    let request = request.unwrap_or_else(|| order.insert(unordered(descriptor.device())));
    let owner = || Held::new(guard, object);
    // SAFETY: passed on to the caller.
    unsafe { hand_over(owner, descriptor, request) }.or_raise(object.py())
}

/// What has to be held so that the memory of an object which is nothing but its tensor stays: where that came from another
/// object, that one. So an import of an export of an import is no chain.
fn root<'a, 'py, G>(
    object: &'a Bound<'py, PyAny>,
    described: &Descriptor<'a>,
) -> Borrowed<'a, 'py, PyAny> {
    let below = || first(described).map(|held| held.object(object.py()));
    // A guard with a size borrows from the object, which then has to stay too.
    let held = if size_of::<G>() == 0 { below() } else { None };
    held.unwrap_or_else(|| object.as_borrowed())
}

/// Compiled once, where `Tensor` is exported: another crate would have deleters of its own to compare with.
#[inline(never)]
fn first<'a>(described: &Descriptor<'a>) -> Option<&'a Held<()>> {
    // SAFETY: only this crate makes owners of a `Held`, each of which is nothing else; and nobody else can call what
    // its drop calls.
    unsafe { kept_by(described) }
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
    let owner = Held::new(guard, &root::<GuardOf<T>>(object.as_any(), &part));
    let request = unordered(part.device());
    // SAFETY: the guard keeps what was described borrowed, and `Held` keeps the object, or what that keeps.
    unsafe { export_with(owner, part, &request) }.or_fetch(py)
}

/// A request for the tensor as it is, whose order is the consumer's affair.
// XAP-10
pub(crate) fn unordered(device: Device) -> ExportRequest {
    ExportRequest {
        stream: unordered_stream(device),
        ..ExportRequest::versioned()
    }
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
