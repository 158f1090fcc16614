//! Typical programs of PyTorch users: captures, their own contexts, loops.

use std::sync::Arc;

use dlpack_core::stream::{captured, collect, sweep_all};
use dlpack_core::{DLPack, Error, Managed};

use crate::memory::{Blocks, Lane, Log, Owner, World};
use crate::simulator::{Api, BOTH, GLOBAL, RELAXED};
use crate::tensors::{assert_over, device_memory, number, request_on, written};

/// `torch.from_dlpack(x)` on this current stream, and a use of the result.
fn use_it(world: &World, owner: Owner, consumer: Lane) -> Managed {
    let address = owner.address;
    let stream = number(consumer).map(|number| match world.driver.api {
        Api::Cuda => number.max(1),
        Api::Hip => number,
    });
    let tensor = owner.into_dlpack_with(&request_on(stream)).unwrap();
    world.read(consumer, address);
    tensor
}

/// `torch.from_dlpack(x)` of new data.
pub(crate) fn from_dlpack(world: &World, producer: Lane, consumer: Lane) -> (Managed, Arc<Log>) {
    let (owner, log) = written(world, device_memory(world.driver.api), producer);
    (use_it(world, owner, consumer), log)
}

#[expect(unsafe_code, reason = "frees what graphs have read")]
fn forget_graphs() {
    // SAFETY: no graph is launched any more.
    unsafe { dlpack_core::stream::release_captured() };
}

/// PyTorch's recipe for graphs: a warm-up on a side stream, then the same lines while a stream captures. There, `a =
/// torch.from_dlpack(x)` drops the first alias.
#[test]
fn a_name_is_bound_again_inside_torch_cuda_graph() {
    for api in BOTH {
        for ordered in [true, false] {
            let world = World::new(api);
            let [producer, side, pool] = [(); 3].map(|()| world.lane(world.first, Blocks::No));
            let (warm, warm_log) = match ordered {
                true => from_dlpack(&world, producer, side),
                false => {
                    let (owner, log) = written(&world, device_memory(api), producer);
                    world.order(producer, side);
                    let address = owner.address;
                    let tensor = owner.into_dlpack_with(&request_on(Some(-1))).unwrap();
                    world.read(side, address);
                    (tensor, log)
                }
            };
            let (again, log) = written(&world, device_memory(api), producer);
            let (next, next_log) = written(&world, device_memory(api), producer);
            world.driver.begin_capture(pool.handle, GLOBAL).unwrap();
            let again = use_it(&world, again, pool);
            drop(warm);
            drop(again);
            // Other code exports while the stream captures.
            drop(use_it(&world, next, side));
            let graph = world.driver.end_capture(pool.handle);
            let graph = graph.expect("the capture is whole");
            assert_eq!((log.drops(), captured()), (0, 1));
            collect();
            assert_eq!((warm_log.drops(), next_log.drops()), (1, 1));
            world.driver.destroy_graph(graph).unwrap();
            forget_graphs();
            assert_over(&world, &log);
        }
    }
}

/// An export that is refused, or that is part of a capture, does not sweep waiting owners.
#[test]
fn exports_in_captures_sweep_no_owners() {
    for api in BOTH {
        let world = World::new(api);
        let [producer, pool, fork] = [(); 3].map(|()| world.lane(world.first, Blocks::No));
        let legacy = world.lane(world.first, Blocks::Legacy);
        world.sim.switch("slow", true);
        let (tensor, log) = from_dlpack(&world, producer, legacy);
        drop(tensor);
        world.driver.synchronize_stream(legacy.handle).unwrap();
        let (captured, captured_log) = written(&world, device_memory(api), producer);
        let (within, within_log) = written(&world, device_memory(api), pool);
        let (refused, refused_log) = written(&world, device_memory(api), pool);
        world.driver.begin_capture(pool.handle, RELAXED).unwrap();
        let tensor = use_it(&world, captured, pool);
        assert_eq!(log.drops(), 0, "by an export into a capture");
        world.order(pool, fork);
        let inside = use_it(&world, within, fork);
        world.order(fork, pool);
        assert_eq!(log.drops(), 0, "by one inside of it");
        let refused = refused.into_dlpack_with(&request_on(number(producer)));
        assert!(matches!(refused, Err(Error::Capturing { .. })));
        assert_eq!(log.drops(), 0, "by one that is refused");
        let graph = world.driver.end_capture(pool.handle).unwrap();
        drop((tensor, inside));
        let (tensor, last_log) = from_dlpack(&world, producer, legacy);
        sweep_all();
        assert_eq!(log.drops(), 1);
        drop(tensor);
        world.driver.destroy_graph(graph).unwrap();
        world.sim.switch("slow", false);
        forget_graphs();
        for log in [&log, &captured_log, &within_log, &refused_log, &last_log] {
            assert_over(&world, log);
        }
    }
}

