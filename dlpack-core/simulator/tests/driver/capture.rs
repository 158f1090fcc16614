//! Stream capture: what is recorded, and what a launch does with it.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::simulator::{Api, BOTH, Driver, GLOBAL, GRAPHS, RELAXED, Sim, USER_OBJECTS};

/// Ends a capture that must be valid, and instantiates its graph.
#[track_caller]
fn executable(driver: Driver, stream: usize) -> usize {
    let graph = driver.end_capture(stream).expect("the capture went well");
    let executable = driver.instantiate(graph).expect("the graph is there");
    assert_eq!(driver.destroy_graph(graph), Ok(()));
    executable
}

#[test]
fn captured_work_runs_at_each_launch() {
    for api in BOTH {
        let sim = Sim::new(1);
        let driver = sim.driver(api);
        let (stream, other) = (driver.non_blocking(), driver.non_blocking());
        let (from, to) = (driver.alloc(4), driver.alloc(4));
        assert_eq!(driver.begin_capture(stream, GLOBAL), Ok(()));
        assert_eq!(driver.is_capturing(stream), Ok(1));
        assert_eq!(driver.copy_on_device(to, from, 4, stream), Ok(()));
        let executable = executable(driver, stream);
        assert_eq!(driver.is_capturing(stream), Ok(0));
        // The captured read has not run yet.
        assert_eq!(driver.copy_to_device(from, &[5; 4], other), Ok(()));
        sim.assert_clean();
        driver.order(other, stream);
        assert_eq!(driver.launch(executable, stream), Ok(()));
        let mut read = [0; 4];
        assert_eq!(driver.copy_to_host(&mut read, to, stream), Ok(()));
        assert_eq!(read, [5; 4]);
        sim.assert_clean();
        driver.write(other, to, 4);
        assert_eq!(driver.launch(executable, stream), Ok(()));
        assert_eq!(driver.destroy_executable(executable), Ok(()));
        assert_eq!(sim.live(GRAPHS), 0);
        let faults = sim.faults();
        let race = faults.last().expect("the write and the second launch race");
        assert!(race.contains("branch 0 of a graph"), "{faults:?}");
    }
}

#[test]
fn launches_of_one_graph_wait_for_each_other() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let (stream, other) = (cuda.non_blocking(), cuda.non_blocking());
    let memory = cuda.alloc(4);
    assert_eq!(cuda.begin_capture(stream, GLOBAL), Ok(()));
    cuda.write(stream, memory, 4);
    let executable = executable(cuda, stream);
    assert_eq!(cuda.launch(executable, stream), Ok(()));
    assert_eq!(cuda.launch(executable, other), Ok(()));
    sim.assert_clean();
}

#[test]
fn branches_of_a_graph_race_unless_they_wait() {
    for waits in [false, true] {
        let sim = Sim::new(1);
        let cuda = sim.cuda();
        let (stream, side) = (cuda.non_blocking(), cuda.non_blocking());
        let memory = cuda.alloc(4);
        assert_eq!(cuda.begin_capture(stream, GLOBAL), Ok(()));
        if !waits {
            cuda.order(stream, side);
        }
        cuda.write(stream, memory, 4);
        if waits {
            cuda.order(stream, side);
        }
        assert_eq!(cuda.is_capturing(side), Ok(1), "it has joined the capture");
        cuda.read(side, memory, 4);
        cuda.order(side, stream);
        let executable = executable(cuda, stream);
        assert_eq!(cuda.is_capturing(side), Ok(0));
        sim.assert_clean();
        assert_eq!(cuda.launch(executable, stream), Ok(()));
        if waits {
            sim.assert_clean();
        } else {
            sim.assert_one_fault(&["race: read by branch 1", "write by branch 0"]);
        }
        // Work that is queued after the launch waits for both branches.
        let before = sim.faults().len();
        cuda.write(stream, memory, 4);
        assert_eq!(sim.faults().len(), before);
    }
}

#[test]
fn a_graph_has_its_own_memory() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    let before = cuda.alloc_async(4, stream);
    assert_eq!(cuda.begin_capture(stream, GLOBAL), Ok(()));
    let inside = cuda.alloc_async(4, stream);
    cuda.write(stream, inside, 4);
    assert_eq!(
        cuda.free_async(before, stream),
        Err(1),
        "it is not the graph's"
    );
    assert_eq!(cuda.free_async(inside, stream), Ok(()));
    let executable = executable(cuda, stream);
    assert_eq!(cuda.launch(executable, stream), Ok(()));
    assert_eq!(cuda.launch(executable, stream), Ok(()));
    sim.assert_clean();
    cuda.read(stream, inside, 4);
    sim.assert_one_fault(&["use after free"]);
}

