//! Stream capture: which calls it forbids on which threads, and how it ends then.

use crate::simulator::{Api, BOTH, GLOBAL, LEGACY, PER_THREAD, RELAXED, Sim, THREAD_LOCAL};

#[test]
fn a_branch_that_is_not_joined_gives_904() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let (stream, side) = (cuda.non_blocking(), cuda.non_blocking());
    let memory = cuda.alloc(4);
    assert_eq!(cuda.begin_capture(stream, GLOBAL), Ok(()));
    cuda.order(stream, side);
    cuda.read(side, memory, 4);
    assert_eq!(cuda.end_capture(side), Err(903), "it did not begin there");
    assert_eq!(cuda.end_capture(stream), Err(904));
    assert_eq!(
        (cuda.is_capturing(stream), cuda.is_capturing(side)),
        (Ok(0), Ok(0))
    );
}

#[test]
fn waiting_for_work_outside_gives_905_and_901() {
    for api in BOTH {
        let sim = Sim::new(1);
        let driver = sim.driver(api);
        let (stream, outside) = (driver.non_blocking(), driver.non_blocking());
        let event = driver.event();
        assert_eq!(driver.begin_capture(stream, RELAXED), Ok(()));
        assert_eq!(driver.wait(stream, event), Ok(()), "it was never recorded");
        assert_eq!(driver.record(event, outside), Ok(()));
        assert_eq!(driver.wait(stream, event), Err(905));
        assert_eq!(driver.is_capturing(stream), Ok(2));
        assert_eq!(driver.kernel(stream, driver.alloc(4), 4, true), Err(901));
        assert_eq!(driver.record(event, stream), Err(901));
        assert_eq!(driver.wait(stream, event), Err(901));
        assert_eq!(driver.end_capture(stream), Err(901));
        assert_eq!(driver.is_capturing(stream), Ok(0));
        assert_eq!(driver.end_capture(stream), Err(401));
    }
}

#[test]
fn waiting_for_another_capture_gives_902() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let (first, second) = (cuda.non_blocking(), cuda.non_blocking());
    let event = cuda.event();
    assert_eq!(cuda.begin_capture(first, GLOBAL), Ok(()));
    assert_eq!(cuda.begin_capture(second, GLOBAL), Ok(()));
    assert_ne!(cuda.capture_info(first), cuda.capture_info(second));
    assert_eq!(cuda.record(event, first), Ok(()));
    assert_eq!(cuda.wait(second, event), Err(902));
    assert_eq!(cuda.end_capture(first), Err(901));
    assert_eq!(cuda.end_capture(second), Err(901));
}

#[test]
fn the_host_cannot_wait_for_what_is_captured() {
    for api in BOTH {
        for how in 0..5 {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let stream = driver.non_blocking();
            let event = driver.event();
            assert_eq!(driver.begin_capture(stream, RELAXED), Ok(()));
            assert_eq!(driver.record(event, stream), Ok(()));
            // A relaxed mode does not allow it either.
            assert_eq!(driver.exchange_mode(RELAXED), Ok(GLOBAL));
            let refused = match how {
                0 => (driver.synchronize_stream(stream), 900),
                1 => (driver.query_stream(stream), 900),
                2 => (driver.synchronize(), 900),
                3 => (driver.synchronize_event(event), 907),
                _ => (driver.query_event(event), 907),
            };
            assert_eq!(refused.0, Err(refused.1));
            assert_eq!(driver.end_capture(stream), Err(901));
        }
    }
}

#[test]
fn recording_a_context_breaks_its_captures() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let context = sim.current_context();
    let stream = cuda.non_blocking();
    let event = cuda.event();
    assert_eq!(cuda.begin_capture(stream, RELAXED), Ok(()));
    assert_eq!(cuda.record_context(context, event), Err(900));
    assert_eq!(cuda.end_capture(stream), Err(901));
}

#[test]
fn a_capture_of_another_context_is_not_touched() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let primary = sim.current_context();
    let stream = cuda.non_blocking();
    let event = cuda.event();
    let other = cuda.create_context(0).unwrap();
    let there = cuda.non_blocking();
    assert_eq!(cuda.begin_capture(there, RELAXED), Ok(()));
    cuda.set_current(primary).unwrap();
    assert_eq!(cuda.synchronize(), Ok(()));
    assert_eq!(cuda.record_context(primary, event), Ok(()));
    assert_eq!(cuda.synchronize_stream(stream), Ok(()));
    assert!(cuda.end_capture(there).is_ok());
    assert_eq!(cuda.destroy_context(other), Ok(()));
}

