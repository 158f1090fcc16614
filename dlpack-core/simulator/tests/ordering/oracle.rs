//! What has to come of a case: the rules, once more.

use crate::cells::{Abilities, Captures, Cell, Current, Drops, Producer};
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
    /// Within one capture, whose graph says what comes behind what.
    Joined,
    HostWaits,
    /// A capture would be broken, or a stream drawn into one.
    Refused,
}

/// What has to be over before the owner is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    /// Nothing, or what the producer's stream sees to.
    Free,
    /// The producer's stream, since the host takes the memory back.
    Own,
    /// What the default stream of this place waits for.
    Default(usize),
    /// A stream of which nothing is known when the tensor is dropped.
    Stream,
    /// Everything.
    All,
    /// All launches.
    Graphs,
}

/// What a drop comes to. It never breaks a capture, and never makes anybody wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Dropped,
    /// Kept until somebody looks after it.
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

    /// Whether a legacy stream cannot be used, as a stream that it waits for captures.
    pub(crate) fn is_blocked(&self, lane: Lane) -> bool {
        lane.blocks == Blocks::Legacy && self.is_legacy_blocked(lane.place)
    }

    /// In HIP by a stream of any device.
    fn is_legacy_blocked(&self, place: usize) -> bool {
        let everywhere = self.cell.kind.api() == Api::Hip;
        let mut all = self.captures.iter().flatten();
        all.any(|lane| (everywhere || lane.place == place) && blocks_legacy(lane))
    }

    pub(crate) fn is_busy(&self, lane: Lane) -> bool {
        self.capture(lane).is_some() || self.is_blocked(lane)
    }

    /// Whether the capture is broken on which the consumer works.
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
        let said = self.cell.producer == Producer::OtherDefault;
        if self.cell.ask.is_unordered() {
            return Export::Silent;
        }
        match (producer, reader) {
            (None, None) => Export::Silent,
            (None, Some(_)) => Export::Looked,
            (Some(own), Some(reader)) if own == reader => match own.blocks {
                // Both are the default stream by their numbers.
                Blocks::Legacy if !said && self.cell.kind.is_on_host() => Export::Looked,
                Blocks::Legacy if !said => Export::Silent,
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

    /// Before the owner is dropped, of a tensor that was exported.
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
            // The thread that drops may be another one, with another stream of that name.
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

    /// Whether the owner cannot free on its stream, as far as core can know: of a default stream nobody said in which
    /// context it is, so that it is perhaps the one that is current now, or the primary one.
    fn is_own_busy(&self, current: Current) -> bool {
        let Some(own) = self.lanes.producer else {
            return false;
        };
        let places = match self.cell.producer {
            Producer::Unsaid | Producer::Default | Producer::One | Producer::PerThread => {
                vec![self.world.first, current.home(self.world)]
            }
            _ => vec![own.place],
        };
        let mut places = places.into_iter();
        places.any(|place| self.is_busy(Lane { place, ..own }))
    }

    /// What comes of a drop while the captures go on, where this is current.
    pub(crate) fn fate(&self, release: Release, current: Current) -> Fate {
        if self.cell.immediate {
            return Fate::Dropped;
        }
        let busy = self.is_own_busy(current);
        let slow = self.cell.driver == Abilities::Slow;
        // The events of the owner's own work are for the owner.
        let dropped = match release {
            Release::Graphs => return Fate::KeptForGraphs,
            Release::Free => !busy,
            Release::Own => !busy && !slow,
            Release::Default(place) => {
                !busy && !slow && self.is_known(place) && !self.is_legacy_blocked(place)
            }
            Release::Stream | Release::All => false,
        };
        if dropped { Fate::Dropped } else { Fate::Waits }
    }

    /// Whether the context is certain to live when the tensor is dropped.
    fn is_known(&self, place: usize) -> bool {
        let dropping = self.cell.dropping.home(self.world);
        let current = self.cell.drops != Drops::Elsewhere && dropping == place;
        let own = self.cell.producer;
        let owned = place == self.world.other
            && matches!(
                own,
                Producer::OtherDefault | Producer::OtherStream | Producer::OtherStreamSaid
            );
        place == self.world.first || current || owned
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
            Release::Free | Release::Graphs => false,
            Release::Default(_) if call == "ignore-legacy" => {
                waited_for && (on_host || reader != Some(freed_on))
            }
            _ if nothing_to_see => false,
            // Whatever is recorded on a default stream, its blocking streams come behind.
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
                // An event of a context that may be destroyed is passed on to the primary one.
                let passed_on = beside && by_event;
                ["ignore-ctx-record", "ignore-query"].contains(&call) || passed_on
            }
        };
        export || release
    }
}
