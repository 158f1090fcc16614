//! The trait [`DLPack`], and the ways from a description to an export.
#![expect(
    unsafe_code,
    reason = "puts what was described together with the owner that keeps it"
)]

use alloc::sync::Arc;
use core::ptr::NonNull;

use crate::abi;
use crate::block::{Block, Exported, Unfinished};
use crate::buffer::Buffer;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceType};
use crate::dims::Lists;
use crate::elsewhere::{elsewhere, finish_streamed, keep_elsewhere, transfer_elsewhere};
use crate::error::Error;
use crate::facts::Facts;
use crate::fresh::copy_on_host;
use crate::loan::{Access, Loan};
use crate::managed::Managed;
use crate::packed_tensor::{Packed, packed};
use crate::parts::Parts;
use crate::request::{ExportRequest, LegacyPolicy, Plan, Subject, Transfer, plan, plan_unasked};
use crate::stream::Origin;
use crate::version::Abi;

/// A type whose values are tensors.
///
/// Derive it; or implement [`describe`](DLPack::describe) by hand with [`Parts`]. Every [`Buffer`]
/// is one without further ado. The trait is safe: a [`Descriptor`] can only be had from memory
/// that was lent, after every element was found inside it.
///
/// ```
/// use std::sync::Arc;
/// use dlpack_core::DLPack;
///
/// #[derive(DLPack)]
/// struct Image {
///     #[dlpack(data)]
///     pixels: Vec<f32>,
///     #[dlpack(shape)]
///     dims: [usize; 2],
/// }
///
/// let image = Arc::new(Image { pixels: vec![0.5; 6], dims: [2, 3] });
/// let shared = image.to_dlpack()?;
/// assert_eq!(shared.view().as_ptr(), image.pixels.as_ptr().cast());
/// assert_eq!(shared.view().shape(), [2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a DLPack tensor",
    label = "`{Self}` neither is a tensor nor lends its elements",
    note = "add `#[derive(DLPack)]` to it, or mark the field that holds the elements with `#[dlpack(data)]`"
)]
pub trait DLPack: Send // a consumer may run the deleter on any thread
{
    /// What the types alone say; see [`assert_exports!`](crate::assert_exports).
    #[doc(hidden)]
    const FACTS: Facts = Facts::UNKNOWN;

    /// Whether the data may be written by a consumer, so that a shared export needs exclusive access.
    #[doc(hidden)]
    const EXCLUSIVE: bool = false;

    /// Whether shape and strides lie in the value as DLPack wants them, so that they can be lent.
    #[doc(hidden)]
    const LISTS: bool = false;

    /// Shape and strides where they lie, in that case.
    #[doc(hidden)]
    fn lists(&self) -> Option<(&[i64], &[i64])> {
        None
    }

    /// The tensor as it is seen through a shared reference.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert_eq!([1.0_f32, 2.0].describe()?.shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Whatever would make the tensor reach outside its memory.
    fn describe(&self) -> Result<Descriptor<'_>, Error>;

    /// Whether [`packed`](DLPack::packed) may say more than `None`.
    #[doc(hidden)]
    const PACKED: bool = false;

