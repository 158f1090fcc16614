//! After the consumer has read: the memory is freed behind its last use, and not in front of it.
//!
//! A consumer calls the deleter when it is done on the host; its kernels may still be running. No handle of it is kept
//! for this: it may be destroyed by then, and its number given to another stream (STC-09).
#![expect(
    unsafe_code,
    reason = "frees what graphs may still read, on the caller's word"
)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::block::contain_panic;
use crate::device::Device;
use crate::error::Error;
use crate::request::ReleasePolicy;
use crate::stream::Origin;
use crate::stream::driver::{Driver, driver};
use crate::stream::order::{order, remember};
use crate::stream::rules::{Api, Consumer, Queue, producer};
use crate::stream::visit::{Capture, Visit};

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

/// An owner of memory that work on a device may still be using when it is dropped.
pub(crate) struct Streamed<O: Send + 'static> {
    link: Link,
    owner: ManuallyDrop<O>,
}

/// How the owner's memory hangs together with streams.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    origin: Origin,
    release: Release,
    /// Whether the owner frees at once, and not in the order of a stream: then the host has to wait.
    at_once: bool,
    /// Tells who remembers the stream that it still lives.
    _alive: Option<Arc<()>>,
}

impl Link {
    /// Until it is known who reads, nobody has read.
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            origin,
            release: Release::Free,
            // Nobody can tell when the host's memory is used again.
            at_once: origin.device.device_type.is_host_readable(),
            _alive: None,
        }
    }

    /// For memory that was handed over in order, and is freed at once.
    pub(crate) fn freed_at_once(device: Device, release: Release) -> Self {
        let origin = Origin {
            device,
            said: None,
            policy: ReleasePolicy::Safe,
        };
        Self {
            release,
            at_once: true,
            ..Self::new(origin)
        }
    }

    /// The stream that the memory is written on, if somebody said, for whoever asks on any thread.
    pub(crate) fn said(&self) -> Option<Queue> {
        self.origin.said.map(Queue::on_any_thread)
    }

    /// Puts the consumer's work behind the producer's, and remembers what follows from that.
    pub(crate) fn order(&mut self, consumer: Consumer) -> Result<(), Error> {
        self.release = order(self.origin.device, self.origin.said, consumer)?;
        if consumer == Consumer::Unordered {
            self._alive = remember(self.origin.device, self.origin.said);
        }
        Ok(())
    }
}

impl<O: Send + 'static> Streamed<O> {
    pub(crate) fn new(owner: O, link: Link) -> Self {
        Self {
            link,
            owner: ManuallyDrop::new(owner),
        }
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl<O: Send + 'static> Drop for Streamed<O> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here, and nobody sees `self` afterwards.
        let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
        let Some(api) = self.link.origin.device.device_type.api() else {
            return drop(owner);
        };
        // Where there is no driver, nothing was ever queued.
        let Ok(driver) = driver(api) else {
            return drop(owner);
        };
        match settle(driver, &self.link) {
            Ok(Settled::Free(visit)) => {
                drop(owner);
                drop(visit);
                retry(api);
            }
            Ok(Settled::Captured) => Kept::push(&CAPTURED, &self.link, owner),
            Err(_) => Kept::push(&FAILED, &self.link, owner),
        }
    }
}

