//! Re-exports: exports with a tensor as their owner, which was exported or imported before.
#![expect(unsafe_code, reason = "looks at the owners of exports")]

use core::sync::atomic::AtomicBool;

use crate::describe::descriptor::Of;
use crate::export::{block::owner, ways::export_moved};
use crate::layout::cut::Cut;
use crate::memory::counted::Counted;
use crate::{Descriptor, Error, ExportRequest, Managed};

/// A tensor as the owner of another export, of the same memory or of a view.
///
/// It is always the whole owner, never a field of one. `T` is a [`Managed`], or a [`Counted`] handle to one.
pub(crate) struct Layer<T>(pub(crate) T);

/// Read only by the drop of [`Layer`].
static MARK: AtomicBool = AtomicBool::new(false);

impl<T> Drop for Layer<T> {
    /// Reads `MARK`. That gives the deleter code that no other function has, so its address identifies re-exports.
    fn drop(&mut self) {
        // SAFETY: `MARK` is a static that no code writes.
        unsafe { MARK.as_ptr().read_volatile() };
    }
}

/// Exports a tensor again, as a consumer requests it, or shared as it is without a request.
pub(super) fn again(tensor: Managed, request: Option<&ExportRequest>) -> Result<Managed, Error> {
    part(tensor, |_| Ok(()), request)
}

/// Exports a view of a tensor: `cut` is applied to its description first.
pub(super) fn part(
    tensor: Managed,
    cut: impl FnOnce(&mut Cut) -> Result<(), Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    changed(tensor, |described| described.cut(cut), request)
}

/// Exports a tensor again after `change` is applied to its description.
pub(super) fn changed(
    tensor: Managed,
    change: impl FnOnce(&mut Descriptor<'_>) -> Result<(), Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    // Once other code has the memory too, the producer's flag that it is a private copy must not be repeated.
    let copied = tensor.view().is_copied() && !tensor.access.is_shared();
    let sole = tensor.is_sole();
    let owner = Layer(tensor);
    let layer = export_moved(
        owner,
        |layer| {
            let mut described = Descriptor::of_mut(&mut layer.0)?;
            change(&mut described)?;
            Ok(described)
        },
        request,
    )?;
    Ok(layer.over(sole, copied && request.is_none()))
}

/// Finds the owner of type `O` that keeps the described memory alive: the owner of the described tensor or, if that is a
/// re-export, of the tensor below it, and so on down.
///
/// An export that can hold that owner itself need not hold the tensors in between. Returns `None` if such a tensor is needed
/// because it frees device memory after the work of several streams.
///
/// # Safety
///
/// No owner of another type contains an `O`, and no other type's drop compiles to the code of `O`'s drop. A tensor's owner type
/// is recognised by the address of its deleter, and functions with equal code may share an address.
#[must_use]
pub unsafe fn kept_by<'a, O: Send + 'static>(described: &Descriptor<'a>) -> Option<&'a O> {
    let Of::Lent(mut tensor) = described.of else {
        return None;
    };
    loop {
        // SAFETY: same contract as this function's.
        let owner = unsafe { owner::<O>(tensor, described) };
        if owner.is_some() {
            return owner;
        }
        tensor = below(tensor, described)?;
    }
}

/// The tensor that a re-export has as its owner. Not inlined into other crates: their instances of the deleters
/// would have other addresses.
#[inline(never)]
fn below<'a>(tensor: &'a Managed, described: &Descriptor<'_>) -> Option<&'a Managed> {
    // SAFETY: a `Layer` is always the whole owner, and its drop reads `MARK`, which no other drop does.
    let sole = unsafe { owner::<Layer<Managed>>(tensor, described) };
    // SAFETY: a `Layer` is always the whole owner, and its drop reads `MARK`, which no other drop does.
    let several = || unsafe { owner::<Layer<Counted<Managed>>>(tensor, described) };
    (sole.map(|layer| &layer.0)).or_else(|| several().map(|layer| &*layer.0))
}
