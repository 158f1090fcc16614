//! Exports of device memory: shared in stream order, or copied by the driver.
#![expect(unsafe_code, reason = "copies memory that the CPU can read, too")]

use crate::export::block::UnfinishedExport;
#[cfg(feature = "streams")]
use crate::export::device_copies;
use crate::export::dims_storage::Capacity;
use crate::export::finish::finish_without_owner;
use crate::export::host_memory::copy_on_host;
use crate::request::{Plan, consumer::consumer_of, plan::TransferPath};
use crate::stream::state::{StreamState, wait_on_host};
use crate::stream::{owner::StreamOwner, rules::Origin};
use crate::{Descriptor, Error, ExportRequest, Managed};

/// Finishes an export of memory that is not host memory. If work on the memory may be pending, the owner is bound to the stream.
#[cold]
#[inline(never)]
pub(crate) fn finish_on_device<O: Send + 'static>(
    owner: O,
    path: TransferPath,
    descriptor: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let origin = descriptor.stream_origin();
    match (path, origin) {
        (TransferPath::Share, Some(origin)) => {
            finish_in_stream_order(owner, origin, descriptor, plan, request)
        }
        (TransferPath::Share, None) => {
            let capacity = Capacity::of_rank(descriptor.rank());
            Ok(UnfinishedExport::new(owner, capacity)?.into_tensor(descriptor, plan))
        }
        (TransferPath::CopyHost | TransferPath::CopyDevice | TransferPath::AlreadyCopied, _) => {
            let tensor = finish_without_owner(descriptor, plan, request);
            if let Some(origin) = origin {
                // The owner is not needed. It is still dropped in its own context, and not while its stream captures.
                drop(StreamOwner::new(owner, StreamState::new(origin)));
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
pub(crate) fn finish_in_stream_order<O: Send + 'static>(
    owner: O,
    origin: Origin,
    tensor: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let consumer = consumer_of(request, origin.device)?;
    let bytes = tensor.total_item_bytes();
    let owner = StreamOwner::new(owner, StreamState::new(origin));
    let mut block = UnfinishedExport::new(owner, Capacity::of_rank(tensor.rank()))?;
    // A tensor without elements has no pending work.
    if !tensor.data.is_null() {
        block
            .owner_mut()
            .stream_state_mut()
            .order_consumer(consumer, bytes)?;
    }
    Ok(block.into_streamed_tensor(tensor, plan))
}

/// Copies memory that is not host memory.
pub(crate) fn copy_device_tensor(
    descriptor: &Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    if descriptor.device.device_type.is_host_readable() {
        if !descriptor.data.is_null() {
            wait_on_host(descriptor.device, descriptor.stream)?;
        }
        // SAFETY: the CPU can read memory of this device, as was just checked.
        return unsafe { copy_on_host(&descriptor.view(), descriptor.legacy, plan) };
    }
    #[cfg(feature = "streams")]
    return device_copies::copy_by_driver(descriptor, plan, request);
    #[cfg(not(feature = "streams"))]
    {
        let (device, _) = (descriptor.device, request);
        Err(Error::CannotCopy { device })
    }
}

/// Waits until the host may read an imported tensor that its producer ordered for the default stream.
///
/// # Errors
///
/// An error of the driver.
pub fn wait_for_producer(tensor: &Managed) -> Result<(), Error> {
    let view = tensor.view();
    // Of a tensor without elements nothing is read, though another producer may give it an address.
    if view.data.is_null() || view.shape.contains(&0) {
        return Ok(());
    }
    wait_on_host(view.device, tensor.owner_stream())
}
