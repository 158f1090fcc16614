//! Limits of cudarc's own ordering: readers that it does not know, streams that it does not track, captures, contexts.
#![expect(unsafe_code, reason = "some functions of cudarc are unsafe")]

use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DriverError, result, sys};

use crate::simulator::Sim;
use crate::{address, foreign_stream, handle};

#[test]
fn dropping_a_slice_changes_the_current_context() {
    let sim = Sim::new(2);
    let first = CudaContext::new(0).unwrap();
    let slice = shared_slice(&first);
    let second = CudaContext::new(1).unwrap();
    let current = sim.current_context();
    assert_eq!(current, second.cu_ctx().expose_provenance());
    drop(slice);
    assert_eq!(sim.current_context(), first.cu_ctx().expose_provenance());
    sim.assert_clean();
}

#[test]
fn a_slice_of_the_default_stream_is_freed_on_that_of_the_current_context() {
    for bound in [false, true] {
        let sim = Sim::new(2);
        let first = CudaContext::new(0).unwrap();
        let slice = first.default_stream().alloc_zeros::<u8>(4).unwrap();
        let _second = CudaContext::new(1).unwrap();
        if bound {
            first.bind_to_thread().unwrap();
        }
        // Without events to wait for, the drop makes no context current, so handle 0 means the stream of the other device.
        drop(slice);
        if bound {
            sim.assert_clean();
        } else {
            sim.assert_one_fault(&["race: free by the legacy stream", "cuMemFreeAsync"]);
        }
    }
}

/// A slice that was written on its own stream. A second stream exists, so that cudarc tracks events.
fn shared_slice(context: &Arc<CudaContext>) -> CudaSlice<u32> {
    let stream = context.new_stream().unwrap();
    stream.clone_htod(&[1_u32; 4]).unwrap()
}

#[test]
fn dropping_a_slice_races_with_a_foreign_reader() {
    for waits in [false, true] {
        let sim = Sim::new(1);
        let context = CudaContext::new(0).unwrap();
        let slice = shared_slice(&context);
        let producer = handle(slice.stream());
        let consumer = foreign_stream(&sim);
        let cuda = sim.cuda();
        let data = address(&slice, slice.stream());
        cuda.order(producer, consumer);
        cuda.read(consumer, data, 16);
        sim.assert_clean();
        if waits {
            cuda.order(consumer, producer);
        }
        drop(slice);
        if waits {
            sim.assert_clean();
        } else {
            sim.assert_one_fault(&["race: free", "cuMemFreeAsync", "read", "a kernel"]);
        }
    }
}

#[test]
fn a_second_reader_makes_cudarc_forget_the_first() {
    for second_reads in [false, true] {
        let sim = Sim::new(1);
        let context = CudaContext::new(0).unwrap();
        let slice = shared_slice(&context);
        let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let read = |stream: &Arc<CudaStream>| {
            let (data, _recorded) = slice.device_ptr(stream);
            sim.cuda()
                .read(handle(stream), usize::try_from(data).unwrap(), 16);
        };
        read(&first);
        if second_reads {
            read(&second);
        }
        sim.assert_clean();
        drop(slice);
        if second_reads {
            sim.assert_one_fault(&["race: free", "cuMemFreeAsync", "read"]);
        } else {
            sim.assert_clean();
        }
    }
}

#[test]
fn a_borrowed_stream_alone_is_not_waited_for() {
    let sim = Sim::new(1);
    let context = CudaContext::new(0).unwrap();
    let slice = context.default_stream().clone_htod(&[1_u32; 4]).unwrap();
    let foreign = foreign_stream(&sim);
    // SAFETY: the stream lives until the end of the test.
    let borrowed =
        unsafe { context.wrap_borrowed_stream(core::ptr::without_provenance_mut(foreign)) };
    let data = address(&slice, &borrowed);
    sim.forget_calls();
    sim.cuda().read(handle(&borrowed), data, 16);
    sim.assert_one_fault(&[
        "race: read",
        "write by the legacy stream",
        "cuMemcpyHtoDAsync_v2",
    ]);
    assert!(!sim.call_names().contains(&"cuStreamWaitEvent".to_owned()));
}

#[test]
fn a_copy_to_another_context_is_not_waited_for_at_the_drop_of_its_source() {
    for waits in [false, true] {
        let sim = Sim::new(2);
        let contexts = (CudaContext::new(0).unwrap(), CudaContext::new(1).unwrap());
        let here = contexts.0.new_stream().unwrap();
        let there = contexts.1.new_stream().unwrap();
        let slice = here.clone_htod(&[3_u16; 8]).unwrap();
        let mut copy = there.alloc_zeros::<u16>(8).unwrap();
        there.memcpy_dtod(&slice, &mut copy).unwrap();
        sim.assert_clean();
        if waits {
            here.join(&there).unwrap();
        }
        drop(slice);
        if waits {
            sim.assert_clean();
        } else {
            sim.assert_one_fault(&["race: free", "read", "cuMemcpyPeerAsync"]);
        }
    }
}

#[test]
fn a_copy_into_a_vector_is_not_waited_for() {
    for waits in [false, true] {
        let sim = Sim::new(1);
        let context = CudaContext::new(0).unwrap();
        let slice = shared_slice(&context);
        let host = slice.stream().clone_dtoh(&slice).unwrap();
        if waits {
            slice.stream().synchronize().unwrap();
        }
        sim.host_read(host.as_ptr().expose_provenance(), 16);
        if waits {
            sim.assert_clean();
        } else {
            sim.assert_one_fault(&["race: access by host thread 1", "cuMemcpyDtoHAsync_v2"]);
        }
    }
}

#[test]
fn an_error_of_a_drop_is_returned_by_the_next_call() {
    let sim = Sim::new(1);
    let context = CudaContext::new(0).unwrap();
    let stream = context.default_stream();
    let slice = stream.alloc_zeros::<u8>(4).unwrap();
    sim.fail("cuMemFreeAsync", 1, 719);
    drop(slice);
    assert_eq!(
        stream.alloc_zeros::<u8>(4).err(),
        Some(DriverError(sys::CUresult::CUDA_ERROR_LAUNCH_FAILED))
    );
    assert!(stream.alloc_zeros::<u8>(4).is_ok());
}

#[test]
fn errors_have_names() {
    let sim = Sim::new(1);
    let context = CudaContext::new(0).unwrap();
    sim.fail("cuMemAllocAsync", 1, 2);
    let error = context.default_stream().alloc_zeros::<u8>(4).unwrap_err();
    let name = error.error_name().unwrap();
    assert_eq!(name.to_str(), Ok("CUDA_ERROR_OUT_OF_MEMORY"));
    assert_eq!(
        CudaContext::new(1).err().map(|error| error.0 as u32),
        Some(101)
    );
    assert!(result::device::get_count().is_ok());
}

#[test]
fn cudarc_breaks_a_capture_that_waits_for_events_outside() {
    let sim = Sim::new(1);
    let context = CudaContext::new(0).unwrap();
    let (producer, capturing) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let slice = producer.clone_htod(&[1_u32; 4]).unwrap();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    capturing.begin_capture(mode).unwrap();
    // This waits for the write event, which was recorded outside of the capture.
    drop(slice.device_ptr(&capturing));
    let isolation = sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    let invalidated = sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    let error = context.check_err().unwrap_err();
    assert!([isolation, invalidated].contains(&error.0), "{error:?}");
    let end = capturing.end_capture(CUgraphInstantiate_flags(0));
    assert_eq!(end.err(), Some(DriverError(invalidated)));
    sim.assert_clean();
}
