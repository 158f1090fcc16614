//! Which work must be over before exported memory is freed, and whether it is over.
//!
//! A consumer calls the deleter when it is done on the host; its kernels may still be running. The consumer's stream handle is
//! not kept: the stream may be destroyed by then, and its handle given to another stream. No function here blocks. An
//! owner that may not be dropped yet is kept in [`waiting`](crate::stream::waiting).
// STC-09

use crate::stream::place::Place;
use crate::stream::rules::{Origin, producer};
use crate::stream::visit::{Capture, Event, Visit, capturing};
use crate::stream::{PER_THREAD, Queue};
use crate::{Device, Error, ReleasePolicy, memory::counted::Counted, request::Consumer};

/// The work that must be over before the owner is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Release {
    /// None: the order of the producer's stream suffices, or all reads are made by the host before the deleter.
    Free,
    /// The consumer's work is on the producer's stream, and the host uses the memory again afterwards.
    AfterOwn,
    /// The consumer's work is on the default stream of this place, or on a stream that this default stream waits for.
    AfterDefault(Place),
    /// The consumer's work is on the stream with this ID, or on one without an ID, in this context.
    AfterStream(Option<u64>, usize),
    /// It may be on any stream of the device's primary context and of this context; `None` is the producer's context.
    AfterAll(Option<usize>),
    /// It is in a graph, which may be launched at any time, on any stream that `AfterAll` covers. The driver does not tell when
    /// the graph is gone.
    Captured(Option<usize>),
}

impl Release {
    /// The condition for a consumer that works, without capture, on a stream of this place and this ID. The stream's handle
    /// is not kept, but its kind can be queried now.
    pub(crate) fn behind(
        visit: &Visit,
        consumer: Consumer,
        place: Place,
        id: Option<u64>,
    ) -> Result<Self, Error> {
        let handle = match consumer {
            Consumer::Host => return Ok(Self::Free),
            Consumer::Unordered => return Ok(Self::AfterAll(Some(place.whole))),
            Consumer::Legacy => return Ok(Self::AfterDefault(place)),
            Consumer::PerThread => PER_THREAD,
            Consumer::Stream(handle) => handle,
        };
        if id.is_none() && visit.is_waited_for_by_default(handle)? {
            return Ok(Self::AfterDefault(place));
        }
        Ok(Self::AfterStream(id, place.whole))
    }
}

/// What the release of a buffer waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freeing {
    pub(super) origin: Origin,
    pub(super) release: Release,
    /// The size of the memory.
    pub(super) bytes: usize,
}

impl Freeing {
    /// Starts with [`Release::Free`]: before the export no consumer has read.
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            release: Release::Free,
            bytes: 0,
        }
    }

    /// Whether the owner ensures the order itself.
    pub(super) fn is_immediate(&self) -> bool {
        self.origin.policy == ReleasePolicy::Immediate
    }

    /// The stream that the owner frees its memory on.
    pub(super) fn own(&self) -> Queue {
        producer(self.origin.device, self.origin.queue).unwrap_or(Queue::DEFAULT)
    }
}

/// What is known about the work that the owner waits for.
pub(super) enum Settlement {
    /// The work is over: drop the owner, then the [`Visit`]. The context of the owner's stream is current, because an owner may
    /// name its default stream by number alone.
    Free(Visit),
    /// The work is over when this event has happened.
    At(Counted<Event>),
    /// Not known: any query would break a capture, block, or need a handle that may be destroyed.
    Unknown,
}

/// Whether the work that the release waits for is over. Neither the host nor a stream waits.
///
/// # Errors
///
/// A driver failure, and a capture that would be broken. The memory may not be freed then.
pub(super) fn settle(
    freeing: &Freeing,
    visit: impl FnOnce(Device) -> Result<Visit, Error>,
) -> Result<Settlement, Error> {
    let device = freeing.origin.device;
    let own = freeing.own();
    if freeing.is_immediate() {
        let visit = visit(device)?;
        visit.find(own)?;
        return Ok(Settlement::Free(visit));
    }
    match freeing.release {
        // The answer for these needs no driver call.
        Release::AfterStream(..) | Release::AfterAll(_) | Release::Captured(_) => {
            return Ok(Settlement::Unknown);
        }
        Release::Free | Release::AfterOwn | Release::AfterDefault(_) => {}
    }
    let visit = visit(device)?;
    let (here, capture) = visit.find(own)?;
    // A free in a capture becomes a step of the graph, which every launch repeats.
    let frees = producer(device, freeing.origin.queue).is_some();
    if capture != Capture::No && (frees || freeing.release == Release::AfterOwn) {
        return blocked();
    }
    if let Release::AfterDefault(place) = freeing.release {
        if !visit.lives(place.enter) && place.enter != here.enter {
            return Ok(Settlement::Unknown);
        }
        visit.enter(place.enter)?;
        uncaptured(&visit, Queue::DEFAULT)?;
        if let Some(event) = end(&visit, Queue::DEFAULT)? {
            return Ok(Settlement::At(event));
        }
    }
    if freeing.release == Release::AfterOwn {
        if let Some(event) = end(&visit, own)? {
            return Ok(Settlement::At(event));
        }
    }
    if frees && own.is_default() && !own.is_placed() {
        // The primary context may have been current at the export.
        let primary = visit.primary()?;
        if here != primary {
            visit.enter(primary.enter)?;
            uncaptured(&visit, own)?;
        }
    }
    visit.enter(here.enter)?;
    Ok(Settlement::Free(visit))
}

/// The end of all work that is on a stream of the current context now, or `None` if that is over. The stream must not capture.
fn end(visit: &Visit, stream: Queue) -> Result<Option<Counted<Event>>, Error> {
    let mut event = visit.event()?;
    visit.record(&mut event, stream.handle)?;
    match visit.is_over(&event)? {
        true => Ok(None),
        false => visit.lasting(event).map(Some),
    }
}

/// Returns an error if a stream of the current context captures.
fn uncaptured(visit: &Visit, stream: Queue) -> Result<(), Error> {
    match visit.capture(stream.handle)? {
        Capture::No => Ok(()),
        Capture::Yes(_) | Capture::Blocked => blocked(),
    }
}

fn blocked<T>() -> Result<T, Error> {
    capturing("memory cannot be freed on a stream that captures")
}
