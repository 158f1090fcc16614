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
    /// A stream of a green context.
    Green,
}

/// What the consumer passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Absent,
    NoOrder,
    /// The same, and it works in the context beside the primary one, which is the producer's.
    NoOrderBeside,
    Default,
    PerThread,
    /// The producer's own stream.
    Same,
    Blocking,
    NonBlocking,
    /// A stream of the context beside the primary one, for which the default stream of that context waits, or nobody.
    OtherBlocking,
    OtherStream,
    SecondDevice,
    Green,
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
    /// That of the consumer, and something has broken it.
    Broken,
    /// A stream that has nothing to do with the tensor.
    Blocking,
    NonBlocking,
    /// One of the second device, which in HIP is in the way of every default stream.
    BlockingElsewhere,
}

/// What is current on the thread that exports and drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Current {
    First,
    /// Nothing; in HIP there is always a device.
    Nothing,
    Second,
    /// Contexts of the first device beside its primary one: then they have the default streams.
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
    /// When the consumer's stream is gone, and another one has its handle; only without captures.
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
    /// Whether another thread captures, and not the one that exports and drops.
    pub(crate) captor: bool,
    pub(crate) current: Current,
    /// What is current where the tensor is dropped.
    pub(crate) dropping: Current,
    pub(crate) drops: Drops,
    pub(crate) driver: Abilities,
}

/// What the driver can, and how long the device takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Abilities {
    /// Nothing is running any more when somebody asks.
    Quick,
    /// Everything runs until the host waits for it.
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
            captures: Captures::Nobody,
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

    /// What HIP has no word for, or nobody can say.
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
            // No number stands for the default stream of another context; and of no stream.
            Ask::Same => {
                let unsaid = self.kind.is_pinned() && self.producer == Producer::Unsaid;
                self.producer != Producer::OtherDefault && !unsaid
            }
            _ => true,
        };
        producer && ask
    }

    /// What is not the subject of a case differs from one to the next, so that in the end everything meets everything.
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
                        // Who frees at once asks the driver nothing.
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

    /// HIP has no contexts, and always numbers its streams alike.
    fn is_known(&self) -> bool {
        let places = [self.current, self.dropping];
        let has = |place: &Current| matches!(place, Current::First | Current::Second);
        let plain = self.driver != Abilities::Old && places.iter().all(has);
        self.kind.api() == Api::Cuda || plain
    }

    /// The producer's stream lives as long as the tensor, and default streams for ever.
    fn can_be_gone(&self) -> bool {
        let made = !matches!(
            self.ask,
            Ask::Absent | Ask::Default | Ask::PerThread | Ask::Same
        );
        self.drops != Drops::Gone || made
    }

    /// The plainest of those, for drivers that do not order.
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
            Captures::Nobody
            | Captures::Blocking
            | Captures::NonBlocking
            | Captures::BlockingElsewhere => true,
        };
        // Who frees at once sees to it himself that his own stream can be freed on.
        possible && (!self.immediate || self.captures == Captures::Consumer)
    }
}
