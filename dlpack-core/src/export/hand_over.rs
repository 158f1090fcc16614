//! Entry points for a binding that can release the owner of an export more cheaply than a deleter can.
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use core::mem::forget;
use core::ptr::NonNull;

use crate::abi::DLManagedTensorVersioned;
use crate::export::block::{UnfinishedExport, take_owner};
use crate::export::dims_storage::Capacity;
use crate::export::finish::finish_export;
use crate::request::{Plan, plan::plan, plan::plan_without_request};
use crate::tensor::managed::device_of;
use crate::{Descriptor, Error, ExportRequest, Managed, TensorRef};

/// The result of [`hand_over`].
#[derive(Debug)]
pub enum Handover {
    /// The tensor keeps the owner, and `take_back` may release it without the deleter.
    Kept(NonNull<DLManagedTensorVersioned>),
    /// Any other result: a copy, which does not keep the owner, a tensor on a device with streams, or one in the struct from before
    /// DLPack 1.0.
    Other(Managed),
}

/// Exports like [`export_with`](crate::binding::export_with), for a binding that knows more than a deleter does and can release
/// the owner more cheaply. `owner` is called when the owner is needed.
///
/// # Errors
///
/// The errors of [`export_with`](crate::binding::export_with).
///
/// # Safety
///
/// The contract of [`export_with`](crate::binding::export_with); the owner is the value that `owner` returns.
#[inline]
pub unsafe fn hand_over<O: Send + 'static>(
    owner: impl FnOnce() -> O,
    descriptor: &mut Descriptor<'_>,
    request: &ExportRequest,
) -> Result<Handover, Error> {
    let plan = plan(request, &descriptor.subject())?;
    let mut with_owner = false;
    let capacity = Capacity::of_rank(descriptor.rank());
    let block = |owner| {
        with_owner = true;
        UnfinishedExport::new(owner, capacity)
    };
    // SAFETY: by this function's contract the value that `owner` returns keeps the described memory valid.
    let tensor = unsafe { finish_export(owner, block, descriptor, &plan, Some(request)) }?;
    if !with_owner {
        return Ok(Handover::Other(tensor));
    }
    Ok(tensor
        .into_versioned_struct()
        .map_or_else(Handover::Other, Handover::Kept))
}

/// Views the described tensor as a [`TensorRef`], as its export would show it.
#[must_use]
pub fn view<'a>(descriptor: &'a Descriptor<'_>) -> TensorRef<'a> {
    descriptor.view()
}

/// Exports a tensor that [`is_plain`](fn@crate::binding::is_plain), without a request. [`hand_over`] exports any tensor. Returns
/// `None` if the block, of some hundred bytes, cannot be allocated; the owner is then dropped.
///
/// # Safety
///
/// The contract of [`export_with`](crate::binding::export_with).
#[inline(always)]
pub unsafe fn hand_over_plain<O: Send + 'static>(
    owner: O,
    descriptor: &mut Descriptor<'_>,
) -> Option<NonNull<DLManagedTensorVersioned>> {
    let plan = plan_without_request(&descriptor.subject());
    let block = UnfinishedExport::try_new(owner, Capacity::of_rank(descriptor.rank()))?;
    Some(block.into_versioned(descriptor, &plan))
}

/// An export of this crate in the struct of DLPack 1.0 and later: like [`Managed`], but only its address. Dropping it calls the
/// deleter.
#[derive(Debug)]
#[must_use]
pub struct RawExport(NonNull<DLManagedTensorVersioned>);

impl RawExport {
    /// Moves the description of a tensor into the block, which has the owner of that tensor.
    #[inline(always)]
    pub(super) fn of<O: Send + 'static>(
        block: UnfinishedExport<O>,
        descriptor: &mut Descriptor<'_>,
        plan: &Plan,
    ) -> Self {
        Self(block.into_versioned(descriptor, plan))
    }

    /// Takes a tensor that was computed for this export, if it can be exported as it is: by this crate, in the versioned struct, and
    /// without a stream to order.
    #[inline]
    pub(crate) fn of_computed(tensor: Managed) -> Result<Self, Managed> {
        let device = device_of(&tensor).device_type;
        if !tensor.is_own_export() || device.stream_api().is_some() {
            return Err(tensor);
        }
        let copied = tensor.is_unique();
        tensor
            .marked_copied(copied)
            .into_versioned_struct()
            .map(Self)
    }

    /// Returns the address of the tensor and gives up the tensor. The caller must call the deleter.
    #[must_use = "the tensor is leaked unless its deleter is called"]
    #[inline(always)]
    pub fn into_raw(self) -> NonNull<DLManagedTensorVersioned> {
        let tensor = self.0;
        forget(self);
        tensor
    }
}

impl Drop for RawExport {
    fn drop(&mut self) {
        // SAFETY: `of` or `of_computed` took the struct, no other value has its address, and this is its only release.
        unsafe { DLManagedTensorVersioned::release(self.0) };
    }
}

/// Frees the block of an export and returns its owner, which the deleter would have dropped.
///
/// # Safety
///
/// [`hand_over`] or [`hand_over_plain`] returned `tensor` as kept, for an owner of type `O`. No other code uses it or will call
/// its deleter.
#[must_use]
#[inline]
pub unsafe fn take_back<O: Send + 'static>(tensor: NonNull<DLManagedTensorVersioned>) -> O {
    // SAFETY: the block is not released yet, by this function's contract, so its struct is valid.
    let context = unsafe { (*tensor.as_ptr()).manager_ctx };
    // SAFETY: by this function's contract the owner has type `O`, and no other code uses the block again.
    unsafe { take_owner(context) }
}