    /// The same as plain values, if the tensor is of the usual kind.
    #[doc(hidden)]
    #[inline(always)]
    fn packed(&self) -> Option<Packed<'_>> {
        None
    }

    /// The tensor as it is seen through an exclusive reference: writable, where the memory can be.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert!(!vec![1.0_f32, 2.0].describe_mut()?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`].
    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        self.describe()
    }

    /// Exports without keeping `self`, where a field holds the memory by itself (key `owner`).
    #[doc(hidden)]
    #[inline]
    fn share(&self, request: &ExportRequest) -> Option<Result<Managed, Error>> {
        let _ = request;
        None
    }

    /// Exports the value: it moves into the tensor, and is dropped when the consumer is done.
    ///
    /// The tensor is writable if the memory is the value's alone. Work that is queued on a stream is
    /// not waited for: between Rust and Rust that is the caller's to order.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let managed = vec![1.0_f32, 2.0].into_dlpack()?;
    /// assert!(!managed.view().is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`]. The value is dropped then.
    #[inline]
    fn into_dlpack(self) -> Result<Managed, Error>
    where
        Self: Sized + 'static,
    {
        export_moved_unasked(self)
    }

    /// Exports the value as a consumer asks for it.
    ///
    /// ```
    /// use dlpack_core::{DLPack, ExportRequest};
    ///
    /// let request = ExportRequest { copy: Some(true), ..ExportRequest::versioned() };
    /// assert!(vec![1.0_f32, 2.0].into_dlpack_with(&request)?.view().is_copied());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`] and [`plan`](crate::plan). The value is dropped then.
    #[inline]
    fn into_dlpack_with(self, request: &ExportRequest) -> Result<Managed, Error>
    where
        Self: Sized + 'static,
    {
        export_moved(self, request)
    }

    /// Exports the value without giving it up: the tensor holds another `Arc` to it.
    ///
    /// The tensor is read-only, unless the memory may be written through shared references. Order is
    /// the caller's, as for [`DLPack::into_dlpack`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use dlpack_core::DLPack;
    ///
    /// let samples = Arc::new(vec![1.0_f32, 2.0]);
    /// let managed = samples.to_dlpack()?;
    /// assert!(managed.view().is_read_only());
    /// assert_eq!(Arc::strong_count(&samples), 2);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`].
    #[inline]
    fn to_dlpack(self: &Arc<Self>) -> Result<Managed, Error>
    where
        Self: Sized + Sync + 'static,
    {
        let mut described = Self::describe(self);
        let descriptor = match &mut described {
            Ok(descriptor) => descriptor,
            Err(error) => return Err(error.clone()),
        };
        let request = ExportRequest {
            stream: unordered(descriptor.device),
            ..ExportRequest::versioned()
        };
        if let Some(shared) = Self::share(self, &request) {
            return shared;
        }
        let plan = plan_unasked(&subject(descriptor));
        // SAFETY: the descriptor borrows what the `Arc` holds, and the clone keeps it borrowed.
        unsafe { carry_out(Arc::clone(self), descriptor, &plan, None) }
    }

    /// Exports the value without giving it up, as a consumer asks for it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use dlpack_core::{DLPack, ExportRequest};
    ///
    /// let samples = Arc::new(vec![1.0_f32, 2.0]);
    /// let request = ExportRequest { copy: Some(false), ..ExportRequest::versioned() };
    /// let managed = samples.to_dlpack_with(&request)?;
    /// assert_eq!(managed.view().as_ptr(), samples.as_ptr().cast());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`] and [`plan`](crate::plan).
    #[inline]
    fn to_dlpack_with(self: &Arc<Self>, request: &ExportRequest) -> Result<Managed, Error>
    where
        Self: Sized + Sync + 'static,
    {
        if let Some(shared) = Self::share(self, request) {
            return shared;
        }
        let mut described = Self::describe(self);
        let descriptor = match &mut described {
            Ok(descriptor) => descriptor,
            Err(error) => return Err(error.clone()),
        };
        let plan = plan(request, &subject(descriptor))?;
        // SAFETY: the descriptor borrows what the `Arc` holds, and the clone keeps it borrowed.
        unsafe { carry_out(Arc::clone(self), descriptor, &plan, Some(request)) }
    }
}

impl<B: Buffer + ?Sized> DLPack for B {
    const FACTS: Facts = <B as Buffer>::FACTS;

    #[inline]
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Parts::new().describe(self.lend())
    }

    const PACKED: bool = true;

    #[inline]
    fn packed(&self) -> Option<Packed<'_>> {
        packed(self.lend(), None, None)
    }

    #[inline]
    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        Parts::new().describe_mut(self.lend_mut())
    }
}

