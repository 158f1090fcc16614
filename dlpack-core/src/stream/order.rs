//! Before the consumer reads: its work is put behind the producer's; or where it asks for no order, the stream is remembered.

use alloc::vec::Vec;
use core::cell::RefCell;
use std::thread_local;

use crate::stream::visit::{Capture, Visit, capturing};
use crate::stream::waiting::{has_room, note, relieve};
use crate::stream::{Queue, driver::driver, graph::After};
use crate::stream::{release::Release, rules::producer};
use crate::{Device, Error, device::StreamApi, memory::counted::Counted, request::Consumer};

/// Puts the consumer's work behind the producer's, and says what has to be done before the memory is freed.
///
/// | | consumer does not capture | captures |
/// |---|---|---|
/// | producer does not capture | an event | the host waits: nothing from outside may enter a capture |
/// | captures | refused: the consumer would be drawn into it | the same one: in its graph. Another: refused |
///
/// Every refusal comes before anything is touched.
// ERR-11
pub(crate) fn order(
    device: Device,
    queue: Option<Queue>,
    consumer: Consumer,
) -> Result<After, Error> {
    let Some(api) = device.device_type.stream_api() else {
        return Ok(Release::Free.into());
    };
    if consumer != Consumer::Host {
        has_room()?;
    }
    if consumer == Consumer::Unordered {
        return Ok(Release::AfterAll(None).into());
    }
    let Some(producer) = producer(device, queue) else {
        return unpending(device, api, consumer);
    };
    let host = device.device_type.is_host_readable();
    let own = if host {
        Release::AfterOwn
    } else {
        Release::Free
    };
    let both_default = consumer == Consumer::Legacy && consumer.is(producer);
    if both_default && !host {
        // No capture can be on the default stream. An owner that frees on it knows its context.
        return Ok(own.into());
    }

    let driver = match driver(api) {
        // Where there is no driver, nothing captures.
        Err(_) if consumer.is(producer) && consumer != Consumer::PerThread => {
            return Ok(own.into());
        }
        found => found?,
    };
    let visit = driver.visit(device)?;
    if both_default {
        // It may be another one where this is dropped.
        return Ok(Release::AfterDefault(visit.place(producer)?).into());
    }
    if matches!(consumer, Consumer::Stream(_)) && consumer.is(producer) {
        // A stream of any context can be asked in any.
        if visit.now() == 0 {
            visit.enter(visit.primary()?.enter)?;
        }
        return Ok(match captured_by(visit.capture(producer.handle)?)? {
            Some(_) => visit.captured(producer.handle, own),
            None => own.into(),
        });
    }
    let (known_here, capture) = visit.find_capture(producer)?;
    let producing = captured_by(capture)?;
    let Some(reader) = consumer.queue() else {
        if producing.is_some() {
            return capturing("the producer's stream captures, so the host cannot wait for it");
        }
        let here = visit.locate(producer, known_here, capture)?;
        visit.enter(here.enter)?;
        visit.synchronize(producer.handle)?;
        relieve(api);
        return Ok(Release::Free.into());
    };
    let (known_there, consuming) = visit.find_capture(reader)?;
    let captured = captured_by(consuming)?;
    // The handles of default streams are the same in each context.
    let same = reader.handle == producer.handle
        && match (known_here, known_there) {
            (Some(here), Some(there)) => here.enter == there.enter,
            _ => false,
        };
    if same && consumer == Consumer::Legacy {
        return Ok(own.into());
    }

    match (producing, captured) {
        (Some(_), None) => capturing("the producer's stream captures and the consumer's does not"),
        (Some(own), Some(other)) if own != other => {
            capturing("the streams of producer and consumer belong to two captures")
        }
        (None, Some(_)) => {
            let here = visit.locate(producer, known_here, capture)?;
            let there = visit.locate(reader, known_there, consuming)?;
            visit.enter(here.enter)?;
            visit.synchronize(producer.handle)?;
            visit.enter(there.enter)?;
            let then = Release::AfterAll(Some(there.whole));
            Ok(visit.captured(reader.handle, then))
        }
        (Some(_), Some(_)) => {
            let here = visit.locate(producer, known_here, capture)?;
            let there = visit.locate(reader, known_there, consuming)?;
            visit.enter(there.enter)?;
            let after = visit.captured(reader.handle, Release::AfterAll(Some(there.whole)));
            if !same {
                visit.join_capture((here, producer.handle), (there, reader.handle))?;
            }
            Ok(after)
        }
        (None, None) => {
            let (there, id) = visit.identify(reader, known_there)?;
            let release = Release::behind(&visit, consumer, there, id)?;
            if !same {
                let event = visit.end_of(producer, known_here)?;
                visit.enter(there.enter)?;
                visit.wait(reader.handle, &event)?;
            }
            look_after(&visit, release, reader, api);
            Ok(release.into())
        }
    }
}

/// For memory that nobody is writing to: there is nothing to order, but a graph may outlive the tensor.
fn unpending(device: Device, api: StreamApi, consumer: Consumer) -> Result<After, Error> {
    // Where there is no driver, nothing captures.
    let Some(reader) = consumer.queue() else {
        return Ok(Release::Free.into());
    };
    let Ok(driver) = driver(api) else {
        return Ok(Release::AfterAll(None).into());
    };
    let visit = driver.visit(device)?;
    let (known, capture) = visit.find_capture(reader)?;
    if let Capture::Yes(_) = capture {
        let there = visit.locate(reader, known, capture)?;
        visit.enter(there.enter)?;
        let then = Release::AfterAll(Some(there.whole));
        return Ok(visit.captured(reader.handle, then));
    }
    let (there, id) = visit.identify(reader, known)?;
    visit.enter(there.enter)?;
    let release = Release::behind(&visit, consumer, there, id)?;
    if capture == Capture::No {
        look_after(&visit, release, reader, api);
    }
    Ok(release.into())
}

/// Does something for owners that wait, now that a stream is known to live, and not to capture.
fn look_after(visit: &Visit, release: Release, stream: Queue, api: StreamApi) {
    // What cannot be recorded now waits for the next one, and this export is none the worse for it.
    let _ = note(visit, release, stream.handle, api);
    relieve(api);
}

/// The capture that a stream takes part in, if it can be used.
fn captured_by(capture: Capture) -> Result<Option<u64>, Error> {
    match capture {
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
        list.retain(|one| one.device != device && one.alive.reference_count() > 1);
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
                .find(|one| one.device == device && one.alive.reference_count() > 1)
                // The default streams of other contexts have no number of their own.
                .filter(|one| one.stream.context().is_none() || one.stream.handle > 2)
                .map(|one| one.stream.handle)
        })
        .ok()
        .flatten()
        .unwrap_or(0)
}
