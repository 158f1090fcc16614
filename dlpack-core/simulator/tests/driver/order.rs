//! Which work waits for which: streams, events, the legacy stream, host threads.

use crate::simulator::{BOTH, LEGACY, PER_THREAD, Sim};

#[test]
fn streams_race_without_a_wait_and_not_with_one() {
    for api in BOTH {
        for waits in [false, true] {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let memory = driver.alloc(64);
            let (producer, consumer) = (driver.non_blocking(), driver.non_blocking());
            driver.write(producer, memory, 64);
            if waits {
                driver.order(producer, consumer);
            }
            driver.read(consumer, memory, 64);
            if waits {
                sim.assert_clean();
            } else {
                sim.assert_one_fault(&["race: read", "write", "a kernel", "neither waits"]);
            }
        }
    }
}

#[test]
fn reads_do_not_race_and_neither_do_other_bytes() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(64);
    let (first, second) = (cuda.non_blocking(), cuda.non_blocking());
    cuda.read(first, memory, 64);
    cuda.read(second, memory, 64);
    sim.assert_clean();
    cuda.write(first, memory, 32);
    sim.assert_one_fault(&["race: write"]);

    let other = cuda.alloc(64);
    cuda.write(first, other, 32);
    cuda.write(second, other + 32, 32);
    assert_eq!(sim.faults().len(), 1);
    cuda.write(second, other + 31, 1);
    assert_eq!(sim.faults().len(), 2);
}

#[test]
fn work_of_one_stream_is_in_order() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(64);
    let stream = cuda.non_blocking();
    for _ in 0..3 {
        cuda.write(stream, memory, 64);
        cuda.read(stream, memory, 64);
    }
    sim.assert_clean();
}

#[test]
fn a_wait_refers_to_the_record_before_it() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(8);
    let (producer, consumer) = (cuda.non_blocking(), cuda.non_blocking());
    let event = cuda.event();
    // An event that was never recorded is complete.
    assert_eq!(cuda.wait(consumer, event), Ok(()));
    assert_eq!(cuda.synchronize_event(event), Ok(()));
    assert_eq!(cuda.record(event, producer), Ok(()));
    assert_eq!(cuda.wait(consumer, event), Ok(()));
    cuda.write(producer, memory, 8);
    // A later record does not change the wait.
    assert_eq!(cuda.record(event, producer), Ok(()));
    cuda.read(consumer, memory, 8);
    sim.assert_one_fault(&["race: read"]);
    assert_eq!(cuda.wait(consumer, event), Ok(()));
    cuda.write(consumer, memory, 8);
    assert_eq!(
        sim.faults().len(),
        1,
        "the second wait orders the write after the first"
    );
}

#[test]
fn a_destroyed_event_still_orders_the_wait_before() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let event = cuda.event();
    assert_eq!(sim.live(0), 1);
    assert_eq!(cuda.destroy_event(event), Ok(()));
    assert_eq!(sim.live(0), 0);
    assert_eq!(cuda.record(event, 0), Err(400));
    sim.assert_one_fault(&["use of a destroyed event"]);
}

#[test]
fn the_legacy_stream_and_blocking_streams_wait_for_each_other() {
    for api in BOTH {
        for (blocking, legacy_first) in [(true, true), (true, false), (false, true), (false, false)]
        {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let memory = driver.alloc(8);
            let stream = if blocking {
                driver.blocking()
            } else {
                driver.non_blocking()
            };
            let (first, second) = if legacy_first {
                (0, stream)
            } else {
                (stream, 0)
            };
            driver.write(first, memory, 8);
            driver.read(second, memory, 8);
            if blocking {
                sim.assert_clean();
            } else {
                sim.assert_one_fault(&["race: read", "the legacy stream"]);
            }
        }
    }
}

#[test]
fn blocking_streams_do_not_wait_for_each_other() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(8);
    cuda.write(cuda.blocking(), memory, 8);
    cuda.read(cuda.blocking(), memory, 8);
    sim.assert_one_fault(&["race"]);
}

#[test]
fn work_on_the_legacy_stream_lies_between_blocking_streams() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(8);
    let (first, second) = (cuda.blocking(), cuda.blocking());
    cuda.write(first, memory, 8);
    let event = cuda.event();
    assert_eq!(cuda.record(event, LEGACY), Ok(()));
    cuda.write(second, memory, 8);
    sim.assert_clean();
}

#[test]
fn handles_0_and_1_are_one_stream_of_cuda() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(8);
    cuda.write(0, memory, 8);
    cuda.write(LEGACY, memory, 8);
    sim.assert_clean();
}

#[test]
fn handles_1_and_2_mean_nothing_to_hip() {
    for handle in [LEGACY, PER_THREAD] {
        let sim = Sim::new(1);
        let hip = sim.hip();
        assert_eq!(hip.synchronize_stream(handle), Err(400));
        sim.assert_one_fault(&["use of an unknown stream"]);
    }
}

