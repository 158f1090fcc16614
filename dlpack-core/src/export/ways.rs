//! From a description, and the owner that keeps its memory, to an export: moved or shared; one finisher for all.
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use alloc::sync::Arc;
use core::{mem::replace, ptr::NonNull};

use crate::describe::descriptor::Of;
use crate::export::block::Unfinished;
use crate::export::device;
use crate::export::dims_storage::Capacity;
use crate::export::{fresh::copy_on_host, fresh::is_copy_of_ours, layer::again};
use crate::request::plan::{Way, plan, plan_unasked};
use crate::request::{Consumer, Plan, Subject, Transfer, consumer};
use crate::{DLPack, Descriptor, Device, DeviceType, Error, ExportRequest, Managed, Parts};
use crate::{abi, version::Abi};

/// What the plan has to know of a described tensor.
#[inline]
pub(crate) fn subject(descriptor: &Descriptor<'_>) -> Subject {
    Subject {
        device: descriptor.device,
        dtype: descriptor.dtype,
        read_only: descriptor.read_only,
        // A tensor that others hold too was not made for this request, wherever it came from.
        copied: descriptor.own().is_some_and(Managed::is_unique),
        legacy: descriptor.legacy,
    }
}

/// How a described tensor is exported, as a consumer asks for it, or as it is where nobody asked.
#[inline(always)]
pub(super) fn planned(
    descriptor: &Descriptor<'_>,
    request: Option<&ExportRequest>,
) -> Result<Plan, Error> {
    let subject = subject(descriptor);
    // Not a `match`, whose outcome would be moved in wide loads as soon as it was written byte by byte.
    let mut planned = plan_unasked(&subject);
    if let Some(request) = request {
        planned = plan(request, &subject)?;
    }
    Ok(planned)
}

/// The plan for a tensor that is shared as it is: without a request, no stream to order, and no copy made for this export.
#[inline(always)]
pub(super) fn plan_plain(descriptor: &Descriptor<'_>) -> Option<Plan> {
    let plain = descriptor.origin().is_none() && descriptor.own().is_none();
    plain.then(|| plan_unasked(&subject(descriptor)))
}

/// The stream value by which Rust code says that order is its own affair.
#[must_use]
pub fn unordered(device: Device) -> Option<i64> {
    device.device_type.stream_api().is_some().then_some(-1)
}

/// The same as a request, for the tensor as it is.
pub(crate) fn unordered_request(device: Device) -> ExportRequest {
    ExportRequest {
        stream: unordered(device),
        ..ExportRequest::versioned()
    }
}

/// Exports `descriptor` together with the `owner` that keeps its memory, as a consumer asks for it:
/// how a binding to another language exports what it borrowed itself.
///
/// ```
/// use std::sync::Arc;
/// use dlpack_core::binding::export_with;
/// use dlpack_core::{DLPack, ExportRequest};
///
/// let samples = Arc::new(vec![1.0_f32, 2.0]);
/// // SAFETY: the clone keeps the vector borrowed that the descriptor describes.
/// let managed = unsafe {
///     export_with(Arc::clone(&samples), samples.describe()?, &ExportRequest::versioned())
/// }?;
/// assert_eq!(managed.view().shape(), [2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`plan`](crate::request::plan()), or when there is no memory. The owner is dropped then.
///
/// # Safety
///
/// Until `owner` is dropped, on whatever thread, the described memory stays where it is and may be
/// read; if the descriptor is not read-only, it may be written, and nobody else touches it but
/// other consumers.
pub unsafe fn export_with<O: Send + 'static>(
    owner: O,
    mut descriptor: Descriptor<'_>,
    request: &ExportRequest,
) -> Result<Managed, Error> {
    let (descriptor, request) = (&mut descriptor, Some(request));
    let plan = planned(descriptor, request)?;
    let capacity = Capacity::of_rank(descriptor.rank());
    let block = |owner| Unfinished::new(owner, capacity);
    // SAFETY: the caller vouches for the owner.
    unsafe { finish(|| owner, block, descriptor, &plan, request) }
}

