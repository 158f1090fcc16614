//! Exports that keep a clone of the field marked `owner`, instead of the struct that contains it.
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use crate::export::block::{UnfinishedExport, drop_out_of_line};
use crate::export::dims_storage::Capacity;
use crate::export::finish::{
    finish_export, finish_without_owner, is_plain, plan_export, transfer_path,
};
use crate::export::hand_over::RawExport;
use crate::export::root::{AllocationHandle, allocation_of, share_root};
use crate::loan::LentMemory;
use crate::request::plan::{TransferPath, plan_without_request};
use crate::{Descriptor, Error, ExportRequest, Loan, Managed, Parts, TensorRef, layout::extent};

/// Exports a tensor with a clone of `field` as its owner, as a consumer requests it, or as it is without a request.
///
/// The clone is first moved to its final address. Then its loan is compared with the description: the tensor is exported only
/// if the loan covers every item ([`covers_items`]). If the clone copied its elements, its loan covers none of them.
#[cold]
pub(crate) fn share_clone<T: Clone + Send + 'static>(
    field: &T,
    lend: for<'a> fn(&'a T) -> Loan<'a>,
    descriptor: &mut Descriptor<'_>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    if let Some(shared) = share_root(descriptor, request) {
        return shared;
    }
    let plan = plan_export(descriptor, request)?;
    if transfer_path(descriptor, &plan) != TransferPath::Share {
        return finish_without_owner(descriptor, &plan, request);
    }
    let block = UnfinishedExport::new(field.clone(), Capacity::of_rank(descriptor.rank()))?;
    if !covers_items(lend(block.owner()), descriptor) {
        return Err(Error::OwnerElsewhere);
    }
    // SAFETY: the clone stays in the block, and `covers_items` found that its loan covers every item of the tensor.
    unsafe { finish_export(|| block, Ok, descriptor, &plan, request) }
}

/// Fast path of [`share_plain`], for a packed tensor at the start of the memory that the field lends. It is inlined into each
/// caller, where the compiler knows most fields of the descriptor. Returns `None` for any other tensor and for every error.
#[inline(always)]
pub(crate) fn share_packed<T: Clone + Send + 'static>(
    field: &T,
    lend: for<'a> fn(&'a T) -> Loan<'a>,
    descriptor: &mut Descriptor<'_>,
) -> Option<RawExport> {
    // Without the last check, a tensor with an offset would clone the field in vain.
    if !is_plain(descriptor)
        || descriptor.allocation.is_some()
        || !is_packed_in(&lend(field), descriptor)
    {
        return None;
    }
    let plan = plan_without_request(&descriptor.subject());
    let capacity = Capacity::of_rank(descriptor.rank());
    let block = UnfinishedExport::try_new(field.clone(), capacity)?;
    if !is_packed_in(&lend(block.owner()), descriptor) {
        drop_out_of_line(block);
        return None;
    }
    Some(RawExport::of(block, descriptor, &plan))
}

/// Fast path of [`share_clone`] without a request. Returns `None` if the tensor is not plain, if the clone does not keep its
/// memory, or if there is no memory for the block; `share_clone` then reports the cause.
pub(crate) fn share_plain<T: Clone + Send + 'static>(
    field: &T,
    lend: for<'a> fn(&'a T) -> Loan<'a>,
    descriptor: &mut Descriptor<'_>,
) -> Option<RawExport> {
    if !is_plain(descriptor) {
        return None;
    }
    let plan = plan_without_request(&descriptor.subject());
    let capacity = Capacity::of_rank(descriptor.rank());
    if let Some(allocation) = allocation_of(descriptor) {
        let block = UnfinishedExport::try_new(AllocationHandle::new(allocation), capacity)?;
        return Some(RawExport::of(block, descriptor, &plan));
    }
    let block = UnfinishedExport::try_new(field.clone(), capacity)?;
    if !covers_items(lend(block.owner()), descriptor) {
        drop_out_of_line(block);
        return None;
    }
    Some(RawExport::of(block, descriptor, &plan))
}

/// Whether a tensor is packed, begins where the loan does, and lies in it.
#[inline(always)]
fn is_packed_in(loan: &Loan<'_>, descriptor: &Descriptor<'_>) -> bool {
    let memory = &loan.memory;
    permits(memory, descriptor)
        && memory.layout.is_none()
        && descriptor.data == memory.data
        && descriptor.byte_offset == 0
        && descriptor.packed_bytes() <= memory.bytes
}

/// Whether the memory is on the device of a tensor, and may be written if the tensor may.
#[inline(always)]
fn permits(memory: &LentMemory, descriptor: &Descriptor<'_>) -> bool {
    memory.device == descriptor.device && (descriptor.read_only || !memory.access.is_read_only())
}

/// Whether the loan covers each item of a tensor.
///
/// A contiguous loan covers every byte between its ends. A strided loan does not cover the gaps between its items, so the
/// tensor must then have exactly the items of the loan.
#[inline]
fn covers_items(loan: Loan<'_>, descriptor: &Descriptor<'_>) -> bool {
    let memory = &loan.memory;
    permits(memory, descriptor)
        // The clone may not keep another stream alive for as long as the tensor needs it.
        && (descriptor.stream_origin().is_none() || memory.stream == descriptor.stream)
        && descriptor.lies_in(memory.data, memory.bytes)
        && (memory.layout.is_none() || covers_strided_items(loan, descriptor))
}

#[cold]
fn covers_strided_items(loan: Loan<'_>, descriptor: &Descriptor<'_>) -> bool {
    let layout = loan.memory.layout.as_ref();
    layout.is_none_or(|layout| !extent::may_leave_gaps(&layout.shape, &layout.strides))
        || Parts::new()
            .describe(loan)
            .is_ok_and(|own| has_same_items(&own.view(), &descriptor.view()))
}

fn has_same_items(one: &TensorRef<'_>, other: &TensorRef<'_>) -> bool {
    one.as_ptr() == other.as_ptr()
        && one.dtype() == other.dtype()
        && one.shape() == other.shape()
        && extent::address_same_items(one.shape(), one.strides(), other.strides())
}
