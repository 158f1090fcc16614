//! Each driver call of core fails in turn, and so does each allocation. The result is an error that names the call, or the
//! documented fallback; and never a double drop, a leak, an early free or another current context. The next operation succeeds.
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

/// What is done with a tensor: one variant for each way through core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Ordered by an event, and freed after all work.
    Event,
    /// Ordered by an event, with a driver that cannot record a context.
    EventAndSynchronize,
    /// Ordered by an event, and freed after the default stream.
    Legacy,
    /// Nothing to order, and the host uses the memory next.
    Same,
    /// The host waits.
    Host,
    /// The host waits before the free.
    HostAtTheEnd,
    /// The host waits before the free, for work on the default stream.
    HostBehindLegacy,
    /// The consumer captures.
    Captured,
    /// Producer and consumer are in one capture.
    Joined,
    /// Freed without waiting.
    Immediate,
    /// The consumer requests no order.
    Unordered,
    /// The same for memory of no device: the free waits for all devices.
    UnorderedOnHost,
    CopyToHost,
    CopyOnDevice,
    CopyOnDeviceAtOnce,
    CopyOnDeviceWithoutPools,
}

const WAYS: [Way; 16] = [
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
    Way::UnorderedOnHost,
    Way::CopyToHost,
    Way::CopyOnDevice,
    Way::CopyOnDeviceAtOnce,
    Way::CopyOnDeviceWithoutPools,
];

/// The operation in which the call fails.
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
            Self::Same
                | Self::Host
                | Self::HostAtTheEnd
                | Self::HostBehindLegacy
                | Self::UnorderedOnHost
        );
        match (api, on_host) {
            (Api::Cuda, true) => Kind::CudaManaged,
            (Api::Cuda, false) => Kind::Cuda,
            (Api::Hip, true) => Kind::RocmHost,
            (Api::Hip, false) => Kind::Rocm,
        }
    }

    /// The consumer's stream (`None` for the host), and its request.
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
            Self::Legacy => (Some(legacy), with(default)),
            // Memory of no device: the default stream is that of the current context.
            Self::HostBehindLegacy => {
                let current = world.lane(world.second, Blocks::Legacy);
                (Some(current), with(default))
            }
            Self::Same => (Some(producer), with(number(producer))),
            Self::Host => (None, plain),
            Self::Immediate => (None, with(number(other))),
            Self::Unordered | Self::UnorderedOnHost => (Some(other), with(Some(-1))),
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

#[expect(unsafe_code, reason = "`from_raw` requires that the stream lives")]
fn handle_of(lane: Lane) -> StreamHandle {
    // SAFETY: no stream is destroyed here.
    unsafe { StreamHandle::from_raw(lane.handle) }
}

/// Which call fails: the entry point, the number of the call, and the operation.
#[derive(Clone, Copy, Debug)]
struct Failure {
    entry: &'static str,
    nth: u64,
    phase: Phase,
}

const CODE: i32 = 719;

/// A name for allocations: from the given one on, all fail.
const MEMORY: &str = "memory";

/// Exports, uses and drops a tensor, with or without a failure. `None` if the failing call was not reached.
fn play(world: &World, way: Way, failure: Option<Failure>) -> Option<()> {
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
        named_stream: Some(handle_of(producer)),
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
            if way == Way::UnorderedOnHost {
                world.order(producer, reader.expect("it has a stream"));
            }
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
    // `collect` frees everything that was kept.
    assert_eq!(dlpack_core::stream::collect(), 0);
    release();
    // Without memory for the record of an owner that may still be read, that owner is neither freed nor kept for later.
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

/// Runs `body` while the call fails. Returns whether the call was made.
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
        // If the first allocation fails, the value is dropped before core knows the context of its memory.
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
    // If the driver refuses to restore the context, core cannot restore it.
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
        play(&World::new(api), Way::Event, None);
        let entries = ENTRY_POINTS.iter().filter(|(name, _, _)| *name == library);
        for entry in entries.map(|&(_, entry, _)| entry).chain([MEMORY]) {
            let mut seen = false;
            // An owner without a block is dropped at once, and would free its memory in the capture.
            let possible = |way: &Way| (*way, entry) != (Way::Joined, MEMORY);
            for way in WAYS.into_iter().filter(possible) {
                for phase in [Phase::Export, Phase::Drop, Phase::Collect] {
                    for nth in 1.. {
                        let world = World::new(api);
                        let failure = Failure { entry, nth, phase };
                        if play(&world, way, Some(failure)).is_none() {
                            break;
                        }
                        (seen, count) = (true, count + 1);
                        // The next operation succeeds.
                        play(&world, way, None);
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
    // These are called once in a process, not at all after they failed, only with contexts other than the primary one, or only
    // after another failure.
    let once = [
        "cuInit",
        "cuEventDestroy_v2",
        "cuUserObjectRelease",
        "cuDeviceGet",
        "cuDevicePrimaryCtxGetState",
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