/// As [`export_with`] without a consumer's request: nothing is copied or ordered, and the owner is dropped with the tensor.
///
/// # Errors
///
/// As [`DLPack::into_dlpack`]. The owner is dropped then.
///
/// # Safety
///
/// As [`export_with`].
pub unsafe fn export_unordered<O: Send + 'static>(
    owner: O,
    mut descriptor: Descriptor<'_>,
) -> Result<Managed, Error> {
    let descriptor = &mut descriptor;
    let plan = planned(descriptor, None)?;
    // SAFETY: the caller vouches for the owner.
    unsafe { finish(|| owner, roomy, descriptor, &plan, None) }
}

/// Exports by moving the value, as a consumer asks for it, or as it is where nobody asked: the compiler sees through that,
/// since it is inlined. Inline storage gets its final address before it is described.
#[inline(always)]
pub(crate) fn export_moved<T: Send + 'static>(
    value: T,
    describe: impl for<'a> FnOnce(&'a mut T) -> Result<Descriptor<'a>, Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let mut block = roomy(value)?;
    // SAFETY: what is described borrows the value in name only: it is a checked address, whose memory the block or the
    // tensor keeps. It is last used by `finish`, before that gives the tensor away.
    let value = unsafe { block.owner_in_place() };
    let mut described = describe(value);
    let descriptor = match &mut described {
        Ok(descriptor) => descriptor,
        Err(error) => return Err(block.fail(error.take_out())),
    };
    let plan = planned(descriptor, request)?;
    // SAFETY: the block is the owner, and the value stays in it, where it was described through the one way to it.
    unsafe { finish(|| block, Ok, descriptor, &plan, request) }
}

/// Exports another `Arc` to a value, likewise.
#[inline(always)]
pub(crate) fn export_shared<T: Send + Sync + 'static>(
    value: &Arc<T>,
    describe: impl for<'a> FnOnce(&'a T) -> Result<Descriptor<'a>, Error>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let mut described = describe(value);
    let descriptor = described.as_mut().map_err(Error::take_out)?;
    let plan = planned(descriptor, request)?;
    let owner = || Arc::clone(value);
    // SAFETY: the descriptor borrows what the `Arc` holds, and the clone keeps it borrowed.
    unsafe { finish(owner, roomy, descriptor, &plan, request) }
}

/// A block for any tensor whose shape and strides are inline. Its size is a constant.
#[inline(always)]
fn roomy<O: Send + 'static>(owner: O) -> Result<Unfinished<O>, Error> {
    Unfinished::new(owner, Capacity::ANY)
}

#[inline]
pub(super) fn way(descriptor: &Descriptor<'_>, plan: &Plan) -> Way {
    plan.way(descriptor.device, descriptor.own().is_some())
}

/// Puts a tensor together as it was planned. The owner is made once it is needed, and put into a block by `block`.
///
/// The descriptor is taken by reference here and below, since it is large to move.
///
/// # Safety
///
/// As [`export_with`].
#[inline(always)]
pub(super) unsafe fn finish<K: Send + 'static, O: Send + 'static>(
    owner: impl FnOnce() -> K,
    block: impl FnOnce(K) -> Result<Unfinished<O>, Error>,
    descriptor: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    if descriptor.device.device_type != DeviceType::CPU {
        let way = way(descriptor, plan);
        return device::finish(owner(), way, descriptor, plan, request);
    }
    match way(descriptor, plan) {
        Way::Share => Ok(block(owner())?.finish(descriptor, plan)),
        Way::CopyHost | Way::CopyDevice | Way::AlreadyCopied => {
            without_owner(descriptor, plan, request)
        }
    }
}

/// Hands over memory that is the consumer's alone: a copy, or a tensor that was made for it.
#[cold]
pub(super) fn without_owner(
    descriptor: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    match way(descriptor, plan) {
        Way::CopyHost => return copy_on_host(&descriptor.view(), descriptor.legacy, plan),
        Way::CopyDevice => return device::copy(descriptor, plan, request),
        Way::AlreadyCopied | Way::Share => {}
    }
    let Of::Own(copy) = replace(&mut descriptor.of, Of::Memory) else {
        unreachable!("only called for a copy");
    };
    if let Some(origin) = descriptor.origin() {
        // Who reads it also decides when it can be freed: a graph may outlive it.
        return device::finish_streamed(copy, origin, descriptor, plan, request);
    }
    if plan.abi == Abi::Legacy && copy.needs_flags() {
        // The plan shares only what the legacy struct can say.
        return again(copy, Some(&ExportRequest::default()));
    }
    Ok(copy.with_plan(plan))
}

