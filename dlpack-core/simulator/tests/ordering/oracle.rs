//! What has to come of a case: the rules, once more.

use crate::cells::{Ask, Cell};
use crate::lanes::Lanes;
use crate::memory::{Blocks, Lane, World};
use crate::simulator::Api;

/// How the consumer is put behind the producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Export {
    /// Nobody has to wait, and nothing is called.
    Silent,
    /// Nobody has to wait, but it has to be known whether the consumer captures.
    Looked,
    Event,
    HostWaits,
    /// A capture would be broken, or a stream drawn into one.
    Refused,
    /// The driver cannot record an event of one device on a stream of another.
    TwoDevices,
}

/// What has to be over before the owner is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    /// Nothing, or what the producer's stream sees to.
    Free,
    /// The producer's stream, since the host takes the memory back.
    HostWaitsForOwn,
    /// What the legacy stream waits for.
    Legacy,
    /// Everything.
    All,
    /// All launches.
    Graphs,
}

/// What a drop comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Dropped,
    /// Kept until the captures are over.
    Waits,
    /// The same, but asking the driver has broken the captures of this place: nothing tells beforehand that a stream
    /// captures which blocks nobody.
    Breaks(usize),
    KeptForGraphs,
}

pub(crate) struct Rules<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) lanes: &'a Lanes,
    pub(crate) world: &'a World,
    /// The captures at the time of the export.
    pub(crate) captures: &'a [Vec<Lane>],
}

fn blocks_legacy(lane: &Lane) -> bool {
    matches!(lane.blocks, Blocks::PerThread | Blocks::Yes)
}

