//! Exports of a [`SharedBuffer`](crate::SharedBuffer)'s memory that hold the allocation itself. Importing and exporting such a
//! tensor again does not build a chain of tensors: each holds the allocation directly.
//!
//! ```text
//! SharedBuffer ──▶ export ──▶ object in Python ──▶ its export ──▶ SharedBuffer
//!      └─────────────┴─▶ SharedAllocation ◀─────────────────┴──────────────┘
//! ```
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use core::sync::atomic::{AtomicBool, Ordering};
use core::{mem::ManuallyDrop, ptr::NonNull};

use crate::export::block::{UnfinishedExport, delete_versioned};
use crate::export::dims_storage::Capacity;
use crate::export::extras::ShareCall;
use crate::export::finish::{plan_export, transfer_path};
use crate::export::hand_over::RawExport;
use crate::export::recognize::{Block, StreamWork};
use crate::export::reexport::find_in_layers;
use crate::loan::shared::SharedAllocation;
use crate::request::{Plan, plan::TransferPath};
use crate::tensor::managed::{device_of, take_own};
use crate::{DLPack, Descriptor, Device, Error, ExportRequest, Managed, abi};

/// A handle to the allocation of a [`SharedBuffer`](crate::SharedBuffer), which stays allocated until the handle is dropped. Also
/// the owner of an export that holds only an allocation.
#[derive(Clone, Debug)]
pub struct AllocationHandle(SharedAllocation);

/// Whether an [`AllocationHandle`] was ever made.
static EXISTS: AtomicBool = AtomicBool::new(false);

impl AllocationHandle {
    /// Whether Rust code may write to the memory, also if the exports of its type are read-only.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        !self.0.access().is_read_only()
    }

    #[inline]
    pub(super) fn new(allocation: &SharedAllocation) -> Self {
        if !EXISTS.load(Ordering::Relaxed) {
            EXISTS.store(true, Ordering::Relaxed);
        }
        Self(allocation.clone())
    }

    /// Whether there may be a handle. Before the first one, no tensor is kept by an allocation.
    ///
    /// ```
    /// use dlpack_core::binding::{AllocationHandle, share_allocation};
    /// use dlpack_core::{DLPack, SharedBuffer};
    ///
    /// let buffer = SharedBuffer::<f32>::zeroed(3)?;
    /// let handle = share_allocation(&buffer.describe()?);
    /// assert!(handle.is_some() && AllocationHandle::may_exist());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn may_exist() -> bool {
        EXISTS.load(Ordering::Relaxed)
    }
}

/// The shared allocation that a described tensor lies in, if there is one and it contains every item.
#[inline]
pub(crate) fn allocation_of<'a>(described: &Descriptor<'a>) -> Option<&'a SharedAllocation> {
    if let Some(allocation) = described.allocation {
        // SAFETY: `described.allocation` points to the handle in a buffer that is borrowed for `'a`.
        let allocation = unsafe { allocation.as_ref() };
        // The loan of the buffer is that memory, and the description was checked against the loan.
        debug_assert!(contains_items(allocation, described));
        return Some(allocation);
    }
    let tensor = described.borrowed_tensor()?;
    let work = StreamWork::of(described);
    let find = |block: Block<'a>| block.owner_in_order::<AllocationHandle>(work);
    let allocation = find_in_layers(tensor, work, find).map(|owner| &owner.0);
    allocation.filter(|allocation| contains_items(allocation, described))
}

/// Whether the allocation contains every item of a tensor, and permits writes if the tensor does.
#[inline]
fn contains_items(allocation: &SharedAllocation, described: &Descriptor<'_>) -> bool {
    let (start, bytes) = allocation.byte_range();
    described.device == Device::CPU
        && (described.read_only || !allocation.access().is_read_only())
        && described.lies_in(start, bytes)
}

/// What keeps the described memory alive, below all re-exports. An export that holds it need not hold the described tensor.
#[derive(Debug)]
pub enum Root<'a, O> {
    /// An owner of the type that the caller looks for.
    Owner(&'a O),
    /// A shared allocation. [`share_root`] exports the tensor with the allocation as its owner, if that contains every item.
    Allocation,
}

/// Finds the root of the described memory; `None` if the described tensor itself has to be kept. `O` is the type of owners that the
/// caller looks for.
///
/// # Safety
///
/// The caller does not access the memory of a tensor through its owner: consumers may be writing it.
#[must_use]
pub unsafe fn find_root<'a, O: Send + Sync + 'static>(
    described: &Descriptor<'a>,
) -> Option<Root<'a, O>> {
    if described.allocation.is_some() {
        return Some(Root::Allocation);
    }
    find_root_of_tensor(described.borrowed_tensor()?, StreamWork::of(described))
}

/// [`find_root`] of a tensor that is described by [`describe_export`](crate::binding::describe_export).
///
/// # Safety
///
/// The contract of [`find_root`].
#[must_use]
#[inline(always)]
pub unsafe fn find_root_of_export<O: Send + Sync + 'static>(
    tensor: &Managed,
) -> Option<Root<'_, O>> {
    // The common case: the root is the owner of the tensor itself.
    if let Some(owner) = Block::of(tensor)?.owner::<O>() {
        return Some(Root::Owner(owner));
    }
    find_root_of_tensor(tensor, StreamWork::none_on(device_of(tensor)))
}

#[inline(never)]
fn find_root_of_tensor<O: Send + Sync + 'static>(
    tensor: &Managed,
    work: StreamWork,
) -> Option<Root<'_, O>> {
    find_in_layers(tensor, work, |block| {
        let owner = block.owner_in_order::<O>(work).map(Root::Owner);
        let allocation = || block.owner_in_order::<AllocationHandle>(work);
        owner.or_else(|| allocation().map(|_| Root::Allocation))
    })
}

