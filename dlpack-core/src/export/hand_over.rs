//! Entry points for a binding that can release the owner of an export more cheaply than a deleter can.
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use core::mem::forget;
use core::ptr::NonNull;

use crate::abi::DLManagedTensorVersioned;
use crate::export::block::{UnfinishedExport, take_owner};
use crate::export::dims_storage::Capacity;
use crate::export::finish::{finish_export, plan_sharing, subject_of};
use crate::request::{Plan, plan::plan, plan::plan_without_request};
use crate::{Descriptor, Error, ExportRequest, Managed, TensorRef};

/// What [`hand_over`] gives.
#[derive(Debug)]
pub enum Handover {
    /// The tensor keeps the owner; `take_back` may release it without the deleter.
    Kept(NonNull<DLManagedTensorVersioned>),
    /// The owner is kept in the struct from before DLPack 1.0, or was dropped since the tensor has its own memory.
    Other(Managed),
}

/// As [`export_with`](crate::binding::export_with), for a binding that can release the owner in a better way where it knows more than
/// a deleter does. The owner is made once it is needed.
///
/// # Errors
///
/// As [`export_with`](crate::binding::export_with).
///
/// # Safety
///
/// As [`export_with`](crate::binding::export_with); what `owner` makes is the owner.
#[inline]
pub unsafe fn hand_over<O: Send + 'static>(
    owner: impl FnOnce() -> O,
    descriptor: &mut Descriptor<'_>,
    request: &ExportRequest,
) -> Result<Handover, Error> {
    let plan = plan(request, &subject_of(descriptor))?;
    let mut with_owner = false;
    let capacity = Capacity::of_rank(descriptor.rank());
    let block = |owner| {
        with_owner = true;
        UnfinishedExport::new(owner, capacity)
    };
    // SAFETY: the caller vouches for the owner.
    let tensor = unsafe { finish_export(owner, block, descriptor, &plan, Some(request)) }?;
    if !with_owner {
        return Ok(Handover::Other(tensor));
    }
    Ok(tensor
        .into_versioned_struct()
        .map_or_else(Handover::Other, Handover::Kept))
}

/// There was no memory for an export block, which takes some hundred bytes.
#[derive(Debug)]
pub struct OutOfMemory;

/// Whether [`hand_over_plain`] can export the tensor: there is no stream to order, and it was not made for this export.
#[must_use]
#[inline(always)]
pub fn is_plain(descriptor: &Descriptor<'_>) -> bool {
    plan_sharing(descriptor).is_some()
}

/// What is described, as the [`TensorRef`] of an export would show it.
#[must_use]
pub fn view<'a>(descriptor: &'a Descriptor<'_>) -> TensorRef<'a> {
    descriptor.view()
}

/// As [`hand_over`] without a request, of a tensor that [`is_plain`].
///
/// # Errors
///
/// Without memory for the block. The owner was dropped then.
///
/// # Safety
///
/// As [`export_with`](crate::binding::export_with).
#[inline(always)]
pub unsafe fn hand_over_plain<O: Send + 'static>(
    owner: O,
    descriptor: &mut Descriptor<'_>,
) -> Result<NonNull<DLManagedTensorVersioned>, OutOfMemory> {
    let plan = plan_without_request(&subject_of(descriptor));
    let block = UnfinishedExport::try_new(owner, Capacity::of_rank(descriptor.rank()));
    Ok(block
        .map_err(|()| OutOfMemory)?
        .into_versioned(descriptor, &plan))
}

/// An export of this crate in the struct of DLPack 1.0 and later: a [`Managed`] that is only its address. Dropping it calls the
/// deleter.
#[derive(Debug)]
#[must_use]
pub struct RawExport(NonNull<DLManagedTensorVersioned>);

impl RawExport {
    /// Puts the tensor that a block's owner keeps into the block.
    #[inline(always)]
    pub(super) fn of<O: Send + 'static>(
        block: UnfinishedExport<O>,
        descriptor: &mut Descriptor<'_>,
        plan: &Plan,
    ) -> Self {
        Self(block.into_versioned(descriptor, plan))
    }

    /// Gives up the tensor: whoever gets the address has to call the deleter.
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
        // SAFETY: `of` filled the struct, only this value knows it, and this is its one release.
        unsafe { DLManagedTensorVersioned::release(self.0) };
    }
}

/// Frees the block of an export and gives back its owner: what the deleter would have dropped.
///
/// # Safety
///
/// `tensor` was given by [`hand_over`] or [`hand_over_plain`] as kept, for an owner of this type, and nobody else
/// uses it or will call its deleter.
#[must_use]
#[inline]
pub unsafe fn take_back<O: Send + 'static>(tensor: NonNull<DLManagedTensorVersioned>) -> O {
    // SAFETY: the struct of a block is valid until it is released.
    let context = unsafe { (*tensor.as_ptr()).manager_ctx };
    // SAFETY: the caller vouches for the type, and gives the block up.
    unsafe { take_owner(context) }
}