impl Rules<'_> {
    pub(crate) fn capture(&self, lane: Lane) -> Option<usize> {
        self.captures
            .iter()
            .position(|capture| capture.contains(&lane))
    }

    /// Whether a legacy stream cannot be used, as a stream that it waits for captures.
    pub(crate) fn is_blocked(&self, lane: Lane) -> bool {
        lane.blocks == Blocks::Legacy && self.is_legacy_blocked(lane.place)
    }

    fn is_legacy_blocked(&self, place: usize) -> bool {
        let mut all = self.captures.iter().flatten();
        all.any(|lane| lane.place == place && blocks_legacy(lane))
    }

    pub(crate) fn is_busy(&self, lane: Lane) -> bool {
        self.capture(lane).is_some() || self.is_blocked(lane)
    }

    pub(crate) fn is_same(&self) -> bool {
        self.lanes.producer.is_some() && self.lanes.producer == self.lanes.reader
    }

    pub(crate) fn export(&self) -> Export {
        let Lanes {
            producer, reader, ..
        } = *self.lanes;
        if self.cell.ask == Ask::NoOrder || self.is_same() {
            return Export::Silent;
        }
        match (producer, reader) {
            (None, None) => Export::Silent,
            (None, Some(_)) => Export::Looked,
            (Some(producer), None) if self.is_busy(producer) => Export::Refused,
            (Some(_), None) => Export::HostWaits,
            (Some(producer), Some(reader)) => {
                if self.is_blocked(producer) || self.is_blocked(reader) {
                    return Export::Refused;
                }
                match (self.capture(producer), self.capture(reader)) {
                    (None, Some(_)) => Export::HostWaits,
                    (own, other) if own != other => Export::Refused,
                    _ if self.cell.kind.api() == Api::Hip && producer.place != reader.place => {
                        Export::TwoDevices
                    }
                    _ => Export::Event,
                }
            }
        }
    }

    /// Before the owner is dropped, of a tensor that was exported.
    pub(crate) fn release(&self) -> Release {
        let Some(reader) = self.lanes.reader else {
            return Release::Free;
        };
        // What the legacy stream of the first place waits for, or what that is itself.
        let to_all_threads = reader.place == self.world.first && reader.blocks != Blocks::No;
        let in_graph = self.capture(reader).is_some();
        match self.cell.ask {
            Ask::NoOrder => Release::All,
            // The thread that drops may be another one, with another stream of that name.
            _ if self.is_same() && reader.blocks == Blocks::PerThread => Release::Legacy,
            _ if self.is_same() && self.cell.kind.is_on_host() => Release::HostWaitsForOwn,
            _ if self.is_same() => Release::Free,
            _ if in_graph => Release::Graphs,
            _ if to_all_threads => Release::Legacy,
            _ => Release::All,
        }
    }

    /// What comes of a drop while the captures go on.
    pub(crate) fn fate(&self, release: Release) -> Fate {
        if self.cell.immediate {
            return Fate::Dropped;
        }
        let busy = self.lanes.producer.is_some_and(|lane| self.is_busy(lane));
        let on_host = self.cell.kind.is_on_host();
        let first = self.world.first;
        match release {
            Release::Graphs => Fate::KeptForGraphs,
            Release::Free | Release::HostWaitsForOwn if busy => Fate::Waits,
            Release::Free | Release::HostWaitsForOwn => Fate::Dropped,
            Release::Legacy | Release::All if busy && !on_host => Fate::Waits,
            Release::Legacy | Release::All if self.is_legacy_blocked(first) => Fate::Waits,
            Release::Legacy => Fate::Dropped,
            Release::All => {
                // A second device of HIP's has no name here: nothing is done about it.
                let own = self.lanes.producer.map(|lane| lane.place);
                let own = own.filter(|&place| place != first && self.cell.kind.api() == Api::Cuda);
                let captures = |place| {
                    let mut all = self.captures.iter().flatten();
                    all.any(|lane| lane.place == place)
                };
                if captures(first) {
                    return Fate::Breaks(first);
                }
                match own {
                    Some(own) if self.is_legacy_blocked(own) => Fate::Waits,
                    Some(own) if captures(own) => Fate::Breaks(own),
                    _ => Fate::Dropped,
                }
            }
        }
    }

    /// Whether a tensor that is freed at once is freed too early. `elsewhere`: on another thread.
    pub(crate) fn races_if_immediate(&self, elsewhere: bool) -> bool {
        let Some(reader) = self.lanes.reader else {
            return false;
        };
        if self.cell.kind.is_on_host() {
            return true;
        }
        let freed_on = self.lanes.freed_on;
        if elsewhere && freed_on.blocks == Blocks::PerThread {
            // Its stream of that name is another one, and only the legacy stream is ordered with both.
            return reader.blocks != Blocks::Legacy;
        }
        !reader.is_ordered_with(freed_on)
    }

    /// Whether the case goes wrong with a driver in which this call orders nothing.
    pub(crate) fn hangs_on(&self, call: &str) -> bool {
        let Lanes {
            producer, reader, ..
        } = *self.lanes;
        let ordered = match (producer, reader) {
            (Some(producer), Some(reader)) => producer.is_ordered_with(reader),
            _ => false,
        };
        if self.export() == Export::TwoDevices {
            // The owner is dropped at once, and waits for its own work.
            return self.cell.kind.is_on_host() && call == "ignore-event-synchronize";
        }
        let by_event = ["ignore-record", "ignore-wait"].contains(&call);
        let export = match self.export() {
            Export::Event => by_event && !ordered,
            Export::HostWaits => call == "ignore-stream-synchronize",
            _ => false,
        };
        let on_host = self.cell.kind.is_on_host();
        let freed_on = self.lanes.freed_on;
        let freed_behind = reader.is_some_and(|reader| reader.is_ordered_with(freed_on));
        let waited_for = reader.is_some_and(|reader| blocks_legacy(&reader));
        let release = match self.release() {
            Release::Free | Release::Graphs => false,
            Release::HostWaitsForOwn => call == "ignore-stream-synchronize",
            Release::Legacy if call == "ignore-legacy" => {
                waited_for && (on_host || reader != Some(freed_on))
            }
            Release::Legacy if !on_host && freed_behind => false,
            Release::Legacy if on_host => {
                ["ignore-record", "ignore-event-synchronize"].contains(&call)
            }
            Release::Legacy => by_event,
            Release::All if !on_host && freed_behind => false,
            Release::All if self.cell.kind.api() == Api::Hip || !self.cell.records_contexts => {
                call == "ignore-synchronize-all"
            }
            Release::All if on_host => {
                ["ignore-ctx-record", "ignore-event-synchronize"].contains(&call)
            }
            Release::All => ["ignore-ctx-record", "ignore-wait"].contains(&call),
        };
        export || release
    }
}
