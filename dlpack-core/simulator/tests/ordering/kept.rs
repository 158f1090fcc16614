//! Owners that cannot be dropped with their tensors, because a stream captures.

use std::sync::Arc;

use dlpack_core::stream::{collect, retained, sweep_all};
use dlpack_core::{DLPack, Descriptor, Error, Managed, Parts};

use crate::memory::{Blocks, Kind, Log, Owner, World};
use crate::simulator::{Api, BOTH, RELAXED};
use crate::tensors::{assert_over, device_memory, number, request_on, written};

#[test]
fn several_tensors_wait_for_the_end_of_a_capture() {
    for api in BOTH {
        let world = World::new(api);
        let kind = device_memory(api);
        let producer = world.lane(world.first, Blocks::No);
        let legacy = world.lane(world.first, Blocks::Legacy);
        let kept: Vec<(Managed, Arc<Log>)> = (0..3)
            .map(|_| {
                let (owner, log) = written(&world, kind, producer);
                let address = owner.address;
                let tensor = owner.into_dlpack_with(&request_on(None)).unwrap();
                world.read(legacy, address);
                (tensor, log)
            })
            .collect();
        world
            .driver
            .begin_capture(producer.handle, RELAXED)
            .unwrap();
        let (tensors, logs): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
        drop(tensors);
        let dropped = || logs.iter().map(|log| log.drops()).sum::<usize>();
        assert_eq!(dropped(), 0);
        assert_eq!(collect(), 3, "it still captures");
        let graph = world.driver.end_capture(producer.handle).unwrap();
        // No export drops owners of other tensors.
        let (other, other_log) = written(&world, kind, producer);
        let tensor = other.into_dlpack_with(&request_on(None)).unwrap();
        assert_eq!(dropped(), 0);
        sweep_all();
        assert_eq!(dropped(), 3);
        drop(tensor);
        for log in logs.iter().chain([&other_log]) {
            assert_over(&world, log);
        }
        world.driver.destroy_graph(graph).unwrap();
    }
}

/// A tensor that is computed on request.
struct Made(std::sync::Mutex<Option<Owner>>);

impl DLPack for Made {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let owner = self
            .0
            .lock()
            .expect("no thread panics while it holds the lock")
            .take();
        Parts::new().via(owner.expect("it is asked for once"))
    }
}

#[test]
fn a_computed_tensor_is_ordered_and_kept_like_others() {
    for api in BOTH {
        for captures in [false, true] {
            let world = World::new(api);
            let producer = world.lane(world.first, Blocks::No);
            let consumer = world.lane(world.first, Blocks::No);
            let (owner, log) = written(&world, device_memory(api), producer);
            let address = owner.address;
            if captures {
                let mode = RELAXED;
                world.driver.begin_capture(consumer.handle, mode).unwrap();
            }
            let made = Made(std::sync::Mutex::new(Some(owner)));
            let tensor = made
                .into_dlpack_with(&request_on(number(consumer)))
                .unwrap();
            world.read(consumer, address);
            if !captures {
                drop(tensor);
                assert_over(&world, &log);
                continue;
            }
            let graph = world.driver.end_capture(consumer.handle).unwrap();
            drop(tensor);
            assert_eq!(log.drops(), 0);
            let executable = world.driver.instantiate(graph).unwrap();
            world.driver.launch(executable, consumer.handle).unwrap();
            end(&world, executable, graph);
            assert_over(&world, &log);
        }
    }
}

#[expect(unsafe_code, reason = "frees what graphs have read")]
fn end(world: &World, executable: usize, graph: usize) {
    world.driver.destroy_executable(executable).unwrap();
    world.driver.destroy_graph(graph).unwrap();
    // SAFETY: the graphs are destroyed.
    unsafe { dlpack_core::stream::release_captured() };
}

#[test]
fn a_capturing_producer_stream_keeps_the_owner() {
    let world = World::new(Api::Cuda);
    let stream = world.lane(world.first, Blocks::No);
    let (owner, log) = written(&world, Kind::Cuda, stream);
    let address = owner.address;
    world.driver.begin_capture(stream.handle, RELAXED).unwrap();
    let tensor = owner.into_dlpack_with(&request_on(number(stream))).unwrap();
    world.read(stream, address);
    let graph = world.driver.end_capture(stream.handle).unwrap();
    drop(tensor);
    assert_eq!(log.drops(), 0);
    let executable = world.driver.instantiate(graph).unwrap();
    world.driver.launch(executable, stream.handle).unwrap();
    end(&world, executable, graph);
    assert_over(&world, &log);
}

/// Of two owners that wait for events, each is dropped after its own event.
#[test]
fn owners_wait_for_their_own_events() {
    for done in [0, 1] {
        let world = World::new(Api::Cuda);
        let producer = world.lane(world.first, Blocks::No);
        let consumers = [(); 2].map(|()| world.lane(world.first, Blocks::No));
        world.sim.switch("slow", true);
        let mut logs = Vec::new();
        // The exports of the second turn record the streams for which owners of the first turn wait.
        for _ in 0..2 {
            for consumer in consumers {
                let (owner, log) = written(&world, Kind::Cuda, producer);
                let address = owner.address;
                let tensor = owner
                    .into_dlpack_with(&request_on(number(consumer)))
                    .unwrap();
                world.read(consumer, address);
                drop(tensor);
                logs.push(log);
            }
        }
        let synchronized = world.driver.synchronize_stream(consumers[done].handle);
        assert_eq!(synchronized, Ok(()));
        collect();
        assert_eq!((logs[done].drops(), logs[1 - done].drops()), (1, 0));
        world.sim.switch("slow", false);
        for log in &logs {
            assert_over(&world, log);
        }
    }
}