/// Exports what `field`, or a clone of it, holds: the clone is the owner, and the struct stays free.
///
/// Nothing is taken on trust: the clone is put at its final place first, and what it lends from there
/// has to contain everything that the descriptor reaches. A clone that copied its elements does not.
pub(crate) fn share_clone<T: Clone + Send + 'static>(
    field: &T,
    lend: for<'a> fn(&'a T) -> Loan<'a>,
    mut descriptor: Descriptor<'_>,
    request: &ExportRequest,
) -> Result<Managed, Error> {
    let plan = plan(request, &subject(&descriptor))?;
    if plan.transfer == Transfer::Copy || descriptor.made.is_some() {
        return match descriptor.device.device_type {
            DeviceType::CPU => transfer(&mut descriptor, &plan),
            _ => transfer_elsewhere(&mut descriptor, &plan, Some(request)),
        };
    }
    let block = Unfinished::new(field.clone())?;
    let kept = lend(block.owner()).memory;
    let reached = descriptor.bytes_reached();
    let inside = kept.device == descriptor.device
        && reached.is_none_or(|(start, end)| {
            start >= kept.data.addr() && end <= kept.data.addr().saturating_add(kept.bytes)
        })
        && (descriptor.read_only || !kept.access.is_read_only());
    if !inside {
        return Err(Error::OwnerElsewhere);
    }
    if let Some(origin) = Origin::of(&descriptor) {
        // A stream that the clone does not keep may be gone before it.
        if kept.stream != descriptor.stream {
            return Err(Error::OwnerElsewhere);
        }
        let tensor = Exported::of(&descriptor, &plan);
        return finish_streamed(block, origin, tensor, &plan, Some(request));
    }
    Ok(block.finish(Exported::of(&descriptor, &plan), &plan))
}

/// What the plan has to know of a described tensor.
#[inline]
pub(crate) fn subject(descriptor: &Descriptor<'_>) -> Subject {
    Subject {
        device: descriptor.device,
        dtype: descriptor.dtype,
        read_only: descriptor.read_only,
        // A tensor that others hold too was not made for this request, wherever it came from.
        made: descriptor.made.as_ref().is_some_and(Managed::is_sole),
        legacy: descriptor.legacy,
    }
}

/// The stream value by which Rust code says that order is its own affair.
#[must_use]
pub fn unordered(device: Device) -> Option<i64> {
    device.device_type.api().is_some().then_some(-1)
}

/// Exports `descriptor` together with the `owner` that keeps its memory, as a consumer asks for it:
/// how a binding to another language exports what it borrowed itself.
///
/// ```
/// use std::sync::Arc;
/// use dlpack_core::{DLPack, ExportRequest, export_with};
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
/// As [`plan`](crate::plan), or when there is no memory. The owner is dropped then.
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
    let plan = plan(request, &subject(&descriptor))?;
    // SAFETY: the caller vouches for the owner.
    unsafe { carry_out(owner, &mut descriptor, &plan, Some(request)) }
}

/// What [`hand_over`] gives.
#[derive(Debug)]
pub enum Handed {
    /// The tensor keeps the owner; `take_back` may release it without the deleter.
    Kept(NonNull<abi::DLManagedTensorVersioned>),
    /// The owner is kept in the struct from before DLPack 1.0, or was dropped since the tensor has its own memory.
    Other(Managed),
}

/// As [`export_with`], for a binding that can release the owner in a better way where it knows more than
/// a deleter does. The owner is made once it is needed.
///
/// # Errors
///
/// As [`export_with`].
///
/// # Safety
///
/// As [`export_with`]; what `owner` makes is the owner.
#[inline]
pub unsafe fn hand_over<O: Send + 'static>(
    owner: impl FnOnce() -> O,
    descriptor: &mut Descriptor<'_>,
    request: &ExportRequest,
) -> Result<Handed, Error> {
    let plan = plan(request, &subject(descriptor))?;
    if descriptor.device.device_type != DeviceType::CPU {
        let outcome = elsewhere(descriptor, &plan, Some(request));
        return keep_elsewhere(owner(), outcome, Some(request)).map(Handed::Other);
    }
    if plan.transfer == Transfer::Copy || descriptor.made.is_some() {
        return transfer(descriptor, &plan).map(Handed::Other);
    }
    let block = Unfinished::new(owner())?;
    if plan.abi == Abi::Versioned {
        return Ok(Handed::Kept(
            block.fill(Exported::of(descriptor, &plan), &plan),
        ));
    }
    Ok(Handed::Other(
        block.finish(Exported::of(descriptor, &plan), &plan),
    ))
}

/// What [`hand_over_packed`] gives: no bigger than a pointer and a word.
#[derive(Debug)]
pub enum HandedPacked {
    /// As [`Handed::Kept`].
    Kept(NonNull<abi::DLManagedTensorVersioned>),
    /// Not of the usual kind; the owner was dropped.
    Unusual,
    /// No memory; the owner was dropped.
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
}

