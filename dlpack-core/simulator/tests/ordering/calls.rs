//! How often a driver is called for a tensor: the table of `spec/stream-calls.md`, which this compares.

use core::fmt::Write as _;
use std::path::Path;

use dlpack_core::{DLPack, ExportRequest};

use crate::cells::Abilities;
use crate::memory::{Blocks, Lane, World};
use crate::simulator::Api;
use crate::tensors::{asking, device_memory, number, written};

/// Whose streams they are, in words.
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

/// Calls of core, for one tensor: at the export, at the drop, and later.
fn count(api: Api, driver: Abilities, pair: (&str, &str)) -> (usize, usize, usize) {
    let world = World::new(api);
    driver.set(&world);
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
        ..asking(match pair.1 {
            "default" => None,
            "unknown (-1)" => Some(-1),
            _ => number(consumer),
        })
    };
    // Everything is known that is asked once.
    turn(&world, producer, &request);
    let collect = || {
        for place in [world.first, world.second] {
            assert_eq!(world.within(place, |driver| driver.synchronize()), Ok(()));
        }
        world.sim.forget_calls();
        dlpack_core::stream::collect();
        world.sim.calls().len()
    };
    collect();
    let (exported, dropped) = turn(&world, producer, &request);
    collect();
    let mut all = 0;
    for _ in 0..TURNS {
        let (exported, dropped) = turn(&world, producer, &request);
        all += exported + dropped;
    }
    all += collect();
    let later = all.saturating_sub(TURNS * (exported + dropped));
    world.sim.assert_clean();
    (exported, dropped, later.div_ceil(TURNS))
}

const TURNS: usize = 50;

/// Exports a tensor and drops it, and calls nothing but what core calls.
fn turn(world: &World, producer: Lane, request: &ExportRequest) -> (usize, usize) {
    let (owner, log) = written(world, device_memory(world.driver.api), producer);
    // It stays, and so it calls nothing itself.
    log.forget();
    world.sim.forget_calls();
    let tensor = owner.into_dlpack_with(request).expect("it can be exported");
    let exported = world.sim.calls().len();
    world.sim.forget_calls();
    drop(tensor);
    (exported, world.sim.calls().len())
}

/// A table for each driver.
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

#[test]
fn equal_streams_cost_next_to_nothing_and_a_drop_makes_no_call_that_could_hurt() {
    let quick = |pair| count(Api::Cuda, Abilities::Quick, pair);
    let (exported, dropped, _) = quick(("default", "default"));
    assert!(exported == 0 && dropped <= 5, "{exported} and {dropped}");
    for consumer in ["another", "unknown (-1)", "that of another device"] {
        let (_, dropped, _) = quick(("a stream", consumer));
        assert_eq!(dropped, 0, "{consumer}");
    }
}
