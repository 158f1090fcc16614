//! The collector's thread: which changes make it drop owners, each in a child process (`processes.rs`).

use core::time::Duration;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Instant;

use dlpack_core::stream::{collect_in_background, retained};
use dlpack_core::{DLPack, ExportRequest, Managed};

use crate::memory::{Blocks, Kind, Lane, Log, World};
use crate::simulator::{Api, RELAXED};
use crate::tensors::{assert_over, number, request_on, written};

fn export(world: &World, producer: Lane, request: &ExportRequest) -> (Managed, Arc<Log>) {
    let (owner, log) = written(world, Kind::Cuda, producer);
    (owner.into_dlpack_with(request).unwrap(), log)
}

/// Whether these owners are dropped by the collector.
fn are_collected(logs: &[Arc<Log>]) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    let all = || logs.iter().all(|log| log.drops() == 1);
    while !all() && Instant::now() < end {
        sleep(Duration::from_millis(1));
    }
    all()
}

/// Longer than the collector needs to find that it has no work.
fn let_it_sleep() {
    sleep(Duration::from_millis(300));
}

/// An export names the stream again for which an owner waits.
pub(crate) fn of_a_named_stream() {
    let world = World::new(Api::Cuda);
    collect_in_background(true);
    let [producer, consumer] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    let request = request_on(number(consumer));
    let (tensor, log) = export(&world, producer, &request);
    drop(tensor);
    let_it_sleep();
    assert_eq!(retained().open, 1);
    let (tensor, last) = export(&world, producer, &request);
    assert!(are_collected(&[log]), "its stream is named again");
    collect_in_background(false);
    drop(tensor);
    assert_over(&world, &last);
}

/// An export finds too many waiting owners, and records their contexts.
pub(crate) fn of_too_many() {
    let world = World::new(Api::Cuda);
    collect_in_background(true);
    let [producer, last] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    let logs: Vec<_> = (0..64)
        .map(|_| {
            let consumer = world.lane(world.first, Blocks::No);
            export(&world, producer, &request_on(number(consumer))).1
        })
        .collect();
    let_it_sleep();
    assert_eq!(retained().open, 64);
    let (tensor, log) = export(&world, producer, &request_on(number(last)));
    assert!(are_collected(&logs), "their contexts are recorded");
    collect_in_background(false);
    drop(tensor);
    assert_over(&world, &log);
}

/// The end of a capture that prevented a drop. No call reports it.
pub(crate) fn after_a_capture() {
    let world = World::new(Api::Cuda);
    world.sim.switch("hand-over", true);
    collect_in_background(true);
    let producer = world.lane(world.first, Blocks::No);
    let (tensor, log) = export(&world, producer, &request_on(number(producer)));
    world
        .driver
        .begin_capture(producer.handle, RELAXED)
        .unwrap();
    drop(tensor);
    let_it_sleep();
    assert_eq!((log.drops(), retained().owners), (0, 1));
    let graph = world.driver.end_capture(producer.handle).unwrap();
    assert!(are_collected(&[Arc::clone(&log)]), "the capture is over");
    collect_in_background(false);
    world.driver.destroy_graph(graph).unwrap();
    assert_over(&world, &log);
}

/// A graph is destroyed, and no other call is made.
pub(crate) fn after_a_graph() {
    let world = World::new(Api::Cuda);
    world.sim.switch("hand-over", true);
    collect_in_background(true);
    let producer = world.lane(world.first, Blocks::No);
    let (owner, log) = written(&world, Kind::Cuda, producer);
    world
        .driver
        .begin_capture(producer.handle, RELAXED)
        .unwrap();
    drop(
        owner
            .into_dlpack_with(&request_on(number(producer)))
            .unwrap(),
    );
    let graph = world.driver.end_capture(producer.handle).unwrap();
    let_it_sleep();
    assert_eq!((log.drops(), retained().captured), (0, 1));
    world.driver.destroy_graph(graph).unwrap();
    assert!(are_collected(&[Arc::clone(&log)]), "the graph is gone");
    collect_in_background(false);
    assert_over(&world, &log);
}

/// Core has only met this capture because it blocked a call, but it counts: exports no longer record contexts, because another
/// capture may be active.
pub(crate) fn many_owners_after_a_blocking_capture() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    let [blocking, pool] = [Blocks::Yes, Blocks::No].map(|kind| world.lane(world.first, kind));
    let (begin, end) = (
        |lane: Lane| assert_eq!(world.driver.begin_capture(lane.handle, RELAXED), Ok(())),
        |lane: Lane| {
            let graph = world.driver.end_capture(lane.handle);
            let graph = graph.expect("the capture is whole");
            assert_eq!(world.driver.destroy_graph(graph), Ok(()));
        },
    );
    let (owner, refused) = written(&world, Kind::Cuda, producer);
    begin(blocking);
    assert!(owner.into_dlpack_with(&request_on(None)).is_err());
    end(blocking);
    let mut logs = vec![refused];
    begin(pool);
    for _ in 0..70 {
        let lane = world.lane(world.first, Blocks::No);
        logs.push(export(&world, producer, &request_on(number(lane))).1);
    }
    end(pool);
    assert_eq!(retained().open, 70);
    logs.iter().for_each(|log| assert_over(&world, log));
}

/// Contexts that could not be recorded, because they may be destroyed, are not tried again by each export.
pub(crate) fn owners_of_contexts_that_may_be_gone() {
    let world = World::new(Api::Cuda);
    let another = world.driver.create_context(0).unwrap();
    world.enter(world.first);
    let producer = world.lane(world.first, Blocks::No);
    let mut logs = Vec::new();
    // A context that is named by an export lives, and would be recorded. So fewer than 64 owners wait for each.
    for (place, count) in [(world.other, 63), (another, 63), (world.first, 3)] {
        for _ in 0..count {
            let lane = world.lane(place, Blocks::No);
            logs.push(export(&world, producer, &request_on(number(lane))).1);
        }
    }
    assert_eq!(retained().open, 63 + 62 + 1, "the rest is recorded");
    let consumer = world.lane(world.first, Blocks::No);
    let (owner, log) = written(&world, Kind::Cuda, producer);
    logs.push(log);
    world.sim.forget_calls();
    let tensor = owner
        .into_dlpack_with(&request_on(number(consumer)))
        .unwrap();
    let calls = world.sim.calls();
    assert!(calls.len() <= 8, "{} calls", calls.len());
    drop(tensor);
    for place in [world.other, another] {
        world.enter(place);
        dlpack_core::stream::collect();
    }
    world.enter(world.first);
    logs.iter().for_each(|log| assert_over(&world, log));
}

/// To record one stream of a context, core makes that context current. Then the same export can record all work of the context,
/// which is not known to live otherwise.
pub(crate) fn of_a_context_whose_stream_is_named() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    let named = world.lane(world.other, Blocks::No);
    let exports = (0..64).map(|_| world.lane(world.other, Blocks::No));
    let exports: Vec<_> = exports
        .chain([named])
        .map(|lane| export(&world, producer, &request_on(number(lane))))
        .collect();
    let (tensors, logs): (Vec<_>, Vec<_>) = exports.into_iter().unzip();
    drop(tensors);
    assert_eq!(retained().open, 65);
    let (tensor, last) = export(&world, producer, &request_on(number(named)));
    assert_eq!(
        retained().open,
        0,
        "the stream and its context are recorded"
    );
    drop(tensor);
    world.enter(world.other);
    dlpack_core::stream::collect();
    world.enter(world.first);
    logs.iter()
        .chain([&last])
        .for_each(|log| assert_over(&world, log));
}