/// As [`hand_over`] for a plain request, of a tensor of the usual kind.
///
/// The block is there before the tensor is described, so that nothing of the description has to be kept
/// anywhere else meanwhile.
///
/// # Safety
///
/// As [`export_with`], for what `describe` describes.
#[inline(always)]
pub unsafe fn hand_over_packed<'a, O: Send + 'static>(
    owner: O,
    describe: impl FnOnce() -> Option<Packed<'a>>,
) -> HandedPacked {
    let Ok(block) = Unfinished::try_new(owner) else {
        return HandedPacked::OutOfMemory {
            bytes: size_of::<Block<O>>(),
        };
    };
    let Some(packed) = describe() else {
        discard(block);
        return HandedPacked::Unusual;
    };
    let plan = plan_unasked(&Subject {
        device: packed.device,
        dtype: packed.dtype,
        read_only: packed.read_only,
        made: false,
        legacy: LegacyPolicy::Copy,
    });
    let exported = Exported {
        data: packed.data,
        byte_offset: 0,
        ndim: packed.rank,
        lists: Lists::few(packed.shape, packed.strides),
        dtype: packed.dtype.into(),
        device: packed.device.into(),
        // Not for this struct.
        legacy: LegacyPolicy::Copy,
        access: Access::Read,
    };
    HandedPacked::Kept(block.fill(exported, &plan))
}

#[cold]
#[inline(never)]
fn discard<O: Send + 'static>(_: Unfinished<O>) {}

/// Exports by moving the value; its inline storage gets its final address before it is described.
#[inline]
pub(crate) fn export_moved<T: DLPack + 'static>(
    value: T,
    request: &ExportRequest,
) -> Result<Managed, Error> {
    move_out(value, Some(request), |descriptor| {
        plan(request, &subject(descriptor))
    })
}

/// The same, where nobody asked for anything in particular.
#[inline]
pub(crate) fn export_moved_unasked<T: DLPack + 'static>(value: T) -> Result<Managed, Error> {
    move_out(value, None, |descriptor| {
        Ok(plan_unasked(&subject(descriptor)))
    })
}

#[inline]
fn move_out<T: DLPack + 'static>(
    value: T,
    request: Option<&ExportRequest>,
    plan: impl FnOnce(&Descriptor<'_>) -> Result<Plan, Error>,
) -> Result<Managed, Error> {
    let mut block = Unfinished::new(value)?;
    let planned = match &mut block.owner_mut().describe_mut() {
        Ok(descriptor) => {
            let plan = plan(descriptor)?;
            if descriptor.device.device_type != DeviceType::CPU {
                Err(elsewhere(descriptor, &plan, request))
            } else if plan.transfer == Transfer::Copy || descriptor.made.is_some() {
                return transfer(descriptor, &plan);
            } else {
                Ok((Exported::of(descriptor, &plan), plan))
            }
        }
        Err(error) => return Err(error.clone()),
    };
    match planned {
        Ok((tensor, plan)) => Ok(block.finish(tensor, &plan)),
        // The value stays where it was described: its block is the owner in another one.
        Err(outcome) => keep_elsewhere(block, outcome, request),
    }
}

/// The descriptor is taken by reference here and below, since it is large to move.
///
/// # Safety
///
/// As [`export_with`].
#[inline]
unsafe fn carry_out<O: Send + 'static>(
    owner: O,
    descriptor: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    if descriptor.device.device_type != DeviceType::CPU {
        let outcome = elsewhere(descriptor, plan, request);
        return keep_elsewhere(owner, outcome, request);
    }
    if plan.transfer == Transfer::Copy || descriptor.made.is_some() {
        return transfer(descriptor, plan);
    }
    let block = Unfinished::new(owner)?;
    Ok(block.finish(Exported::of(descriptor, plan), plan))
}

/// Hands over memory of the processor's that is the consumer's alone: a copy, or a tensor made for it.
#[cold]
fn transfer(descriptor: &mut Descriptor<'_>, plan: &Plan) -> Result<Managed, Error> {
    if plan.transfer == Transfer::Copy {
        return copy_on_host(descriptor, plan);
    }
    let made = descriptor.made.take();
    made.expect("only called for a copy or a tensor that was made")
        .stamped(plan)
}
