//! From a description, and the owner that keeps its memory, to an export: moved, shared, cloned; one finisher for all.
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use alloc::sync::Arc;
use core::{mem::replace, ptr::NonNull};

use crate::describe::{descriptor::Of, usual::Usual};
use crate::export::block::Unfinished;
use crate::export::contents::{Contents, Room};
use crate::export::device;
use crate::export::{fresh::copy_on_host, layer::again};
use crate::request::plan::{Way, plan, plan_unasked};
use crate::request::{Consumer, Plan, Subject, Transfer, consumer};
use crate::{DLPack, Descriptor, Device, DeviceType, Error, ExportRequest, Loan, Managed, Parts};
use crate::{TensorRef, abi, layout::extent, loan::Memory, version::Abi};

/// What the plan has to know of a described tensor.
#[inline]
pub(crate) fn subject(descriptor: &Descriptor<'_>) -> Subject {
    Subject {
        device: descriptor.device,
        dtype: descriptor.dtype,
        read_only: descriptor.read_only,
        // A tensor that others hold too was not made for this request, wherever it came from.
        copied: descriptor.own().is_some_and(Managed::is_sole),
        legacy: descriptor.legacy,
    }
}

/// How a described tensor is exported, as a consumer asks for it, or as it is where nobody asked.
#[inline]
fn planned(descriptor: &Descriptor<'_>, request: Option<&ExportRequest>) -> Result<Plan, Error> {
    match request {
        Some(request) => plan(request, &subject(descriptor)),
        None => Ok(plan_unasked(&subject(descriptor))),
    }
}

/// The stream value by which Rust code says that order is its own affair.
#[must_use]
pub fn unordered(device: Device) -> Option<i64> {
    device.device_type.api().is_some().then_some(-1)
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
    let room = Room::of(descriptor.shape.len());
    let block = |owner| Unfinished::new(owner, room);
    // SAFETY: the caller vouches for the owner.
    unsafe { finish(|| owner, block, descriptor, &plan, request) }
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
        Err(error) => return Err(block.fail(error.take())),
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
    let descriptor = described.as_mut().map_err(Error::take)?;
    let plan = planned(descriptor, request)?;
    let owner = || Arc::clone(value);
    // SAFETY: the descriptor borrows what the `Arc` holds, and the clone keeps it borrowed.
    unsafe { finish(owner, roomy, descriptor, &plan, request) }
}

/// Exports what `field`, or a clone of it, holds, likewise: the clone is the owner, and the struct stays free.
///
/// Nothing is taken on trust: the clone is put at its final place first, and the tensor is exported if what the clone
/// lends from there [`keeps`] it. A clone that copied its elements does not.
pub(crate) fn share_clone<T: Clone + Send + 'static>(
    field: &T,
    lend: for<'a> fn(&'a T) -> Loan<'a>,
    mut descriptor: Descriptor<'_>,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let plan = planned(&descriptor, request)?;
    if way(&descriptor, &plan) != Way::Share {
        return without_owner(&mut descriptor, &plan, request);
    }
    let block = Unfinished::new(field.clone(), Room::of(descriptor.shape.len()))?;
    if !keeps(lend(block.owner()), &descriptor) {
        return Err(Error::OwnerElsewhere);
    }
    // SAFETY: the clone stays in the block, and what it lends from there keeps the tensor, as was just seen.
    unsafe { finish(|| block, Ok, &mut descriptor, &plan, request) }
}

/// The same for a plain request and a tensor of the usual kind; nothing where something is wrong or there is no memory,
/// which the long way finds out.
#[inline(always)]
pub(crate) fn share_usual<T: Clone + Send + 'static>(
    field: &T,
    lend: for<'a> fn(&'a T) -> Loan<'a>,
    usual: &Usual<'_>,
) -> Option<Managed> {
    let block = Unfinished::try_new(field.clone(), Room::of(usual.rank)).ok()?;
    if !usual.lies_in(&lend(block.owner()).memory) {
        return None;
    }
    Some(block.finish(Contents::of_usual(usual), &usual.plan()))
}

/// Whether each item of a tensor is one that the loan lends.
///
/// A loan of one run of elements lends every byte of it. What lies in the gaps of any other is somebody else's, wherever the
/// loan begins and ends: then the tensor has to be the one that the loan itself describes.
fn keeps(loan: Loan<'_>, descriptor: &Descriptor<'_>) -> bool {
    let Memory { data, bytes, .. } = loan.memory;
    let alike = loan.memory.device == descriptor.device
        && (descriptor.read_only || !loan.memory.access.is_read_only())
        // A stream that the clone does not keep may be gone before it.
        && (descriptor.origin().is_none() || loan.memory.stream == descriptor.stream);
    let inside = descriptor.bytes_reached().is_none_or(|(start, end)| {
        start >= data.addr() && end <= data.addr().saturating_add(bytes)
    });
    let layout = loan.memory.layout.as_ref();
    let is_run =
        layout.is_none_or(|layout| !extent::may_leave_gaps(&layout.shape, &layout.strides));
    alike
        && inside
        && (is_run
            || Parts::new()
                .describe(loan)
                .is_ok_and(|own| same_items(&own.view(), &descriptor.view())))
}

fn same_items(one: &TensorRef<'_>, other: &TensorRef<'_>) -> bool {
    one.as_ptr() == other.as_ptr()
        && one.dtype() == other.dtype()
        && one.shape() == other.shape()
        && extent::same_places(one.shape(), one.strides(), other.strides())
}

/// A block with room for the lists of any usual tensor: how large it is, the compiler knows.
#[inline(always)]
fn roomy<O: Send + 'static>(owner: O) -> Result<Unfinished<O>, Error> {
    Unfinished::new(owner, Room::ANY)
}

#[inline]
fn way(descriptor: &Descriptor<'_>, plan: &Plan) -> Way {
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
        Way::Share => Ok(block(owner())?.finish(Contents::of(descriptor, plan)?, plan)),
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
        let tensor = Contents::of(descriptor, plan)?;
        return device::finish_streamed(copy, origin, tensor, plan, request);
    }
    if plan.abi == Abi::Legacy && copy.flags_matter() {
        // The plan shares only what the legacy struct can say.
        return again(copy, Some(&ExportRequest::default()));
    }
    Ok(copy.stamped(plan))
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
    pub fn into_raw(self) -> NonNull<abi::DLManagedTensorVersioned> {
        let tensor = if self.is_complete() {
            match self.give_up() {
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
            match self.give_up_legacy() {
                Ok(tensor) => return Ok(tensor),
                Err(tensor) => tensor,
            }
        } else {
            return again(self, None)?.legacy_in_place().into_legacy();
        };
        if tensor.is_ours() && !tensor.flags_matter() {
            return tensor.legacy_in_place().into_legacy();
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