/// Exports a described tensor that lies in a shared allocation, with the allocation as its only owner. `None` if the tensor
/// does not lie in one, or if the request needs a copy. Without a request the tensor is shared as it is.
///
/// ```
/// use dlpack_core::binding::share_root;
/// use dlpack_core::{DLPack, SharedBuffer};
///
/// let buffer = SharedBuffer::<f32>::zeroed(3)?;
/// let tensor = share_root(&mut buffer.describe()?, None).expect("it keeps itself")?;
/// drop(buffer);
/// assert_eq!(tensor.view().to_vec::<f32>()?, [0.0; 3]);
/// assert!(share_root(&mut [1_u8].describe()?, None).is_none());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub fn share_root(
    described: &mut Descriptor<'_>,
    request: Option<&ExportRequest>,
) -> Option<Result<Managed, Error>> {
    let allocation = allocation_of(described)?;
    let plan = match plan_export(described, request) {
        Ok(plan) => plan,
        Err(error) => return Some(Err(error)),
    };
    if transfer_path(described, &plan) != TransferPath::Share {
        return None;
    }
    Some(export_allocation(allocation, described, &plan))
}

/// [`share_root`] of a value that is nothing but a handle to an allocation, as its `Extras::share`.
pub(crate) fn share_as_root<T: DLPack + ?Sized>(
    value: &T,
    request: Option<&ExportRequest>,
    call: &mut ShareCall,
) -> Option<RawExport> {
    call.outcome = match value.describe() {
        Ok(mut described) => share_root(&mut described, request),
        Err(error) => Some(Err(error)),
    };
    None
}

/// A handle to the shared allocation that contains every item of a described tensor; `None` if there is no such allocation.
///
/// ```
/// use dlpack_core::binding::share_allocation;
/// use dlpack_core::{DLPack, SharedBuffer};
///
/// let buffer = SharedBuffer::<f32>::zeroed(3)?;
/// let described = buffer.describe()?;
/// assert!(share_allocation(&described).is_some());
/// assert!(share_allocation(&[1_u8].describe()?).is_none());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[must_use]
pub fn share_allocation(described: &Descriptor<'_>) -> Option<AllocationHandle> {
    allocation_of(described).map(AllocationHandle::new)
}

/// Exports a tensor in host memory with the allocation that contains its items as its owner. The plan shares the memory.
fn export_allocation(
    allocation: &SharedAllocation,
    described: &mut Descriptor<'_>,
    plan: &Plan,
) -> Result<Managed, Error> {
    let capacity = Capacity::of_rank(described.rank());
    let block = UnfinishedExport::new(AllocationHandle::new(allocation), capacity)?;
    Ok(block.into_tensor(described, plan))
}

/// A handle to the shared allocation behind a tensor that another owner holds; `None` unless this crate exported it, with such an
/// allocation behind it. No field but the deleter is read of other tensors.
///
/// ```
/// use dlpack_core::binding::{allocation_of_export, share_root};
/// use dlpack_core::{DLPack, Managed, SharedBuffer};
///
/// let buffer = SharedBuffer::<f32>::zeroed(3)?;
/// let exported = share_root(&mut buffer.describe()?, None).expect("it keeps itself")?.into_raw();
/// // SAFETY: `exported` comes from `into_raw`, and is alive.
/// assert!(unsafe { allocation_of_export(exported) }.is_some());
/// // SAFETY: `exported` comes from `into_raw`, and is released here.
/// drop(unsafe { Managed::from_raw(exported) }?);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Safety
///
/// `tensor` points to a versioned struct, which is not released during the call. If this crate exported it, the struct has not been
/// written to since.
#[must_use]
pub unsafe fn allocation_of_export(
    tensor: NonNull<abi::DLManagedTensorVersioned>,
) -> Option<AllocationHandle> {
    // SAFETY: by this function's contract the struct is valid.
    let deleter = unsafe { (*tensor.as_ptr()).deleter };
    if deleter.map(|deleter| deleter as *const ()) != Some(delete_versioned as *const ()) {
        return None;
    }
    // SAFETY: only this crate's exports have this deleter, and nothing has been written to the struct, by this function's contract.
    // It is not released here.
    let tensor = ManuallyDrop::new(unsafe { take_own(tensor) });
    share_allocation(&Descriptor::of_tensor(&tensor).ok()?)
}

/// Replaces the owner of `tensor` by a shared allocation, if that contains every item of `tensor`; otherwise returns `tensor`
/// unchanged. A tensor that was imported through another protocol then does not hold the objects of that protocol.
///
/// ```
/// use dlpack_core::binding::{keep_by_allocation, share_allocation};
/// use dlpack_core::{DLPack, SharedBuffer};
///
/// let buffer = SharedBuffer::copied_from(&[1_u8, 2, 3])?;
/// let allocation = share_allocation(&buffer.describe()?).expect("it keeps itself");
/// let part = keep_by_allocation(buffer.into_dlpack()?.slice(0, 1..3)?, &allocation);
/// assert_eq!(part.view().to_vec::<u8>()?, [2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[must_use]
pub fn keep_by_allocation(mut tensor: Managed, allocation: &AllocationHandle) -> Managed {
    let (sole, copied) = (tensor.is_unique(), tensor.view().is_copied());
    let keep = |tensor: &mut Managed| {
        let mut described = Descriptor::of_tensor_mut(tensor).ok()?;
        if !contains_items(&allocation.0, &described) {
            return None;
        }
        let plan = plan_export(&described, None).ok()?;
        export_allocation(&allocation.0, &mut described, &plan).ok()
    };
    match keep(&mut tensor) {
        Some(kept) => kept.with_base_facts(sole, copied),
        None => tensor,
    }
}
