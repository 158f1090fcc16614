//! The cases: everything that can differ, and which combinations are possible.

use crate::memory::Kind;
use crate::simulator::{Api, GLOBAL, RELAXED, THREAD_LOCAL};

/// The stream on which the data was written, and what the owner says about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Producer {
    Unsaid,
    Default,
    /// The default stream, by CUDA's number 1.
    One,
    PerThread,
    Blocking,
    NonBlocking,
    /// The default stream of a context other than the primary one.
    OtherDefault,
    /// A stream of that context, named only by its handle.
    OtherStream,
    /// A stream of that context, named with its context.
    OtherStreamSaid,
    /// A stream of another device.
    SecondDevice,
    /// A stream of a green context.
    Green,
}

/// The stream that the consumer passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Absent,
    NoOrder,
    /// No order; the consumer works in the producer's context, which is not the primary one.
    NoOrderBeside,
    Default,
    PerThread,
    /// The producer's own stream.
    Same,
    Blocking,
    NonBlocking,
    /// A stream of another context than the primary one: blocking (the default stream of that context waits for it) or not.
    OtherBlocking,
    OtherStream,
    SecondDevice,
    Green,
}

/// Which streams capture while the tensor is exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Captures {
    Nothing,
    Consumer,
    Producer,
    /// Producer and consumer, in one capture.
    Both,
    /// Producer and consumer, each in its own capture.
    Two,
    /// The consumer, in a capture that was broken before.
    Broken,
    /// A stream that does not belong to the tensor.
    Blocking,
    NonBlocking,
    /// A stream of the second device. In HIP it blocks every default stream.
    BlockingElsewhere,
}

/// The current context of the thread that exports and drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Current {
    First,
    /// No context; in HIP a device is always current.
    Nothing,
    Second,
    /// Contexts of the first device other than the primary one, to which the default streams belong then.
    Other,
    Green,
}

/// Whether the tensor is dropped before the end of the captures or after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Drops {
    Before,
    After,
    /// On a thread that did nothing else before; only without captures.
    Elsewhere,
    /// After the consumer's stream was destroyed, and another one got its handle; only without captures.
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    pub(crate) kind: Kind,
    pub(crate) producer: Producer,
    pub(crate) ask: Ask,
    pub(crate) captures: Captures,
    pub(crate) mode: i32,
    pub(crate) immediate: bool,
    /// Whether another thread captures than the one that exports and drops.
    pub(crate) captor: bool,
    pub(crate) current: Current,
    /// The current context when the tensor is dropped.
    pub(crate) dropping: Current,
    pub(crate) drops: Drops,
    pub(crate) driver: Abilities,
}

/// The abilities of the driver, and the speed of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Abilities {
    /// All work is done when it is queried.
    Quick,
    /// All work runs until the host waits for it.
    Slow,
    /// The driver has no `cuCtxRecordEvent`, no user objects and no memory pools, and does not number streams.
    Old,
}

const PRODUCERS: [Producer; 11] = [
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
    Producer::Green,
];

const ASKS: [Ask; 12] = [
    Ask::Absent,
    Ask::NoOrder,
    Ask::NoOrderBeside,
    Ask::Default,
    Ask::PerThread,
    Ask::Same,
    Ask::Blocking,
    Ask::NonBlocking,
    Ask::OtherBlocking,
    Ask::OtherStream,
    Ask::SecondDevice,
    Ask::Green,
];

const CURRENTS: [Current; 5] = [
    Current::First,
    Current::Nothing,
    Current::Second,
    Current::Other,
    Current::Green,
];

const MODES: [i32; 3] = [GLOBAL, THREAD_LOCAL, RELAXED];

const CAPTURES: [Captures; 8] = [
    Captures::Consumer,
    Captures::Broken,
    Captures::Producer,
    Captures::Both,
    Captures::Two,
    Captures::Blocking,
    Captures::NonBlocking,
    Captures::BlockingElsewhere,
];

impl Ask {
    pub(crate) fn is_unordered(self) -> bool {
        matches!(self, Self::NoOrder | Self::NoOrderBeside)
    }
}

impl Cell {
    fn exports() -> impl Iterator<Item = Self> + Clone {
        let pairs = |kind| {
            PRODUCERS
                .into_iter()
                .flat_map(move |producer| ASKS.into_iter().map(move |ask| (kind, producer, ask)))
        };
        let cell = |(kind, producer, ask)| Self {
            kind,
            producer,
            ask,
            captures: Captures::Nothing,
            mode: GLOBAL,
            immediate: false,
            captor: false,
            current: Current::First,
            dropping: Current::First,
            drops: Drops::After,
            driver: Abilities::Quick,
        };
        Kind::ALL
            .into_iter()
            .flat_map(pairs)
            .map(cell)
            .filter(Self::makes_sense)
    }

