//! Builds an export from a description and the owner that keeps its memory. All export functions end in [`finish_export`].
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use alloc::sync::Arc;
use core::mem::{forget, replace};
use core::ptr::NonNull;

use crate::describe::descriptor::DescriptionSource;
use crate::export::block::UnfinishedExport;
use crate::export::device;
use crate::export::dims_storage::Capacity;
use crate::export::{
    host_memory::copy_on_host, host_memory::is_copy_by_this_crate, reexport::reexport_tensor,
};
use crate::request::plan::{TransferPath, plan, plan_without_request};
use crate::request::{Consumer, Plan, Transfer, consumer};
use crate::{DLPack, Descriptor, Device, DeviceType, Error, ExportRequest, Managed, Parts};
use crate::{abi, version::Abi};

/// Plans the export of a described tensor: as a consumer requests it, or shared as it is without a request.
#[inline(always)]
pub(super) fn plan_export(
    descriptor: &Descriptor<'_>,
    request: Option<&ExportRequest>,
) -> Result<Plan, Error> {
    let subject = descriptor.subject();
    // Not a `match`: its result would be moved with wide loads right after it was written byte by byte, which stalls.
    let mut planned = plan_without_request(&subject);
    if let Some(request) = request {
        planned = plan(request, &subject)?;
    }
    Ok(planned)
}

/// Whether [`hand_over_plain`](crate::binding::hand_over_plain) can export the tensor: there is no stream to order, and the tensor
/// was not made for this export.
#[must_use]
#[inline(always)]
pub fn is_plain(descriptor: &Descriptor<'_>) -> bool {
    descriptor.stream_origin().is_none() && descriptor.owned_tensor().is_none()
}

/// Whether the description was made on a fast path and owns nothing, so that it need not be dropped. Where that path is inlined, the
/// compiler knows the answer, and behind this condition it knows the fields that are constants.
///
/// ```
/// use dlpack_core::DLPack;
/// use dlpack_core::binding::is_from_fast_path;
///
/// assert!(is_from_fast_path(&[0_u8].describe()?));
/// assert!(!is_from_fast_path(&vec![0_u8].into_dlpack()?.describe()?));
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[must_use]
#[inline(always)]
pub fn is_from_fast_path(descriptor: &Descriptor<'_>) -> bool {
    let on_fast_path = matches!(descriptor.source, DescriptionSource::FastPath);
    debug_assert!(
        !on_fast_path || descriptor.dims.is_inline(),
        "a fast path has no lists on the heap"
    );
    on_fast_path
}

/// The `stream` value with which Rust code requests no ordering: `-1` on devices with streams, `None` on others.
#[must_use]
pub fn unordered_stream(device: Device) -> Option<i64> {
    device.device_type.stream_api().is_some().then_some(-1)
}

/// Returns the request for a tensor as it is, without ordering of streams: the consumer orders its work itself.
// XAP-10
#[must_use]
pub fn unordered_request(device: Device) -> ExportRequest {
    ExportRequest {
        stream: unordered_stream(device),
        ..ExportRequest::versioned()
    }
}

/// Exports `descriptor` together with the `owner` that keeps its memory, as a consumer requests it. A binding to another
/// language uses this to export memory that it borrowed itself.
///
/// ```
/// use std::sync::Arc;
/// use dlpack_core::binding::export_with;
/// use dlpack_core::{DLPack, ExportRequest};
///
/// let samples = Arc::new(vec![1.0_f32, 2.0]);
/// // SAFETY: the clone keeps the described vector borrowed.
/// let managed = unsafe {
///     export_with(Arc::clone(&samples), &mut samples.describe()?, &ExportRequest::versioned())
/// }?;
/// assert_eq!(managed.view().shape(), [2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`plan`](crate::request::plan()), or a failed allocation. The owner is dropped then.
///
/// # Safety
///
/// Until `owner` is dropped, on any thread, the described memory stays where it is and may be read. If the descriptor is not
/// read-only, the memory may also be written, and only consumers of the tensor access it.
#[inline]
pub unsafe fn export_with<O: Send + 'static>(
    owner: O,
    descriptor: &mut Descriptor<'_>,
    request: &ExportRequest,
) -> Result<Managed, Error> {
    let request = Some(request);
    let plan = plan_export(descriptor, request)?;
    let capacity = Capacity::of_rank(descriptor.rank());
    let block = |owner| UnfinishedExport::new(owner, capacity);
    // SAFETY: same contract as this function's.
    unsafe { finish_export(|| owner, block, descriptor, &plan, request) }
}

