//! The cases: all that can differ, and which combinations make sense.

use crate::memory::Kind;
use crate::simulator::{Api, GLOBAL, RELAXED, THREAD_LOCAL};

/// Where the data was written, and what its owner says of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Producer {
    Unsaid,
    Default,
    /// CUDA's number 1 for the same stream.
    One,
    PerThread,
    Blocking,
    NonBlocking,
    /// The default stream of a context beside the primary one.
    OtherDefault,
    /// A stream of that context, of which only the handle is said.
    OtherStream,
    /// The same, with its context.
    OtherStreamSaid,
    /// A stream of another device.
    SecondDevice,
}

/// What the consumer passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Absent,
    NoOrder,
    Default,
    PerThread,
    /// The producer's own stream.
    Same,
    Blocking,
    NonBlocking,
    /// A stream of the context beside the primary one, for which the default stream of that context waits, or nobody.
    OtherBlocking,
    OtherStream,
}

/// Which streams capture while the tensor is exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Captures {
    Nobody,
    Consumer,
    Producer,
    /// Both, in one capture.
    Both,
    /// Both, each in its own.
    Two,
    /// A stream that has nothing to do with the tensor.
    Blocking,
    NonBlocking,
}

/// What is current on the thread that exports and drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Current {
    First,
    /// Nothing; in HIP there is always a device.
    Nothing,
    Second,
}

/// Whether the tensor is dropped before the end of the captures or after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Drops {
    Before,
    After,
    /// On a thread that did nothing else before; only without captures.
    Elsewhere,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    pub(crate) kind: Kind,
    pub(crate) producer: Producer,
    pub(crate) ask: Ask,
    pub(crate) captures: Captures,
    pub(crate) mode: i32,
    pub(crate) immediate: bool,
    pub(crate) current: Current,
    pub(crate) drops: Drops,
    /// Whether the driver has `cuCtxRecordEvent`.
    pub(crate) records_contexts: bool,
}

const PRODUCERS: [Producer; 10] = [
    Producer::Unsaid,
    Producer::Default,
    Producer::One,
    Producer::PerThread,
    Producer::Blocking,
    Producer::NonBlocking,
    Producer::OtherDefault,
    Producer::OtherStream,
    Producer::OtherStreamSaid,
    Producer::SecondDevice,
];

const ASKS: [Ask; 9] = [
    Ask::Absent,
    Ask::NoOrder,
    Ask::Default,
    Ask::PerThread,
    Ask::Same,
    Ask::Blocking,
    Ask::NonBlocking,
    Ask::OtherBlocking,
    Ask::OtherStream,
];

const CAPTURES: [Captures; 6] = [
    Captures::Consumer,
    Captures::Producer,
    Captures::Both,
    Captures::Two,
    Captures::Blocking,
    Captures::NonBlocking,
];

impl Cell {
    fn exports() -> impl Iterator<Item = Self> {
        let pairs = |kind| {
            PRODUCERS
                .into_iter()
                .flat_map(move |producer| ASKS.into_iter().map(move |ask| (kind, producer, ask)))
        };
        let cell = |(kind, producer, ask)| Self {
            kind,
            producer,
            ask,
            captures: Captures::Nobody,
            mode: GLOBAL,
            immediate: false,
            current: Current::First,
            drops: Drops::After,
            records_contexts: true,
        };
        Kind::ALL
            .into_iter()
            .flat_map(pairs)
            .map(cell)
            .filter(Self::makes_sense)
    }

    /// What HIP has no word for, or nobody can say.
    fn makes_sense(&self) -> bool {
        let cuda = self.kind.api() == Api::Cuda;
        let producer = match self.producer {
            Producer::One
            | Producer::PerThread
            | Producer::OtherDefault
            | Producer::OtherStream
            | Producer::OtherStreamSaid => cuda,
            _ => true,
        };
        let ask = match self.ask {
            Ask::PerThread | Ask::OtherBlocking | Ask::OtherStream => cuda,
            // No number stands for the default stream of another context; and of no stream.
            Ask::Same => {
                let unsaid = self.kind.is_pinned() && self.producer == Producer::Unsaid;
                self.producer != Producer::OtherDefault && !unsaid
            }
            _ => true,
        };
        // Work in a context that is neither the device's primary one nor the producer's is not looked for.
        let in_other = matches!(
            self.producer,
            Producer::OtherDefault | Producer::OtherStream | Producer::OtherStreamSaid
        );
        let asks_there = matches!(self.ask, Ask::OtherBlocking | Ask::OtherStream);
        producer && ask && (!asks_there || in_other)
    }

    pub(crate) fn all_without_captures() -> impl Iterator<Item = Self> {
        let with = |cell: Self| {
            let mut cells = Vec::new();
            for immediate in [false, true] {
                for current in [Current::First, Current::Nothing, Current::Second] {
                    for drops in [Drops::After, Drops::Elsewhere] {
                        for records_contexts in [true, false] {
                            cells.push(Self {
                                immediate,
                                current,
                                drops,
                                records_contexts,
                                ..cell
                            });
                        }
                    }
                }
            }
            cells
        };
        Self::exports()
            .flat_map(with)
            .filter(|cell| cell.kind.api() == Api::Cuda || cell.records_contexts)
            .filter(|cell| cell.kind.api() == Api::Cuda || cell.current != Current::Nothing)
    }

    /// The plainest of those, for drivers that do not order.
    pub(crate) fn for_controls() -> impl Iterator<Item = Self> {
        Self::all_without_captures()
            .filter(|cell| !cell.immediate)
            .filter(|cell| cell.current == Current::First && cell.drops == Drops::After)
    }

    pub(crate) fn all_with_captures(drops: Drops) -> impl Iterator<Item = Self> {
        let with = move |cell: Self| {
            let mut cells = Vec::new();
            for captures in CAPTURES {
                // What is current has nothing to do with the mode: both differ at once, for fewer cases.
                for (mode, current) in [
                    (GLOBAL, Current::First),
                    (THREAD_LOCAL, Current::Nothing),
                    (RELAXED, Current::Second),
                ] {
                    for immediate in [false, true] {
                        for records_contexts in [true, false] {
                            cells.push(Self {
                                captures,
                                mode,
                                current,
                                immediate,
                                drops,
                                records_contexts,
                                ..cell
                            });
                        }
                    }
                }
            }
            cells
        };
        Self::exports()
            .flat_map(with)
            .filter(|cell| cell.kind.api() == Api::Cuda || cell.records_contexts)
            .filter(Self::can_capture)
    }

    fn can_capture(&self) -> bool {
        let producer = !matches!(
            self.producer,
            Producer::Unsaid | Producer::Default | Producer::One | Producer::OtherDefault
        );
        let consumer = match self.ask {
            Ask::Absent | Ask::Default => false,
            Ask::Same => producer,
            _ => true,
        };
        let same = self.ask == Ask::Same
            || (self.ask == Ask::PerThread && self.producer == Producer::PerThread);
        let possible = match self.captures {
            Captures::Consumer => consumer && !same,
            Captures::Producer => producer,
            Captures::Both | Captures::Two => producer && consumer && !same,
            Captures::Nobody | Captures::Blocking | Captures::NonBlocking => true,
        };
        // Who frees at once sees to it himself that his own stream can be freed on.
        possible && (!self.immediate || self.captures == Captures::Consumer)
    }
}