/// Waiting owners do not affect later captures.
#[test]
fn tensors_that_wait_break_no_later_capture() {
    for api in BOTH {
        let world = World::new(api);
        let [producer, other, pool] = [(); 3].map(|()| world.lane(world.first, Blocks::No));
        let (owner, graph_log) = written(&world, device_memory(api), producer);
        world.driver.begin_capture(pool.handle, GLOBAL).unwrap();
        // From now on core knows that there are captures.
        drop(use_it(&world, owner, pool));
        let first = world.driver.end_capture(pool.handle).unwrap();
        let mut logs = Vec::new();
        for _ in 0..70 {
            // These streams are not named again, so core cannot query when their work is done.
            let consumer = world.lane(world.first, Blocks::No);
            let (tensor, log) = from_dlpack(&world, producer, consumer);
            logs.push(log);
            drop(tensor);
        }
        for _ in 0..2 {
            let owners = [(); 2].map(|()| written(&world, device_memory(api), producer));
            world.driver.begin_capture(pool.handle, GLOBAL).unwrap();
            for ((owner, log), stream) in owners.into_iter().zip([None, number(other)]) {
                drop(owner.into_dlpack_with(&request_on(stream)).unwrap());
                logs.push(log);
            }
            let graph = world
                .driver
                .end_capture(pool.handle)
                .expect("the capture is whole");
            world.driver.destroy_graph(graph).unwrap();
        }
        assert_eq!(collect(), 0);
        assert!(logs.iter().all(|log| log.drops() == 1));
        world.driver.destroy_graph(first).unwrap();
        forget_graphs();
        assert_over(&world, &graph_log);
    }
}

/// `torch.cuda.GreenContext.set_context()`, or a context of PyCUDA: stream 1 is that of the context.
#[test]
fn the_default_stream_is_that_of_the_context_that_is_current() {
    for green in [true, false] {
        for stream in [None, Some(1), Some(2)] {
            let world = World::new(Api::Cuda);
            let place = if green { world.green } else { world.other };
            let producer = world.lane(world.first, Blocks::No);
            let blocks = match stream {
                Some(2) => Blocks::PerThread,
                _ => Blocks::Legacy,
            };
            let consumer = world.lane(place, blocks);
            let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
            let address = owner.address;
            world.enter(place);
            let tensor = owner.into_dlpack_with(&request_on(stream)).unwrap();
            world.read(consumer, address);
            drop(tensor);
            assert_eq!(world.current(), place);
            assert_eq!(collect(), 0);
            assert_over(&world, &log);
        }
    }
}

/// A loop with its own stream: each turn records the owners of the turn before, and no call waits.
#[test]
fn a_training_loop_frees_the_owners_of_the_previous_turn() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    let consumer = world.lane(world.first, Blocks::No);
    let mut logs: Vec<Arc<Log>> = Vec::new();
    world.sim.forget_calls();
    for turn in 0..20 {
        let (tensor, log) = from_dlpack(&world, producer, consumer);
        sweep_all();
        let freed = logs.iter().filter(|log| log.drops() == 1).count();
        assert_eq!(freed, turn, "in turn {turn}");
        logs.push(log);
        drop(tensor);
    }
    let names = world.sim.call_names();
    let bad = [
        "cuCtxRecordEvent",
        "cuCtxSynchronize",
        "cuStreamSynchronize",
    ];
    assert!(
        !names.iter().any(|name| bad.contains(&name.as_str())),
        "{names:?}"
    );
    // All events are made without timing.
    let events = world.sim.calls();
    let mut made = events
        .iter()
        .filter(|call| call.starts_with("cuEventCreate"));
    assert!(made.all(|call| call.ends_with("flags=0x2")));
    for log in &logs {
        assert_over(&world, log);
    }
}

/// On a busy device, an owner waits for the work before its drop, however often its stream is used again.
#[test]
fn later_work_of_a_consumer_keeps_no_earlier_owner() {
    let world = World::new(Api::Cuda);
    let [producer, consumer] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    world.sim.switch("slow", true);
    let (first, log) = from_dlpack(&world, producer, consumer);
    drop(first);
    let (second, second_log) = from_dlpack(&world, producer, consumer);
    sweep_all();
    assert_eq!(log.drops(), 0, "its work goes on");
    let synchronized = world.driver.synchronize_stream(consumer.handle);
    assert_eq!(synchronized, Ok(()));
    world.read(consumer, world.alloc(device_memory(Api::Cuda)));
    let (third, third_log) = from_dlpack(&world, producer, consumer);
    sweep_all();
    assert_eq!(log.drops(), 1, "it was over");
    world.sim.switch("slow", false);
    drop((second, third));
    assert_eq!(collect(), 0);
    for log in [log, second_log, third_log] {
        assert_eq!((log.drops(), log.problems().len()), (1, 0));
    }
    world.sim.assert_clean();
}

/// A stream with the handle of a destroyed one is another stream.
#[test]
fn a_reused_handle_is_another_stream() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    let consumer = world.lane(world.first, Blocks::No);
    let (tensor, log) = from_dlpack(&world, producer, consumer);
    drop(tensor);
    world.sim.switch("reuse-handles", true);
    world.driver.destroy_stream(consumer.handle).unwrap();
    let next = world.lane(world.first, Blocks::No);
    assert_eq!(next.handle, consumer.handle);
    let (tensor, next_log) = from_dlpack(&world, producer, next);
    sweep_all();
    assert_eq!(log.drops(), 0, "its stream did not come back");
    drop(tensor);
    assert_eq!(collect(), 0);
    for log in [&log, &next_log] {
        assert_over(&world, log);
    }
}
