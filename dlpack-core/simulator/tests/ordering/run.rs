//! Runs a case, and compares the result with the rules.
#![expect(unsafe_code, reason = "frees what graphs have read")]

use std::sync::Arc;

use dlpack_core::{DLPack, Error, ExportRequest, Managed, stream::spare_events};

use crate::cells::{Abilities, Cell, Current, Drops, Producer};
use crate::graphs::Captor;
use crate::lanes::Lanes;
use crate::memory::{Blocks, Lane, Log, Owner, World};
use crate::oracle::{Export, Fate, Release, Rules};
use crate::simulator::{ALLOCATIONS, Api, EVENTS, hand_over};

/// How the run differs from one with a correct driver and consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Run {
    Whole,
    /// This call orders nothing while core calls it.
    Ignoring(&'static str),
    /// A consumer that requests no order makes none itself.
    Hasty,
}

std::thread_local! {
    /// The reading of the manuals: whether a capturing stream may be queried for other things.
    pub(crate) static LAX: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

/// Returns the faults that the rules expect; an error for any other difference.
pub(crate) fn run(cell: &Cell, how: Run) -> Result<Vec<String>, String> {
    let world = World::new(cell.kind.api());
    cell.driver.set(&world);
    // By the manual a free may wait, but core does not depend on it.
    world.sim.switch("free-at-once", true);
    let lanes = Lanes::of(cell, &world);
    let captures = lanes.captures(cell.captures);
    let rules = Rules {
        cell,
        lanes: &lanes,
        world: &world,
        captures: &captures,
    };
    // On another thread, the number means another stream.
    let of_thread = captures
        .iter()
        .any(|one| one[0].blocks == Blocks::PerThread);
    let stage = Stage {
        address: world.alloc(cell.kind),
        captor: (cell.captor && !of_thread).then(|| Captor::new(world.driver)),
        log: Arc::default(),
        how,
        rules: &rules,
    };
    if cell.immediate && rules.is_busy(lanes.freed_on) {
        // Such an owner must be freed on another thread.
        return Ok(Vec::new());
    }
    stage.play().inspect_err(|_| stage.clear_away())
}

pub(crate) struct Stage<'a> {
    pub(crate) address: usize,
    pub(crate) captor: Option<Captor>,
    log: Arc<Log>,
    how: Run,
    pub(crate) rules: &'a Rules<'a>,
}

impl Abilities {
    pub(crate) fn set(self, world: &World) {
        for (switch, on) in [
            ("slow", self == Self::Slow),
            ("lax-captures", LAX.get()),
            ("no-ctx-record-event", self == Self::Old),
            ("no-stream-ids", self == Self::Old),
            ("no-user-objects", self == Self::Old),
            ("no-memory-pools", self == Self::Old),
        ] {
            world.sim.switch(switch, on);
        }
    }
}

impl Cell {
    /// Makes the context of the export current.
    pub(crate) fn enter(&self, world: &World) {
        self.current.enter(world);
    }
}

impl Current {
    pub(crate) fn enter(self, world: &World) {
        world.enter(match (self, world.driver.api) {
            (Self::Second, _) => world.second,
            (Self::Nothing, Api::Cuda) => 0,
            (Self::First | Self::Nothing, _) => world.first,
            (Self::Other, _) => world.other,
            (Self::Green, _) => world.green,
        });
    }
}

fn same<T: PartialEq + core::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: {found:?} instead of {expected:?}"))
}

