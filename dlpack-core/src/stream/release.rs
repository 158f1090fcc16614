//! Which work must be over before exported memory is freed, and whether it is over.
//!
//! A consumer calls the deleter when it is done on the host; its kernels may still be running. The consumer's stream handle is
//! not kept: the stream may be destroyed by then, and its handle given to another stream. No function here blocks. An
//! owner that may not be dropped yet is kept in [`deferred`](crate::stream::deferred).
// STC-09

use crate::stream::context::StreamContext;
use crate::stream::rules::{Origin, stream_of_producer};
use crate::stream::session::{Capture, DriverSession, Event, capture_error};
use crate::stream::{PER_THREAD, Queue};
use crate::{Device, Error, ReleasePolicy, memory::counted::Counted, request::Consumer};

/// The work that must be over before the owner is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Release {
    /// None: the order of the producer's stream suffices, or all reads are made by the host before the deleter.
    Free,
    /// None: the order of the default stream of this context suffices. The owner may name that stream by its number alone, so this
    /// context must be current at its drop.
    FreeIn(StreamContext),
    /// The consumer's work is on the producer's stream, and the host uses the memory again afterwards.
    AfterOwn,
    /// The consumer's work is on the default stream of this context, or on a stream that this default stream waits for.
    AfterDefault(StreamContext),
    /// The consumer's work is on the stream with this ID, or on one without an ID, in this context.
    AfterStream(Option<u64>, usize),
    /// It may be on any stream of the device's primary context and of this context; `None` is the producer's context. For memory
    /// without a device, it may be on any stream of the primary context of any device.
    AfterAll(Option<usize>),
    /// It is in a graph, which may be launched at any time, on any stream that `AfterAll` covers. The driver does not tell when
    /// the graph is gone.
    Captured(Option<usize>),
}

impl Release {
    /// The condition for a consumer whose stream has this context and this ID and does not capture. The stream's handle is not
    /// kept, but its kind can be queried now.
    pub(crate) fn after_consumer(
        session: &DriverSession,
        consumer: Consumer,
        place: StreamContext,
        id: Option<u64>,
    ) -> Result<Self, Error> {
        let handle = match consumer {
            Consumer::Host => return Ok(Self::Free),
            Consumer::Unordered => return Ok(Self::AfterAll(Some(place.to_record))),
            Consumer::Legacy => return Ok(Self::AfterDefault(place)),
            Consumer::PerThread => PER_THREAD,
            Consumer::Stream(handle) => handle,
        };
        if id.is_none() && session.is_waited_for_by_default(handle)? {
            return Ok(Self::AfterDefault(place));
        }
        Ok(Self::AfterStream(id, place.to_record))
    }
}

/// What the release of a buffer waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRelease {
    pub(super) origin: Origin,
    pub(super) release: Release,
    /// The size of the memory.
    pub(super) bytes: usize,
}

impl PendingRelease {
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
    pub(super) fn owner_stream(&self) -> Queue {
        stream_of_producer(self.origin.device, self.origin.queue).unwrap_or(Queue::DEFAULT)
    }
}

/// What is known about the work that the owner waits for.
pub(super) enum ReleaseDecision {
    /// The work is over: drop the owner, then the [`DriverSession`]. The context of the owner's stream is current, because an
    /// owner may name its default stream by number alone.
    Free(DriverSession),
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
pub(super) fn decide_release(
    pending: &PendingRelease,
    session: impl FnOnce(Device) -> Result<DriverSession, Error>,
) -> Result<ReleaseDecision, Error> {
    let device = pending.origin.device;
    let own = pending.owner_stream();
    let frees = stream_of_producer(device, pending.origin.queue).is_some();
    if !frees && (pending.is_immediate() || pending.release == Release::Free) {
        // No stream is involved, and memory without a device is freed in any context.
        let session = session(device)?;
        session.enter_any_context()?;
        return Ok(ReleaseDecision::Free(session));
    }
    if pending.is_immediate() {
        let session = session(device)?;
        session.enter_stream_context(own)?;
        return Ok(ReleaseDecision::Free(session));
    }
    match pending.release {
        Release::FreeIn(place) => {
            let session = session(device)?;
            if !session.is_context_alive(place.to_enter) {
                return Ok(ReleaseDecision::Unknown);
            }
            session.enter_context(place.to_enter)?;
            check_uncaptured(&session, own)?;
            return Ok(ReleaseDecision::Free(session));
        }
        // The answer for these needs no driver call.
        Release::AfterStream(..) | Release::AfterAll(_) | Release::Captured(_) => {
            return Ok(ReleaseDecision::Unknown);
        }
        Release::Free | Release::AfterOwn | Release::AfterDefault(_) => {}
    }
    let session = session(device)?;
    let (here, capture) = session.enter_stream_context(own)?;
    // A free in a capture becomes a step of the graph, which every launch repeats.
    if capture != Capture::No && (frees || pending.release == Release::AfterOwn) {
        return refuse_free();
    }
    if let Release::AfterDefault(place) = pending.release {
        if !session.is_context_alive(place.to_enter) && place.to_enter != here.to_enter {
            return Ok(ReleaseDecision::Unknown);
        }
        session.enter_context(place.to_enter)?;
        check_uncaptured(&session, Queue::DEFAULT)?;
        if let Some(event) = record_end(&session, Queue::DEFAULT)? {
            return Ok(ReleaseDecision::At(event));
        }
    }
    if pending.release == Release::AfterOwn {
        if let Some(event) = record_end(&session, own)? {
            return Ok(ReleaseDecision::At(event));
        }
    }
    if frees && own.is_default() && !own.is_placed() && !session.is_without_device() {
        // The primary context may have been current at the export.
        let primary = session.home_context()?;
        if here != primary {
            session.enter_context(primary.to_enter)?;
            check_uncaptured(&session, own)?;
        }
    }
    session.enter_context(here.to_enter)?;
    Ok(ReleaseDecision::Free(session))
}

/// The end of all work that is on a stream of the current context now, or `None` if that is over. The stream must not capture.
fn record_end(session: &DriverSession, stream: Queue) -> Result<Option<Counted<Event>>, Error> {
    let mut event = session.acquire_event()?;
    session.record_event(&mut event, stream.handle)?;
    match session.is_event_over(&event)? {
        true => Ok(None),
        false => session.make_lasting(event).map(Some),
    }
}

/// Returns an error if a stream of the current context captures.
fn check_uncaptured(session: &DriverSession, stream: Queue) -> Result<(), Error> {
    match session.query_capture(stream.handle)? {
        Capture::No => Ok(()),
        Capture::Yes(_) | Capture::Blocked => refuse_free(),
    }
}

fn refuse_free<T>() -> Result<T, Error> {
    capture_error("memory cannot be freed on a stream that captures")
}
