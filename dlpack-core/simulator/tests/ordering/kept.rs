//! Owners that cannot be dropped with their tensors, as something captures.

use std::sync::Arc;

use dlpack_core::{DLPack, Descriptor, Error, Managed, Parts};

use crate::memory::{Blocks, Kind, Log, Owner, World, nudge};
use crate::simulator::{Api, BOTH, RELAXED};
use crate::tensors::{asking, assert_over, device_memory, number, written};

#[test]
fn several_tensors_wait_for_the_end_of_a_capture() {
    for api in BOTH {
        let world = World::new(api);
        let kind = device_memory(api);
        let producer = world.lane(world.first, Blocks::No);
        let consumer = world.lane(world.first, Blocks::No);
        let mut kept: Vec<(Managed, Arc<Log>)> = Vec::new();
        for _ in 0..3 {
            let (owner, log) = written(&world, kind, producer);
            let address = owner.address;
            let tensor = owner.into_dlpack_with(&asking(number(consumer))).unwrap();
            world.read(consumer, address);
            kept.push((tensor, log));
        }
        let (free, last) = (kept.pop().unwrap(), 2);
        world
            .driver
            .begin_capture(producer.handle, RELAXED)
            .unwrap();
        let mut logs = vec![free.1];
        drop(free.0);
        for (tensor, log) in kept {
            drop(tensor);
            logs.push(log);
        }
        assert_eq!(logs.len(), last + 1);
        assert!(logs.iter().all(|log| log.drops() == 0));
        nudge(kind);
        assert!(logs.iter().all(|log| log.drops() == 0), "it still captures");
        let graph = world.driver.end_capture(producer.handle).unwrap();
        // Something else of the same driver's comes up, and not of the other's.
        nudge(match api {
            Api::Cuda => Kind::RocmHost,
            Api::Hip => Kind::CudaHost,
        });
        assert!(logs.iter().all(|log| log.drops() == 0));
        let (other, _) = written(&world, kind, producer);
        let again = Arc::new(other);
        let tensor = again.to_dlpack_with(&asking(number(consumer))).unwrap();
        assert!(logs.iter().all(|log| log.drops() == 1));
        drop((tensor, again));
        for log in &logs {
            assert_over(&world, log);
        }
        world.driver.destroy_graph(graph).unwrap();
    }
}

/// A tensor that is made when it is asked for.
struct Made(std::sync::Mutex<Option<Owner>>);

impl DLPack for Made {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let owner = self.0.lock().expect("nobody panics with it").take();
        Parts::new().via(owner.expect("it is asked for once"))
    }
}

#[test]
fn a_tensor_that_is_made_on_request_is_ordered_and_kept_like_others() {
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
            let tensor = made.into_dlpack_with(&asking(number(consumer))).unwrap();
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
    // SAFETY: they are gone.
    unsafe { dlpack_core::stream::release_captured() };
}

#[test]
fn a_stream_that_captures_what_is_written_on_it_keeps_nothing() {
    // Producer and consumer are one stream, of which nothing is asked. Who captures such a stream has the owner in
    // hand, and has to keep it for the graph: here it does not.
    let world = World::new(Api::Cuda);
    let stream = world.lane(world.first, Blocks::No);
    let (owner, log) = written(&world, Kind::Cuda, stream);
    let address = owner.address;
    world.driver.begin_capture(stream.handle, RELAXED).unwrap();
    let tensor = owner.into_dlpack_with(&asking(number(stream))).unwrap();
    world.read(stream, address);
    let graph = world.driver.end_capture(stream.handle).unwrap();
    drop(tensor);
    assert_over(&world, &log);
    let executable = world.driver.instantiate(graph).unwrap();
    world.driver.launch(executable, stream.handle).unwrap();
    world.sim.assert_one_fault(&["use after free: read"]);
    end(&world, executable, graph);
}

#[test]
fn a_capture_that_blocks_nobody_is_broken_by_a_release_after_all_work() {
    // Nothing tells that a stream captures which is no blocking one, and the driver invalidates what it refuses for.
    for api in BOTH {
        for records_contexts in [true, false] {
            let world = World::new(api);
            let off = !records_contexts;
            world.sim.switch("no-ctx-record-event", off);
            let [producer, consumer, bystander] =
                [(); 3].map(|()| world.lane(world.first, Blocks::No));
            let (owner, log) = written(&world, device_memory(api), producer);
            let tensor = owner.into_dlpack_with(&asking(number(consumer))).unwrap();
            world
                .driver
                .begin_capture(bystander.handle, RELAXED)
                .unwrap();
            drop(tensor);
            assert_eq!(log.drops(), 0, "not freed too early in any case");
            assert_eq!(world.driver.end_capture(bystander.handle), Err(901));
            nudge(device_memory(api));
            assert_over(&world, &log);
        }
    }
}
