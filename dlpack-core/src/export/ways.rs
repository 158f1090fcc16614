//! From a description, and the owner that keeps its memory, to an export.
#![expect(
    unsafe_code,
    reason = "puts what was described together with the owner that keeps it"
)]

use crate::describe::descriptor::Descriptor;
use crate::device::{Device, DeviceType};
use crate::error::Error;
use crate::export::block::{Exported, Unfinished};
use crate::export::elsewhere::{elsewhere, finish_streamed, keep_elsewhere, transfer_elsewhere};
use crate::export::fresh::copy_on_host;
use crate::loan::Loan;
use crate::request::ExportRequest;
use crate::request::plan::{Plan, Subject, Transfer, plan, plan_unasked};
use crate::tensor::managed::Managed;
use crate::version::Abi;

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
    if let Some(origin) = descriptor.origin() {
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
/// use dlpack_core::{DLPack, ExportRequest};
/// use dlpack_core::binding::export_with;
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
    let plan = plan(request, &subject(&descriptor))?;
    // SAFETY: the caller vouches for the owner.
    unsafe { carry_out(owner, &mut descriptor, &plan, Some(request)) }
}

/// Exports by moving the value; its inline storage gets its final address before it is described.
#[inline]
pub(crate) fn export_moved<T: Send + 'static>(
    value: T,
    describe: impl for<'a> FnOnce(&'a mut T) -> Result<Descriptor<'a>, Error>,
    request: &ExportRequest,
) -> Result<Managed, Error> {
    move_out(value, describe, Some(request), |descriptor| {
        plan(request, &subject(descriptor))
    })
}

/// The same, where nobody asked for anything in particular.
#[inline]
pub(crate) fn export_moved_unasked<T: Send + 'static>(
    value: T,
    describe: impl for<'a> FnOnce(&'a mut T) -> Result<Descriptor<'a>, Error>,
) -> Result<Managed, Error> {
    move_out(value, describe, None, |descriptor| {
        Ok(plan_unasked(&subject(descriptor)))
    })
}

#[inline]
fn move_out<T: Send + 'static>(
    value: T,
    describe: impl for<'a> FnOnce(&'a mut T) -> Result<Descriptor<'a>, Error>,
    request: Option<&ExportRequest>,
    plan: impl FnOnce(&Descriptor<'_>) -> Result<Plan, Error>,
) -> Result<Managed, Error> {
    let mut block = Unfinished::new(value)?;
    let planned = match &mut describe(block.owner_mut()) {
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
pub(super) unsafe fn carry_out<O: Send + 'static>(
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
pub(super) fn transfer(descriptor: &mut Descriptor<'_>, plan: &Plan) -> Result<Managed, Error> {
    if plan.transfer == Transfer::Copy {
        return copy_on_host(descriptor, plan);
    }
    let made = descriptor.made.take();
    let made = made.expect("only called for a copy or a tensor that was made");
    if plan.abi == Abi::Legacy && made.flags_matter() {
        // The plan shares only what the legacy struct can say.
        return export_moved(made, again, &ExportRequest::default());
    }
    Ok(made.stamped(plan))
}

/// A tensor that is exported again is described without a doubt.
#[expect(clippy::unnecessary_wraps, reason = "stands where others can fail")]
pub(super) fn again(tensor: &mut Managed) -> Result<Descriptor<'_>, Error> {
    Ok(Descriptor::of_mut(tensor))
}
