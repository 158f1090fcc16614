//! Layers: exports of tensors that were exported before, and who keeps the memory below all of them.
#![expect(unsafe_code, reason = "looks at the owners of exports")]

use core::sync::atomic::AtomicBool;

use crate::describe::descriptor::Of;
use crate::export::{block::owner, ways::export_moved};
use crate::layout::cut::Cut;
use crate::memory::counted::Counted;
use crate::{Descriptor, Error, ExportRequest, Managed};

/// A tensor that is the owner of an export: of the same memory, or of a part of it.
///
/// It is never a part of another owner. `T` is a [`Managed`], or counts those who hold one.
pub(crate) struct Layer<T>(pub(crate) T);

/// What only the drop of a layer reads.
static MARK: AtomicBool = AtomicBool::new(false);

impl<T> Drop for Layer<T> {
    /// Reads the mark, so that no other function has the code of a layer's deleter, nor then its address.
    fn drop(&mut self) {
        // SAFETY: a static, which nobody writes.
        unsafe { MARK.as_ptr().read_volatile() };
    }
}

/// Exports a tensor that was exported before.
pub(super) fn again(tensor: Managed, request: Option<&ExportRequest>) -> Result<Managed, Error> {
    part(tensor, |_| Ok(()), request)
}

/// The same for a part of it.
pub(super) fn part(
    tensor: Managed,
    cut: impl FnOnce(&mut Cut) -> Result<(), Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    changed(tensor, |described| described.cut(cut), request)
}

/// The same for its memory in any other form.
pub(super) fn changed(
    tensor: Managed,
    change: impl FnOnce(&mut Descriptor<'_>) -> Result<(), Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    // A statement of a producer is not repeated where others are known to have the memory.
    let copied = tensor.view().is_copied() && !tensor.access.is_shared();
    let sole = tensor.is_unique();
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
    Ok(layer.with_base_facts(sole, copied && request.is_none()))
}

/// What keeps the memory that is described, if that is a value of this type: as the owner of the tensor that was
/// described, or of the one which that keeps, and so on.
///
/// Who exports the memory again, and has a way to keep that value, can do so in place of the tensor. Nothing is found where
/// the tensor sees to it besides that memory of a device is freed behind the work of several streams.
///
/// # Safety
///
/// No owner of another type contains an `O`, and only the drop of an `O` does what that does: functions of the same code
/// may have the same address, and by the address of its deleter a tensor is found to be of such an owner.
#[must_use]
pub unsafe fn kept_by<'a, O: Send + 'static>(described: &Descriptor<'a>) -> Option<&'a O> {
    let Of::Lent(mut tensor) = described.of else {
        return None;
    };
    loop {
        // SAFETY: passed on to the caller.
        let owner = unsafe { owner::<O>(tensor, described) };
        if owner.is_some() {
            return owner;
        }
        tensor = below(tensor, described)?;
    }
}

/// The tensor that is the owner of this one. Compiled once, here, where layers are made: another crate would have
/// deleters of its own to compare with.
#[inline(never)]
fn below<'a>(tensor: &'a Managed, described: &Descriptor<'_>) -> Option<&'a Managed> {
    // SAFETY: a layer is the whole owner, and its drop does what no other does.
    let sole = unsafe { owner::<Layer<Managed>>(tensor, described) };
    // SAFETY: as above.
    let several = || unsafe { owner::<Layer<Counted<Managed>>>(tensor, described) };
    (sole.map(|layer| &layer.0)).or_else(|| several().map(|layer| &*layer.0))
}