impl Stage<'_> {
    pub(crate) fn world(&self) -> &World {
        self.rules.world
    }

    pub(crate) fn cell(&self) -> &Cell {
        self.rules.cell
    }

    fn play(&self) -> Result<Vec<String>, String> {
        let (world, rules) = (self.world(), self.rules);
        let lanes = rules.lanes;
        let captured = rules.capture(lanes.freed_on).is_some();
        let pending = lanes.producer;
        let written = pending
            .filter(|_| !captured)
            .map(|lane| world.write_and_record(lane, self.address));
        let played = self.play_on(written);
        if let Some(event) = written {
            world.enter(world.first);
            assert_eq!(world.driver.destroy_event(event), Ok(()));
        }
        let early = played?;
        self.finish(early)
    }

    /// Plays the case with a pending or a captured write. Returns whether the memory is freed too early.
    fn play_on(&self, written: Option<usize>) -> Result<bool, String> {
        let (world, cell, rules) = (self.world(), self.cell(), self.rules);
        let lanes = rules.lanes;
        self.begin_captures()?;
        if let (Some(lane), None) = (lanes.producer, written) {
            world.write(lane, self.address);
        }

        let exported = self.export(written)?;
        let Some(tensor) = exported else {
            let fate = rules.fate(Release::Free, cell.current);
            self.check_drops("after the refusal", fate == Fate::Dropped)?;
            self.end_captures()?;
            self.collect();
            self.check_drops("after the captures", true)?;
            return Ok(false);
        };
        let read = self.read();
        if self.how == Run::Whole {
            self.check_clean("after the read")?;
        }
        let fate = rules.fate(rules.release(), cell.dropping);
        let in_graph = rules.release() == Release::Graphs;
        let mut graphs = Vec::new();
        if cell.drops == Drops::Before {
            self.drop(tensor)?;
            self.check_drops("at the drop", fate == Fate::Dropped)?;
            graphs = self.end_captures()?;
        } else {
            graphs.extend(self.end_captures()?);
            self.drop(tensor)?;
            let over = Rules {
                captures: &[],
                ..*rules
            };
            let fate = if in_graph {
                fate
            } else {
                over.fate(rules.release(), cell.dropping)
            };
            self.check_drops("at the drop", fate == Fate::Dropped)?;
        }
        self.collect();
        self.check_drops("after all", fate != Fate::KeptForGraphs)?;
        if fate == Fate::KeptForGraphs {
            same("owners kept", dlpack_core::stream::captured(), 1)?;
            // A broken capture has no graph.
            let executable = match rules.is_broken() {
                true => None,
                false => Some(self.launch(&graphs)?),
            };
            self.check_drops("after the launches", false)?;
            self.destroy(&core::mem::take(&mut graphs));
            self.collect();
            self.check_drops("while it can be launched", false)?;
            let over = executable.map(|executable| world.driver.destroy_executable(executable));
            assert_eq!(over.unwrap_or(Ok(())), Ok(()));
            if cell.driver == Abilities::Old || executable.is_none() {
                self.collect();
                self.check_drops("where the end of the graph is unknown", false)?;
                for place in [world.second, world.other] {
                    let waited = world.within(place, |driver| driver.synchronize());
                    assert_eq!(waited, Ok(()));
                }
                // SAFETY: the graphs are not launched again, and all launches are complete, except for work of the first context.
                self.at_work(|| unsafe { dlpack_core::stream::release_captured() });
            }
            self.collect();
            self.check_drops("after the graphs", true)?;
        }
        self.destroy(&graphs);
        let elsewhere = cell.drops == Drops::Elsewhere;
        let early = cell.immediate && rules.races_if_immediate(elsewhere);
        Ok(early && read && !in_graph)
    }

    /// Calls `collect`: first with the context current in which the consumer may have worked, at last after the host has waited
    /// for all work.
    fn collect(&self) {
        let world = self.world();
        let collect = || _ = dlpack_core::stream::collect();
        self.at_work(collect);
        world.within(world.other, |_| self.quietly(collect));
        // Owners of several contexts need one call for each context.
        for _ in 0..3 {
            if self.cell().driver != Abilities::Slow {
                break;
            }
            for place in [world.first, world.second, world.other] {
                let waited = world.within(place, |driver| driver.synchronize());
                assert_eq!(waited, Ok(()));
            }
            self.at_work(collect);
            world.within(world.other, |_| self.quietly(collect));
        }
    }

    /// Runs `body` in the context of the case, with the driver of the run.
    fn at_work<T>(&self, body: impl FnOnce() -> T) -> T {
        self.at_work_in(self.cell().current, body)
    }

    fn at_work_in<T>(&self, current: Current, body: impl FnOnce() -> T) -> T {
        current.enter(self.world());
        self.quietly(body)
    }

    /// Runs `body` with the driver of the run.
    fn quietly<T>(&self, body: impl FnOnce() -> T) -> T {
        let sim = &self.world().sim;
        if let Run::Ignoring(call) = self.how {
            sim.switch(call, true);
        }
        let done = body();
        if let Run::Ignoring(call) = self.how {
            sim.switch(call, false);
        }
        done
    }

    /// Runs `body` like `at_work_in`, and checks that the state of the thread is unchanged.
    fn unnoticed<T>(
        &self,
        current: Current,
        body: impl FnOnce() -> T,
    ) -> Result<(T, Vec<String>), String> {
        let world = self.world();
        let events = world.sim.live(EVENTS);
        let (done, before, after, calls) = self.at_work_in(current, || {
            let before = world.current();
            world.sim.forget_calls();
            let done = body();
            let calls = world.sim.calls();
            (done, before, world.current(), calls)
        });
        same("current afterwards", after, before)?;
        // An owner that waits for an event keeps one.
        let more = world.sim.live(EVENTS) - events;
        if !(0..=1).contains(&more) {
            return Err(format!("{more} events more"));
        }
        world.enter(world.first);
        Ok((done, calls))
    }

    fn export(&self, written: Option<usize>) -> Result<Option<Managed>, String> {
        let (cell, lanes) = (self.cell(), self.rules.lanes);
        let owner = Owner {
            driver: self.world().driver,
            kind: cell.kind,
            address: self.address,
            named_stream: lanes.named_stream,
            freed_on: lanes.freed_on,
            written,
            immediate: cell.immediate,
            log: Arc::clone(&self.log),
        };
        let request = ExportRequest {
            stream: lanes.number,
            ..ExportRequest::versioned()
        };
        let spare = spare_events(false);
        let (exported, calls) =
            self.unnoticed(cell.current, || owner.into_dlpack_with(&request))?;
        let expected = self.rules.export();
        let by_owner = written.map(|event| format!("event={event:#x}"));
        let by_core = |call: &&String| by_owner.as_ref().is_none_or(|own| !call.contains(own));
        let calls: Vec<_> = calls.iter().filter(by_core).cloned().collect();
        self.check_calls(&calls, expected, spare)?;
        match (expected, exported) {
            (Export::Refused, Err(Error::Capturing { .. })) => Ok(None),
            (Export::Refused, other) => Err(format!("{expected:?} was expected, not {other:?}")),
            (_, exported) => exported
                .map(Some)
                .map_err(|error| format!("{expected:?} was expected, not {error:?}")),
        }
    }

    /// Checks the calls of an export. `spare` is the number of unused events before it.
    fn check_calls(&self, calls: &[String], export: Export, spare: usize) -> Result<(), String> {
        let count = |words: &[&str]| {
            let has = |line: &&String| {
                let mut names = words.iter();
                names.any(|word| line[2..].trim_start_matches('p').starts_with(word))
            };
            calls.iter().filter(has).count()
        };
        let counts = (
            count(&["EventCreate"]),
            count(&["EventRecord", "CtxRecordEvent"]),
            count(&["StreamWaitEvent"]),
            count(&["StreamUpdateCaptureDependencies"]),
            count(&["EventDestroy"]),
            count(&["StreamSynchronize"]),
            count(&["EventSynchronize", "CtxSynchronize", "DeviceSynchronize"]),
        );
        let expected = match export {
            Export::Event => {
                // A stream of another context refuses the event of the primary context.
                let Cell {
                    producer,
                    current,
                    kind,
                    ..
                } = *self.cell();
                let retried = kind.api() == Api::Cuda
                    && matches!(producer, Producer::OtherStream | Producer::SecondDevice)
                    && matches!(current, Current::Nothing | Current::First | Current::Second);
                let events = 1 + usize::from(retried);
                let created = events.saturating_sub(spare);
                // Events of CUDA's primary contexts are kept for the next export.
                let destroyed = (spare + created).checked_sub(spare_events(false));
                let destroyed = destroyed.ok_or("an event is used twice")?;
                (created, events, 1, 0, destroyed, 0, 0)
            }
            Export::Joined => (0, 0, 0, 1, 0, 0, 0),
            Export::HostWaits => (0, 0, 0, 0, 0, 1, 0),
            Export::Silent | Export::Looked => (0, 0, 0, 0, 0, 0, 0),
            // The owner was freed, and no event is left.
            Export::Refused => (0, 0, 0, 0, 0, 0, 0),
        };
        same("calls to order", counts, expected).map_err(|error| format!("{error}\n{calls:?}"))?;
        if export == Export::Silent && !calls.is_empty() {
            return Err(format!("calls for nothing: {calls:?}"));
        }
        // Only the consumer waits, and only for the producer.
        let Lanes {
            producer, reader, ..
        } = *self.rules.lanes;
        for (call, lane) in [
            ("EventRecord", producer),
            ("StreamWaitEvent", reader),
            ("StreamUpdateCaptureDependencies", reader),
        ] {
            let on = lane.map(|lane| format!(" stream={:#x}", lane.handle));
            let on = on.unwrap_or_default();
            let mut found = calls.iter().filter(|line| line.contains(call));
            let elsewhere = |line: &&String| {
                let mut words = line.split(' ').map(|word| format!(" {word}"));
                !words.any(|word| word == on)
            };
            same("another stream is used", found.find(elsewhere), None)?;
        }
        Ok(())
    }

    /// The consumer's first use of the data. Returns whether there is one.
    fn read(&self) -> bool {
        let (world, rules) = (self.world(), self.rules);
        if rules.is_broken() {
            return false;
        }
        let Lanes {
            producer, reader, ..
        } = *rules.lanes;
        let Some(reader) = reader else {
            world.sim.host_read(self.address, crate::memory::BYTES);
            return true;
        };
        if rules.is_blocked(reader) {
            return false;
        }
        if self.cell().ask.is_unordered() && self.how != Run::Hasty {
            let busy = |lane| rules.is_busy(lane);
            if busy(reader) || producer.is_some_and(busy) {
                return false;
            }
            if let Some(producer) = producer {
                world.order(producer, reader);
            }
        }
        world.read(reader, self.address);
        true
    }

    /// Destroys the consumer's stream, and makes another one with its handle. The queued work continues.
    fn replace_reader(&self) -> Result<(), String> {
        let world = self.world();
        let reader = self
            .rules
            .lanes
            .reader
            .ok_or("the consumer has no stream")?;
        world.within(reader.place, |driver| {
            assert_eq!(driver.destroy_stream(reader.handle), Ok(()));
        });
        world.sim.switch("reuse-handles", true);
        let next = world.lane(reader.place, Blocks::No);
        world.sim.switch("reuse-handles", false);
        same("the next handle", next.handle, reader.handle)
    }

    fn drop(&self, tensor: Managed) -> Result<(), String> {
        let cell = self.cell();
        let world = self.world();
        if cell.drops == Drops::Gone {
            self.replace_reader()?;
        }
        if cell.drops != Drops::Elsewhere {
            let ((), calls) = self.unnoticed(cell.dropping, || drop(tensor))?;
            let by_owner = |call: &&String| {
                ["EventSynchronize", "Free"]
                    .iter()
                    .any(|own| call.contains(own))
            };
            let lanes = self.rules.lanes;
            let theirs = [
                Some(lanes.freed_on),
                lanes.producer,
                lanes.reader,
                lanes.bystander,
            ];
            let on = |call: &str, lane: Lane| {
                call.contains(&format!("StreamWaitEvent stream={:#x} ", lane.handle))
            };
            let waits = |call: &&String| {
                let host = ["Synchronize", "CtxRecordEvent"];
                host.iter().any(|bad| call.contains(bad))
                    || theirs.iter().flatten().any(|&lane| on(call, lane))
            };
            let mut calls = calls.iter().filter(|call| !by_owner(call));
            return same("a call waits", calls.find(waits), None);
        }
        let driver = world.driver;
        let current = move || match driver.api {
            Api::Cuda => driver.current(),
            Api::Hip => driver.device().map(|device| device.unsigned_abs() as usize),
        };
        if let Run::Ignoring(call) = self.how {
            world.sim.switch(call, true);
        }
        let there = std::thread::spawn(move || {
            hand_over();
            drop(tensor);
            current()
        });
        let after = there.join().map_err(|_| "the thread panicked")?;
        if let Run::Ignoring(call) = self.how {
            world.sim.switch(call, false);
        }
        world.sim.hand_over();
        same("current on the other thread", after, Ok(0))
    }

    /// After a failed case: releases what core has kept, so that it does not affect the next case.
    fn clear_away(&self) {
        self.log.forget();
        // Most captures have ended already.
        let _ = self.end_captures();
        // SAFETY: the owners no longer free anything.
        unsafe { dlpack_core::stream::release_captured() };
        self.collect();
    }

    fn check_drops(&self, when: &str, dropped: bool) -> Result<(), String> {
        same(when, self.log.drops(), usize::from(dropped))
    }

    fn check_clean(&self, when: &str) -> Result<(), String> {
        same(when, self.world().sim.faults(), Vec::new())
    }

    /// Checks that nothing of the case is left but its faults.
    fn finish(&self, early: bool) -> Result<Vec<String>, String> {
        let sim = &self.world().sim;
        let faults = sim.faults();
        if self.how == Run::Whole && faults.is_empty() == early {
            return Err(format!("freed too early: {early}, and found: {faults:?}"));
        }
        same("problems", self.log.problems(), Vec::new())?;
        same("events at the end", sim.live(EVENTS), 0)?;
        same("memory at the end", sim.live(ALLOCATIONS), 0)?;
        same("owners at the end", dlpack_core::stream::captured(), 0)?;
        Ok(faults)
    }
}
