//! Child processes after `fork`: they do not touch their parent's owners, and may use a driver that they initialise themselves.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use dlpack_core::stream::{captured, collect, collect_in_background, retained, sweep_all};
use dlpack_core::{DLPack, Managed};

use crate::memory::{Blocks, Log, World};
use crate::processes::{has_collector, process};
use crate::simulator::{Api, GLOBAL};
use crate::tensors::{assert_over, device_memory, number, request_on, written};
use crate::torch::from_dlpack;

/// A parent that has not loaded a driver leaves that to its children, whatever functions of core it calls.
#[test]
fn a_child_of_a_parent_without_a_driver_frees_its_own_owners() {
    process("child");
}

pub(crate) fn a_child_with_its_own_driver() {
    assert_eq!((collect(), captured(), retained().owners), (0, 0, 0));
    in_a_child(|| {
        let world = World::new(Api::Cuda);
        let [producer, consumer] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
        let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
        drop(
            owner
                .into_dlpack_with(&request_on(number(consumer)))
                .unwrap(),
        );
        (retained().owners, collect(), log.drops()) == (1, 0, 1)
    });
}

/// The parent has used a driver, and has no waiting owner.
#[test]
fn a_child_makes_no_call_of_the_driver_that_its_parent_has_loaded() {
    process("loaded");
}

pub(crate) fn a_child_with_its_parents_driver() {
    let world = World::new(Api::Cuda);
    let [producer, consumer] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    let default = world.lane(world.first, Blocks::Legacy);
    let (ordered, ordered_log) = from_dlpack(&world, producer, consumer);
    let (owner, log) = written(&world, device_memory(Api::Cuda), default);
    let mut same = Some(owner.into_dlpack_with(&request_on(None)).unwrap());
    let calls = world.sim.calls().len();
    in_a_child(|| {
        drop(same.take());
        (world.sim.calls().len(), log.drops()) == (calls, 0)
    });
    drop((ordered, same));
    for log in [&ordered_log, &log] {
        assert_over(&world, log);
    }
}

/// Forks, and asserts that `body` returns true in the child.
fn in_a_child(body: impl FnOnce() -> bool) {
    let child = libc::fork();
    if child == 0 {
        libc::_exit(i32::from(!body()));
    }
    let mut status = -1;
    // SAFETY: `child` is a child of this process, and `status` is writable.
    #[expect(unsafe_code, reason = "a function of the C library")]
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0));
}

#[test]
fn a_child_does_not_touch_waiting_owners_of_its_parent() {
    process("fork");
}

#[expect(unsafe_code, reason = "functions of the C library")]
mod libc {
    unsafe extern "C" {
        pub(super) safe fn fork() -> i32;
        pub(super) safe fn alarm(seconds: u32) -> u32;
        pub(super) safe fn _exit(status: i32) -> !;
        pub(super) unsafe fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    }
}

pub(crate) fn a_fork() {
    let world = World::new(Api::Cuda);
    let [producer, consumer, pool] = [(); 3].map(|()| world.lane(world.first, Blocks::No));
    let (waits, waits_log) = from_dlpack(&world, producer, consumer);
    drop(waits);
    let (owner, graph_log) = written(&world, device_memory(Api::Cuda), producer);
    world
        .driver
        .begin_capture(pool.handle, GLOBAL)
        .expect("no stream captures");
    drop(
        owner
            .into_dlpack_with(&request_on(number(pool)))
            .expect("no stream captures"),
    );
    let graph = world.driver.end_capture(pool.handle).expect("it is whole");
    let (tensor, log) = from_dlpack(&world, producer, consumer);
    let default = world.lane(world.first, Blocks::Legacy);
    let (same, same_log) = written(&world, device_memory(Api::Cuda), default);
    let same = same
        .into_dlpack_with(&request_on(None))
        .expect("no stream captures");
    let mut tensors = Some([tensor, same]);
    sweep_all();
    let before = (
        waits_log.drops(),
        graph_log.drops(),
        log.drops(),
        captured(),
    );
    assert_eq!(before, (1, 0, 0, 1), "the second export frees the first");
    // Another owner waits for its event, so that the collector has work.
    world.sim.switch("slow", true);
    let (owner, late_log) = written(&world, device_memory(Api::Cuda), producer);
    drop(
        owner
            .into_dlpack_with(&request_on(None))
            .expect("no stream captures"),
    );
    assert_eq!(late_log.drops(), 0);
    world.sim.switch("slow", false);

    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A child may find the list locked by a thread that does not exist in the child.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = captured();
            }
        });
        for turn in 0..200 {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(20);
                libc::_exit(i32::from(!is_quiet(
                    &world,
                    tensors.take(),
                    &[&log, &graph_log, &same_log, &late_log],
                )));
            }
            let mut status = -1;
            // SAFETY: `child` is a child of this process, and `status` is writable.
            #[expect(unsafe_code, reason = "a function of the C library")]
            let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
            if (ended, status) != (child, 0) {
                over.store(true, Ordering::Relaxed);
                panic!("child {turn} ended with {status:#x}");
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    drop(tensors);
    world.driver.destroy_graph(graph).expect("it is there");
    for log in [&waits_log, &log, &graph_log, &same_log, &late_log] {
        assert_over(&world, log);
    }
}

/// Whether a child calls no driver and frees nothing, whatever it does with tensors of its parent.
fn is_quiet(world: &World, tensors: Option<[Managed; 2]>, logs: &[&Arc<Log>]) -> bool {
    let calls = world.sim.calls().len();
    drop(tensors);
    collect_in_background(true);
    let kept = (collect(), captured());
    // SAFETY: no graph is launched in the child.
    #[expect(unsafe_code, reason = "frees what graphs have read")]
    unsafe {
        dlpack_core::stream::release_captured();
    }
    // The child has no thread that would drop owners later.
    !has_collector()
        && kept == (0, 0)
        && world.sim.calls().len() == calls
        && logs.iter().all(|log| log.drops() == 0)
}