impl Managed {
    /// Gives up the tensor in the struct of DLPack 1.0 and later. A foreign tensor is wrapped if
    /// it is a legacy one, or lacks strides or a deleter.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: the pointer is valid until its deleter is called.
    /// assert_eq!(unsafe { pointer.as_ref() }.dl_tensor.ndim, 1);
    /// // SAFETY: nobody else has the pointer.
    /// drop(unsafe { Managed::from_raw(pointer) }?);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If a tensor has to be wrapped and there is no memory for the wrapper, of some hundred bytes.
    #[must_use = "the tensor is leaked unless its deleter is called"]
    pub fn into_raw(mut self) -> NonNull<abi::DLManagedTensorVersioned> {
        if self.access.is_shared() && is_copy_of_ours(&self) {
            // Whoever gets the pointer is not told that it is the only one with the memory.
            self.unmark_copied();
        }
        let tensor = if self.is_complete() {
            match self.into_versioned_struct() {
                Ok(tensor) => return tensor,
                Err(tensor) => tensor,
            }
        } else {
            self
        };
        let wrapped = again(tensor, None);
        let wrapped = wrapped.expect("a checked tensor is described again without an error");
        wrapped.into_raw()
    }

    /// Gives up the tensor in the struct from before DLPack 1.0. Read-only data is copied, since
    /// that struct cannot say so, unless its producer said `legacy = "refuse"`.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_legacy()?;
    /// // SAFETY: nobody else has the pointer.
    /// drop(unsafe { Managed::from_legacy(pointer) }?);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LegacyReadOnly`], [`Error::LegacyPadded`], or a copy that cannot be made.
    pub fn into_legacy(self) -> Result<NonNull<abi::DLManagedTensor>, Error> {
        let tensor = if self.abi() == Abi::Versioned {
            self
        } else if self.is_complete() {
            match self.into_legacy_struct() {
                Ok(tensor) => return Ok(tensor),
                Err(tensor) => tensor,
            }
        } else {
            return again(self, None)?.into_legacy_in_place().into_legacy();
        };
        if tensor.is_own_export() && !tensor.needs_flags() {
            return tensor.into_legacy_in_place().into_legacy();
        }
        let request = ExportRequest {
            stream: unordered(tensor.view().device()),
            ..ExportRequest::default()
        };
        tensor.into_dlpack_with(&request)?.into_legacy()
    }
}

/// A tensor from elsewhere is exported again: its deleter runs when the new consumer is done.
impl DLPack for Managed {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Descriptor::of(self)
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        Descriptor::of_mut(self)
    }

    fn into_dlpack(self) -> Result<Self, Error> {
        if self.abi() == Abi::Versioned {
            return Ok(self);
        }
        again(self, None)
    }

    fn into_dlpack_with(mut self, request: &ExportRequest) -> Result<Self, Error> {
        let subject = subject(&Descriptor::of_mut(&mut self)?);
        let plan = plan(request, &subject)?;
        let as_it_is = plan.abi == Abi::Versioned
            && self.abi() == Abi::Versioned
            && plan.transfer == Transfer::Share
            && plan.device == subject.device
            && consumer(request, subject.device)? == Consumer::Unordered;
        if as_it_is {
            return Ok(self);
        }
        again(self, Some(request))
    }
}

impl<'a> Parts<'a> {
    /// The tensor that `tensor` is, computed on request: the descriptor owns it.
    #[doc(hidden)]
    pub fn via<T: DLPack + 'static>(self, tensor: T) -> Result<Descriptor<'a>, Error> {
        let mut descriptor = Descriptor::owning(tensor.into_dlpack()?)?;
        (descriptor.legacy, descriptor.release) = self.policies()?;
        Ok(descriptor)
    }
}
