//! After the consumer has read: what has to be over before the memory is freed, and whether it is.
//!
//! A consumer calls the deleter when it is done on the host; its kernels may still be running. No handle of it is kept
//! for this: it may be destroyed by then, and its number given to another stream. Nobody waits here either: an
//! owner that may not be dropped yet is kept in [`waiting`](crate::stream::waiting).
// STC-09

use crate::stream::place::Place;
use crate::stream::rules::{Origin, producer};
use crate::stream::visit::{Capture, Event, Visit, capturing};
use crate::stream::{PER_THREAD, Queue};
use crate::{Device, Error, ReleasePolicy, memory::counted::Counted, request::Consumer};

/// What has to be over before the owner is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Release {
    /// Nothing: the producer's stream is order enough, or nobody reads behind the host's back.
    Free,
    /// The consumer's work is on the producer's stream, and the host uses the memory again.
    AfterOwn,
    /// The consumer's work is on the default stream of this place, or on one that this waits for.
    AfterDefault(Place),
    /// It is on the stream of this number, or on one that has none, in this context.
    AfterStream(Option<u64>, usize),
    /// It may be on any stream of the device's primary context and of this one; none stands for the producer's.
    AfterAll(Option<usize>),
    /// It is in a graph, which may be launched at any time from now on, on streams as of `AfterAll`; and nobody says when that
    /// is gone.
    Captured(Option<usize>),
}

impl Release {
    /// For a consumer whose work goes to a stream of this place and this ID, and is not captured. Its handle is not kept, but
    /// what kind of stream it is can be queried now.
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

/// How memory hangs together with streams: what its freeing has to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freeing {
    pub(super) origin: Origin,
    pub(super) release: Release,
    /// How much of it there is.
    pub(super) bytes: usize,
}

impl Freeing {
    /// Until it is known who reads, nobody has read.
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            release: Release::Free,
            bytes: 0,
        }
    }

    /// Whether the owner sees to the order of things itself.
    pub(super) fn is_immediate(&self) -> bool {
        self.origin.policy == ReleasePolicy::Immediate
    }

    /// The stream that the owner frees its memory on.
    pub(super) fn own(&self) -> Queue {
        producer(self.origin.device, self.origin.queue).unwrap_or(Queue::DEFAULT)
    }
}

/// What is known of the work that the owner has to wait for.
pub(super) enum Settlement {
    /// It is over: the owner may be dropped, and then the visit. Its context is the current one: an owner may name its
    /// default stream by nothing but a number.
    Free(Visit),
    /// It is over when this has happened.
    At(Counted<Event>),
    /// There is nothing to ask that would not break a capture, make somebody wait, or need a handle which may be gone.
    Unknown,
}

/// Whether what the freeing waits for is over. Nobody waits here: not the host, and no stream.
///
/// # Errors
///
/// Whatever goes wrong, and a capture that would be broken. Nothing may be freed then.
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
        // These without a call.
        Release::AfterStream(..) | Release::AfterAll(_) | Release::Captured(_) => {
            return Ok(Settlement::Unknown);
        }
        Release::Free | Release::AfterOwn | Release::AfterDefault(_) => {}
    }
    let visit = visit(device)?;
    let (here, capture) = visit.find(own)?;
    // What is freed in a capture is freed by the graph, and again at every launch.
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
        // Where it was exported the primary context may have been current.
        let primary = visit.primary()?;
        if here != primary {
            visit.enter(primary.enter)?;
            uncaptured(&visit, own)?;
        }
    }
    visit.enter(here.enter)?;
    Ok(Settlement::Free(visit))
}

/// The end of all work that is on a stream of the current context now, which does not capture, if that has not come yet.
fn end(visit: &Visit, stream: Queue) -> Result<Option<Counted<Event>>, Error> {
    let mut event = visit.event()?;
    visit.record(&mut event, stream.handle)?;
    match visit.is_over(&event)? {
        true => Ok(None),
        false => visit.lasting(event).map(Some),
    }
}

/// That a stream of the current context does not capture.
fn uncaptured(visit: &Visit, stream: Queue) -> Result<(), Error> {
    match visit.capture(stream.handle)? {
        Capture::No => Ok(()),
        Capture::Yes(_) | Capture::Blocked => blocked(),
    }
}

fn blocked<T>() -> Result<T, Error> {
    capturing("memory cannot be freed on a stream that captures")
}
