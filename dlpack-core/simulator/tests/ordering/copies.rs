//! Copies by the driver: they have the right values, are ordered between producer and consumer, and everything is freed.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use dlpack_core::{DLPack, Device, Error, ExportRequest};

use crate::cells::{Abilities, Ask, Captures, Cell, Drops};
use crate::lanes::Lanes;
use crate::memory::{BYTES, Blocks, Kind, Log, Owner, World};
use crate::oracle::Rules;
use crate::simulator::{ALLOCATIONS, Api, BOTH, EVENTS};
use crate::tensors::{device_memory, number, request_on, written};

/// Exports a copy, uses it, and drops it while it is in use.
fn copy(cell: &Cell) -> Result<(), String> {
    let world = World::new(cell.kind.api());
    cell.driver.set(&world);
    // By the manual a free may wait, but need not.
    world.sim.switch("free-at-once", true);
    let lanes = Lanes::of(cell, &world);
    let captures = lanes.captures(cell.captures);
    let rules = Rules {
        cell,
        lanes: &lanes,
        world: &world,
        captures: &captures,
    };
    let log = Arc::<Log>::default();
    let address = world.alloc(cell.kind);
    let (Some(producer), Some(reader)) = (lanes.producer, lanes.reader) else {
        return Err("there are streams on both sides".to_owned());
    };
    world.write(producer, address);
    for capture in &captures {
        world.within(capture[0].place, |driver| {
            assert_eq!(driver.begin_capture(capture[0].handle, cell.mode), Ok(()));
        });
        for joining in &capture[1..] {
            world.order(capture[0], *joining);
        }
    }
    let owner = Owner {
        driver: world.driver,
        kind: cell.kind,
        address,
        named_stream: lanes.named_stream,
        freed_on: lanes.freed_on,
        written: None,
        immediate: false,
        log: Arc::clone(&log),
    };
    cell.enter(&world);
    let before = world.current();
    world.sim.forget_calls();
    // Another reference keeps the owner until the export has returned, so that a refusal frees nothing.
    let owner = Arc::new(owner);
    let request = ExportRequest {
        copy: Some(true),
        ..request_on(lanes.number)
    };
    let exported = owner.to_dlpack_with(&request);
    if world.current() != before {
        return Err("another context is current".to_owned());
    }
    let calls = world.sim.calls();
    let in_capture = rules.is_busy(producer) || rules.is_busy(reader);
    let reader_unknown = cell.ask.is_unordered();
    let refused = match reader_unknown {
        true => rules.is_busy(producer),
        false => in_capture,
    };
    match exported {
        Err(Error::Capturing { .. }) if refused => {}
        Ok(tensor) if !refused => {
            let own = lanes.freed_on.handle;
            let on = if reader_unknown { own } else { reader.handle };
            let expected = format!(" stream={on:#x}");
            let copied = calls.iter().find(|call| call.contains("MemcpyDtoD"));
            if !copied.is_some_and(|call| call.ends_with(&expected)) {
                return Err(format!("not copied on{expected}: {copied:?}"));
            }
            drop_original(owner, &rules);
            let copy = tensor.view().as_ptr().expose_provenance();
            if !in_capture {
                world.read(reader, copy);
                world.write(reader, copy);
            }
            end_captures(&rules);
            drop(tensor);
            collect(&world);
            return over(&world, &log);
        }
        other => return Err(format!("refused {refused}: {other:?}")),
    }
    end_captures(&rules);
    drop_original(owner, &rules);
    collect(&world);
    over(&world, &log)
}

/// The producer frees the original as soon as it was copied, unless its stream captures.
fn drop_original(owner: Arc<Owner>, rules: &Rules<'_>) {
    rules.world.enter(rules.world.first);
    drop(owner);
}

fn end_captures(rules: &Rules<'_>) {
    for capture in rules.captures {
        for joining in &capture[1..] {
            rules.world.order(*joining, capture[0]);
        }
        rules.world.within(capture[0].place, |driver| {
            let graph = driver.end_capture(capture[0].handle);
            assert_eq!(graph.and_then(|graph| driver.destroy_graph(graph)), Ok(()));
        });
    }
}

/// Calls `collect` after the host has waited for all work.
fn collect(world: &World) {
    // Owners of several contexts need one call for each context.
    for place in [world.first, world.second, world.other].repeat(3) {
        let waited = world.within(place, |driver| driver.synchronize());
        assert_eq!(waited, Ok(()));
        world.within(place, |_| dlpack_core::stream::collect());
    }
}

fn over(world: &World, log: &Log) -> Result<(), String> {
    let found = (
        world.sim.faults(),
        log.problems(),
        log.drops(),
        world.sim.live(EVENTS),
        world.sim.live(ALLOCATIONS),
    );
    if found == (vec![], vec![], 1, 0, 0) {
        return Ok(());
    }
    Err(format!("at the end: {found:?}"))
}

