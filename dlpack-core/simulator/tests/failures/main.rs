//! Each call that core makes of a driver fails in turn: an error that names it, or what is promised instead, and never
//! a double drop, a leak, an early free or another current context. What comes next works. So does each allocation.
#![cfg(target_os = "linux")]

#[path = "../../../tests/allocator/mod.rs"]
mod allocator;
mod loaded;
#[path = "../memory/mod.rs"]
mod memory;
mod once;
#[path = "../simulator/mod.rs"]
mod simulator;

use std::sync::Arc;

use allocator::{REFUSED, with_budget};
use dlpack_core::stream::ENTRY_POINTS;
use dlpack_core::{DLPack, Device, Error, ExportRequest, StreamHandle};

use memory::{Blocks, Kind, Lane, Log, Owner, World};
use simulator::{ALLOCATIONS, Api, BOTH, EVENTS, GLOBAL, RELAXED, USER_OBJECTS};

/// What is done with a tensor: each way through core once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// By an event, and freed behind all work.
    Event,
    /// The same, and the driver cannot record a context.
    EventAndSynchronize,
    /// By an event, and freed behind the default stream.
    Legacy,
    /// Nothing to order, and the host is the next user.
    Same,
    /// The host waits.
    Host,
    /// The host waits at the end.
    HostAtTheEnd,
    /// The same for work on the default stream.
    HostBehindLegacy,
    /// Into a capture.
    Captured,
    /// Inside of one.
    Joined,
    /// Freed at once.
    Immediate,
    /// Nobody is ordered.
    Unordered,
    CopyToHost,
    CopyOnDevice,
    CopyOnDeviceAtOnce,
    CopyOnDeviceWithoutPools,
}

const WAYS: [Way; 15] = [
    Way::Event,
    Way::EventAndSynchronize,
    Way::Legacy,
    Way::Same,
    Way::Host,
    Way::HostAtTheEnd,
    Way::HostBehindLegacy,
    Way::Captured,
    Way::Joined,
    Way::Immediate,
    Way::Unordered,
    Way::CopyToHost,
    Way::CopyOnDevice,
    Way::CopyOnDeviceAtOnce,
    Way::CopyOnDeviceWithoutPools,
];

/// When the call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Export,
    Drop,
    Collect,
}

impl Way {
    fn kind(self, api: Api) -> Kind {
        let on_host = matches!(
            self,
            Self::Same | Self::Host | Self::HostAtTheEnd | Self::HostBehindLegacy
        );
        match (api, on_host) {
            (Api::Cuda, true) => Kind::CudaManaged,
            (Api::Cuda, false) => Kind::Cuda,
            (Api::Hip, true) => Kind::RocmHost,
            (Api::Hip, false) => Kind::Rocm,
        }
    }

    /// The consumer's stream, none for the host, and its request.
    fn consumer(self, world: &World, producer: Lane) -> (Option<Lane>, ExportRequest) {
        let number = |lane: Lane| i64::try_from(lane.handle).ok();
        let legacy = world.lane(world.first, Blocks::Legacy);
        let default = Some(i64::from(world.driver.api == Api::Cuda));
        let plain = ExportRequest::versioned();
        let with = |stream| ExportRequest { stream, ..plain };
        let copy = |stream| ExportRequest {
            copy: Some(true),
            ..with(stream)
        };
        let other = world.lane(world.first, Blocks::No);
        match self {
            Self::Legacy | Self::HostBehindLegacy => (Some(legacy), with(default)),
            Self::Same => (Some(producer), with(number(producer))),
            Self::Host => (None, plain),
            Self::Immediate => (None, with(number(other))),
            Self::Unordered => (Some(other), with(Some(-1))),
            Self::CopyToHost => {
                let dl_device = Some(Device::CPU);
                (None, ExportRequest { dl_device, ..plain })
            }
            Self::CopyOnDevice | Self::CopyOnDeviceWithoutPools => {
                (Some(other), copy(number(other)))
            }
            Self::CopyOnDeviceAtOnce => (Some(other), copy(Some(-1))),
            _ => (Some(other), with(number(other))),
        }
    }
}

#[expect(unsafe_code, reason = "a handle is a promise")]
fn said(lane: Lane) -> StreamHandle {
    // SAFETY: no stream is destroyed here.
    unsafe { StreamHandle::from_raw(lane.handle) }
}

