//! After the consumer has read: the memory is freed behind its last use, and not in front of it.
//!
//! A consumer calls the deleter when it is done on the host; its kernels may still be running. No handle of it is kept
//! for this: it may be destroyed by then, and its number given to another stream (STC-09).

use crate::stream::rules::{Origin, producer};
use crate::stream::visit::{Capture, Event, Visit};
use crate::stream::{Queue, driver::Driver};
use crate::{Device, Error, ReleasePolicy, request::Consumer};

/// What has to happen before the owner is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    /// Nothing: the producer's stream is order enough, or nobody reads behind the host's back.
    Free,
    /// The consumer's work is on the producer's stream, and the host uses the memory again.
    AfterOwn,
    /// The consumer's work is on the default stream, or on one that this waits for.
    AfterLegacy,
    /// It may be on any stream.
    AfterAll,
    /// It is in a graph, which may be launched at any time from now on.
    Captured,
}

impl Release {
    /// For a consumer whose work is not captured.
    pub(crate) fn of(consumer: Consumer) -> Self {
        match consumer {
            Consumer::Host => Self::Free,
            // The default streams of threads and the one of all threads wait for each other.
            Consumer::Legacy | Consumer::PerThread => Self::AfterLegacy,
            Consumer::Unordered | Consumer::Stream(_) => Self::AfterAll,
        }
    }
}

/// How memory hangs together with streams: what its freeing has to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freeing {
    pub(super) origin: Origin,
    pub(super) release: Release,
    /// Whether the owner frees at once, and not in the order of a stream: then the host has to wait.
    pub(super) at_once: bool,
}

impl Freeing {
    /// Until it is known who reads, nobody has read.
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            release: Release::Free,
            // Nobody can tell when the host's memory is used again.
            at_once: origin.device.device_type.is_host_readable(),
        }
    }

    /// For memory that was handed over in order, and is freed at once.
    pub(super) fn at_once(device: Device, release: Release) -> Self {
        let origin = Origin {
            device,
            queue: None,
            policy: ReleasePolicy::Safe,
        };
        Self {
            release,
            at_once: true,
            ..Self::new(origin)
        }
    }
}

/// What became of the attempt to free.
pub(super) enum Settlement {
    /// The owner may be dropped, and then the visit. Its context is the current one: an owner may name its default
    /// stream by nothing but a number.
    Free(Visit),
    Captured,
}

/// Puts the freeing behind the consumer's work.
///
/// # Errors
///
/// Whatever goes wrong, and a capture that would be broken. Nothing may be freed then.
pub(super) fn settle(driver: &'static Driver, link: &Freeing) -> Result<Settlement, Error> {
    let Origin {
        device,
        queue,
        policy,
    } = link.origin;
    // Before anything that can fail: this is not to be tried again.
    if policy == ReleasePolicy::Safe && link.release == Release::Captured {
        return Ok(Settlement::Captured);
    }
    let visit = driver.visit(device)?;
    let producer = producer(device, queue);
    let own = producer.unwrap_or(Queue::DEFAULT);
    if policy == ReleasePolicy::Immediate {
        visit.enter_that_of(own)?;
        return Ok(Settlement::Free(visit));
    }
    if let Release::Free | Release::AfterOwn = link.release {
        match producer {
            // What is freed in a capture is freed by the graph, and again at every launch.
            Some(producer) => idle(&visit, producer)?,
            None => visit.enter_that_of(own)?,
        }
        if link.release == Release::AfterOwn {
            visit.synchronize(own.handle)?;
        }
        return Ok(Settlement::Free(visit));
    }
    let waiting = producer.filter(|_| !link.at_once);
    if let Some(producer) = waiting {
        idle(&visit, producer)?;
    }
    visit.enter_primary()?;
    if link.release == Release::AfterLegacy {
        let default = Queue::DEFAULT;
        uncaptured(&visit, default)?;
        let event = visit.event()?;
        visit.record(&event, default.handle)?;
        follow(&visit, &event, waiting)?;
        visit.enter_that_of(own)?;
        return Ok(Settlement::Free(visit));
    }
    let primary = visit.now();
    after_all(&visit, waiting)?;
    // The consumer can have been at work in the producer's own context too.
    visit.enter_that_of(own)?;
    if visit.now() != primary {
        after_all(&visit, waiting)?;
        visit.enter_that_of(own)?;
    }
    Ok(Settlement::Free(visit))
}

/// Waits for all work of the current context, on the producer's stream if there is one.
fn after_all(visit: &Visit, waiting: Option<Queue>) -> Result<(), Error> {
    // What follows breaks every capture of the context, and this is all that can be known of them.
    uncaptured(visit, Queue::DEFAULT)?;
    let event = visit.event()?;
    if !visit.record_all(&event)? {
        return visit.synchronize_all();
    }
    follow(visit, &event, waiting)
}

/// Waits for an event, on the producer's stream if there is one.
fn follow(visit: &Visit, event: &Event, waiting: Option<Queue>) -> Result<(), Error> {
    match waiting {
        Some(producer) => {
            visit.enter_that_of(producer)?;
            visit.wait(producer.handle, event)
        }
        None => visit.wait_on_host(event),
    }
}

/// That a stream of its own context does not capture.
fn idle(visit: &Visit, stream: Queue) -> Result<(), Error> {
    visit.enter_that_of(stream)?;
    uncaptured(visit, stream)
}

/// That a stream of the current context does not capture.
fn uncaptured(visit: &Visit, stream: Queue) -> Result<(), Error> {
    match visit.capture(stream.handle)? {
        Capture::No => Ok(()),
        Capture::Yes(_) | Capture::Blocked => Err(Error::Capturing {
            what: "memory cannot be freed on a stream that captures",
        }),
    }
}
