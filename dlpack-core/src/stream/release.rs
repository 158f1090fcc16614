//! After the consumer has read: the memory is freed behind its last use, and not in front of it.
//!
//! A consumer calls the deleter when it is done on the host; its kernels may still be running. No handle of it is kept
//! for this: it may be destroyed by then, and its number given to another stream (STC-09). What cannot be freed then is kept, and tried again later.

#![expect(unsafe_code, reason = "frees, on the caller's word, what graphs read")]

use alloc::vec::Vec;
use core::mem::forget;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::stream::driver::{Driver, driver};
use crate::stream::rules::{Origin, producer};
use crate::stream::{Queue, visit::Capture, visit::Event, visit::Visit, visit::capturing};
use crate::{Device, Error, ReleasePolicy, device::Api, memory::counted::Counted};
use crate::{panics::contain_panic, request::Consumer};

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
    let (device, policy) = (link.origin.device, link.origin.policy);
    // Before anything that can fail: this is not to be tried again.
    if policy == ReleasePolicy::Safe && link.release == Release::Captured {
        return Ok(Settlement::Captured);
    }
    let visit = driver.visit(device)?;
    let producer = producer(device, link.origin.queue);
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
        Capture::Yes(_) | Capture::Blocked => {
            capturing("memory cannot be freed on a stream that captures")
        }
    }
}

/// An owner that could not be dropped when its consumer was done.
pub(super) struct Unfreed {
    link: Freeing,
    /// Dropped where it may be, or forgotten.
    owner: Counted,
}

/// Those whose data is in a graph.
pub(super) static GRAPHS: Mutex<Vec<Unfreed>> = Mutex::new(Vec::new());
/// Those for which the driver refused; they are tried again.
pub(super) static RETRIES: Mutex<Vec<Unfreed>> = Mutex::new(Vec::new());

/// Nothing panics while one of them is locked.
fn lock(list: &Mutex<Vec<Unfreed>>) -> MutexGuard<'_, Vec<Unfreed>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Unfreed {
    /// Keeps the owner for later. Without memory it is leaked: it may still be in use.
    #[cold]
    pub(super) fn push<O: Send + 'static>(list: &Mutex<Vec<Self>>, link: &Freeing, owner: O) {
        // Locked by nobody: what is counted may be shared, which an owner may not.
        match Counted::new(Mutex::new(owner)) {
            Ok(owner) => Self::push_again(
                list,
                Self {
                    link: *link,
                    owner: owner.untyped(),
                },
            ),
            Err((owner, _)) => forget(owner),
        }
    }

    fn push_again(list: &Mutex<Vec<Self>>, one: Self) {
        let mut list = lock(list);
        match list.try_reserve(1) {
            Ok(()) => list.push(one),
            Err(_) => forget(one),
        }
    }

    /// Drops the owner if that can be done now.
    fn try_release(self, driver: &'static Driver) -> Result<(), Self> {
        match settle(driver, &self.link) {
            Ok(Settlement::Free(_visit)) => {
                // Whoever is dropped here has nothing to do with the owner that the caller is dropping.
                contain_panic(|| drop(self.owner));
                Ok(())
            }
            Ok(Settlement::Captured) | Err(_) => Err(self),
        }
    }
}

/// Drops the owner when there is next something to do with the driver, and when what still uses its memory is done.
pub(crate) fn free_later<O: Send + 'static>(device: Device, release: Release, owner: O) {
    Unfreed::push(&RETRIES, &Freeing::at_once(device, release), owner);
}

/// Tries again to free what could not be freed before: called whenever something has been done with the driver, and so
/// not where it refuses, or where a capture is known that this could break.
pub(crate) fn retry(api: Api) {
    if lock(&RETRIES).is_empty() {
        return;
    }
    let Ok(driver) = driver(api) else {
        return;
    };
    let waiting = core::mem::take(&mut *lock(&RETRIES));
    for one in waiting {
        let left = match one.link.origin.device.device_type.api() {
            Some(found) if found == api => one.try_release(driver),
            _ => Err(one),
        };
        if let Err(one) = left {
            Unfreed::push_again(&RETRIES, one);
        }
    }
}

/// How many owners are kept because their data was read in a capture: a graph may be launched long after its consumer
/// has let go of the tensor.
///
/// ```
/// assert_eq!(dlpack_core::stream::captured(), 0);
/// ```
#[must_use]
pub fn captured() -> usize {
    lock(&GRAPHS).len()
}

/// Drops the owners of data that was read in captures.
///
/// ```
/// // SAFETY: nothing was ever captured here.
/// unsafe { dlpack_core::stream::release_captured() };
/// ```
///
/// # Safety
///
/// No graph that reads their data is launched any more. One that is running still is waited for.
pub unsafe fn release_captured() {
    let read = core::mem::take(&mut *lock(&GRAPHS));
    for mut one in read {
        one.link.release = Release::AfterAll;
        Unfreed::push_again(&RETRIES, one);
    }
    for api in [Api::Cuda, Api::Hip] {
        retry(api);
    }
}
