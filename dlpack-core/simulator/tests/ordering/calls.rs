//! The number of driver calls for a tensor, compared with the tables of `spec/stream-calls.md`.

use core::fmt::Write as _;
use std::path::Path;

use dlpack_core::stream::{collect, retained, spare_events};
use dlpack_core::{DLPack, ExportRequest};

use crate::cells::Abilities;
use crate::memory::{Blocks, Kind, Lane, World};
use crate::simulator::{Api, EVENTS};
use crate::tensors::{device_memory, number, request_on, written};

/// The producer's and the consumer's stream, in words.
const PAIRS: [(&str, &str); 8] = [
    ("default", "default"),
    ("a stream", "the same"),
    ("a stream", "another"),
    ("a stream", "default"),
    ("default", "a stream"),
    ("a stream", "that of another device"),
    ("a stream", "unknown (-1)"),
    ("a stream", "another, with a copy"),
];

/// Calls of core for one tensor: at the export, at the drop, and later.
fn count(api: Api, driver: Abilities, pair: (&str, &str)) -> (usize, usize, usize) {
    let world = World::new(api);
    driver.set(&world);
    let (producer, request) = parties(&world, pair);
    // A first turn, after which core knows all that it queries once.
    turn(&world, producer, &request);
    let collect = || free_all(&world);
    let calls = |(exported, dropped): (Vec<String>, Vec<String>)| (exported.len(), dropped.len());
    collect();
    let (exported, dropped) = calls(turn(&world, producer, &request));
    collect();
    let mut all = 0;
    for _ in 0..TURNS {
        let (exported, dropped) = calls(turn(&world, producer, &request));
        all += exported + dropped;
    }
    all += collect();
    let later = all.saturating_sub(TURNS * (exported + dropped));
    world.sim.assert_clean();
    (exported, dropped, later.div_ceil(TURNS))
}

/// Drops all owners, and returns the number of calls for that.
fn free_all(world: &World) -> usize {
    for place in [world.first, world.second, world.other] {
        let waited = world.within(place, |driver| driver.synchronize());
        assert_eq!(waited, Ok(()));
    }
    world.sim.forget_calls();
    assert_eq!(collect(), 0);
    world.sim.calls().len()
}

/// The producer's stream, and the consumer's request.
fn parties(world: &World, pair: (&str, &str)) -> (Lane, ExportRequest) {
    let stream = || world.lane(world.first, Blocks::No);
    let default = world.lane(world.first, Blocks::Legacy);
    let producer = match pair.0 {
        "default" => default,
        _ => stream(),
    };
    let consumer = match pair.1 {
        "default" => default,
        "the same" => producer,
        "that of another device" => world.lane(world.second, Blocks::No),
        _ => stream(),
    };
    let request = ExportRequest {
        copy: pair.1.contains("copy").then_some(true),
        ..request_on(match pair.1 {
            "default" => None,
            "unknown (-1)" => Some(-1),
            _ => number(consumer),
        })
    };
    (producer, request)
}

const TURNS: usize = 50;

/// Exports a tensor and drops it, with no calls other than core's.
fn turn(world: &World, producer: Lane, request: &ExportRequest) -> (Vec<String>, Vec<String>) {
    let (owner, log) = written(world, device_memory(world.driver.api), producer);
    // The owner itself calls nothing.
    log.forget();
    world.sim.forget_calls();
    let tensor = owner.into_dlpack_with(request).expect("it can be exported");
    let exported = world.sim.calls();
    world.sim.forget_calls();
    drop(tensor);
    (exported, world.sim.calls())
}

/// One table for each driver.
fn tables() -> String {
    let mut text = String::from(HEAD);
    for (title, api, driver) in [
        ("CUDA 12.5 or later", Api::Cuda, Abilities::Quick),
        ("CUDA before 12.0", Api::Cuda, Abilities::Old),
        ("HIP", Api::Hip, Abilities::Quick),
    ] {
        let _ = write!(
            text,
            "\n## {title}\n\n| written on | read on | export | drop | later |\n|---|---|---|---|---|\n"
        );
        for pair in PAIRS {
            let (exported, dropped, later) = count(api, driver, pair);
            let (producer, consumer) = pair;
            let _ = writeln!(
                text,
                "| {producer} | {consumer} | {exported} | {dropped} | {later} |"
            );
        }
    }
    text
}