/// What became of the attempt to free.
enum Settled {
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
fn settle(driver: &'static Driver, link: &Link) -> Result<Settled, Error> {
    let Origin {
        device,
        said,
        policy,
    } = link.origin;
    // Before anything that can fail: this is not to be tried again.
    if policy == ReleasePolicy::Safe && link.release == Release::Captured {
        return Ok(Settled::Captured);
    }
    let visit = driver.visit(device)?;
    let producer = producer(device, said);
    let own = producer.unwrap_or(Queue::DEFAULT);
    if policy == ReleasePolicy::Immediate {
        visit.enter_that_of(own)?;
        return Ok(Settled::Free(visit));
    }
    match link.release {
        Release::Free | Release::AfterOwn => {
            match producer {
                // What is freed in a capture is freed by the graph, and again at every launch.
                Some(producer) => idle(&visit, producer)?,
                None => visit.enter_that_of(own)?,
            }
            if link.release == Release::AfterOwn {
                visit.synchronize(own.handle)?;
            }
            return Ok(Settled::Free(visit));
        }
        Release::AfterLegacy | Release::AfterAll | Release::Captured => {}
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
        match waiting {
            Some(producer) => {
                visit.enter_that_of(producer)?;
                visit.wait(producer.handle, &event)?;
            }
            None => visit.wait_on_host(&event)?,
        }
        visit.enter_that_of(own)?;
        return Ok(Settled::Free(visit));
    }
    let primary = visit.now();
    after_all(&visit, waiting)?;
    // The consumer can have been at work in the producer's own context too.
    visit.enter_that_of(own)?;
    if visit.now() != primary {
        after_all(&visit, waiting)?;
        visit.enter_that_of(own)?;
    }
    Ok(Settled::Free(visit))
}

/// Waits for all work of the current context, on the producer's stream if there is one.
fn after_all(visit: &Visit, waiting: Option<Queue>) -> Result<(), Error> {
    // What follows breaks every capture of the context, and this is all that can be known of them.
    uncaptured(visit, Queue::DEFAULT)?;
    let event = visit.event()?;
    if !visit.record_all(&event)? {
        return visit.synchronize_all();
    }
    match waiting {
        Some(producer) => {
            visit.enter_that_of(producer)?;
            visit.wait(producer.handle, &event)
        }
        None => visit.wait_on_host(&event),
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

/// An owner that could not be dropped when its consumer was done.
struct Kept {
    link: Link,
    /// Dropped where it may be, or forgotten.
    owner: Box<dyn Send>,
}

/// Those whose data is in a graph.
static CAPTURED: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
/// Those for which the driver refused; they are tried again.
static FAILED: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// Nothing panics while one of them is locked.
fn lock(list: &Mutex<Vec<Kept>>) -> MutexGuard<'_, Vec<Kept>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    #[cold]
    fn push<O: Send + 'static>(list: &Mutex<Vec<Self>>, link: &Link, owner: O) {
        let kept = Self {
            link: link.clone(),
            owner: Box::new(owner),
        };
        lock(list).push(kept);
    }

    /// Drops the owner if that can be done now.
    fn try_release(self, driver: &'static Driver) -> Result<(), Self> {
        match settle(driver, &self.link) {
            Ok(Settled::Free(_visit)) => {
                // Whoever is dropped here has nothing to do with the owner that the caller is dropping.
                contain_panic(|| drop(self.owner));
                Ok(())
            }
            Ok(Settled::Captured) | Err(_) => Err(self),
        }
    }
}

/// Drops the owner when there is next something to do with the driver.
pub(crate) fn free_later<O: Send + 'static>(device: Device, owner: O) {
    Kept::push(&FAILED, &Link::freed_at_once(device, Release::Free), owner);
}

/// Tries again to free what could not be freed before: called whenever something has been done with the driver, and so
/// not where it refuses, or where a capture is known that this could break.
pub(crate) fn retry(api: Api) {
    let waiting = {
        let mut list = lock(&FAILED);
        if list.is_empty() {
            return;
        }
        core::mem::take(&mut *list)
    };
    let Ok(driver) = driver(api) else {
        return lock(&FAILED).extend(waiting);
    };
    for kept in waiting {
        let same = kept.link.origin.device.device_type.api() == Some(api);
        let left = if same {
            kept.try_release(driver)
        } else {
            Err(kept)
        };
        if let Err(kept) = left {
            lock(&FAILED).push(kept);
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
    lock(&CAPTURED).len()
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
    let kept = core::mem::take(&mut *lock(&CAPTURED));
    for mut kept in kept {
        kept.link.release = Release::AfterAll;
        lock(&FAILED).push(kept);
    }
    for api in [Api::Cuda, Api::Hip] {
        retry(api);
    }
}
