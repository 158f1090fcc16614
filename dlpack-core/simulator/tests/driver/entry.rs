//! Properties of all entry points: they exist, fail on request, are counted, and can be held.

use crate::simulator::{Api, BOTH, Sim, answer_of, error_name};

/// Every entry point in the simulator's source, with the number of its arguments.
fn entries() -> Vec<(&'static str, usize)> {
    let sources = [
        include_str!("../../src/cuda.rs"),
        include_str!("../../src/cuda_memory.rs"),
        include_str!("../../src/hip.rs"),
    ];
    sources
        .iter()
        .flat_map(|source| source.split("\n    fn ").skip(1))
        .map(|entry| {
            let (name, rest) = entry.split_once('(').expect("a function has arguments");
            let (arguments, _) = rest.split_once('|').expect("a body follows");
            (name, arguments.matches(": ").count())
        })
        .collect()
}

#[test]
fn every_entry_point_fails_on_request_and_does_nothing_then() {
    let all = entries();
    assert!(all.len() > 100, "{} entry points were found", all.len());
    for (name, arguments) in all {
        let sim = Sim::new(1);
        sim.fail(name, 1, 719);
        // A call that fails on request does not read its invalid arguments.
        assert_eq!(answer_of(name, arguments), 719, "{name}");
        assert_eq!(sim.call_names(), [name]);
        sim.assert_clean();
    }
}

#[test]
fn the_entry_points_of_core_are_there() {
    let all: Vec<_> = entries().into_iter().map(|(name, _)| name).collect();
    let of_core = "cuInit cuGetErrorName cuCtxGetCurrent cuCtxSetCurrent cuDeviceGet cuDevicePrimaryCtxRetain \
        cuEventCreate cuEventRecord cuEventSynchronize cuEventDestroy_v2 cuStreamWaitEvent cuStreamSynchronize \
        cuStreamIsCapturing cuStreamGetCaptureInfo cuThreadExchangeStreamCaptureMode cuCtxSynchronize cuMemAlloc_v2 \
        cuMemFree_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuCtxRecordEvent cuStreamGetCtx hipInit hipGetDevice \
        hipSetDevice hipEventCreateWithFlags hipEventRecord hipEventSynchronize hipEventDestroy hipStreamWaitEvent \
        hipStreamSynchronize hipStreamIsCapturing hipStreamGetCaptureInfo hipThreadExchangeStreamCaptureMode \
        hipDeviceSynchronize hipMalloc hipFree hipMemcpyDtoHAsync hipMemcpyDtoDAsync cuStreamGetCaptureInfo_v2 \
        cuUserObjectCreate cuUserObjectRelease cuGraphRetainUserObject hipStreamGetCaptureInfo_v2 hipUserObjectCreate \
        hipUserObjectRelease hipGraphRetainUserObject cuMemAllocAsync cuMemFreeAsync hipMallocAsync hipFreeAsync";
    for name in of_core.split(' ') {
        assert!(all.contains(&name), "{name}");
    }
}

#[test]
fn the_nth_call_fails() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    sim.fail("cuEventCreate", 2, 2);
    sim.fail("cuEventCreate", 3, 719);
    assert!(cuda.create_event().is_ok());
    assert_eq!(cuda.create_event(), Err(2));
    assert_eq!(cuda.create_event(), Err(719));
    assert!(cuda.create_event().is_ok());
    sim.fail("cuEventCreate", 1, 2);
    sim.fail("cuEventCreate", 0, 0);
    assert!(cuda.create_event().is_ok());
    assert_eq!(sim.live(0), 3);
}

#[test]
fn codes_have_names() {
    let _sim = Sim::new(1);
    for (code, cuda, hip) in [
        (0, "CUDA_SUCCESS", "hipSuccess"),
        (2, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory"),
        (719, "CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure"),
        (
            905,
            "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
            "hipErrorStreamCaptureIsolation",
        ),
    ] {
        assert_eq!(error_name(Api::Cuda, code).as_deref(), Some(cuda));
        assert_eq!(error_name(Api::Hip, code).as_deref(), Some(hip));
    }
    assert_eq!(error_name(Api::Cuda, 12345), None);
}

#[test]
fn calls_are_recorded_with_streams_and_events() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    sim.forget_calls();
    let event = cuda.event();
    cuda.record(event, stream).unwrap();
    cuda.wait(1, event).unwrap();
    assert_eq!(
        sim.calls(),
        [
            "cuEventCreate flags=0x2".to_owned(),
            format!("cuEventRecord event={event:#x} stream={stream:#x}"),
            format!("cuStreamWaitEvent stream=0x1 event={event:#x}"),
        ]
    );
}

#[test]
fn a_call_that_waits_can_be_held_and_others_go_on() {
    for api in BOTH {
        for how in 0..5 {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let context = sim.current_context();
            let stream = driver.non_blocking();
            let event = driver.event();
            let memory = driver.alloc(8);
            sim.hold();
            std::thread::scope(|scope| {
                let held = scope.spawn(|| {
                    if api == Api::Cuda {
                        driver.set_current(context).unwrap();
                    }
                    match how {
                        0 => driver.synchronize_stream(stream),
                        1 => driver.synchronize_event(event),
                        2 => driver.synchronize(),
                        3 => driver.copy_to_host(&mut [0; 8], memory, stream),
                        _ => driver.free(memory),
                    }
                });
                sim.until_holding();
                // Neither the lock nor other calls are held.
                driver.record(event, stream).unwrap();
                driver.synchronize_stream(stream).unwrap();
                assert!(!held.is_finished());
                sim.release();
                assert_eq!(held.join().unwrap(), Ok(()));
            });
            assert!(!sim.holding());
        }
    }
}

#[test]
fn only_calls_that_wait_are_held() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    sim.hold();
    let memory = cuda.alloc_async(8, stream);
    cuda.order(stream, 0);
    cuda.free_async(memory, stream).unwrap();
    let memory = cuda.alloc_async(8, stream);
    cuda.free(memory).unwrap();
    assert!(!sim.holding());
    sim.release();
}

#[test]
fn a_reset_begins_a_new_world() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let context = sim.current_context();
    let (stream, event, memory) = (cuda.non_blocking(), cuda.event(), cuda.alloc(8));
    cuda.kernel(77, memory, 8, true).unwrap_err();
    assert_eq!(sim.faults().len(), 1);
    sim.fail("cuEventCreate", 1, 2);
    cuda.exchange_mode(2).unwrap();
    drop(sim);

    let sim = Sim::new(1);
    assert_eq!(
        (sim.current_context(), sim.faults().len(), sim.calls().len()),
        (0, 0, 0)
    );
    assert_eq!((sim.live(0), sim.live(1), sim.live(2)), (0, 0, 0));
    // The primary context was never released, so the process still has the same one.
    cuda.set_current(context).unwrap();
    let new = [cuda.non_blocking(), cuda.event()];
    assert!(!new.contains(&stream) && !new.contains(&event), "{new:?}");
    assert_eq!(cuda.exchange_mode(0), Ok(0));
    assert_eq!(cuda.synchronize_stream(stream), Err(400));
    assert_eq!(cuda.destroy_event(event), Err(400));
    assert_eq!(cuda.free(memory), Err(1));
    assert_eq!(sim.faults().len(), 3);
}
