//! Tensors that are used on several threads.

use core::time::Duration;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;
use std::time::Instant;

use dlpack_core::stream::{Retained, collect, collect_in_background, retained, sweep_all};
use dlpack_core::{DLPack, Descriptor, Error};

use crate::memory::{Blocks, Owner, World};
use crate::simulator::{Api, BOTH, RELAXED, hand_over};
use crate::tensors::{assert_over, device_memory, number, request_on, written};

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
            owner
                .into_dlpack_with(&request_on(number(consumer)))
                .unwrap()
        });
        let tensor = there.join().unwrap();
        world.sim.hand_over();
        world.read(consumer, address);
        thread::spawn(move || drop(tensor)).join().unwrap();
        assert_over(&world, &log);
    }
}

#[test]
fn owners_that_one_thread_cannot_free_are_freed_by_another() {
    for api in BOTH {
        let world = World::new(api);
        let kind = device_memory(api);
        let producer = world.lane(world.first, Blocks::No);
        let consumer = world.lane(world.first, Blocks::No);
        let (owner, log) = written(&world, kind, producer);
        let address = owner.address;
        let tensor = owner
            .into_dlpack_with(&request_on(number(consumer)))
            .unwrap();
        world.read(consumer, address);
        world
            .driver
            .begin_capture(producer.handle, RELAXED)
            .unwrap();
        thread::spawn(move || drop(tensor)).join().unwrap();
        assert_eq!(log.drops(), 0);
        let graph = world.driver.end_capture(producer.handle).unwrap();
        let left = thread::spawn(collect).join().unwrap();
        assert_eq!(left, 0);
        world.driver.destroy_graph(graph).unwrap();
        assert_over(&world, &log);
    }
}

#[test]
fn the_default_stream_of_a_thread_is_freed_on_behind_that_of_another() {
    // Written and read on this thread's own default stream, and freed on one with the same number.
    for same in [true, false] {
        let world = World::new(Api::Cuda);
        let producer = world.lane(world.first, Blocks::PerThread);
        let consumer = match same {
            true => producer,
            false => world.lane(world.first, Blocks::No),
        };
        let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
        let address = owner.address;
        let tensor = owner
            .into_dlpack_with(&request_on(number(consumer)))
            .unwrap();
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
        // The lock of the list synchronizes the threads, which the simulator cannot know.
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
                        let request = request_on(number(consumer));
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
        assert_eq!(collect(), 0);
        for log in logs {
            assert_eq!((log.drops(), log.problems().len()), (1, 0));
        }
        world.sim.assert_clean();
    }
}

/// Memory of a pool with a lock; counts the drops that found it locked.
struct Pooled {
    owner: Owner,
    pool: Arc<Mutex<()>>,
    met: Arc<Mutex<usize>>,
}

impl DLPack for Pooled {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.owner.describe()
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // `lock` would deadlock.
        if let Err(TryLockError::WouldBlock) = self.pool.try_lock() {
            *self
                .met
                .lock()
                .expect("no thread panics while it holds the lock") += 1;
        }
    }
}

/// A program that exports while it has locked the pool to which its owners return.
#[test]
fn no_export_drops_owners_of_other_tensors() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let consumers = [
            world.lane(world.first, Blocks::No),
            world.lane(world.first, Blocks::Yes),
            world.lane(world.first, Blocks::Legacy),
        ];
        let (pool, met) = (Arc::default(), Arc::default());
        let mut logs = Vec::new();
        for turn in 0..200 {
            let consumer = consumers[turn % consumers.len()];
            let stream = match consumer.blocks {
                Blocks::Legacy => None,
                _ => number(consumer),
            };
            let (owner, log) = written(&world, device_memory(api), producer);
            let address = owner.address;
            let (pool, met) = (Arc::clone(&pool), Arc::clone(&met));
            let owner = Pooled { owner, pool, met };
            world.sim.switch("slow", true);
            let tensor = {
                let pool = Arc::clone(&owner.pool);
                let _locked = pool
                    .lock()
                    .expect("no thread panics while it holds the lock");
                owner.into_dlpack_with(&request_on(stream)).unwrap()
            };
            world.read(consumer, address);
            drop(tensor);
            world.sim.switch("slow", false);
            logs.push(log);
        }
        let freed = logs.iter().filter(|log| log.drops() > 0).count();
        assert_eq!((freed, *met.lock().unwrap()), (0, 0));
        sweep_all();
        logs.iter().for_each(|log| assert_over(&world, log));
    }
}

/// Memory whose first owner blocks in its `Drop`, as if it waited for Python's GIL.
struct Blocked {
    owner: Owner,
    entered: Sender<()>,
    /// The first `Drop` takes it.
    leave: Arc<Mutex<Option<Receiver<()>>>>,
}

impl DLPack for Blocked {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.owner.describe()
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let leave = self
            .leave
            .lock()
            .expect("no thread panics while it holds the lock")
            .take();
        if let Some(leave) = leave {
            self.entered.send(()).expect("the test waits for it");
            let _ = leave.recv();
        }
    }
}

