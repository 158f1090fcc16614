//! The request of a consumer, the outcome of an export, and the object that is kept alive for it.
//!
//! The functions of each class are in `vtable`.
#![expect(unsafe_code, reason = "names the type of owners that this crate makes")]

use dlpack_core::binding::{self, Root};
use dlpack_core::{Descriptor, ExportRequest, Managed};
use pyo3::prelude::*;

use crate::keepalive::ObjectGuard;

/// The request of a consumer.
#[derive(Clone, Copy)]
pub(crate) enum ConsumerRequest<'a> {
    /// `__dlpack__` without arguments, or with a `max_version` that has the versioned struct.
    Default,
    /// An export through the exchange table: the consumer orders its work itself.
    Unordered,
    With(&'a ExportRequest),
    /// A buffer over the memory itself.
    Buffer,
}

/// The outcome of an export that is not returned by its address.
pub(crate) enum Outcome {
    /// No value: the tensor was returned by its address, or an exception is set.
    None,
    Tensor(Managed),
    /// For [`ConsumerRequest::Buffer`]: the object that lends the memory.
    Lender(Py<PyAny>),
    /// For [`ConsumerRequest::Buffer`]: a consumer has to wait for work on the memory, or each export makes new memory. The
    /// caller then imports a tensor as any consumer does.
    NotLent,
}

impl Outcome {
    /// Forgets the outcome of an export that returned its tensor by address. It is [`Outcome::None`], but the compiler would generate
    /// a call that drops it.
    #[inline(always)]
    pub(crate) fn forget_none(self) {
        debug_assert!(matches!(self, Self::None), "an export has one result");
        core::mem::forget(self);
    }
}

impl<'a> ConsumerRequest<'a> {
    /// Whether a plain tensor is exported as it is.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Default | Self::Unordered)
    }

    /// The request for an export that has a field as its owner. By default there is none. If the data may be on a device, its
    /// default stream has to wait, and the request for that is stored in `ordered`.
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

/// What keeps the memory of a tensor that an object has, if that is not the object itself: another object, or a shared allocation.
/// An export then holds that, so repeated exports and imports do not build a chain of objects.
#[inline(never)]
pub(crate) fn find_root<'a>(described: &Descriptor<'a>) -> Option<Root<'a, ObjectGuard<()>>> {
    // SAFETY: an `ObjectGuard` gives access to an object of Python, and not to the memory of a tensor.
    unsafe { binding::find_root(described) }
}

/// [`find_root`] of a tensor that `describe_export` describes.
#[inline]
pub(crate) fn find_root_of_export(tensor: &Managed) -> Option<Root<'_, ObjectGuard<()>>> {
    // SAFETY: as in `find_root`.
    unsafe { binding::find_root_of_export(tensor) }
}
