//! Tensors that go from thread to thread.

use std::thread;

use dlpack_core::DLPack;

use crate::memory::{Blocks, World};
use crate::simulator::{Api, BOTH, RELAXED, hand_over};
use crate::tensors::{asking, assert_over, device_memory, number, written};

#[test]
fn a_thread_that_never_had_a_context_exports_and_drops() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let consumer = world.lane(world.first, Blocks::Yes);
        let (owner, log) = written(&world, device_memory(api), producer);
        let address = owner.address;
        let there = thread::spawn(move || {
            hand_over();
            owner.into_dlpack_with(&asking(number(consumer))).unwrap()
        });
        let tensor = there.join().unwrap();
        world.sim.hand_over();
        world.read(consumer, address);
        thread::spawn(move || drop(tensor)).join().unwrap();
        assert_over(&world, &log);
    }
}

#[test]
fn what_one_thread_could_not_free_another_one_does() {
    for api in BOTH {
        let world = World::new(api);
        let kind = device_memory(api);
        let producer = world.lane(world.first, Blocks::No);
        let consumer = world.lane(world.first, Blocks::No);
        let (owner, log) = written(&world, kind, producer);
        let address = owner.address;
        let tensor = owner.into_dlpack_with(&asking(number(consumer))).unwrap();
        world.read(consumer, address);
        world
            .driver
            .begin_capture(producer.handle, RELAXED)
            .unwrap();
        thread::spawn(move || drop(tensor)).join().unwrap();
        assert_eq!(log.drops(), 0);
        let graph = world.driver.end_capture(producer.handle).unwrap();
        let left = thread::spawn(dlpack_core::stream::collect).join().unwrap();
        assert_eq!(left, 0);
        world.driver.destroy_graph(graph).unwrap();
        assert_over(&world, &log);
    }
}

#[test]
fn the_default_stream_of_a_thread_is_freed_on_behind_that_of_another() {
    // Written and read on this thread's own default stream, and freed on one of the same number.
    for same in [true, false] {
        let world = World::new(Api::Cuda);
        let producer = world.lane(world.first, Blocks::PerThread);
        let consumer = match same {
            true => producer,
            false => world.lane(world.first, Blocks::No),
        };
        let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
        let address = owner.address;
        let tensor = owner.into_dlpack_with(&asking(number(consumer))).unwrap();
        world.read(consumer, address);
        let there = thread::spawn(move || drop(tensor));
        there.join().unwrap();
        assert_over(&world, &log);
    }
}

#[test]
fn many_threads_export_and_drop_at_once() {
    for api in BOTH {
        let world = World::new(api);
        // What one thread waited for, another one knows by the lock of the list.
        world.sim.switch("hand-over", true);
        let producer = world.lane(world.first, Blocks::No);
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let consumer = world.lane(world.first, Blocks::No);
                let owners: Vec<_> = (0..50)
                    .map(|_| written(&world, device_memory(api), producer))
                    .collect();
                let driver = world.driver;
                let first = world.first;
                thread::spawn(move || {
                    hand_over();
                    let mut logs = Vec::new();
                    for (owner, log) in owners {
                        let address = owner.address;
                        let request = asking(number(consumer));
                        let tensor = owner.into_dlpack_with(&request).unwrap();
                        if api == Api::Cuda {
                            driver.set_current(first).unwrap();
                        }
                        driver.read(consumer.handle, address, 8);
                        drop(tensor);
                        logs.push(log);
                    }
                    logs
                })
            })
            .collect();
        let logs: Vec<_> = threads
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect();
        assert_eq!(dlpack_core::stream::collect(), 0);
        for log in logs {
            assert_eq!((log.drops(), log.problems().len()), (1, 0));
        }
        world.sim.assert_clean();
    }
}