const HEAD: &str = "\
# How often a driver is called for a tensor

Counted on the simulator by `dlpack-core/simulator/tests/ordering/calls.rs`, which compares this file, and rewrites it
if `DLPACK_BLESS` is set. Calls of the owner that free its memory are not counted. *Later* counts the calls that the next exports, and
finally `stream::collect()`, make for each of 50 tensors that wait for their consumers.
";

/// STR-08.
#[test]
fn calls_are_as_few_as_the_table_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/stream-calls.md");
    let found = tables();
    if std::env::var_os("DLPACK_BLESS").is_some() {
        std::fs::write(&file, &found).expect("spec can be written");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "DLPACK_BLESS=1 writes it anew:\n{found}");
    let guide = file.with_file_name("../guide/src/gpus.md");
    let guide = std::fs::read_to_string(guide).expect("the guide is there");
    let table = found
        .split("\n\n")
        .find(|part| part.starts_with("| written"));
    let table = table.expect("there are tables");
    assert!(
        guide.contains(table),
        "the guide has another table:\n{table}"
    );
}

/// The calls of core for one tensor, with their arguments: at the export and at the drop.
fn list(api: Api, driver: Abilities, pair: (&str, &str)) -> (Vec<String>, Vec<String>) {
    let world = World::new(api);
    driver.set(&world);
    let (producer, request) = parties(&world, pair);
    turn(&world, producer, &request);
    free_all(&world);
    turn(&world, producer, &request)
}

/// PyTorch and CuPy make four calls: they create, record, await and destroy an event. Core reuses the event of an earlier export,
/// and makes queries that those libraries do not make: which context is current, whether either stream captures, and the ID by
/// which a later export recognizes the consumer's stream.
#[test]
fn an_export_between_two_streams_makes_six_calls() {
    let (exported, dropped) = list(Api::Cuda, Abilities::Quick, ("a stream", "another"));
    let names = exported.iter().map(|call| call.split(' ').next().unwrap());
    let expected = [
        "cuCtxGetCurrent",
        "cuStreamIsCapturing",
        "cuStreamIsCapturing",
        "cuStreamGetId",
        "cuEventRecord",
        "cuStreamWaitEvent",
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected, "{exported:?}");
    assert_eq!(dropped, [""; 0]);
}

#[test]
fn no_export_makes_a_query_twice() {
    for (api, driver) in [
        (Api::Cuda, Abilities::Quick),
        (Api::Cuda, Abilities::Old),
        (Api::Hip, Abilities::Quick),
    ] {
        for pair in PAIRS.into_iter().filter(|pair| !pair.1.contains("copy")) {
            let (exported, _) = list(api, driver, pair);
            let is_query = |call: &&String| call.contains("Get") || call.contains("IsCapturing");
            let mut queries: Vec<_> = exported.iter().filter(is_query).collect();
            queries.sort_unstable();
            let all = queries.len();
            queries.dedup();
            assert_eq!(queries.len(), all, "{pair:?}: {exported:?}");
        }
    }
}

/// A stream of a context that the program made refuses the event of the primary context, and is then queried for its context. A
/// program that works in that context causes no refusal.
#[test]
fn an_event_of_another_context_is_refused_once() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.other, Blocks::No);
    let consumer = world.lane(world.first, Blocks::No);
    let request = request_on(number(consumer));
    for (place, records) in [(world.first, 2), (world.other, 1)] {
        world.enter(place);
        turn(&world, producer, &request);
        free_all(&world);
        world.enter(place);
        let (exported, _) = turn(&world, producer, &request);
        let count = |name: &str| {
            exported
                .iter()
                .filter(|call| call.starts_with(name))
                .count()
        };
        assert_eq!(count("cuEventRecord"), records, "{exported:?}");
        assert_eq!(count("cuStreamWaitEvent"), 1, "{exported:?}");
        // The refused event is reused.
        assert_eq!(spare_events(false), 1, "{exported:?}");
    }
    free_all(&world);
    world.sim.assert_clean();
}