/// If the default stream reports that a stream of its context captures, `collect` does not touch the context.
#[test]
fn collect_does_not_break_captures_of_blocking_streams() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let pool = world.lane(world.first, Blocks::Yes);
        let (owner, log) = written(&world, device_memory(api), producer);
        drop(owner.into_dlpack_with(&request_on(Some(-1))).unwrap());
        world.driver.begin_capture(pool.handle, RELAXED).unwrap();
        assert_eq!(collect(), 1);
        let graph = world.driver.end_capture(pool.handle);
        let graph = graph.expect("the capture is whole");
        world.driver.destroy_graph(graph).unwrap();
        assert_over(&world, &log);
    }
}

/// An owner waits for the default stream of a context that was not current at its drop. An export of memory without work to that
/// stream finds it blocked by a capture, and does not record it.
#[test]
fn a_default_stream_that_a_capture_blocks_is_not_recorded() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    let pool = world.lane(world.other, Blocks::Yes);
    let (owner, log) = written(&world, Kind::Cuda, producer);
    world.enter(world.other);
    let tensor = owner.into_dlpack_with(&request_on(None)).unwrap();
    world.enter(world.first);
    drop(tensor);
    sweep_all();
    assert_eq!((retained().open, log.drops()), (1, 0));
    let (mut pinned, pinned_log) = written(&world, Kind::CudaHost, producer);
    pinned.named_stream = None;
    let waited = world.driver.synchronize_stream(producer.handle);
    assert_eq!(waited, Ok(()));
    world.enter(world.other);
    world.driver.begin_capture(pool.handle, RELAXED).unwrap();
    world.sim.forget_calls();
    let tensor = pinned.into_dlpack_with(&request_on(Some(1))).unwrap();
    let calls = world.sim.calls();
    let records = calls.iter().filter(|call| call.contains("Record"));
    assert_eq!(records.count(), 0, "{calls:?}");
    let graph = world.driver.end_capture(pool.handle);
    let graph = graph.expect("the capture is whole");
    world.driver.destroy_graph(graph).unwrap();
    drop(tensor);
    collect();
    for log in [&log, &pinned_log] {
        assert_over(&world, log);
    }
}

/// Older versions of HIP break a capture when an event that was recorded on its stream is queried.
#[test]
fn an_event_is_not_queried_while_its_stream_captures() {
    for kind in [Kind::CudaManaged, Kind::RocmHost] {
        let world = World::new(kind.api());
        let producer = world.lane(world.first, Blocks::No);
        world.sim.switch("slow", true);
        let (owner, log) = written(&world, kind, producer);
        let tensor = owner
            .into_dlpack_with(&request_on(number(producer)))
            .unwrap();
        drop(tensor);
        let stream = producer.handle;
        world.driver.begin_capture(stream, RELAXED).unwrap();
        assert_eq!(collect(), 1);
        let graph = world.driver.end_capture(stream);
        let graph = graph.expect("the capture is whole");
        world.driver.destroy_graph(graph).unwrap();
        world.sim.switch("slow", false);
        assert_over(&world, &log);
    }
}

/// The contexts of each API are recorded by its own driver.
#[test]
fn owners_of_unknown_streams_of_both_apis_wait_side_by_side() {
    let mut world = World::new(Api::Cuda);
    let of_cuda = (world.driver, world.first);
    let of_hip = (world.sim.driver(Api::Hip), 0);
    let mut logs = Vec::new();
    for (driver, first) in [of_hip, of_cuda, of_hip, of_cuda] {
        (world.driver, world.first) = (driver, first);
        let producer = world.lane(first, Blocks::No);
        let (owner, log) = written(&world, device_memory(driver.api), producer);
        drop(owner.into_dlpack_with(&request_on(Some(-1))).unwrap());
        logs.push(log);
    }
    assert_eq!(collect(), 0);
    logs.iter().for_each(|log| assert_over(&world, log));
}

/// Each driver is queried only for its own events.
#[test]
fn owners_of_both_apis_wait_side_by_side() {
    let mut world = World::new(Api::Cuda);
    let of_cuda = (world.driver, world.first);
    let of_hip = (world.sim.driver(Api::Hip), 0);
    world.sim.switch("slow", true);
    let mut logs = Vec::new();
    for (driver, first) in [of_cuda, of_hip] {
        (world.driver, world.first) = (driver, first);
        let producer = world.lane(first, Blocks::No);
        let (owner, log) = written(&world, device_memory(driver.api), producer);
        drop(owner.into_dlpack_with(&request_on(None)).unwrap());
        logs.push(log);
    }
    let drops = || [logs[0].drops(), logs[1].drops()];
    sweep_all();
    assert_eq!(drops(), [0, 0]);
    assert_eq!(of_hip.0.synchronize(), Ok(()));
    sweep_all();
    assert_eq!(drops(), [0, 1]);
    assert_eq!(of_cuda.0.synchronize(), Ok(()));
    sweep_all();
    assert_eq!(drops(), [1, 1]);
    world.sim.assert_clean();
}