/// Exports `descriptor` together with the `owner` that keeps its memory, without a request: nothing is copied or ordered.
///
/// # Errors
///
/// Those of [`DLPack::into_dlpack`]. The owner is dropped then.
///
/// # Safety
///
/// The contract of [`export_with`].
pub unsafe fn export_unordered<O: Send + 'static>(
    owner: O,
    mut descriptor: Descriptor<'_>,
) -> Result<Managed, Error> {
    let descriptor = &mut descriptor;
    let plan = plan_export(descriptor, None)?;
    // SAFETY: same contract as this function's.
    unsafe { finish_export(|| owner, allocate_block, descriptor, &plan, None) }
}

/// Exports a value by moving it: as a consumer requests it, or shared as it is without a request. The value is moved to its
/// final address before it is described, since its storage may be inline. Inlined, so that the compiler can drop the branches
/// that do not apply.
#[inline(always)]
pub(crate) fn export_moved<T: Send + 'static>(
    value: T,
    describe: impl for<'a> FnOnce(&'a mut T) -> Result<Descriptor<'a>, Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let mut block = allocate_block(value)?;
    // SAFETY: the description borrows the value only in name: it holds a checked address, and the block or the tensor keeps
    // that memory. `finish_export` uses it last, before it returns the tensor.
    let value = unsafe { block.owner_in_place() };
    let mut described = describe(value);
    if let Ok(descriptor) = &mut described {
        if is_from_fast_path(descriptor) && request.is_none() && is_host_memory_of_owner(descriptor)
        {
            let plan = plan_without_request(&descriptor.subject());
            let tensor = block.into_tensor(descriptor, &plan);
            // It owns nothing, but the compiler would generate a call that drops it.
            forget(described);
            return Ok(tensor);
        }
    }
    let descriptor = match &mut described {
        Ok(descriptor) => descriptor,
        Err(error) => return move_out(Err(block.drop_and_return(error.take_out()))),
    };
    let plan = plan_export(descriptor, request)?;
    // SAFETY: the value is the owner. It stays in the block in which it was described, and was borrowed exclusively for that.
    unsafe { finish_export(|| block, Ok, descriptor, &plan, request) }
}

/// Exports another `Arc` to a value: as a consumer requests it, or shared as it is without a request.
#[inline(always)]
pub(crate) fn export_shared<T: Send + Sync + 'static>(
    value: &Arc<T>,
    describe: impl for<'a> FnOnce(&'a T) -> Result<Descriptor<'a>, Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let owner = || Arc::clone(value);
    let mut described = describe(value);
    if let Ok(descriptor) = &mut described {
        if is_from_fast_path(descriptor) && request.is_none() && is_host_memory_of_owner(descriptor)
        {
            let plan = plan_without_request(&descriptor.subject());
            let tensor = allocate_block(owner())?.into_tensor(descriptor, &plan);
            // As in `export_moved`.
            forget(described);
            return Ok(tensor);
        }
    }
    let descriptor = match &mut described {
        Ok(descriptor) => descriptor,
        Err(error) => return move_out(Err(error.take_out())),
    };
    let plan = plan_export(descriptor, request)?;
    // SAFETY: the descriptor borrows the value inside the `Arc`, and the clone of the `Arc` keeps that value alive and shared.
    unsafe { finish_export(owner, allocate_block, descriptor, &plan, request) }
}

/// Exports a tensor that was computed for this export, with the policies in `parts`: as a consumer requests it, or as it is without
/// a request.
#[inline(never)]
pub(crate) fn export_computed(
    tensor: Managed,
    parts: Parts<'_>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let mut descriptor = parts.via(tensor)?;
    let plan = plan_export(&descriptor, request)?;
    // SAFETY: the descriptor owns the tensor, and so its memory.
    unsafe { finish_export(|| (), allocate_block, &mut descriptor, &plan, request) }
}

