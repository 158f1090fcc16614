//! What a consumer requests of an object, what it gets, and which object is kept for that.
//!
//! The classes' own functions are in `vtable`.
#![expect(unsafe_code, reason = "names the type of owners that this crate makes")]

use dlpack_core::binding::{kept_by, unordered as unordered_stream};
use dlpack_core::{Descriptor, Device, ExportRequest, Managed};
use pyo3::prelude::*;

use crate::keepalive::ObjectGuard;

/// What a consumer requests.
#[derive(Clone, Copy)]
pub(crate) enum ConsumerRequest<'a> {
    /// `__dlpack__` without arguments, or with a `max_version` that has the versioned struct.
    Default,
    /// An exchange table's export: the consumer orders its work itself.
    Unordered,
    With(&'a ExportRequest),
    /// A buffer over the memory itself.
    Buffer,
}

/// What an export gives that is not returned by its address.
pub(crate) enum Outcome {
    /// Nothing: the tensor was returned by its address, or an exception is set.
    None,
    Tensor(Managed),
    /// For [`ConsumerRequest::Buffer`]: the object that lends the memory.
    Lender(Py<PyAny>),
    /// For [`ConsumerRequest::Buffer`]: work on the memory has to be waited for, or it is made for each export. Then the caller
    /// imports a tensor as any consumer does.
    NotLent,
}

impl<'a> ConsumerRequest<'a> {
    /// Whether a tensor that is plain is exported as it is.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Default | Self::Unordered)
    }

    /// The request for an export whose owner is a field. By default there is none, unless the data may be on a device, whose
    /// default stream then has to wait; that request is stored in `ordered`.
    #[inline(always)]
    pub(crate) fn for_sharing(
        self,
        on_host: bool,
        ordered: &'a mut Option<ExportRequest>,
    ) -> Option<&'a ExportRequest> {
        match self {
            Self::With(request) => Some(request),
            Self::Default if !on_host => Some(ordered.insert(ExportRequest::versioned())),
            Self::Default | Self::Unordered | Self::Buffer => None,
        }
    }
}

/// What has to be held so that the memory of an object which is nothing but its tensor stays, where that came from another
/// object: that one. So an import of an export of an import is no chain.
#[inline]
pub(crate) fn root<'a, 'py, G>(
    object: &Bound<'py, PyAny>,
    described: &Descriptor<'a>,
) -> Option<Borrowed<'a, 'py, PyAny>> {
    // A guard with a size borrows from the object, which then has to stay too.
    if size_of::<G>() != 0 {
        return None;
    }
    first(described).map(|held| held.object(object.py()))
}

/// Compiled once, where `Tensor` is exported: another crate would have deleters of its own to compare with.
#[inline(never)]
fn first<'a>(described: &Descriptor<'a>) -> Option<&'a ObjectGuard<()>> {
    // SAFETY: only this crate makes owners of an `ObjectGuard`, each of which is nothing else; and nobody else can call what
    // its drop calls.
    unsafe { kept_by(described) }
}

/// A request for the tensor as it is, whose order is the consumer's affair.
// XAP-10
pub(crate) fn unordered(device: Device) -> ExportRequest {
    ExportRequest {
        stream: unordered_stream(device),
        ..ExportRequest::versioned()
    }
}