#[track_caller]
fn check(cells: impl Iterator<Item = Cell>) {
    let on_device = |cell: &Cell| !cell.kind.is_on_host() && !cell.immediate;
    let (mut wrong, mut count) = (Vec::new(), 0);
    for cell in cells.filter(on_device) {
        count += 1;
        if let Err(what) = copy(&cell) {
            wrong.push(format!("{cell:?}\n    {what}"));
        }
        // Leftovers of failed cases affect later ones, so it stops after a few.
        if wrong.len() == 10 {
            break;
        }
    }
    assert!(
        wrong.is_empty() && count > 200,
        "{} of {count} cases are wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[test]
fn copies_on_the_device_without_captures() {
    check(Cell::all_without_captures());
}

#[test]
fn copies_on_the_device_beside_captures() {
    // A stream that captures cannot be used for anything else, so the original is in use until the end.
    check(Cell::all_with_captures(Drops::After));
}

#[test]
fn copies_to_the_host_wait_for_the_producer() {
    let mut count = 0;
    let cells = Cell::all_without_captures().chain(Cell::all_with_captures(Drops::After));
    let plain =
        |cell: &Cell| cell.ask == Ask::Absent && cell.driver == Abilities::Quick && !cell.immediate;
    for cell in cells.filter(plain) {
        let world = World::new(cell.kind.api());
        let lanes = Lanes::of(&cell, &world);
        let captures = lanes.captures(cell.captures);
        let rules = Rules {
            cell: &cell,
            lanes: &lanes,
            world: &world,
            captures: &captures,
        };
        let Some(producer) = lanes.producer else {
            continue;
        };
        if cell.captures == Captures::Both {
            continue;
        }
        count += 1;
        let (mut owner, log) = written(&world, cell.kind, producer);
        owner.named_stream = lanes.named_stream;
        for capture in &captures {
            world.within(capture[0].place, |driver| {
                assert_eq!(driver.begin_capture(capture[0].handle, cell.mode), Ok(()));
            });
        }
        let address = owner.address;
        let owner = Arc::new(owner);
        let request = ExportRequest {
            dl_device: Some(Device::CPU),
            ..ExportRequest::versioned()
        };
        cell.enter(&world);
        let exported = owner.to_dlpack_with(&request);
        if rules.is_busy(producer) {
            assert!(
                matches!(exported, Err(Error::Capturing { .. })),
                "{cell:?}: {exported:?}"
            );
        } else {
            let tensor = exported.unwrap_or_else(|error| panic!("{cell:?}: {error}"));
            let view = tensor.view();
            assert_eq!(view.device(), Device::CPU);
            let pinned = matches!(cell.kind, Kind::CudaHost | Kind::RocmHost);
            assert_eq!(view.is_copied(), !pinned, "{cell:?}");
            let at = view.as_ptr().expose_provenance();
            assert_eq!(at == address, pinned);
            world.sim.host_read(at, BYTES);
            drop(tensor);
        }
        end_captures(&rules);
        world.enter(world.first);
        world.within(producer.place, |driver| {
            driver.synchronize_stream(producer.handle).unwrap();
        });
        drop(owner);
        collect(&world);
        assert_eq!(over(&world, &log), Ok(()), "{cell:?}");
    }
    assert!(count > 100, "{count}");
}

/// `torch.from_dlpack(x, copy=True)` in a loop: neither the device nor the host waits.
#[test]
fn a_copy_on_the_device_waits_neither_on_host_nor_device() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let stream = match api {
            Api::Cuda => world.lane(world.first, Blocks::No),
            // In HIP, an owner that is read on another stream waits for `collect`.
            Api::Hip => world.lane(world.first, Blocks::Legacy),
        };
        let (owner, log) = written(&world, device_memory(api), producer);
        let owner = Arc::new(owner);
        // The first export initialises the driver, which takes long.
        drop(owner.to_dlpack_with(&request_on(number(stream))).unwrap());
        world.sim.forget_calls();
        // A call that waits would be held for 20 seconds.
        world.sim.hold();
        let begun = Instant::now();
        for _ in 0..3 {
            let request = ExportRequest {
                copy: Some(true),
                ..request_on(number(stream))
            };
            let copy = owner.to_dlpack_with(&request).unwrap();
            world.read(stream, copy.view().as_ptr().expose_provenance());
            drop(copy);
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{api:?}");
        world.sim.release();
        let names = world.sim.call_names();
        let waits = names.iter().find(|name| name.contains("Synchronize"));
        assert_eq!(waits, None, "{names:?}");
        drop(owner);
        collect(&world);
        assert_eq!(over(&world, &log), Ok(()), "{api:?}");
    }
}

/// Without pools, and with a consumer's stream on another device.
#[test]
fn a_copy_lies_on_the_device_of_its_tensor() {
    for api in BOTH {
        for (second, pools) in [(true, true), (false, false)] {
            let world = World::new(api);
            let producer = world.lane(world.first, Blocks::No);
            let place = if second { world.second } else { world.first };
            let reader = world.lane(place, Blocks::No);
            world.sim.switch("no-memory-pools", !pools);
            let (owner, log) = written(&world, device_memory(api), producer);
            let request = ExportRequest {
                copy: Some(true),
                ..request_on(number(reader))
            };
            world.sim.forget_calls();
            let copy = owner.into_dlpack_with(&request).unwrap();
            let names = world.sim.call_names();
            let pool = names.iter().filter(|name| name.ends_with("llocAsync"));
            assert_eq!(pool.count(), usize::from(!pools), "{names:?}");
            world.read(reader, copy.view().as_ptr().expose_provenance());
            drop(copy);
            collect(&world);
            assert_eq!(over(&world, &log), Ok(()), "{api:?}");
        }
    }
}
