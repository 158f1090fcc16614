//! Sweeps: threads that query and drop deferred owners at the same time, and owners whose `Drop` calls back into core.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use dlpack_core::stream::{collect, retained, sweep_all};
use dlpack_core::{DLPack, Descriptor, Error};

use crate::memory::{Blocks, Kind, Log, Owner, World};
use crate::simulator::{Api, BOTH, GLOBAL, hand_over};
use crate::tensors::{assert_over, device_memory, number, request_on, written};

/// An owner whose consumer on the default stream is still at work, so that it waits for an event.
fn defer(world: &World) -> Arc<Log> {
    world.sim.switch("slow", true);
    let producer = world.lane(world.first, Blocks::No);
    let consumer = world.lane(world.first, Blocks::Legacy);
    let (owner, log) = written(world, device_memory(world.driver.api), producer);
    let address = owner.address;
    let tensor = owner.into_dlpack_with(&request_on(None)).unwrap();
    world.read(consumer, address);
    drop(tensor);
    assert_eq!(log.drops(), 0, "the consumer is at work");
    log
}

/// One thread has taken the owners out of the lists and is querying the driver. Another thread neither misses them nor loses
/// owners that are deferred at that time.
#[test]
fn owners_that_a_thread_queries_are_not_missed_by_others() {
    for api in BOTH {
        let world = World::new(api);
        world.sim.switch("hand-over", true);
        let first = defer(&world);
        world.sim.switch("hold-queries", true);
        world.sim.hold();
        let querying = thread::spawn(|| {
            hand_over();
            sweep_all();
        });
        world.sim.until_holding();
        world.sim.switch("hold-queries", false);
        let last = defer(&world);
        assert_eq!((retained().owners, retained().in_progress), (1, 1));
        let waiting = thread::spawn(|| {
            hand_over();
            collect()
        });
        // Long enough for a thread that does not wait for the first one.
        thread::sleep(Duration::from_millis(100));
        world.sim.release();
        assert_eq!(waiting.join().unwrap(), 2, "both wait for their consumers");
        querying.join().unwrap();
        assert_eq!((retained().owners, retained().in_progress), (2, 0));
        world.sim.switch("slow", false);
        sweep_all();
        for log in [&first, &last] {
            assert_over(&world, log);
        }
    }
}

/// Memory whose `Drop` reports its start, and waits for a message.
struct Held {
    owner: Owner,
    began: Sender<()>,
    may_end: Receiver<()>,
}

impl DLPack for Held {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.owner.describe()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.began.send(()).expect("the test waits for it");
        let _ = self.may_end.recv();
    }
}

/// An owner, and the channels of its `Drop`.
fn held(owner: Owner) -> (Held, Receiver<()>, Sender<()>) {
    let (began, begins) = channel();
    let (end, may_end) = channel();
    let owner = Held {
        owner,
        began,
        may_end,
    };
    (owner, begins, end)
}

/// A thread that has just dropped an owner, and counts the others, waits for a thread that is querying them. HIP is swept last,
/// so that between its sweep and the count no other lock is taken.
#[test]
fn owners_are_counted_after_the_queries_of_another_thread() {
    let mut world = World::new(Api::Cuda);
    let of_cuda = (world.driver, world.first);
    let of_hip = (world.sim.driver(Api::Hip), 0);
    world.sim.switch("hand-over", true);
    world.sim.switch("slow", true);
    let producer = world.lane(world.first, Blocks::No);
    let (owner, busy) = written(&world, Kind::Cuda, producer);
    drop(owner.into_dlpack_with(&request_on(None)).unwrap());
    (world.driver, world.first) = of_hip;
    let producer = world.lane(world.first, Blocks::No);
    let (owner, done) = written(&world, Kind::Rocm, producer);
    let (owner, begins, end) = held(owner);
    drop(owner.into_dlpack_with(&request_on(None)).unwrap());
    assert_eq!(world.driver.synchronize(), Ok(()));
    let counting = thread::spawn(|| {
        hand_over();
        collect()
    });
    begins.recv().unwrap();
    world.sim.switch("hold-queries", true);
    world.sim.hold();
    let querying = thread::spawn(|| {
        hand_over();
        sweep_all();
    });
    world.sim.until_holding();
    world.sim.switch("hold-queries", false);
    drop(end);
    // Long enough for a thread that does not wait.
    thread::sleep(Duration::from_millis(100));
    world.sim.release();
    assert_eq!(counting.join().unwrap(), 1);
    querying.join().unwrap();
    (world.driver, world.first) = of_cuda;
    world.sim.switch("slow", false);
    for log in [&busy, &done] {
        assert_over(&world, log);
    }
}

