//! Copies that devices make: to the host, and from one place to another of their own memory.
#![expect(unsafe_code, reason = "lets drivers copy between raw addresses")]

use core::ptr::without_provenance_mut;

use crate::export::block::Unfinished;
use crate::export::dims_storage::Capacity;
use crate::export::{fresh::copy_on_host, fresh::over_copy};
use crate::layout::shape_strides::ShapeStrides;
use crate::loan::access::Access;
use crate::request::{Consumer, Plan, consumer::reader};
use crate::stream::driver::{Driver, driver};
use crate::stream::{Queue, memory::DeviceMemory, order::order, owner::StreamOwner};
use crate::stream::{release::Release, rules::producer, visit::Capture};
use crate::{Descriptor, Device, Error, ExportRequest, Managed, TensorRef};
use crate::{memory::aligned::AlignedBytes, stream::visit::capturing};

/// A copy of memory that only its device reads.
pub(super) fn copy(
    descriptor: &Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    if plan.device != Device::CPU {
        let (data, memory) = on_device(descriptor, reader(request, descriptor.device)?)?;
        let lists = ShapeStrides::new(descriptor.shape(), descriptor.strides())?;
        let (data, dtype) = (without_provenance_mut(data), descriptor.dtype);
        let mut copy = Descriptor {
            byte_offset: descriptor.byte_offset,
            legacy: descriptor.legacy,
            ..Descriptor::over(data, lists, dtype, Access::Exclusive)
        };
        let capacity = Capacity::of_rank(copy.rank());
        return Ok(Unfinished::new(memory, capacity)?.finish_streamed(&mut copy, plan));
    }
    let (start, mut memory) = to_host(descriptor)?;
    if descriptor.view().is_contiguous() {
        return over_copy(memory, &descriptor.view(), descriptor.legacy, plan);
    }
    let first = descriptor.data.addr() - start;
    let there = TensorRef {
        data: memory.as_mut_ptr().wrapping_add(first),
        device: Device::CPU,
        byte_offset: 0,
        ..descriptor.view()
    };
    copy_on_host(&there, descriptor.legacy, plan)
}

/// The driver that copies, and the stream that its copy has to follow.
fn writer(descriptor: &Descriptor<'_>) -> Result<(&'static Driver, Queue), Error> {
    let device = descriptor.device;
    let stream = producer(device, descriptor.stream);
    let (Some(api), Some(stream)) = (device.device_type.api(), stream) else {
        return Err(Error::CannotCopy { device });
    };
    Ok((driver(api)?, stream))
}

/// All bytes that a tensor on a device reaches, in new memory of the host, and the address of the first of them on the
/// device. Copied behind the producer's work, and there when this returns.
// DEV-09
fn to_host(descriptor: &Descriptor<'_>) -> Result<(usize, AlignedBytes), Error> {
    let (start, end) = descriptor.bytes_reached().unwrap_or((0, 0));
    let bytes = end - start;
    let mut memory = AlignedBytes::new(bytes).map_err(|bytes| Error::OutOfMemory { bytes })?;
    if bytes == 0 {
        return Ok((start, memory));
    }
    let (driver, stream) = writer(descriptor)?;
    let visit = driver.visit(descriptor.device)?;
    if visit.find(stream)?.1 != Capture::No {
        return capturing("data cannot be brought to the host while its stream captures");
    }
    // SAFETY: the descriptor was checked: every item lies in memory that is lent for its lifetime, and so does what is
    // between the first and the last; `memory` has room for as much, and is ours until the wait below is over.
    unsafe { visit.copy_to_host(memory.as_mut_ptr(), start, bytes, stream.handle) }?;
    match visit.synchronize(stream.handle) {
        Ok(()) => Ok((start, memory)),
        Err(error) => {
            // The device may still be writing there, so nobody else may have it.
            core::mem::forget(memory);
            Err(error)
        }
    }
}

/// A copy on the device, with the bytes between the items, so that strides stay what they are: where its first element
/// is, and what keeps it. Made on the consumer's stream.
// CPY-08
fn on_device(
    descriptor: &Descriptor<'_>,
    consumer: Consumer,
) -> Result<(usize, StreamOwner<DeviceMemory>), Error> {
    let device = descriptor.device;
    let Some((start, end)) = descriptor.bytes_reached() else {
        return Ok((0, DeviceMemory::none(device).after(Release::Free, 0)));
    };
    let (driver, own) = writer(descriptor)?;
    let visit = driver.visit(device)?;
    let (here, writing) = visit.find(own)?;
    // Whoever orders nothing cannot know of our copy either: then it is made at once.
    let reader = consumer.queue().unwrap_or(own);
    let (there, reading) = visit.find(reader)?;
    if [writing, reading] != [Capture::No; 2] {
        return capturing("a copy on the device needs memory, which cannot be had in a capture");
    }
    visit.leave()?;
    order(device, descriptor.stream, consumer)?;
    visit.enter(there.enter)?;
    let (_, id) = visit.identify(reader, Some(there))?;
    let release = Release::behind(&visit, consumer, there, id)?;
    let bytes = end - start;
    let memory = DeviceMemory::new(&visit, bytes, reader, there)?;
    let (address, data) = (
        memory.address,
        memory.address + (descriptor.data.addr() - start),
    );
    // From here on work with it is pending, whatever goes wrong.
    let memory = memory.after(release, bytes);
    // SAFETY: the descriptor was checked, as in `to_host`; the new memory is as large, and nobody else's.
    unsafe { visit.copy_on_device(address, start, bytes, reader.handle) }?;
    if consumer.queue().is_none() {
        visit.synchronize(reader.handle)?;
    } else if (reader.handle, there.enter) != (own.handle, here.enter) {
        // Nobody keeps the original for the copy's sake: what is written to it next, or frees it, comes behind.
        let behind = || {
            let mut event = visit.event()?;
            visit.record(&mut event, reader.handle)?;
            visit.enter(here.enter)?;
            visit.wait(own.handle, &event)
        };
        if let Err(error) = behind() {
            visit.enter(there.enter)?;
            visit.synchronize(reader.handle)?;
            return Err(error);
        }
    }
    Ok((data, memory))
}
