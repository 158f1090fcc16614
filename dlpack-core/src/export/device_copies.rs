//! Copies of device memory by the driver: to the host, and within the same device.
#![expect(unsafe_code, reason = "lets drivers copy between raw addresses")]

use core::ptr::without_provenance_mut;

use crate::abi::DLPACK_FLAG_BITMASK_READ_ONLY;
use crate::export::block::UnfinishedExport;
use crate::export::dims_storage::Capacity;
use crate::export::{host_memory::copy_on_host, host_memory::export_copied_bytes};
use crate::layout::{extent, shape_strides::ShapeStrides};
use crate::loan::access::Access;
use crate::request::{Consumer, Plan, consumer::consumer_of};
use crate::stream::driver::{Driver, find_driver};
use crate::stream::{Queue, memory::DeviceMemory, order::order_streams, owner::StreamOwner};
use crate::stream::{release::Release, rules::stream_of_producer, session::Capture};
use crate::{Descriptor, Device, Error, ExportRequest, Managed, TensorRef};
use crate::{memory::aligned::AlignedBytes, stream::session::capture_error, version::Abi};

/// Copies memory that the host cannot read.
pub(super) fn copy_by_driver(
    descriptor: &Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    if plan.device != Device::CPU {
        let mut plan = *plan;
        let read_only = extent::may_overlap(descriptor.shape(), descriptor.strides());
        if read_only {
            // LAY-16: the copy keeps the strides, so one write would show up in several elements.
            if plan.abi == Abi::Legacy {
                return Err(Error::LegacyReadOnly);
            }
            plan.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
        }
        let (data, memory) =
            copy_bytes_on_device(descriptor, consumer_of(request, descriptor.device)?)?;
        let lists = ShapeStrides::new(descriptor.shape(), descriptor.strides())?;
        let (data, dtype) = (without_provenance_mut(data), descriptor.dtype);
        let mut copy = Descriptor {
            byte_offset: descriptor.byte_offset,
            read_only,
            legacy: descriptor.legacy,
            // The export is on the device of the plan, whatever this description says.
            ..Descriptor::for_host_memory(data, lists, dtype, Access::Exclusive)
        };
        let capacity = Capacity::of_rank(copy.rank());
        return Ok(UnfinishedExport::new(memory, capacity)?.into_streamed_tensor(&mut copy, &plan));
    }
    let (start, mut memory) = copy_bytes_to_host(descriptor)?;
    if descriptor.view().is_contiguous() {
        return export_copied_bytes(memory, &descriptor.view(), descriptor.legacy, plan);
    }
    let first = descriptor.data.addr() - start;
    let there = TensorRef {
        data: memory.as_mut_ptr().wrapping_add(first),
        device: Device::CPU,
        byte_offset: 0,
        ..descriptor.view()
    };
    // SAFETY: `there` lies in the memory that the bytes were copied to.
    unsafe { copy_on_host(&there, descriptor.legacy, plan) }
}

/// The driver that makes the copy, and the stream that the copy has to follow.
fn find_driver_and_stream(descriptor: &Descriptor<'_>) -> Result<(&'static Driver, Queue), Error> {
    let device = descriptor.device;
    let stream = stream_of_producer(device, descriptor.stream);
    let (Some(api), Some(stream)) = (device.device_type.stream_api(), stream) else {
        return Err(Error::CannotCopy { device });
    };
    Ok((find_driver(api)?, stream))
}

/// Copies all bytes that a device tensor reaches to new host memory. Returns the device address of the first byte, and the host
/// memory.
///
/// The copy is queued after the producer's work, and is complete when this function returns.
// DEV-09
fn copy_bytes_to_host(descriptor: &Descriptor<'_>) -> Result<(usize, AlignedBytes), Error> {
    let (start, end) = descriptor.bytes_reached().unwrap_or((0, 0));
    let bytes = end - start;
    let mut memory = AlignedBytes::new(bytes).map_err(|bytes| Error::OutOfMemory { bytes })?;
    if bytes == 0 {
        return Ok((start, memory));
    }
    let (driver, stream) = find_driver_and_stream(descriptor)?;
    let session = driver.begin_session(descriptor.device)?;
    if session.enter_stream_context(stream)?.1 != Capture::No {
        return capture_error("data cannot be brought to the host while its stream captures");
    }
    // SAFETY: the descriptor was checked: all items, and the bytes between the first and the last, lie in memory that is
    // borrowed for its lifetime. `memory` has `bytes` bytes, and only this function has it until the wait below ends.
    unsafe { session.copy_to_host(memory.as_mut_ptr(), start, bytes, stream.handle) }?;
    match session.block_on_stream(stream.handle) {
        Ok(()) => Ok((start, memory)),
        Err(error) => {
            // The device may still be writing into the memory, so it is leaked instead of reused.
            core::mem::forget(memory);
            Err(error)
        }
    }
}

/// Copies a tensor within its device, on the consumer's stream. Returns the address of its first element, and the owner of the
/// memory.
///
/// The bytes between the items are copied too, so the strides stay the same.
// CPY-08
fn copy_bytes_on_device(
    descriptor: &Descriptor<'_>,
    consumer: Consumer,
) -> Result<(usize, StreamOwner<DeviceMemory>), Error> {
    let device = descriptor.device;
    let Some((start, end)) = descriptor.bytes_reached() else {
        return Ok((
            0,
            DeviceMemory::unallocated(device).free_after(Release::Free, 0),
        ));
    };
    let (driver, own) = find_driver_and_stream(descriptor)?;
    let session = driver.begin_session(device)?;
    let (here, writing) = session.enter_stream_context(own)?;
    // A consumer without a stream cannot wait for this copy. The copy then runs on the producer's stream, and is waited for
    // below.
    let reader = consumer.queue().unwrap_or(own);
    let (there, reading) = session.enter_stream_context(reader)?;
    if [writing, reading] != [Capture::No; 2] {
        return capture_error(
            "a copy on the device needs memory, which cannot be had in a capture",
        );
    }
    session.restore_context()?;
    order_streams(device, descriptor.stream, consumer)?;
    session.enter_context(there.to_enter)?;
    let (_, id) = session.identify_stream(reader, Some(there))?;
    let release = Release::after_consumer(&session, consumer, there, id)?;
    let bytes = end - start;
    let memory = DeviceMemory::new(&session, bytes, reader, there)?;
    let (address, data) = (
        memory.address,
        memory.address + (descriptor.data.addr() - start),
    );
    // From here on the copy may be pending, so the memory is freed behind it, whatever fails.
    let memory = memory.free_after(release, bytes);
    // SAFETY: the descriptor was checked: all items, and the bytes between them, lie in memory that is borrowed for its
    // lifetime. The new memory has as many bytes, and no other code has it.
    unsafe { session.copy_on_device(address, start, bytes, reader.handle) }?;
    if consumer.queue().is_none() {
        session.block_on_stream(reader.handle)?;
    } else if (reader.handle, there.to_enter) != (own.handle, here.to_enter) {
        // The copy does not keep the original alive. So the producer's stream, on which the original is next written or freed,
        // has to wait for the copy.
        let behind = || {
            let mut event = session.acquire_event()?;
            session.record_event(&mut event, reader.handle)?;
            session.enter_context(here.to_enter)?;
            session.wait_for_event(own.handle, &event)
        };
        if let Err(error) = behind() {
            session.enter_context(there.to_enter)?;
            session.block_on_stream(reader.handle)?;
            return Err(error);
        }
    }
    Ok((data, memory))
}