/// Whether nothing has to be copied or ordered to share the tensor without a request, as for nearly all exports in Rust.
#[inline(always)]
fn is_host_memory_of_owner(descriptor: &Descriptor<'_>) -> bool {
    descriptor.device.device_type == DeviceType::CPU && descriptor.owned_tensor().is_none()
}

/// Moves the result of a rare case out of a variable of its own. A function that returned it directly into the variable of the
/// frequent case would force that into memory, where the two words of a tensor are stored one by one and read back by a wide
/// load, which stalls the CPU for a fifth of the time of an export.
#[expect(clippy::needless_match, reason = "the match is the move")]
#[inline(always)]
fn move_out(rare: Result<Managed, Error>) -> Result<Managed, Error> {
    match rare {
        Ok(tensor) => Ok(tensor),
        Err(error) => Err(error),
    }
}

/// Allocates a block for any tensor with inline shape and strides. Its size is a compile-time constant.
#[inline(always)]
fn allocate_block<O: Send + 'static>(owner: O) -> Result<UnfinishedExport<O>, Error> {
    UnfinishedExport::new(owner, Capacity::ANY)
}

#[inline]
pub(super) fn transfer_path(descriptor: &Descriptor<'_>, plan: &Plan) -> TransferPath {
    plan.transfer_path(descriptor.device, descriptor.owned_tensor().is_some())
}

/// Carries out a plan. `block` puts the owner into a block. For memory of the CPU, `owner` is called only if the plan shares the
/// memory; for other memory always, and a copy then drops the owner.
///
/// The descriptor is passed by reference, here and below, since moving it is expensive.
///
/// # Safety
///
/// The contract of [`export_with`], for the owner that `owner` returns.
#[inline(always)]
pub(super) unsafe fn finish_export<K: Send + 'static, O: Send + 'static>(
    owner: impl FnOnce() -> K,
    block: impl FnOnce(K) -> Result<UnfinishedExport<O>, Error>,
    descriptor: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    if descriptor.device.device_type != DeviceType::CPU {
        let (path, plan) = (transfer_path(descriptor, plan), &{ *plan });
        let result = device::finish_on_device(owner(), path, descriptor, plan, request);
        return move_out(result);
    }
    match transfer_path(descriptor, plan) {
        TransferPath::Share => Ok(block(owner())?.into_tensor(descriptor, plan)),
        TransferPath::CopyHost | TransferPath::CopyDevice | TransferPath::AlreadyCopied => {
            move_out(finish_without_owner(descriptor, &{ *plan }, request))
        }
    }
}

/// Exports memory that belongs to the consumer alone: a new copy, or a tensor that was computed for this export.
#[inline(never)]
pub(super) fn finish_without_owner(
    descriptor: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    match transfer_path(descriptor, plan) {
        TransferPath::CopyHost => {
            // SAFETY: only memory of the CPU takes this path.
            return unsafe { copy_on_host(&descriptor.view(), descriptor.legacy, plan) };
        }
        TransferPath::CopyDevice => return device::copy_device_tensor(descriptor, plan, request),
        TransferPath::AlreadyCopied | TransferPath::Share => {}
    }
    let DescriptionSource::OwnedTensor(copy) =
        replace(&mut descriptor.source, DescriptionSource::Memory)
    else {
        unreachable!("only called for a copy");
    };
    if let Some(origin) = descriptor.stream_origin() {
        // The work of the consumer decides when the copy can be freed: a captured graph that reads it may outlive the tensor.
        return device::finish_in_stream_order(copy, origin, descriptor, plan, request);
    }
    if plan.abi == Abi::Legacy && copy.needs_flags() {
        // The plan shares the tensor, so its flags say nothing that a legacy consumer needs to know. A plain legacy request
        // therefore succeeds.
        return reexport_tensor(copy, Some(&ExportRequest::default()));
    }
    // LAY-08, NEG-07, NEG-08: the struct of another producer can have its version, an offset, and no place for a legacy header.
    let copy = if copy.is_own_export() {
        copy
    } else {
        reexport_tensor(copy, None)?
    };
    Ok(match plan.abi {
        Abi::Versioned => copy.with_flags(|_| plan.flags),
        Abi::Legacy => copy.into_legacy_in_place(),
    })
}

