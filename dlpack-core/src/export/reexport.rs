//! Re-exports: exports that have another tensor, exported or imported before, as their owner.

use crate::export::finish::export_moved;
use crate::export::recognize::{Block, StreamWork};
use crate::memory::counted::Counted;
use crate::{Descriptor, Error, ExportRequest, Managed};

/// A tensor as the owner of another export, of the same memory or of a view. `T` is a [`Managed`], or a [`Counted`] handle to one.
pub(crate) struct ReexportOwner<T>(pub(super) T);

/// Exports a tensor again, as a consumer requests it, or shared as it is without a request.
pub(super) fn reexport_tensor(
    tensor: Managed,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    reexport_changed(tensor, |_| Ok(()), request)
}

/// Exports a tensor again after `change` is applied to its description.
pub(super) fn reexport_changed(
    tensor: Managed,
    change: impl FnOnce(&mut Descriptor<'_>) -> Result<(), Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    // Once other code has the memory too, the producer's flag that it is a private copy must not be repeated.
    let copied = tensor.view().is_copied() && !tensor.access().is_shared();
    let sole = tensor.is_unique();
    let owner = ReexportOwner(tensor);
    let export = export_moved(
        owner,
        |owner| {
            let mut described = Descriptor::of_tensor_mut(&mut owner.0)?;
            change(&mut described)?;
            Ok(described)
        },
        request,
    )?;
    Ok(export.with_base_facts(sole, copied && request.is_none()))
}

/// The first result of `find` for the block of a tensor or, if that is a re-export, of the tensor below it, and so on down. `work`
/// is the work on the stream that the tensor is exported on again.
///
/// An export that can hold the owner of that tensor need not hold the tensors in between. Returns `None` if such a tensor is
/// needed because it frees device memory after the work of several streams.
#[inline]
pub(super) fn find_in_layers<'a, R>(
    mut tensor: &'a Managed,
    work: StreamWork,
    find: impl Fn(Block<'a>) -> Option<R>,
) -> Option<R> {
    loop {
        let block = Block::of(tensor)?;
        let found = find(block);
        if found.is_some() {
            return found;
        }
        tensor = tensor_below(block, work)?;
    }
}

/// The tensor that a re-export has as its owner.
fn tensor_below<'a>(block: Block<'a>, work: StreamWork) -> Option<&'a Managed> {
    let sole = block.owner_in_order::<ReexportOwner<Managed>>(work);
    let several = || block.owner_in_order::<ReexportOwner<Counted<Managed>>>(work);
    (sole.map(|layer| &layer.0)).or_else(|| several().map(|layer| &*layer.0))
}
