//! The streams of a case.

use dlpack_core::StreamHandle;

use crate::cells::{Ask, Captures, Cell, Current, Producer};
use crate::memory::{Blocks, Kind, Lane, World};
use crate::simulator::Api;

/// The streams of a case.
pub(crate) struct Lanes {
    /// The stream with the pending write, if there is one.
    pub(crate) producer: Option<Lane>,
    pub(crate) named_stream: Option<StreamHandle>,
    /// The stream on which the consumer reads; `None` for the host.
    pub(crate) reader: Option<Lane>,
    /// The number that the consumer passes.
    pub(crate) number: Option<i64>,
    pub(crate) freed_on: Lane,
    /// A stream that is used only by a capture.
    pub(crate) bystander: Option<Lane>,
}

impl Lanes {
    pub(crate) fn of(cell: &Cell, world: &World) -> Self {
        let (first, other) = (world.first, world.other);
        let home = cell.home(world);
        let legacy = world.lane(home, Blocks::Legacy);
        // Its handle is valid whatever context is current.
        let green = || Lane {
            place: first,
            ..world.lane(world.green, Blocks::No)
        };
        let lane = match cell.producer {
            Producer::Unsaid | Producer::Default | Producer::One => legacy,
            Producer::PerThread => world.lane(home, Blocks::PerThread),
            Producer::Blocking => world.lane(first, Blocks::Yes),
            Producer::NonBlocking => world.lane(first, Blocks::No),
            Producer::OtherDefault => world.lane(other, Blocks::Legacy),
            Producer::OtherStream | Producer::OtherStreamSaid => world.lane(other, Blocks::No),
            Producer::SecondDevice => world.lane(world.second, Blocks::No),
            Producer::Green => green(),
        };
        let handle = if cell.producer == Producer::One {
            1
        } else {
            lane.handle
        };
        let named_stream = match cell.producer {
            Producer::Unsaid => None,
            Producer::OtherDefault | Producer::OtherStreamSaid => {
                Some(in_context(named(handle), other))
            }
            _ => Some(named(handle)),
        };
        let nothing_pending = cell.producer == Producer::Unsaid && cell.kind.is_pinned();
        let producer = (!nothing_pending).then_some(lane);

        let default = i64::from(cell.kind.api() == Api::Cuda);
        let numbered = |lane: Lane| {
            let number = i64::try_from(lane.handle).expect("a handle is no large number");
            (Some(lane), Some(number))
        };
        let made = |place, blocks| numbered(world.lane(place, blocks));
        let (reader, number) = match cell.ask {
            Ask::Absent if cell.kind.is_on_host() => (None, None),
            Ask::Absent => (Some(legacy), None),
            Ask::NoOrder => (made(first, Blocks::No).0, Some(-1)),
            Ask::NoOrderBeside => (made(other, Blocks::No).0, Some(-1)),
            Ask::Default => (Some(legacy), Some(default)),
            Ask::PerThread => made(home, Blocks::PerThread),
            Ask::Same if lane.blocks == Blocks::Legacy => (Some(legacy), Some(default)),
            Ask::Same => (
                Some(lane),
                Some(i64::try_from(lane.handle).expect("a handle is no large number")),
            ),
            Ask::Blocking => made(first, Blocks::Yes),
            Ask::NonBlocking => made(first, Blocks::No),
            Ask::OtherBlocking => made(other, Blocks::Yes),
            Ask::OtherStream => made(other, Blocks::No),
            Ask::SecondDevice => made(world.second, Blocks::No),
            Ask::Green => numbered(green()),
        };
        let bystander = match cell.captures {
            Captures::Blocking => Some(world.lane(first, Blocks::Yes)),
            Captures::NonBlocking => Some(world.lane(first, Blocks::No)),
            Captures::BlockingElsewhere => Some(world.lane(world.second, Blocks::Yes)),
            _ => None,
        };
        Self {
            producer,
            named_stream,
            reader,
            number,
            freed_on: lane,
            bystander,
        }
    }

    /// The streams that capture: one list for each capture, which begins on the first stream of its list.
    pub(crate) fn captures(&self, captures: Captures) -> Vec<Vec<Lane>> {
        let both = (self.freed_on, self.reader.unwrap_or(self.freed_on));
        match captures {
            Captures::Nothing => vec![],
            Captures::Consumer | Captures::Broken => vec![vec![both.1]],
            Captures::Producer => vec![vec![both.0]],
            Captures::Both => vec![vec![both.0, both.1]],
            Captures::Two => vec![vec![both.0], vec![both.1]],
            Captures::Blocking | Captures::NonBlocking | Captures::BlockingElsewhere => {
                vec![self.bystander.into_iter().collect()]
            }
        }
    }
}

impl Cell {
    /// The context or device of the export.
    pub(crate) fn home(&self, world: &World) -> usize {
        self.current.home(world, self.kind)
    }
}

impl Current {
    /// The context to which the numbers of default streams refer, for memory of this kind on the first device. Memory that the
    /// host reads is on no device.
    pub(crate) fn home(self, world: &World, kind: Kind) -> usize {
        match self {
            Self::Other => world.other,
            Self::Green => world.green,
            Self::Second if kind.is_on_host() => world.second,
            Self::First | Self::Nothing | Self::Second => world.first,
        }
    }
}

#[expect(unsafe_code, reason = "`from_raw` requires that the stream lives")]
fn named(handle: usize) -> StreamHandle {
    // SAFETY: the streams of a case live until the next case begins, and all its tensors are dropped before.
    unsafe { StreamHandle::from_raw(handle) }
}

#[expect(
    unsafe_code,
    reason = "`in_context` requires the context of the stream"
)]
fn in_context(stream: StreamHandle, context: usize) -> StreamHandle {
    // SAFETY: the stream was made in this context, which lives until the next case begins.
    unsafe { stream.in_context(context) }
}
