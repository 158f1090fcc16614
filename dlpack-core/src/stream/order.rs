//! Before the consumer reads: its work is put behind the producer's; or where it asks for no order, the stream is remembered.

use alloc::vec::Vec;
use core::cell::RefCell;
use std::thread_local;

use crate::stream::visit::{Capture, Visit, capturing};
use crate::stream::{Queue, driver::driver, release::Release, release::retry, rules::producer};
use crate::{Device, Error, device::Api, memory::counted::Counted, request::Consumer};

/// Puts the consumer's work behind the producer's, and says what has to be done before the memory is freed.
///
/// | | consumer does not capture | captures |
/// |---|---|---|
/// | producer does not capture | an event | the host waits: nothing from outside may enter a capture |
/// | captures | refused: the consumer would be drawn into it | the same one: an event. Another: refused |
///
/// Every refusal comes before anything is touched (ERR-11).
pub(crate) fn order(
    device: Device,
    queue: Option<Queue>,
    consumer: Consumer,
) -> Result<Release, Error> {
    let Some(api) = device.device_type.api() else {
        return Ok(Release::Free);
    };
    let producer = producer(device, queue);
    if consumer == Consumer::Unordered {
        return Ok(Release::AfterAll);
    }
    let Some(producer) = producer else {
        return unpending(device, api, consumer);
    };
    if consumer.is(producer, api) {
        return Ok(if consumer == Consumer::PerThread {
            // That default stream is another one on the thread which frees.
            Release::AfterLegacy
        } else if device.device_type.is_host_readable() {
            Release::AfterOwn
        } else {
            Release::Free
        });
    }

    let driver = driver(api)?;
    let visit = driver.visit(device)?;
    visit.enter_that_of(producer)?;
    let producing = capture(&visit, producer.handle)?;
    let Some(consumer_handle) = consumer.handle() else {
        if producing.is_some() {
            return capturing("the producer's stream captures, so the host cannot wait for it");
        }
        visit.synchronize(producer.handle)?;
        retry(api);
        return Ok(Release::of(consumer));
    };

    enter_for(&visit, consumer)?;
    let consuming = capture(&visit, consumer_handle)?;
    match (producing, consuming) {
        (Some(_), None) => capturing("the producer's stream captures and the consumer's does not"),
        (Some(own), Some(other)) if own != other => {
            capturing("the streams of producer and consumer belong to two captures")
        }
        (None, Some(_)) => {
            visit.enter_that_of(producer)?;
            visit.synchronize(producer.handle)?;
            Ok(Release::Captured)
        }
        (None, None) | (Some(_), Some(_)) => {
            let release = match consuming {
                Some(_) => Release::Captured,
                None => release_after(&visit, consumer)?,
            };
            visit.enter_that_of(producer)?;
            let event = visit.event()?;
            visit.record(&event, producer.handle)?;
            enter_for(&visit, consumer)?;
            visit.wait(consumer_handle, &event)?;
            if consuming.is_none() {
                retry(api);
            }
            Ok(release)
        }
    }
}

/// For memory that nobody is writing to: there is nothing to order, but a graph may outlive the tensor.
fn unpending(device: Device, api: Api, consumer: Consumer) -> Result<Release, Error> {
    // Where there is no driver, nothing captures.
    let (Some(handle), Ok(driver)) = (consumer.handle(), driver(api)) else {
        return Ok(Release::of(consumer));
    };
    let visit = driver.visit(device)?;
    visit.enter_primary()?;
    match visit.capture(handle)? {
        Capture::Yes(_) => Ok(Release::Captured),
        Capture::No | Capture::Blocked => release_after(&visit, consumer),
    }
}

/// For a consumer whose work is not captured. Its handle is not kept, but what kind of stream it is can be asked now.
fn release_after(visit: &Visit, consumer: Consumer) -> Result<Release, Error> {
    match consumer {
        Consumer::Stream(handle) if visit.is_waited_for_by_default(handle)? => {
            Ok(Release::AfterLegacy)
        }
        _ => Ok(Release::of(consumer)),
    }
}

/// Default streams are those of the primary context; a handle means the same in every context.
fn enter_for(visit: &Visit, consumer: Consumer) -> Result<(), Error> {
    match consumer {
        Consumer::Legacy | Consumer::PerThread => visit.enter_primary(),
        Consumer::Unordered | Consumer::Host | Consumer::Stream(_) => Ok(()),
    }
}

/// The capture that a stream takes part in.
fn capture(visit: &Visit, stream: usize) -> Result<Option<u64>, Error> {
    match visit.capture(stream)? {
        Capture::No => Ok(None),
        Capture::Yes(id) => Ok(Some(id)),
        Capture::Blocked => {
            capturing("a default stream is needed, and a stream that it waits for captures")
        }
    }
}

/// The streams of tensors that were exported from this thread without order, while these live.
struct Entry {
    device: Device,
    stream: Queue,
    /// One hold; the tensor has the other.
    alive: Counted,
}

thread_local! {
    static LEDGER: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Remembers the stream of an export that nobody ordered, until the result is dropped.
pub(super) fn remember(device: Device, queue: Option<Queue>) -> Result<Option<Counted>, Error> {
    let Some(stream) = producer(device, queue) else {
        return Ok(None);
    };
    let no_memory = |bytes| Error::OutOfMemory { bytes };
    let token = Counted::new(()).map_err(|((), bytes)| no_memory(bytes))?;
    let alive = token.clone();
    // Not on a thread that is being torn down: whoever asks there gets the default stream.
    let remembered = LEDGER.try_with(|list| {
        let mut list = list.borrow_mut();
        list.retain(|one| one.device != device && one.alive.holds() > 1);
        let room = list.try_reserve(1);
        room.map_err(|_| no_memory(size_of::<Entry>()))?;
        list.push(Entry {
            device,
            stream,
            alive,
        });
        Ok(())
    });
    remembered.unwrap_or(Ok(())).map(|()| Some(token))
}

/// The stream that the tensor was written on which this thread exported last from a device, without order, if that
/// tensor still lives; the default stream otherwise.
///
/// The handle is the owner's, and so it is given out only while the owner has to keep it alive.
#[must_use]
pub fn current_stream(device: Device) -> usize {
    LEDGER
        .try_with(|list| {
            list.borrow()
                .iter()
                .find(|one| one.device == device && one.alive.holds() > 1)
                // The default streams of other contexts have no number of their own.
                .filter(|one| one.stream.context().is_none() || one.stream.handle > 2)
                .map(|one| one.stream.handle)
        })
        .ok()
        .flatten()
        .unwrap_or(0)
}