/// Where a call is to fail: the entry point, which of its calls, and when.
#[derive(Clone, Copy, Debug)]
struct Failure {
    entry: &'static str,
    nth: u64,
    phase: Phase,
}

const CODE: i32 = 719;

/// Stands for an allocation, from which on there is no memory.
const MEMORY: &str = "memory";

/// Does it all, with or without a failure. `None` if the call was not reached.
fn go(world: &World, way: Way, failure: Option<Failure>) -> Option<()> {
    let sim = &world.sim;
    let kind = way.kind(world.driver.api);
    for switch in ["no-ctx-record-event", "no-stream-ids"] {
        sim.switch(switch, way == Way::EventAndSynchronize);
    }
    sim.switch("no-memory-pools", way == Way::CopyOnDeviceWithoutPools);
    let producer = world.lane(world.first, Blocks::No);
    let (reader, request) = way.consumer(world, producer);
    let log = Arc::<Log>::default();
    let address = world.alloc(kind);
    let written = world.write_and_record(producer, address);
    let owner = Owner {
        driver: world.driver,
        kind,
        address,
        said: Some(said(producer)),
        freed_on: producer,
        written: Some(written),
        immediate: way == Way::Immediate,
        log: Arc::clone(&log),
    };
    // The streams that capture.
    let origin = match way {
        Way::Captured => reader,
        Way::Joined => Some(producer),
        _ => None,
    };
    if let Some(origin) = origin {
        world.driver.begin_capture(origin.handle, RELAXED).unwrap();
    }
    let joining = reader.filter(|_| way == Way::Joined);
    if let Some(joining) = joining {
        world.write(producer, address);
        world.order(producer, joining);
        world.write(producer, address);
    }
    let at = |phase| failure.filter(|failure| failure.phase == phase);
    let (exported, reached) = failing(world, at(Phase::Export), || {
        owner.into_dlpack_with(&request)
    });
    let mut reached = reached;
    match exported {
        Ok(tensor) => {
            let read = reader.filter(|_| way != Way::Unordered);
            let address = tensor.view().as_ptr().expose_provenance();
            match read {
                Some(lane) => world.read(lane, address),
                None if way != Way::Immediate && way != Way::Unordered => {
                    sim.host_read(address, memory::BYTES);
                }
                None => {}
            }
            let ((), dropped) = failing(world, at(Phase::Drop), || drop(tensor));
            reached |= dropped;
        }
        Err(error) => {
            let failure = failure.unwrap_or_else(|| panic!("{way:?}: {error}"));
            let expected = match error {
                Error::OutOfMemory { bytes } if failure.entry == MEMORY => {
                    Error::OutOfMemory { bytes }
                }
                _ => Error::DriverFailed {
                    call: failure.entry.trim_end_matches("_v2").to_owned(),
                    code: CODE,
                    name: simulator::error_name(world.driver.api, CODE).unwrap(),
                },
            };
            assert_eq!(error, expected, "{way:?}");
        }
    }
    if let Some(joining) = joining {
        world.order(joining, producer);
    }
    if let Some(origin) = origin {
        let graph = world.driver.end_capture(origin.handle).unwrap();
        world.driver.destroy_graph(graph).unwrap();
    }
    let (_, collected) = failing(world, at(Phase::Collect), dlpack_core::stream::collect);
    reached |= collected;
    // Whatever was kept is freed when somebody looks after it.
    assert_eq!(dlpack_core::stream::collect(), 0);
    release();
    // What somebody may read is neither freed nor kept for later where there is no memory for that.
    let no_memory = failure.is_some_and(|failure| reached && failure.entry == MEMORY);
    let leaked = no_memory && log.drops() == 0;
    assert_eq!(
        log.drops(),
        usize::from(!leaked),
        "{way:?} {failure:?}: the owner is dropped once"
    );
    if leaked {
        let freed = match kind {
            Kind::RocmHost => world.driver.free_pinned(address),
            _ => world.driver.free(address),
        };
        freed.unwrap();
    }
    world.enter(world.first);
    world.driver.destroy_event(written).unwrap();
    reached.then_some(())
}