#[test]
fn the_legacy_stream_cannot_be_used_beside_a_blocking_capture() {
    for api in BOTH {
        for blocking in [false, true] {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let memory = driver.alloc(4);
            let stream = if blocking {
                driver.blocking()
            } else {
                driver.non_blocking()
            };
            assert_eq!(driver.begin_capture(stream, RELAXED), Ok(()));
            let (asked, used) = if blocking {
                (Err(906), Err(906))
            } else {
                (Ok(0), Ok(()))
            };
            assert_eq!(driver.is_capturing(0), asked);
            assert_eq!(
                driver.is_capturing(stream),
                Ok(1),
                "request_on changes nothing"
            );
            assert_eq!(driver.kernel(0, memory, 4, true), used);
            assert_eq!(driver.end_capture(stream).is_ok(), !blocking);
        }
    }
}

#[test]
fn the_legacy_stream_joins_no_capture() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    let event = cuda.event();
    assert_eq!(cuda.begin_capture(LEGACY, RELAXED), Err(900));
    assert_eq!(cuda.begin_capture(stream, RELAXED), Ok(()));
    assert_eq!(cuda.begin_capture(stream, RELAXED), Err(401));
    assert_eq!(cuda.record(event, stream), Ok(()));
    assert_eq!(cuda.wait(LEGACY, event), Err(906));
    assert_eq!(cuda.end_capture(stream), Err(901));
    assert_eq!(cuda.wait(LEGACY, event), Err(906));
    assert_eq!(
        cuda.wait(PER_THREAD, event),
        Err(907),
        "the capture has ended"
    );
}

#[test]
fn unsafe_calls_are_refused_by_the_modes_of_captures_and_threads() {
    // The mode of the capture, the mode of the calling thread, whether that thread captures; and whether the call is refused.
    let cases = [
        (GLOBAL, GLOBAL, true, true),
        (GLOBAL, GLOBAL, false, true),
        (GLOBAL, THREAD_LOCAL, true, true),
        (GLOBAL, THREAD_LOCAL, false, false),
        (GLOBAL, RELAXED, true, false),
        (GLOBAL, RELAXED, false, false),
        (THREAD_LOCAL, GLOBAL, true, true),
        (THREAD_LOCAL, GLOBAL, false, false),
        (THREAD_LOCAL, THREAD_LOCAL, true, true),
        (THREAD_LOCAL, RELAXED, true, false),
        (RELAXED, GLOBAL, true, false),
        (RELAXED, GLOBAL, false, false),
    ];
    for api in BOTH {
        for (capture, thread, same, refused) in cases {
            for how in 0..5 {
                let sim = Sim::new(1);
                let driver = sim.driver(api);
                let (stream, other) = (driver.non_blocking(), driver.non_blocking());
                let memory = driver.alloc(8);
                let event = driver.event();
                let context = sim.current_context();
                assert_eq!(driver.begin_capture(stream, capture), Ok(()));
                let call = || {
                    if api == Api::Cuda {
                        driver.set_current(context).unwrap();
                    }
                    assert_eq!(driver.exchange_mode(thread), Ok(GLOBAL));
                    match how {
                        0 => driver.synchronize_stream(other),
                        1 => driver.synchronize_event(event),
                        2 => driver.query_event(event),
                        3 => driver.try_alloc(8).map(drop),
                        _ => driver.free(memory),
                    }
                };
                let answer = if same {
                    call()
                } else {
                    std::thread::scope(|scope| scope.spawn(call).join().unwrap())
                };
                let case = format!("{capture} {thread} {same} {how}");
                assert_eq!(answer, if refused { Err(900) } else { Ok(()) }, "{case}");
                assert_eq!(driver.end_capture(stream).is_ok(), !refused, "{case}");
            }
        }
    }
}

#[test]
fn a_capture_ends_on_its_own_thread_unless_relaxed() {
    for (mode, elsewhere) in [(THREAD_LOCAL, false), (RELAXED, true)] {
        let sim = Sim::new(1);
        let hip = sim.hip();
        let stream = hip.non_blocking();
        assert_eq!(hip.begin_capture(stream, mode), Ok(()));
        let end = || hip.end_capture(stream).map(drop);
        let ended = std::thread::scope(|scope| scope.spawn(end).join().unwrap());
        assert_eq!(ended, if elsewhere { Ok(()) } else { Err(908) });
        assert_eq!(end(), if elsewhere { Err(401) } else { Ok(()) });
    }
}

#[test]
fn pageable_memory_does_not_go_into_a_capture() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    let (memory, pinned) = (cuda.alloc(4), cuda.alloc_pinned(4));
    assert_eq!(cuda.begin_capture(stream, GLOBAL), Ok(()));
    assert_eq!(cuda.copy_to_address(pinned, memory, 4, stream), Ok(()));
    assert_eq!(cuda.copy_to_host(&mut [0; 4], memory, stream), Err(900));
    assert_eq!(cuda.end_capture(stream), Err(901));
}

#[test]
fn a_launch_into_a_capture_is_left_out() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    assert_eq!(cuda.begin_capture(stream, GLOBAL), Ok(()));
    let graph = cuda.end_capture(stream).unwrap();
    let executable = cuda.instantiate(graph).unwrap();
    assert_eq!(cuda.begin_capture(stream, GLOBAL), Ok(()));
    assert_eq!(cuda.launch(executable, stream), Err(801));
}
