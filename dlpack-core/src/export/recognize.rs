//! Recognises exports of this crate, and the types of their owners, by the addresses of their deleters.
#![expect(unsafe_code, reason = "looks at the owners of exports")]

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::describe::descriptor::Descriptor;
use crate::export::block::{UnfinishedExport, delete_legacy, delete_versioned, owner_at};
use crate::{Managed, stream::owner::StreamOwner};

/// How an owner of type `O` lies in its block.
#[derive(Clone, Copy)]
pub(super) enum OwnerForm {
    /// As it is.
    Plain,
    /// As a [`StreamOwner<O>`].
    Streamed,
    /// As a `StreamOwner<UnfinishedExport<O>>`.
    StreamedBlock,
}

/// The addresses of the deleters of versioned and of legacy exports; null if there are no such exports yet.
type DeleterPair = [*const (); 2];

/// The deleters of exports with an owner of type `O`.
pub(super) fn deleters_of<O: Send + 'static>(form: OwnerForm) -> DeleterPair {
    fn pair<O>() -> DeleterPair {
        [
            delete_versioned::<O> as *const (),
            delete_legacy::<O> as *const (),
        ]
    }
    match form {
        OwnerForm::Plain => pair::<O>(),
        OwnerForm::Streamed => pair::<StreamOwner<O>>(),
        OwnerForm::StreamedBlock => pair::<StreamOwner<UnfinishedExport<O>>>(),
    }
}

/// The deleters of exports with owners of one type, known since the first of these exports was made.
///
/// Code that recognises such exports by this table does not link their deleters, nor all that these call. A module that only
/// imports arrays makes few of these exports.
pub(super) struct KnownDeleters([[AtomicPtr<()>; 2]; 3]);

impl KnownDeleters {
    /// The table before the first export.
    pub(super) const fn unknown() -> Self {
        Self([const { [const { AtomicPtr::new(null_mut()) }; 2] }; 3])
    }

    /// Whether [`remember`](Self::remember) was called.
    #[inline(always)]
    pub(super) fn are_known(&self) -> bool {
        !self.0[0][0].load(Ordering::Acquire).is_null()
    }

    /// Stores the deleters of exports in these forms, of which the first is [`OwnerForm::Plain`]. Called before the first export
    /// with an owner of this type.
    ///
    /// The address that [`are_known`](Self::are_known) reads is stored last. So each thread stores all of them, or sees them,
    /// before it makes a tensor, and a thread that has the tensor sees them too.
    pub(super) fn remember(&self, forms: &[OwnerForm], deleters: fn(OwnerForm) -> DeleterPair) {
        for &form in forms.iter().rev() {
            let places = self.0[form as usize].iter().zip(deleters(form));
            for (place, deleter) in places.rev() {
                place.store(deleter.cast_mut(), Ordering::Release);
            }
        }
    }

    pub(super) fn get(&self, form: OwnerForm) -> DeleterPair {
        (self.0[form as usize].each_ref()).map(|place| place.load(Ordering::Relaxed).cast_const())
    }
}

/// The owner of a tensor, if the tensor lies in an export block of this crate with an owner of type `O`.
///
/// The type is recognised by its `deleters`.
///
/// For device memory the owner is wrapped in a [`StreamOwner`], which frees it after the consumer's work. A re-export has a
/// stream binding of its own, so it may skip the wrapper, provided that the wrapper is bound to the stream that `described` is
/// written on and to no other.
///
/// # Safety
///
/// The deleters are [those of `O`](deleters_of), or null. No owner of another type contains an `O`, and no other type's drop
/// compiles to the code of `O`'s drop.
pub(super) unsafe fn owner_of<'a, O: Send + 'static>(
    tensor: &'a Managed,
    described: &Descriptor<'_>,
    deleters: impl Fn(OwnerForm) -> DeleterPair,
) -> Option<&'a O> {
    let Descriptor { device, stream, .. } = *described;
    // SAFETY: same contract as this function's.
    let plain = unsafe { owner_released_by::<O>(tensor, deleters(OwnerForm::Plain)) };
    if plain.is_some() || device.device_type.stream_api().is_none() {
        return plain;
    }
    let shared = || {
        // SAFETY: by this function's contract only the drop of an `O` has that code, so only the deleter of such a wrapper
        // contains it.
        let owner =
            unsafe { owner_released_by::<StreamOwner<O>>(tensor, deleters(OwnerForm::Streamed)) };
        owner?.owner(device, stream)
    };
    let moved = || {
        // SAFETY: by this function's contract only the drop of an `O` has that code, so only the deleter of such a wrapper
        // contains it.
        let owner = unsafe {
            owner_released_by::<StreamOwner<UnfinishedExport<O>>>(
                tensor,
                deleters(OwnerForm::StreamedBlock),
            )
        };
        owner?.owner(device, stream)
    };
    shared().or_else(|| moved().map(UnfinishedExport::owner))
}

/// The owner of a tensor, if it is exactly of type `O` and not wrapped in a [`StreamOwner`].
///
/// # Safety
///
/// No owner of another type contains an `O`, and no other type's drop compiles to the code of `O`'s drop.
pub(super) unsafe fn owner_if_exactly<O: Send + 'static>(tensor: &Managed) -> Option<&O> {
    // SAFETY: same contract as this function's; these are the deleters of such exports.
    unsafe { owner_released_by(tensor, deleters_of::<O>(OwnerForm::Plain)) }
}

/// The owner of a tensor, if one of these functions is its deleter.
///
/// # Safety
///
/// The functions are the deleters of exports with an owner of type `O`, or null. No owner of another type contains an `O`, and
/// no other type's drop compiles to the code of `O`'s drop.
unsafe fn owner_released_by<O>(tensor: &Managed, deleters: DeleterPair) -> Option<&O> {
    let context = tensor.released_by(deleters)?;
    // SAFETY: two deleters have the same address only if they have the same code. By this function's contract no other owner
    // type's deleter has this code, so the block's owner is an `O`. The block lives until the tensor is released, and no other
    // code uses its owner.
    Some(unsafe { owner_at(context) })
}
