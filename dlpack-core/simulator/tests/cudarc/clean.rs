//! Correct programs that use only cudarc, on the simulator.
#![expect(unsafe_code, reason = "some functions of cudarc are unsafe")]

use cudarc::driver::sys::{
    CUevent_flags, CUgraphInstantiate_flags, CUstreamCaptureMode, CUstreamCaptureStatus,
};
use cudarc::driver::{CudaContext, DevicePtr, PinnedHostSlice, UnifiedSlice};

use crate::simulator::Sim;
use crate::{address, assert_nothing_is_left, foreign_stream, handle};

#[test]
fn a_program_of_allocations_copies_and_events_is_clean() {
    let sim = Sim::new(1);
    {
        let context = CudaContext::new(0).unwrap();
        assert_eq!(CudaContext::device_count(), Ok(1));
        assert_eq!(context.name().unwrap(), "Simulated device 0");
        assert_eq!(context.compute_capability(), Ok((9, 0)));
        assert!(context.total_mem().unwrap() > 0);
        assert!(context.mem_get_info().unwrap().0 > 0);
        let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let a = first.clone_htod(&[1.0_f32, 2.0, 3.0]).unwrap();
        let mut b = second.alloc_zeros::<f32>(3).unwrap();
        assert_eq!(second.clone_dtoh(&b).unwrap(), [0.0; 3]);
        // Written on the first stream and read on the second: cudarc waits by its own events.
        second.memcpy_dtod(&a, &mut b).unwrap();
        assert_eq!(second.clone_dtoh(&b).unwrap(), [1.0, 2.0, 3.0]);
        let c = b.try_clone().unwrap();
        let mut host = [0.0; 2];
        first.memcpy_dtoh(&c.slice(1..), &mut host).unwrap();
        assert_eq!(host, [2.0, 3.0]);
        first.memcpy_htod(&[9.0], &mut b).unwrap();
        first.memset_zeros(&mut b.slice_mut(1..)).unwrap();
        assert_eq!(second.clone_dtoh(&b).unwrap(), [9.0, 0.0, 0.0]);

        let event = first.record_event(None).unwrap();
        second.wait(&event).unwrap();
        event.synchronize().unwrap();
        assert!(event.is_complete());
        let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let [start, end] = [&first, &second].map(|stream| stream.record_event(timed).unwrap());
        assert_eq!(start.elapsed_ms(&end), Ok(0.0));
        let third = first.fork().unwrap();
        third.join(&second).unwrap();
        for stream in [
            &third,
            &context.default_stream(),
            &context.per_thread_stream(),
        ] {
            stream.synchronize().unwrap();
        }
        context.synchronize().unwrap();
        drop((a, b, c));
        context.check_err().unwrap();
    }
    sim.assert_clean();
    assert_nothing_is_left(&sim);
    assert!(
        sim.call_names().contains(&"cuMemAllocAsync".to_owned()),
        "it is ours"
    );
}

#[test]
fn without_memory_pools_cudarc_allocates_plain_memory() {
    let sim = Sim::new(1);
    sim.switch("no-memory-pools", true);
    {
        let context = CudaContext::new(0).unwrap();
        assert!(!context.has_async_alloc());
        let stream = context.new_stream().unwrap();
        let slice = stream.clone_htod(&[1_u8; 16]).unwrap();
        assert_eq!(stream.clone_dtoh(&slice).unwrap(), [1; 16]);
        let foreign = foreign_stream(&sim);
        sim.cuda().order(handle(&stream), foreign);
        // cudarc synchronizes only the stream of the slice, but the driver's free waits for the device.
        sim.cuda().read(foreign, address(&slice, &stream), 16);
        drop(slice);
        sim.cuda().destroy_stream(foreign).unwrap();
    }
    sim.assert_clean();
    assert_nothing_is_left(&sim);
}

#[test]
fn pinned_memory_is_clean() {
    let sim = Sim::new(1);
    {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        // SAFETY: the memory is written before it is read.
        let mut pinned: PinnedHostSlice<u32> = unsafe { context.alloc_pinned(4) }.unwrap();
        pinned
            .as_mut_slice()
            .unwrap()
            .copy_from_slice(&[1, 2, 3, 4]);
        let mut slice = stream.clone_htod(&pinned).unwrap();
        stream.memset_zeros(&mut slice.slice_mut(..2)).unwrap();
        stream.memcpy_dtoh(&slice, &mut pinned).unwrap();
        assert_eq!(pinned.as_slice().unwrap(), [0, 0, 3, 4]);
        sim.host_read(pinned.as_ptr().unwrap().expose_provenance(), 16);
    }
    sim.assert_clean();
    assert_nothing_is_left(&sim);
}

#[test]
fn unified_memory_is_clean() {
    let sim = Sim::new(1);
    {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        // SAFETY: the memory is written before it is read.
        let mut unified: UnifiedSlice<u32> = unsafe { context.alloc_unified(4, true) }.unwrap();
        unified.as_mut_slice().unwrap().fill(7);
        let copy = stream.clone_dtod(&unified).unwrap();
        assert_eq!(stream.clone_dtoh(&copy).unwrap(), [7; 4]);
        stream.memset_zeros(&mut unified).unwrap();
        assert_eq!(unified.as_slice().unwrap(), [0; 4]);
        let (pointer, _guard) = unified.device_ptr(&stream);
        sim.host_read(usize::try_from(pointer).unwrap(), 16);
    }
    sim.assert_clean();
    assert_nothing_is_left(&sim);
}

#[test]
fn a_captured_copy_is_launched_again_and_again() {
    let sim = Sim::new(1);
    {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        // SAFETY: all work is on one stream.
        unsafe { context.disable_event_tracking() };
        let mut slice = stream.clone_htod(&[1_u32; 4]).unwrap();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        stream.begin_capture(mode).unwrap();
        assert_eq!(
            stream.capture_status(),
            Ok(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE)
        );
        stream.memset_zeros(&mut slice).unwrap();
        let graph = stream
            .end_capture(CUgraphInstantiate_flags(0))
            .unwrap()
            .unwrap();
        graph.upload().unwrap();
        for _ in 0..2 {
            stream.memcpy_htod(&[2_u32; 4], &mut slice).unwrap();
            assert_eq!(stream.clone_dtoh(&slice).unwrap(), [2; 4]);
            graph.launch().unwrap();
            assert_eq!(stream.clone_dtoh(&slice).unwrap(), [0; 4]);
        }
    }
    sim.assert_clean();
    assert_nothing_is_left(&sim);
}

#[test]
fn another_context_of_a_device_is_used_and_ended() {
    let sim = Sim::new(1);
    {
        let primary = CudaContext::new(0).unwrap();
        let raw = sim.cuda().create_context(0).unwrap();
        // SAFETY: the context was just made on device 0, and no other code destroys it.
        let other =
            unsafe { CudaContext::from_raw_context(0, 0, core::ptr::without_provenance_mut(raw)) };
        let other = other.unwrap();
        assert!(!other.is_primary());
        let (here, there) = (primary.new_stream().unwrap(), other.new_stream().unwrap());
        let slice = here.clone_htod(&[3_u16; 8]).unwrap();
        let mut copy = there.alloc_zeros::<u16>(8).unwrap();
        there.memcpy_dtod(&slice, &mut copy).unwrap();
        assert_eq!(there.clone_dtoh(&copy).unwrap(), [3; 8]);
        there.synchronize().unwrap();
    }
    sim.assert_clean();
    assert_nothing_is_left(&sim);
}
