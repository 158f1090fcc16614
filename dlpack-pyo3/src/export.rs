//! From an object to a tensor that holds it: what `__dlpack__`, the exchange table and buffers share.
//!
//! The usual call takes the short way, which is compiled for each class ([`Vtable::usual`]); the long way is here, one
//! function for all classes, and answers whatever was asked:
//!
//! ```text
//! __dlpack__ ──▶ arguments ──▶ nothing special? ──▶ Vtable::usual ──▶ capsule
//!                   │                                    │ none
//!                   └────────▶ request ──▶ export ◀──────┘ ──▶ capsule, exchange table, buffer
//!                                borrow, describe, hand over
//! ```
//!
//! | file | job |
//! |---|---|
//! | this one | the long way |
//! | `method` | the C functions behind `__dlpack__` and `__dlpack_device__`, and the text of `help()` |
//! | `arguments` | where the arguments of `__dlpack__` are parsed |
//! | `capsule` | where a capsule is made, where one is consumed, and where one dies unconsumed |
//! | `buffer` | Python's buffer protocol, over the same exports |
//!
//! What core refuses is raised by `crate::error`, with core's text. What only Python can get wrong has its text where it is
//! refused.
#![expect(unsafe_code, reason = "describes and exports what a borrow keeps")]

pub(crate) mod arguments;
pub(crate) mod buffer;
pub(crate) mod capsule;
pub(crate) mod method;

use dlpack_core::binding::{Handover, hand_over, unordered as unordered_stream};
use dlpack_core::{Descriptor, Device, Error, ExportRequest};
use pyo3::prelude::*;

use crate::error::{OrRaise, Raised, refuse};
use crate::hold::Held;
use crate::vtable::{Exclusive, Vtable};

/// Exports what an object holds, together with whatever keeps it in place: by the table of its class, the long way.
///
/// Without a request it is exported as it is, and the order of work on streams is the consumer's affair (XAP-10).
///
/// # Safety
///
/// The object is one of the class.
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
        unsafe { finish(guard, object, described, request) }
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
    // SAFETY: the guard keeps what was described borrowed, and `Held` keeps the object.
    unsafe { finish(guard, object, &mut described, request) }
}

/// The descriptor stays where it was made, and is read field by field: it is large to move.
///
/// # Safety
///
/// The described memory stays in place, and readable or writable as the descriptor says, until the
/// guard is dropped, which came from `object`.
unsafe fn finish<G: Send + 'static>(
    guard: G,
    object: &Bound<'_, PyAny>,
    described: &mut Result<Descriptor<'_>, Error>,
    request: Option<&ExportRequest>,
) -> Result<Handover, Raised> {
    let refused = |error: &mut Error| refuse(object.py(), error);
    let descriptor = described.as_mut().map_err(refused)?;
    let mut order = None;
    let request = request.unwrap_or_else(|| order.insert(unordered(descriptor.device())));
    let owner = || Held::new(guard, object);
    // SAFETY: passed on to the caller.
    unsafe { hand_over(owner, descriptor, request) }.or_raise(object.py())
}

/// A request for the tensor as it is, whose order is the consumer's affair (XAP-10).
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
    Ok(described.or_raise(object.py())?.device())
}