impl Managed {
    /// Returns the tensor as the struct of DLPack 1.0 and later. An imported tensor is wrapped if it has the legacy struct, lacks
    /// strides or a deleter, or has copies of its shape and strides, as all imports from Python.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: the pointer is valid until its deleter is called.
    /// assert_eq!(unsafe { pointer.as_ref() }.dl_tensor.ndim, 1);
    /// // SAFETY: `pointer` is used only here.
    /// drop(unsafe { Managed::from_raw(pointer) }?);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If a tensor has to be wrapped and the allocation of the wrapper, a few hundred bytes, fails.
    #[must_use = "the tensor is leaked unless its deleter is called"]
    pub fn into_raw(mut self) -> NonNull<abi::DLManagedTensorVersioned> {
        if self.access().is_shared() && is_copy_by_this_crate(&self) {
            // The consumer must not take the flag as proof that it alone has the memory.
            self = self.marked_copied(false);
        }
        let tensor = if self.is_complete() {
            match self.into_versioned_struct() {
                Ok(tensor) => return tensor,
                Err(tensor) => tensor,
            }
        } else {
            self
        };
        let wrapped = reexport_tensor(tensor, None);
        // Not `expect`: its `Debug` text of the error would be a part of every library.
        wrapped.unwrap_or_else(|error| panic!("{error}")).into_raw()
    }

    /// Returns the tensor as the struct from before DLPack 1.0. Read-only data is copied, since that struct has no read-only
    /// flag, unless the exported type has the key `legacy = "refuse"`.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_legacy()?;
    /// // SAFETY: `pointer` is used only here.
    /// drop(unsafe { Managed::from_legacy(pointer) }?);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LegacyReadOnly`], [`Error::LegacyPadded`], or the error of a copy that fails.
    pub fn into_legacy(self) -> Result<NonNull<abi::DLManagedTensor>, Error> {
        let tensor = if self.abi() == Abi::Versioned {
            self
        } else if self.is_complete() {
            match self.into_legacy_struct() {
                Ok(tensor) => return Ok(tensor),
                Err(tensor) => tensor,
            }
        } else {
            return reexport_tensor(self, None)?
                .into_legacy_in_place()
                .into_legacy();
        };
        if tensor.is_own_export() && !tensor.needs_flags() {
            return tensor.into_legacy_in_place().into_legacy();
        }
        let request = ExportRequest {
            stream: unordered_stream(tensor.view().device()),
            ..ExportRequest::default()
        };
        tensor.into_dlpack_with(&request)?.into_legacy()
    }
}

/// Exporting an imported tensor wraps it: its deleter runs when the new consumer is done.
impl DLPack for Managed {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Descriptor::of_tensor(self)
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        Descriptor::of_tensor_mut(self)
    }

    fn into_dlpack(self) -> Result<Self, Error> {
        if self.abi() == Abi::Versioned {
            return Ok(self);
        }
        reexport_tensor(self, None)
    }

    fn into_dlpack_with(mut self, request: &ExportRequest) -> Result<Self, Error> {
        let subject = Descriptor::of_tensor_mut(&mut self)?.subject();
        let plan = plan(request, &subject)?;
        let as_it_is = plan.abi == Abi::Versioned
            && self.abi() == Abi::Versioned
            && plan.transfer == Transfer::Share
            && plan.device == subject.device
            && subject.read_only == self.is_read_only()
            && consumer(request, subject.device)? == Consumer::Unordered;
        if as_it_is {
            return Ok(self);
        }
        reexport_tensor(self, Some(request))
    }
}

impl<'a> Parts<'a> {
    /// Describes a tensor that was computed for this export. The descriptor owns it.
    #[doc(hidden)]
    pub fn via<T: DLPack + 'static>(self, tensor: T) -> Result<Descriptor<'a>, Error> {
        let mut descriptor = Descriptor::of_owned_tensor(tensor.into_dlpack()?)?;
        (descriptor.legacy, descriptor.release) = self.into_policies()?;
        Ok(descriptor)
    }
}