/// An event whose record failed is destroyed, because its state is unknown.
#[test]
fn an_event_that_fails_is_not_used_again() {
    let world = World::new(Api::Cuda);
    let [producer, consumer] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    let request = request_on(number(consumer));
    turn(&world, producer, &request);
    assert_eq!(spare_events(false), 1);
    world.sim.fail("cuEventRecord", 2, 719);
    let (owner, _) = written(&world, device_memory(Api::Cuda), producer);
    // The first record is that of the test's owner.
    world.sim.fail("cuEventRecord", 1, 719);
    assert!(owner.into_dlpack_with(&request).is_err());
    world.sim.fail("cuEventRecord", 0, 0);
    assert_eq!(spare_events(false), 0);
    assert_eq!(world.sim.live(EVENTS), 0);
}

#[test]
fn an_event_that_fails_to_record_a_context_is_not_used_again() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    turn(&world, producer, &request_on(Some(-1)));
    // The record is tried twice.
    world.sim.fail("cuCtxRecordEvent", 1, 719);
    world.sim.fail("cuCtxRecordEvent", 2, 719);
    assert_eq!(collect(), 1);
    assert_eq!((spare_events(false), world.sim.live(EVENTS)), (0, 0));
    free_all(&world);
    assert_eq!((spare_events(false), world.sim.live(EVENTS)), (1, 0));
}

/// Memory without pending work makes no consumer wait. But its export names a stream, so owners that wait for that stream are
/// recorded, in the context of the stream.
#[test]
fn memory_without_work_names_its_consumers_stream() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    for place in [world.first, world.second] {
        let consumer = world.lane(place, Blocks::No);
        let request = request_on(number(consumer));
        turn(&world, producer, &request);
        assert_eq!(retained().open, 1);
        let (mut pinned, log) = written(&world, Kind::CudaHost, producer);
        log.forget();
        pinned.named_stream = None;
        drop(pinned.into_dlpack_with(&request).unwrap());
        assert_eq!(
            retained().open,
            1,
            "the first is recorded, the second waits"
        );
        free_all(&world);
    }
}

/// An event of a context that the program can destroy is not kept.
#[test]
fn events_of_other_contexts_are_destroyed() {
    let world = World::new(Api::Cuda);
    let [producer, consumer] = [(); 2].map(|()| world.lane(world.other, Blocks::No));
    world.enter(world.other);
    let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
    log.forget();
    drop(
        owner
            .into_dlpack_with(&request_on(number(consumer)))
            .unwrap(),
    );
    assert_eq!((spare_events(false), world.sim.live(EVENTS)), (0, 0));
    free_all(&world);
}

/// Threads that export at the same time use different events, and only a few events are kept.
#[test]
fn unused_events_are_few() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    world.sim.switch("slow", true);
    let request = request_on(None);
    // Each owner waits for its own event.
    for _ in 0..40 {
        turn(&world, producer, &request);
    }
    assert!(world.sim.live(EVENTS) >= 40, "{}", world.sim.live(EVENTS));
    free_all(&world);
    assert_eq!((spare_events(false), world.sim.live(EVENTS)), (16, 0));
}

#[test]
fn equal_streams_cost_few_calls_and_drops_on_new_streams_none() {
    let quick = |pair| count(Api::Cuda, Abilities::Quick, pair);
    let (exported, dropped, _) = quick(("default", "default"));
    assert!(exported == 1 && dropped <= 5, "{exported} and {dropped}");
    for consumer in ["another", "unknown (-1)", "that of another device"] {
        let (_, dropped, _) = quick(("a stream", consumer));
        assert_eq!(dropped, 0, "{consumer}");
    }
}
