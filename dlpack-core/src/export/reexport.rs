//! Re-exports: exports that have another tensor, exported or imported before, as their owner.
#![expect(unsafe_code, reason = "looks at the owners of exports")]

use core::sync::atomic::AtomicBool;

use crate::describe::descriptor::DescriptionSource;
use crate::export::finish::export_moved;
use crate::export::recognize::{KnownDeleters, OwnerForm, deleters_of, owner_of};
use crate::layout::views::LayoutView;
use crate::memory::counted::Counted;
use crate::{Descriptor, Error, ExportRequest, Managed};

/// A tensor as the owner of another export, of the same memory or of a view.
///
/// No other owner type contains it, so that [`owner_of`] can find it. `T` is a [`Managed`], or a [`Counted`] handle to one.
pub(crate) struct ReexportOwner<T>(T);

static DELETERS: KnownDeleters = KnownDeleters::unknown();
static DELETERS_OF_COUNTED: KnownDeleters = KnownDeleters::unknown();
const FORMS: &[OwnerForm] = &[
    OwnerForm::Plain,
    OwnerForm::Streamed,
    OwnerForm::StreamedBlock,
];

impl ReexportOwner<Managed> {
    fn new(tensor: Managed) -> Self {
        /// Not inlined into other crates: their instances of the deleters would have other addresses.
        #[cold]
        #[inline(never)]
        fn remember_deleters() {
            DELETERS.remember(FORMS, deleters_of::<ReexportOwner<Managed>>);
        }

        if !DELETERS.are_known() {
            remember_deleters();
        }
        Self(tensor)
    }
}

impl ReexportOwner<Counted<Managed>> {
    pub(super) fn counted(tensor: Counted<Managed>) -> Self {
        if !DELETERS_OF_COUNTED.are_known() {
            DELETERS_OF_COUNTED.remember(FORMS, deleters_of::<ReexportOwner<Counted<Managed>>>);
        }
        Self(tensor)
    }
}

/// Read only by the drop of [`ReexportOwner`].
static MARK: AtomicBool = AtomicBool::new(false);

impl<T> Drop for ReexportOwner<T> {
    /// Reads `MARK`, which makes the code of the deleter unique. So its address identifies re-exports.
    fn drop(&mut self) {
        // SAFETY: `MARK` is a static that no code writes.
        unsafe { MARK.as_ptr().read_volatile() };
    }
}

/// Exports a tensor again, as a consumer requests it, or shared as it is without a request.
pub(super) fn reexport_tensor(
    tensor: Managed,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    reexport_view(tensor, |_| Ok(()), request)
}

/// Exports a view of a tensor: `change` is applied to its layout first.
pub(super) fn reexport_view(
    tensor: Managed,
    change: impl FnOnce(&mut LayoutView) -> Result<(), Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    reexport_changed(tensor, |described| described.apply_view(change), request)
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
    let owner = ReexportOwner::new(tensor);
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

/// The first result of `find` for the described tensor or, if that is a re-export, for the tensor below it, and so on down.
///
/// An export that can hold the owner of that tensor need not hold the tensors in between. Returns `None` if such a tensor is
/// needed because it frees device memory after the work of several streams.
#[inline(always)]
pub(super) fn find_in_layers<'a, R>(
    described: &Descriptor<'a>,
    find: impl Fn(&'a Managed) -> Option<R>,
) -> Option<R> {
    let DescriptionSource::BorrowedTensor(mut tensor) = described.source else {
        return None;
    };
    loop {
        let found = find(tensor);
        if found.is_some() {
            return found;
        }
        tensor = tensor_below(tensor, described)?;
    }
}

/// The tensor that a re-export has as its owner.
#[inline(never)]
fn tensor_below<'a>(tensor: &'a Managed, described: &Descriptor<'_>) -> Option<&'a Managed> {
    // SAFETY: a `ReexportOwner` is always the whole owner, and its drop reads `MARK`, which no other drop does.
    let sole =
        unsafe { owner_of::<ReexportOwner<Managed>>(tensor, described, |form| DELETERS.get(form)) };
    // SAFETY: a `ReexportOwner` is always the whole owner, and its drop reads `MARK`, which no other drop does.
    let several = || unsafe {
        owner_of::<ReexportOwner<Counted<Managed>>>(tensor, described, |form| {
            DELETERS_OF_COUNTED.get(form)
        })
    };
    (sole.map(|layer| &layer.0)).or_else(|| several().map(|layer| &*layer.0))
}
