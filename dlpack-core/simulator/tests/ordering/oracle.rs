//! The expected result of a case: the rules, written down independently of the code.

use crate::cells::{Abilities, Captures, Cell, Current, Drops, Producer};
use crate::lanes::Lanes;
use crate::memory::{Blocks, Kind, Lane, World};
use crate::simulator::Api;

/// How the consumer is ordered after the producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Export {
    /// No wait is needed, and no call is made.
    Silent,
    /// No wait is needed, but core queries whether the consumer captures.
    Looked,
    Event,
    /// Within one capture, whose graph contains the order.
    Joined,
    HostWaits,
    /// The export would break a capture, or join a stream to one.
    Refused,
}

/// What must be complete before the owner is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    /// Nothing, or only what the producer's stream orders itself.
    Free,
    /// As `Free`, for an owner that frees on the default stream of this context.
    FreeIn(usize),
    /// The work of the producer's stream, because the host reuses the memory.
    Own,
    /// The work for which the default stream of this context waits.
    Default(usize),
    /// The work of a stream of which nothing is known when the tensor is dropped.
    Stream,
    /// All work.
    All,
    /// All launches of graphs.
    Graphs,
}

/// The result of a drop. It never breaks a capture, and never waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Dropped,
    /// Kept until a sweep finds its work complete.
    Waits,
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

    /// Whether a legacy stream cannot be used, because a stream for which it waits captures.
    pub(crate) fn is_blocked(&self, lane: Lane) -> bool {
        lane.blocks == Blocks::Legacy && self.is_legacy_blocked(lane.place)
    }

    /// In HIP, a capture on any device blocks the legacy stream.
    fn is_legacy_blocked(&self, place: usize) -> bool {
        let everywhere = self.cell.kind.api() == Api::Hip;
        let mut all = self.captures.iter().flatten();
        all.any(|lane| (everywhere || lane.place == place) && blocks_legacy(lane))
    }

    pub(crate) fn is_busy(&self, lane: Lane) -> bool {
        self.capture(lane).is_some() || self.is_blocked(lane)
    }

    /// Whether the consumer's stream is in a broken capture.
    pub(crate) fn is_broken(&self) -> bool {
        self.cell.captures == Captures::Broken
    }

    pub(crate) fn is_same(&self) -> bool {
        self.lanes.producer.is_some() && self.lanes.producer == self.lanes.reader
    }

    pub(crate) fn export(&self) -> Export {
        let Lanes {
            producer, reader, ..
        } = *self.lanes;
        let names_context = self.cell.producer == Producer::OtherDefault;
        if self.cell.ask.is_unordered() {
            return Export::Silent;
        }
        match (producer, reader) {
            (None, None) => Export::Silent,
            (None, Some(_)) => Export::Looked,
            (Some(own), Some(reader)) if own == reader => match own.blocks {
                // The numbers of both streams mean the default stream.
                Blocks::Legacy if !names_context && self.cell.kind.is_on_host() => Export::Looked,
                // CUDA is asked for the current context, whose default stream this is.
                Blocks::Legacy if !names_context && self.cell.kind == Kind::Cuda => Export::Looked,
                Blocks::Legacy if !names_context => Export::Silent,
                Blocks::Legacy if self.is_blocked(own) => Export::Refused,
                _ => Export::Looked,
            },
            (Some(producer), None) if self.is_busy(producer) => Export::Refused,
            (Some(_), None) => Export::HostWaits,
            (Some(producer), Some(reader)) => {
                if self.is_blocked(producer) || self.is_blocked(reader) {
                    return Export::Refused;
                }
                match (self.capture(producer), self.capture(reader)) {
                    (None, Some(_)) => Export::HostWaits,
                    (own, other) if own != other => Export::Refused,
                    (Some(_), _) => Export::Joined,
                    _ => Export::Event,
                }
            }
        }
    }

    /// What must be complete before the owner of an exported tensor is dropped.
    pub(crate) fn release(&self) -> Release {
        let Some(reader) = self.lanes.reader else {
            return Release::Free;
        };
        let numbered = self.cell.kind.api() == Api::Cuda && self.cell.driver != Abilities::Old;
        match self.cell.ask {
            ask if ask.is_unordered() => Release::All,
            _ if self.capture(reader).is_some() => Release::Graphs,
            _ if self.is_same()
                && reader.blocks == Blocks::Legacy
                && self.cell.kind.is_on_host()
                && self.cell.producer != Producer::OtherDefault =>
            {
                Release::Default(reader.place)
            }
            // The number means this stream only in this context.
            _ if self.is_same()
                && reader.blocks == Blocks::Legacy
                && self.cell.kind == Kind::Cuda
                && self.cell.producer != Producer::OtherDefault =>
            {
                Release::FreeIn(reader.place)
            }
            // The dropping thread may be another one, whose stream of that number is another stream.
            _ if self.is_same() && reader.blocks != Blocks::PerThread => {
                match self.cell.kind.is_on_host() {
                    true => Release::Own,
                    false => Release::Free,
                }
            }
            _ if reader.blocks == Blocks::Legacy => Release::Default(reader.place),
            _ if !numbered && reader.blocks != Blocks::No => Release::Default(reader.place),
            _ => Release::Stream,
        }
    }

    /// Whether the owner cannot free on its stream, as far as core can know. The context of a default stream may be unknown: it
    /// can be the current one, or the primary one.
    fn is_own_busy(&self, current: Current) -> bool {
        let Some(own) = self.lanes.producer else {
            return false;
        };
        let places = match self.cell.producer {
            Producer::Unsaid | Producer::Default | Producer::One | Producer::PerThread => {
                let home = current.home(self.world, self.cell.kind);
                match self.cell.kind.is_on_host() {
                    true => vec![home],
                    false => vec![self.world.first, home],
                }
            }
            _ => vec![own.place],
        };
        let mut places = places.into_iter();
        places.any(|place| self.is_busy(Lane { place, ..own }))
    }

    /// The result of a drop while the captures are active and this context is current.
    pub(crate) fn fate(&self, release: Release, current: Current) -> Fate {
        if self.cell.immediate {
            return Fate::Dropped;
        }
        let busy = self.is_own_busy(current);
        let slow = self.cell.driver == Abilities::Slow;
        // The owner waits for its own work by itself.
        let dropped = match release {
            Release::Graphs => return Fate::KeptForGraphs,
            Release::Free => !busy,
            Release::Own => !busy && !slow,
            Release::FreeIn(place) => {
                let first = place == self.world.first;
                (first || self.is_current(place)) && !self.is_legacy_blocked(place)
            }
            Release::Default(place) => {
                !busy && !slow && self.is_known(place) && !self.is_legacy_blocked(place)
            }
            Release::Stream | Release::All => false,
        };
        if dropped { Fate::Dropped } else { Fate::Waits }
    }

    /// Whether the context is current when the tensor is dropped.
    fn is_current(&self, place: usize) -> bool {
        let dropping = self.cell.dropping.home(self.world, self.cell.kind);
        self.cell.drops != Drops::Elsewhere && dropping == place
    }

    /// Whether the context is certain to live when the tensor is dropped.
    fn is_known(&self, place: usize) -> bool {
        let current = self.is_current(place);
        let own = self.cell.producer;
        let owned = place == self.world.other
            && matches!(
                own,
                Producer::OtherDefault | Producer::OtherStream | Producer::OtherStreamSaid
            );
        [self.world.first, self.world.second].contains(&place) || current || owned
    }

    /// Whether a tensor that is freed without waiting is freed too early. `elsewhere`: on another thread.
    pub(crate) fn races_if_immediate(&self, elsewhere: bool) -> bool {
        let Some(reader) = self.lanes.reader else {
            return false;
        };
        if self.cell.kind.is_on_host() {
            return true;
        }
        let freed_on = self.lanes.freed_on;
        if elsewhere && freed_on.blocks == Blocks::PerThread {
            // On another thread the number means another stream, and only the legacy stream is ordered with both.
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
        let nothing_to_see = !on_host && freed_behind;
        let release = match self.release() {
            Release::Free | Release::FreeIn(_) | Release::Graphs => false,
            Release::Default(_) if call == "ignore-legacy" => {
                waited_for && (on_host || reader != Some(freed_on))
            }
            _ if nothing_to_see => false,
            // Blocking streams wait for whatever is recorded on the default stream.
            Release::Default(place) if call == "ignore-query" => {
                on_host || freed_on.place != place || !blocks_legacy(&freed_on)
            }
            Release::Own | Release::Default(_) => ["ignore-record", "ignore-query"].contains(&call),
            Release::Stream | Release::All if self.cell.kind.api() == Api::Hip => {
                call == "ignore-synchronize-all"
            }
            Release::Stream | Release::All if self.cell.driver == Abilities::Old => {
                call == "ignore-synchronize-all"
            }
            Release::Stream | Release::All => {
                let beside = reader.is_some_and(|lane| lane.place == self.world.other);
                // The order with a context that may be destroyed is made by an event of the primary context, and that with all
                // devices by one event for all.
                let everywhere = on_host && self.release() == Release::All;
                let passed_on = (beside || everywhere) && by_event;
                ["ignore-ctx-record", "ignore-query"].contains(&call) || passed_on
            }
        };
        export || release
    }
}