#[test]
fn handle_2_is_another_stream_on_another_thread() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(8);
    let context = sim.current_context();
    cuda.write(PER_THREAD, memory, 8);
    cuda.write(PER_THREAD, memory, 8);
    // It is a blocking stream.
    cuda.write(LEGACY, memory, 8);
    cuda.write(PER_THREAD, memory, 8);
    sim.assert_clean();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            cuda.set_current(context).unwrap();
            cuda.read(PER_THREAD, memory, 8);
        });
    });
    sim.assert_one_fault(&["the stream of host thread 1", "the stream of host thread 2"]);
}

#[test]
fn work_waits_for_earlier_accesses_of_its_thread() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc_managed(8);
    let stream = cuda.non_blocking();
    sim.host_write(memory, 8);
    cuda.read(stream, memory, 8);
    sim.assert_clean();
    sim.host_write(memory, 8);
    sim.assert_one_fault(&[
        "race: write by host thread 1 (the program)",
        "read by stream",
    ]);
}

#[test]
fn the_host_waits_by_stream_event_context_and_query() {
    for api in BOTH {
        for how in 0..6 {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let memory = driver.alloc_managed(8);
            let stream = driver.non_blocking();
            driver.write(stream, memory, 8);
            let event = driver.event();
            assert_eq!(driver.record(event, stream), Ok(()));
            let done = match how {
                0 => driver.synchronize_stream(stream),
                1 => driver.synchronize_event(event),
                2 => driver.synchronize(),
                3 => driver.query_stream(stream),
                4 => driver.query_event(event),
                _ => Ok(()),
            };
            assert_eq!(done, Ok(()));
            sim.host_read(memory, 8);
            if how < 5 {
                sim.assert_clean();
            } else {
                sim.assert_one_fault(&["race: read by host thread 1"]);
            }
        }
    }
}

#[test]
fn synchronizing_one_stream_does_not_order_another() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc_managed(8);
    cuda.write(cuda.non_blocking(), memory, 8);
    assert_eq!(cuda.synchronize_stream(cuda.non_blocking()), Ok(()));
    assert_eq!(cuda.synchronize_stream(LEGACY), Ok(()));
    sim.host_read(memory, 8);
    sim.assert_one_fault(&["race"]);
}

#[test]
fn host_threads_race_unless_the_test_reports_their_synchronization() {
    for waited in [false, true] {
        let sim = Sim::new(1);
        let cuda = sim.cuda();
        let memory = cuda.alloc_managed(8);
        sim.host_write(memory, 8);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if waited {
                    sim.hand_over();
                }
                sim.host_read(memory, 8);
            });
        });
        if waited {
            sim.assert_clean();
        } else {
            sim.assert_one_fault(&["host thread 1", "host thread 2"]);
        }
    }
}

#[test]
fn a_destroyed_stream_finishes_its_work_but_its_handle_is_invalid() {
    for api in BOTH {
        let sim = Sim::new(1);
        let driver = sim.driver(api);
        let memory = driver.alloc_managed(8);
        let stream = driver.non_blocking();
        assert_eq!(sim.live(2), 1);
        driver.write(stream, memory, 8);
        assert_eq!(driver.destroy_stream(stream), Ok(()));
        assert_eq!(sim.live(2), 0);
        assert_eq!(driver.synchronize_stream(stream), Err(400));
        sim.assert_one_fault(&["use of a destroyed stream"]);
        // Synchronizing the device includes the work of the destroyed stream.
        assert_eq!(driver.synchronize(), Ok(()));
        sim.host_read(memory, 8);
        assert_eq!(sim.faults().len(), 1);
    }
}

#[test]
fn recording_a_context_includes_all_its_streams() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(8);
    let context = sim.current_context();
    let (hidden, later) = (cuda.non_blocking(), cuda.non_blocking());
    cuda.write(hidden, memory, 8);
    assert_eq!(cuda.destroy_stream(hidden), Ok(()));
    let event = cuda.event();
    sim.switch("no-ctx-record-event", true);
    assert_eq!(cuda.record_context(context, event), Err(801));
    sim.switch("no-ctx-record-event", false);
    assert_eq!(cuda.record_context(context, event), Ok(()));
    assert_eq!(cuda.wait(later, event), Ok(()));
    cuda.write(later, memory, 8);
    sim.assert_clean();
}

#[test]
fn flags_of_an_event_limit_its_use() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    assert_eq!(cuda.create_event_with(8), Err(1));
    assert_eq!(
        cuda.create_event_with(4),
        Err(1),
        "for others, and with times"
    );
    let [timed, other, untimed] = [0, 1, 6].map(|flags| cuda.create_event_with(flags).unwrap());
    assert_eq!(cuda.elapsed(timed, other), Err(400), "not recorded");
    for event in [timed, other, untimed] {
        cuda.record(event, stream).unwrap();
    }
    assert_eq!(cuda.elapsed(timed, other), Ok(()));
    assert_eq!(cuda.elapsed(timed, untimed), Err(400));
    sim.assert_clean();
}