#[expect(unsafe_code, reason = "frees what graphs have read")]
fn release() {
    // SAFETY: no graph is launched.
    unsafe { dlpack_core::stream::release_captured() };
}

/// Does something while the call fails; whether it was made.
fn failing<T>(world: &World, failure: Option<Failure>, body: impl FnOnce() -> T) -> (T, bool) {
    let sim = &world.sim;
    world.enter(world.second);
    let before = world.current();
    sim.forget_calls();
    if let Some(Failure {
        entry: MEMORY, nth, ..
    }) = failure
    {
        let refused = REFUSED.get();
        let done = with_budget(usize::try_from(nth - 1).expect("a small number"), body);
        // The first is for the place of the value, which is dropped before it says where its memory lies.
        assert!(nth == 1 || world.current() == before, "{nth}");
        world.enter(world.first);
        return (done, REFUSED.get() > refused);
    }
    if let Some(failure) = failure {
        sim.fail(failure.entry, failure.nth, CODE);
    }
    let done = body();
    let mut reached = false;
    if let Some(failure) = failure {
        sim.fail(failure.entry, 0, 0);
        let names = sim.call_names();
        let count = names.iter().filter(|name| *name == failure.entry).count();
        reached = count >= usize::try_from(failure.nth).expect("a small number");
    }
    let entry = failure.map_or("", |failure| failure.entry);
    // Where the driver refuses to go back there is nothing to be done.
    if !["cuCtxSetCurrent", "hipSetDevice"].contains(&entry) {
        assert_eq!(world.current(), before, "{entry}");
    }
    let mode = world.driver.exchange_mode(GLOBAL).unwrap();
    assert!(mode == GLOBAL, "{entry} leaves mode {mode}");
    world.enter(world.first);
    (done, reached)
}

#[test]
fn every_call_fails_in_turn() {
    let mut count = 0;
    let mut wrong = Vec::new();
    let mut never = Vec::new();
    for api in BOTH {
        let library = match api {
            Api::Cuda => "libcuda",
            Api::Hip => "libamdhip64",
        };
        go(&World::new(api), Way::Event, None);
        let entries = ENTRY_POINTS.iter().filter(|(name, _, _)| *name == library);
        for entry in entries.map(|&(_, entry, _)| entry).chain([MEMORY]) {
            let mut seen = false;
            // An owner for which there is no block is dropped as it is, and would free its memory in the capture.
            let possible = |way: &Way| (*way, entry) != (Way::Joined, MEMORY);
            for way in WAYS.into_iter().filter(possible) {
                for phase in [Phase::Export, Phase::Drop, Phase::Collect] {
                    for nth in 1.. {
                        let world = World::new(api);
                        let failure = Failure { entry, nth, phase };
                        if go(&world, way, Some(failure)).is_none() {
                            break;
                        }
                        (seen, count) = (true, count + 1);
                        // And what comes next works.
                        go(&world, way, None);
                        let events = i32::from(entry.contains("EventDestroy"));
                        let mut left = (world.sim.live(EVENTS), world.sim.live(ALLOCATIONS));
                        assert_eq!(world.sim.live(USER_OBJECTS), 0, "{way:?} {entry} {nth}");
                        if entry == MEMORY && format!("{way:?}").starts_with("CopyOnDevice") {
                            // The copy is not freed either.
                            left.1 = 0;
                        }
                        let faults = world.sim.faults();
                        if left != (events, 0) || !faults.is_empty() {
                            wrong.push(format!(
                                "{way:?} {phase:?} {entry} {nth}: {left:?} {faults:?}"
                            ));
                        }
                    }
                }
            }
            if !seen {
                never.push(entry);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // These are called once in a process, and not at all where they have failed; or only where contexts beside the
    // primary one are used, or behind another failure.
    let once = [
        "cuInit",
        "cuEventDestroy_v2",
        "cuUserObjectRelease",
        "cuDeviceGet",
        "cuDevicePrimaryCtxGetState",
        "cuStreamCreate",
        "cuStreamDestroy_v2",
        "cuDevicePrimaryCtxRetain",
        "cuStreamGetCtx",
        "cuGetErrorName",
        "hipInit",
        "hipUserObjectRelease",
        "hipGetErrorName",
    ];
    assert_eq!(never, once);
    assert!(count > 300, "{count} failures");
}