/// While threads are held in the drops of owners of both APIs, each goes on with owners of its own API alone.
#[test]
fn a_thread_drops_no_owner_by_the_wrong_driver() {
    let mut world = World::new(Api::Cuda);
    let of_cuda = (world.driver, world.first);
    let of_hip = (world.sim.driver(Api::Hip), 0);
    world.sim.switch("hand-over", true);
    let (mut logs, mut threads) = (Vec::new(), Vec::new());
    for (driver, first) in [of_cuda, of_hip] {
        (world.driver, world.first) = (driver, first);
        world.sim.switch("slow", true);
        let producer = world.lane(first, Blocks::No);
        let (owner, log) = written(&world, device_memory(driver.api), producer);
        let (owner, begins, end) = held(owner);
        drop(owner.into_dlpack_with(&request_on(None)).unwrap());
        logs.push(log);
        let (owner, log) = written(&world, device_memory(driver.api), producer);
        drop(owner.into_dlpack_with(&request_on(None)).unwrap());
        logs.push(log);
        world.sim.switch("slow", false);
        let thread = thread::spawn(|| {
            hand_over();
            sweep_all();
        });
        begins.recv().unwrap();
        threads.push((thread, end));
    }
    let [cuda, hip] = <[_; 2]>::try_from(threads).ok().unwrap();
    world.sim.forget_calls();
    drop(cuda.1);
    cuda.0.join().unwrap();
    let drops: Vec<_> = logs.iter().map(|log| log.drops()).collect();
    assert_eq!(drops, [1, 1, 0, 1], "it sweeps HIP afterwards");
    drop(hip.1);
    hip.0.join().unwrap();
    logs.iter().for_each(|log| assert_over(&world, log));
}

std::thread_local! {
    /// How many drops of [`Collects`] are on the stack of this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Memory whose `Drop` calls `collect`, as that of an exhausted pool may do; and the deepest nesting of such drops.
struct Collects(Owner, Arc<AtomicUsize>);

impl DLPack for Collects {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.0.describe()
    }
}

impl Drop for Collects {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() + 1);
        self.1.fetch_max(DEPTH.get(), Ordering::SeqCst);
        collect();
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// With nested drops, the stack of the collecting thread would limit the number of waiting owners.
#[test]
fn owners_that_collect_are_dropped_one_after_the_other() {
    for api in BOTH {
        let world = World::new(api);
        world.sim.switch("slow", true);
        let producer = world.lane(world.first, Blocks::No);
        let deepest = Arc::new(AtomicUsize::new(0));
        let logs: Vec<_> = (0..50)
            .map(|_| {
                let (owner, log) = written(&world, device_memory(api), producer);
                let owner = Collects(owner, Arc::clone(&deepest));
                drop(owner.into_dlpack_with(&request_on(None)).unwrap());
                log
            })
            .collect();
        world.sim.switch("slow", false);
        assert_eq!(collect(), 0);
        assert_eq!(deepest.load(Ordering::SeqCst), 1);
        logs.iter().for_each(|log| assert_over(&world, log));
    }
}

/// Memory whose `Drop` drops a tensor, exports another one, and panics.
struct Panics {
    owner: Owner,
    /// A tensor to drop, and an owner to export.
    others: Option<(dlpack_core::Managed, Owner)>,
}

impl DLPack for Panics {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.owner.describe()
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        if let Some((tensor, owner)) = self.others.take() {
            drop(tensor);
            drop(owner.into_dlpack_with(&request_on(None)).unwrap());
        }
        panic!("a test panics in a drop");
    }
}

#[test]
fn a_sweep_survives_owners_that_panic() {
    for api in BOTH {
        let world = World::new(api);
        world.sim.switch("slow", true);
        let producer = world.lane(world.first, Blocks::No);
        let consumer = world.lane(world.first, Blocks::No);
        let mut logs = Vec::new();
        let mut one = || {
            let (owner, log) = written(&world, device_memory(api), producer);
            logs.push(log);
            owner
        };
        for stream in [None, number(consumer), None, Some(-1), None] {
            let tensor = one().into_dlpack_with(&request_on(stream)).unwrap();
            let others = Some((tensor, one()));
            let owner = Panics {
                owner: one(),
                others,
            };
            drop(owner.into_dlpack_with(&request_on(None)).unwrap());
        }
        world.sim.switch("slow", false);
        world.enter(world.second);
        assert_eq!(collect(), 0);
        assert_eq!(world.current(), world.second);
        assert_eq!(world.driver.exchange_mode(GLOBAL), Ok(GLOBAL));
        world.enter(world.first);
        logs.iter().for_each(|log| assert_over(&world, log));
    }
}