/// While one thread blocks in an owner's `Drop`, other threads neither wait for it nor miss the owners after that one.
// CAP-13
#[test]
fn a_thread_that_blocks_in_a_drop_does_not_block_other_sweeps() {
    const OWNERS: usize = 20;
    for api in BOTH {
        let world = World::new(api);
        world.sim.switch("hand-over", true);
        world.sim.switch("slow", true);
        let producer = world.lane(world.first, Blocks::No);
        let consumer = world.lane(world.first, Blocks::Legacy);
        let (entered, is_in) = channel();
        let (leave, may_leave) = channel();
        let may_leave = Arc::new(Mutex::new(Some(may_leave)));
        let mut logs = Vec::new();
        for _ in 0..OWNERS {
            let (owner, log) = written(&world, device_memory(api), producer);
            let address = owner.address;
            let (entered, leave) = (entered.clone(), Arc::clone(&may_leave));
            let owner = Blocked {
                owner,
                entered,
                leave,
            };
            let tensor = owner.into_dlpack_with(&request_on(None)).unwrap();
            world.read(consumer, address);
            drop(tensor);
            logs.push(log);
        }
        world.sim.switch("slow", false);
        let dropped = || logs.iter().map(|log| log.drops()).sum::<usize>();
        assert_eq!(dropped(), 0, "the consumers are at work");
        let first = thread::spawn(|| {
            hand_over();
            sweep_all();
        });
        is_in.recv().unwrap();
        assert_eq!((dropped(), retained().in_progress), (0, 1));
        let others = thread::spawn(|| {
            hand_over();
            collect()
        });
        assert_eq!(others.join().unwrap(), 0);
        assert_eq!((dropped(), retained().in_progress), (OWNERS - 1, 1));
        drop(leave);
        first.join().unwrap();
        assert_eq!((dropped(), retained()), (OWNERS, Retained::default()));
        logs.iter().for_each(|log| assert_over(&world, log));
    }
}

/// No thread exports any more, and no thread calls `collect`.
#[test]
fn the_collector_thread_drops_owners_that_wait_for_an_event() {
    let world = World::new(Api::Cuda);
    world.sim.switch("hand-over", true);
    let producer = world.lane(world.first, Blocks::No);
    let consumer = world.lane(world.first, Blocks::No);
    let make = || {
        let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
        let address = owner.address;
        let tensor = owner
            .into_dlpack_with(&request_on(number(consumer)))
            .unwrap();
        world.read(consumer, address);
        (tensor, log)
    };
    let (first, log) = make();
    drop(first);
    let (second, last) = make();
    assert_eq!((retained().owners, retained().open, log.drops()), (1, 0, 0));
    collect_in_background(true);
    let begin = Instant::now();
    while log.drops() == 0 && begin.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(5));
    }
    collect_in_background(false);
    sweep_all();
    assert_eq!(log.drops(), 1);
    drop(second);
    assert_eq!((retained().owners, retained().open), (1, 1));
    for log in [&log, &last] {
        assert_over(&world, log);
    }
}

/// 100,000 exports to eight streams, some of them into captures, while the work of another stream never ends.
#[test]
fn few_owners_wait_at_a_time() {
    const EXPORTS: usize = 100_000;
    let world = World::new(Api::Cuda);
    world.sim.switch("no-record", true);
    world.sim.switch("slow", true);
    let producer = world.lane(world.first, Blocks::No);
    let pool = world.lane(world.first, Blocks::No);
    let [busy, streams @ ..] = [(); 9].map(|()| world.lane(world.first, Blocks::No));
    let export = |consumer| {
        let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
        log.forget();
        let address = owner.address;
        let tensor = owner
            .into_dlpack_with(&request_on(number(consumer)))
            .unwrap();
        world.read(consumer, address);
        tensor
    };
    drop(export(busy));
    let (mut held, mut most, mut captures) = (Vec::new(), 0, 0);
    for turn in 0..EXPORTS {
        // The order of the streams, and how long a tensor is kept, vary.
        let random = turn.wrapping_mul(0x9e37_79b9) >> 7;
        held.push(export(streams[random % streams.len()]));
        while held.len() > random % 30 {
            drop(held.swap_remove(random % held.len()));
        }
        if turn % 1000 == 500 {
            let owner = written(&world, device_memory(Api::Cuda), producer).0;
            owner.log.forget();
            world.driver.synchronize_stream(producer.handle).unwrap();
            world.driver.begin_capture(pool.handle, RELAXED).unwrap();
            drop(owner.into_dlpack_with(&request_on(number(pool))).unwrap());
            let graph = world.driver.end_capture(pool.handle).unwrap();
            world.driver.destroy_graph(graph).unwrap();
            captures += 1;
        }
        if turn % 16 == 0 {
            let stream = streams[turn / 16 % streams.len()];
            world.driver.synchronize_stream(stream.handle).unwrap();
            // A sweep as the collector's thread makes it.
            sweep_all();
        }
        most = most.max(retained().owners);
    }
    println!("{most} owners waited at once, {captures} of them for `collect`, of {EXPORTS}");
    assert!(most < captures + 300, "{most}");
    drop(held);
    world.sim.switch("slow", false);
    assert_eq!(collect(), 0);
}
