//! Exports of device memory: shared in stream order, or copied by the driver.

use crate::export::block::Unfinished;
#[cfg(feature = "std")]
use crate::export::copies;
use crate::export::dims_storage::Capacity;
use crate::export::fresh::copy_on_host;
use crate::export::ways::without_owner;
use crate::request::{Consumer, Plan, consumer::reader, plan::Way};
use crate::stream::link::{Link, order};
use crate::stream::{owner::StreamOwner, rules::Origin};
use crate::{Descriptor, Error, ExportRequest, Managed};

/// Finishes an export of memory that is not host memory. If work on the memory may be pending, the owner is bound to the stream.
#[cold]
#[inline(never)]
pub(crate) fn finish<O: Send + 'static>(
    owner: O,
    way: Way,
    descriptor: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let origin = descriptor.origin();
    match (way, origin) {
        (Way::Share, Some(origin)) => finish_streamed(owner, origin, descriptor, plan, request),
        (Way::Share, None) => {
            let capacity = Capacity::of_rank(descriptor.rank());
            Ok(Unfinished::new(owner, capacity)?.finish(descriptor, plan))
        }
        (Way::CopyHost | Way::CopyDevice | Way::AlreadyCopied, _) => {
            let tensor = without_owner(descriptor, plan, request);
            if let Some(origin) = origin {
                // The owner is not needed. It is still dropped in its own context, and not while its stream captures.
                drop(StreamOwner::new(owner, Link::new(origin)));
            }
            tensor
        }
    }
}

/// Finishes a shared export: makes the consumer's stream wait for the producer's, and frees the memory after both. The wait
/// comes last, when nothing else can fail.
// ERR-11
#[cold]
#[inline(never)]
pub(crate) fn finish_streamed<O: Send + 'static>(
    owner: O,
    origin: Origin,
    tensor: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let consumer = reader(request, origin.device)?;
    let bytes = tensor.bytes_of_items();
    let owner = StreamOwner::new(owner, Link::new(origin));
    let mut block = Unfinished::new(owner, Capacity::of_rank(tensor.rank()))?;
    // A tensor without elements has no pending work.
    if !tensor.data.is_null() {
        block.owner_mut().link_mut().order(consumer, bytes)?;
    }
    Ok(block.finish_streamed(tensor, plan))
}

/// Copies memory that is not host memory.
pub(crate) fn copy(
    descriptor: &Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    if descriptor.device.device_type.is_host_readable() {
        order_only(descriptor, Consumer::Host)?;
        return copy_on_host(&descriptor.view(), descriptor.legacy, plan);
    }
    #[cfg(feature = "std")]
    return copies::copy(descriptor, plan, request);
    #[cfg(not(feature = "std"))]
    {
        let (device, _) = (descriptor.device, request);
        Err(Error::CannotCopy { device })
    }
}

/// Orders the consumer's work after the producer's, for memory whose release does not depend on this consumer.
pub(crate) fn order_only(descriptor: &Descriptor<'_>, consumer: Consumer) -> Result<(), Error> {
    if descriptor.data.is_null() {
        return Ok(());
    }
    order(descriptor.device, descriptor.stream, consumer).map(|_| ())
}

#[cfg(feature = "std")]
/// Waits until the host may read a tensor whose export was ordered for the default stream.
///
/// # Errors
///
/// An error of the driver.
pub fn settle(tensor: &Managed) -> Result<(), Error> {
    order_only(&Descriptor::of(tensor)?, Consumer::Host)
}