#[test]
fn a_user_object_lives_as_long_as_a_graph_holds_it() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn end(data: usize) {
        ENDED.store(data, Ordering::SeqCst);
    }
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    assert_eq!(cuda.begin_capture(stream, GLOBAL), Ok(()));
    let graph = cuda.end_capture(stream).unwrap();
    let object = cuda.user_object(7, end).unwrap();
    assert_eq!(cuda.give_to_graph(graph, object), Ok(()));
    let executable = cuda.instantiate(graph).unwrap();
    assert_eq!(cuda.destroy_graph(graph), Ok(()));
    assert_eq!(
        (sim.live(USER_OBJECTS), ENDED.load(Ordering::SeqCst)),
        (1, 0)
    );
    assert_eq!(cuda.destroy_executable(executable), Ok(()));
    assert_eq!(
        (sim.live(USER_OBJECTS), ENDED.load(Ordering::SeqCst)),
        (0, 7)
    );
}

#[test]
fn a_graph_is_not_launched_again_while_its_memory_is_not_freed() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    assert_eq!(cuda.begin_capture(stream, GLOBAL), Ok(()));
    let memory = cuda.alloc_async(4, stream);
    let executable = executable(cuda, stream);
    assert_eq!(cuda.launch(executable, stream), Ok(()));
    assert_eq!(cuda.launch(executable, stream), Err(1));
    assert_eq!(cuda.free_async(memory, stream), Ok(()));
    assert_eq!(cuda.launch(executable, stream), Ok(()));
    sim.assert_clean();
}

/// By the strict reading of CUDA's manuals, which the switch `lax-captures` disables. The sources of HIP allow these queries.
#[test]
fn a_capturing_stream_may_not_be_queried() {
    for (api, lax) in [
        (Api::Cuda, false),
        (Api::Cuda, true),
        (Api::Hip, false),
        (Api::Hip, true),
    ] {
        for which in 0..3 {
            for beside in [false, true] {
                let sim = Sim::new(1);
                let driver = sim.driver(api);
                sim.switch("lax-captures", lax);
                let stream = driver.blocking();
                assert_eq!(driver.ask(stream), [Ok(()); 3]);
                assert_eq!(driver.begin_capture(stream, GLOBAL), Ok(()));
                let asked = driver.ask(if beside { 0 } else { stream })[which];
                // The first query has broken the capture.
                let (answer, end) = match (api, lax, beside) {
                    (Api::Cuda, false, false) => (Err(900), Err(901)),
                    (Api::Cuda, false, true) => (Err(906), Err(901)),
                    _ => (Ok(()), Ok(())),
                };
                assert_eq!(asked, answer, "{api:?} {lax} {which}");
                assert_eq!(driver.end_capture(stream).map(drop), end);
                sim.assert_clean();
            }
        }
    }
}

#[test]
fn an_event_of_a_capturing_stream_may_not_be_queried_in_hip() {
    for (api, lax, expected) in [
        (Api::Hip, false, Err(907)),
        (Api::Hip, true, Ok(())),
        (Api::Cuda, false, Ok(())),
    ] {
        let sim = Sim::new(1);
        let driver = sim.driver(api);
        sim.switch("lax-captures", lax);
        let (stream, event) = (driver.non_blocking(), driver.event());
        assert_eq!(driver.record(event, stream), Ok(()));
        assert_eq!(driver.begin_capture(stream, RELAXED), Ok(()));
        driver.exchange_mode(RELAXED).unwrap();
        assert_eq!(driver.query_event(event), expected);
        driver.exchange_mode(GLOBAL).unwrap();
        let end = driver.end_capture(stream).map(drop);
        assert_eq!(end, expected.map_err(|_| 901));
        sim.assert_clean();
    }
}

/// Of two writes in one capture, the second waits for the first if it is ordered after it.
#[test]
fn captured_work_can_be_ordered_after_that_of_another_stream() {
    for api in BOTH {
        for joined in [true, false] {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let [stream, other] = [(); 2].map(|()| driver.non_blocking());
            let memory = driver.alloc(4);
            assert_eq!(driver.begin_capture(stream, GLOBAL), Ok(()));
            driver.order(stream, other);
            driver.write(stream, memory, 4);
            if joined {
                assert_eq!(driver.join_capture(stream, other), Ok(()));
            }
            driver.write(other, memory, 4);
            driver.order(other, stream);
            let executable = executable(driver, stream);
            assert_eq!(driver.launch(executable, stream), Ok(()));
            assert_eq!(sim.faults().is_empty(), joined, "{:?}", sim.faults());
            assert_eq!(sim.disagreements(), [""; 0]);
        }
    }
}

#[test]
fn captures_cannot_be_ordered_after_each_other() {
    for api in BOTH {
        let sim = Sim::new(1);
        let driver = sim.driver(api);
        let [stream, other] = [(); 2].map(|()| driver.non_blocking());
        let memory = driver.alloc(4);
        for one in [stream, other] {
            assert_eq!(driver.begin_capture(one, GLOBAL), Ok(()));
        }
        driver.write(stream, memory, 4);
        assert_eq!(driver.join_capture(stream, other), Err(1));
        assert_eq!(driver.end_capture(other).map(drop), Err(901));
        assert_eq!(driver.end_capture(stream).map(drop), Ok(()));
        assert_eq!(driver.join_capture(stream, other), Err(401));
        sim.assert_clean();
    }
}