    /// Excludes what HIP does not have, and what no API can express.
    fn makes_sense(&self) -> bool {
        let cuda = self.kind.api() == Api::Cuda;
        let producer = match self.producer {
            Producer::One
            | Producer::PerThread
            | Producer::OtherDefault
            | Producer::OtherStream
            | Producer::OtherStreamSaid
            | Producer::Green => cuda,
            _ => true,
        };
        let ask = match self.ask {
            Ask::PerThread | Ask::OtherBlocking | Ask::OtherStream | Ask::Green => cuda,
            Ask::NoOrderBeside => matches!(
                self.producer,
                Producer::OtherDefault | Producer::OtherStream | Producer::OtherStreamSaid
            ),
            // No number means the default stream of another context, or the absence of a stream.
            Ask::Same => {
                let unsaid = self.kind.is_pinned() && self.producer == Producer::Unsaid;
                self.producer != Producer::OtherDefault && !unsaid
            }
            _ => true,
        };
        producer && ask
    }

    /// Properties that are not the subject of a case change from case to case, so that all combinations occur in the end.
    pub(crate) fn all_without_captures() -> impl Iterator<Item = Self> + Clone {
        let with = |(number, cell): (usize, Self)| {
            let mut cells = Vec::new();
            for immediate in [false, true] {
                for (turn, current) in CURRENTS.into_iter().enumerate() {
                    for (drops, driver) in [
                        (Drops::After, Abilities::Quick),
                        (Drops::Elsewhere, Abilities::Quick),
                        (Drops::Gone, Abilities::Quick),
                        (Drops::After, Abilities::Slow),
                        (Drops::Gone, Abilities::Slow),
                        (Drops::Elsewhere, Abilities::Old),
                    ] {
                        // An owner that frees without waiting makes no driver call.
                        if !immediate || driver == Abilities::Quick {
                            let more = number + turn + cells.len();
                            cells.push(Self {
                                immediate,
                                current,
                                dropping: CURRENTS[more % CURRENTS.len()],
                                drops,
                                driver,
                                ..cell
                            });
                        }
                    }
                }
            }
            cells
        };
        Self::exports()
            .enumerate()
            .flat_map(with)
            .filter(Self::is_known)
            .filter(Self::can_be_gone)
    }

    /// HIP has no contexts, and numbers streams with every driver.
    fn is_known(&self) -> bool {
        let places = [self.current, self.dropping];
        let has = |place: &Current| matches!(place, Current::First | Current::Second);
        let plain = self.driver != Abilities::Old && places.iter().all(has);
        self.kind.api() == Api::Cuda || plain
    }

    /// The producer's stream lives as long as the tensor, and default streams always live.
    fn can_be_gone(&self) -> bool {
        let made = !matches!(
            self.ask,
            Ask::Absent | Ask::Default | Ask::PerThread | Ask::Same
        );
        self.drops != Drops::Gone || made
    }

    /// The simplest of these cases, for drivers that omit an order.
    pub(crate) fn for_controls() -> impl Iterator<Item = Self> {
        let old = |cell: Self| {
            let driver = Abilities::Old;
            [cell, Self { driver, ..cell }]
        };
        Self::all_without_captures()
            .filter(|cell| !cell.immediate && cell.driver == Abilities::Quick)
            .filter(|cell| cell.current == Current::First && cell.drops == Drops::After)
            .map(|cell| Self {
                dropping: Current::First,
                ..cell
            })
            .flat_map(old)
            .filter(|cell| cell.kind.api() == Api::Cuda || cell.driver == Abilities::Quick)
    }

    pub(crate) fn all_with_captures(drops: Drops) -> impl Iterator<Item = Self> + Clone {
        let with = move |(number, cell): (usize, Self)| {
            let mut cells = Vec::new();
            for captures in CAPTURES {
                for (turn, current) in CURRENTS.into_iter().enumerate() {
                    for immediate in [false, true] {
                        for driver in [Abilities::Quick, Abilities::Slow, Abilities::Old] {
                            if immediate && driver != Abilities::Quick {
                                continue;
                            }
                            let more = number + turn + cells.len();
                            cells.push(Self {
                                captures,
                                mode: MODES[more % MODES.len()],
                                captor: more % 4 == 0,
                                current,
                                dropping: CURRENTS[more / 2 % CURRENTS.len()],
                                immediate,
                                drops,
                                driver,
                                ..cell
                            });
                        }
                    }
                }
            }
            cells
        };
        Self::exports()
            .enumerate()
            .flat_map(with)
            .filter(Self::is_known)
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
            Captures::Consumer | Captures::Broken => consumer && !same,
            Captures::Producer => producer,
            Captures::Both | Captures::Two => producer && consumer && !same,
            Captures::Nothing
            | Captures::Blocking
            | Captures::NonBlocking
            | Captures::BlockingElsewhere => true,
        };
        // An owner that frees without waiting must ensure itself that its own stream does not capture.
        possible && (!self.immediate || self.captures == Captures::Consumer)
    }
}
