//! The doors for a binding that releases the owner in a better way than a deleter can.
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use core::ptr::NonNull;

use crate::export::block::{Unfinished, take};
use crate::export::contents::{Contents, Room};
use crate::export::ways::{finish, subject};
use crate::request::plan::plan;
use crate::{Descriptor, Error, ExportRequest, Managed};
use crate::{abi, describe::usual::Usual};

/// What [`hand_over`] gives.
#[derive(Debug)]
pub enum Handover {
    /// The tensor keeps the owner; `take_back` may release it without the deleter.
    Kept(NonNull<abi::DLManagedTensorVersioned>),
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
    let plan = plan(request, &subject(descriptor))?;
    let mut with_owner = false;
    let room = Room::of(descriptor.shape.len());
    let block = |owner| {
        with_owner = true;
        Unfinished::new(owner, room)
    };
    // SAFETY: the caller vouches for the owner.
    let tensor = unsafe { finish(owner, block, descriptor, &plan, Some(request)) }?;
    if !with_owner {
        return Ok(Handover::Other(tensor));
    }
    Ok(tensor
        .give_up()
        .map_or_else(Handover::Other, Handover::Kept))
}

/// More axes than this an array hardly ever has. An export takes 16 bytes for each that it has room for.
const MANY: usize = 3;

/// As [`hand_over`] for a plain request, of a tensor of the usual kind: as [`Handover::Kept`], or nothing where it is of no
/// usual kind or there is no memory. The owner was dropped then.
///
/// The block is there before the tensor is described, so that nothing of the description has to be kept
/// anywhere else meanwhile; `axes` says for how many it has to have room, where that is known.
///
/// # Safety
///
/// As [`export_with`](crate::binding::export_with), for what `describe` describes.
#[inline(always)]
pub unsafe fn hand_over_usual<'a, O: Send + 'static>(
    owner: O,
    axes: Option<usize>,
    describe: impl FnOnce() -> Option<Usual<'a>>,
) -> Option<NonNull<abi::DLManagedTensorVersioned>> {
    let mut block = Unfinished::try_new(owner, Room::of(axes.unwrap_or(MANY))).ok()?;
    let Some(usual) = describe() else {
        discard(block);
        return None;
    };
    if !block.has_room(usual.rank) {
        block = block.roomier()?;
    }
    Some(block.fill(Contents::of_usual(&usual), &usual.plan()))
}

#[cold]
#[inline(never)]
fn discard<O: Send + 'static>(_: Unfinished<O>) {}

/// Frees the block of an export and gives back its owner: what the deleter would have dropped.
///
/// # Safety
///
/// `tensor` was given by [`hand_over`] or [`hand_over_usual`] as kept, for an owner of this type, and nobody else
/// uses it or will call its deleter.
#[must_use]
#[inline]
pub unsafe fn take_back<O: Send + 'static>(tensor: NonNull<abi::DLManagedTensorVersioned>) -> O {
    // SAFETY: the struct of a block is valid until it is released.
    let context = unsafe { (*tensor.as_ptr()).manager_ctx };
    // SAFETY: the caller vouches for the type, and gives the block up.
    unsafe { take(context) }
}
