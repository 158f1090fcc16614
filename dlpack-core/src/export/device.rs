//! Exports of memory that is not the processor's own: in the order of streams, copied by drivers, or as it is.

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

/// Puts a tensor together whose memory is not the processor's own. Its owner goes where it has to be: work on the
/// memory may be pending.
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
                // It is not needed, but dropped like any other: in its own context, and not while its stream captures.
                drop(StreamOwner::new(owner, Link::new(origin)));
            }
            tensor
        }
    }
}

/// Orders the consumer behind the producer, when nothing else can fail any more, and the freeing behind both.
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
    // Without elements there is nothing to wait for.
    if !tensor.data.is_null() {
        block.owner_mut().link_mut().order(consumer, bytes)?;
    }
    Ok(block.finish_streamed(tensor, plan))
}

/// A copy of memory that is not the processor's own.
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

/// Puts the consumer's work behind that on what was described, which somebody else sees to the freeing of.
pub(crate) fn order_only(descriptor: &Descriptor<'_>, consumer: Consumer) -> Result<(), Error> {
    if descriptor.data.is_null() {
        return Ok(());
    }
    order(descriptor.device, descriptor.stream, consumer).map(|_| ())
}

#[cfg(feature = "std")]
/// Waits until the processor may read a tensor that somebody else exported to work on the default stream.
///
/// # Errors
///
/// What the driver says.
pub fn settle(tensor: &Managed) -> Result<(), Error> {
    order_only(&Descriptor::of(tensor)?, Consumer::Host)
}
