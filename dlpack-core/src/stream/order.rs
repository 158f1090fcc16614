//! Decides which event the consumer's stream waits for, and makes it wait. For an unordered export (-1), remembers the producer's
//! stream instead.

use alloc::vec::Vec;
use core::cell::RefCell;
use std::thread_local;

use crate::stream::deferred::{check_limit, limit_open_owners, record_named_stream};
use crate::stream::session::{Capture, DriverSession, capture_error};
use crate::stream::{Queue, driver::find_driver, graph::ReleaseTerms};
use crate::stream::{release::Release, rules::stream_of_producer};
use crate::{Device, Error, device::StreamApi, memory::counted::Counted, request::Consumer};

/// Orders the consumer's work after the producer's, and returns what must be over before the memory is freed.
///
/// | | consumer does not capture | captures |
/// |---|---|---|
/// | producer does not capture | an event | the host waits: no work from outside may enter a capture |
/// | captures | refused: the consumer would be drawn into the capture | same capture: in its graph. Another: refused |
///
/// Every error is returned before any stream is changed.
// ERR-11
pub(crate) fn order_streams(
    device: Device,
    queue: Option<Queue>,
    consumer: Consumer,
) -> Result<ReleaseTerms, Error> {
    let Some(api) = device.device_type.stream_api() else {
        return Ok(Release::Free.into());
    };
    if consumer == Consumer::Host {
        return wait_on_host(device, queue).map(|()| Release::Free.into());
    }
    check_limit()?;
    let Some(reader) = consumer.queue() else {
        // Unordered.
        return Ok(Release::AfterAll(None).into());
    };
    let Some(producer) = stream_of_producer(device, queue) else {
        return order_idle_memory(device, api, consumer);
    };
    let host = device.device_type.is_host_readable();
    let own = if host {
        Release::AfterOwn
    } else {
        Release::Free
    };
    let both_default = consumer == Consumer::Legacy && consumer.works_on(producer);
    if both_default && !host && api == StreamApi::Hip {
        // The default stream cannot capture, and is that of the device.
        return Ok(own.into());
    }

    let driver = match find_driver(api) {
        // Without a driver no stream captures.
        Err(_) if consumer.works_on(producer) && consumer != Consumer::PerThread => {
            return Ok(own.into());
        }
        found => found?,
    };
    let session = driver.begin_session(device)?;
    if both_default {
        // The current context, and with it the default stream, may be another one where this is dropped.
        let release = match host {
            true => Release::AfterDefault(session.query_context(producer)?),
            false => (session.find_default_context()?).map_or(own, Release::FreeIn),
        };
        return Ok(release.into());
    }
    if matches!(consumer, Consumer::Stream(_)) && consumer.works_on(producer) {
        // A stream of any context can be queried in any context.
        if session.current_context() == 0 {
            session.enter_context(session.home_context()?.to_enter)?;
        }
        return Ok(
            match active_capture(session.query_capture(producer.handle)?)? {
                Some(_) => session.release_after_graph(producer.handle, own),
                None => own.into(),
            },
        );
    }
    let (known_here, capture) = session.find_capture(producer)?;
    let producing = active_capture(capture)?;
    let (known_there, consuming) = session.find_capture(reader)?;
    let captured = active_capture(consuming)?;
    // The handles of default streams are the same in each context.
    let same = reader.handle == producer.handle
        && match (known_here, known_there) {
            (Some(here), Some(there)) => here.to_enter == there.to_enter,
            _ => false,
        };
    if same && consumer == Consumer::Legacy {
        return Ok(own.into());
    }

    match (producing, captured) {
        (Some(_), None) => {
            capture_error("the producer's stream captures and the consumer's does not")
        }
        (Some(own), Some(other)) if own != other => {
            capture_error("the streams of producer and consumer belong to two captures")
        }
        (None, Some(_)) => {
            let here = session.resolve_context(producer, known_here, capture)?;
            let there = session.resolve_context(reader, known_there, consuming)?;
            session.enter_context(here.to_enter)?;
            session.block_on_stream(producer.handle)?;
            session.enter_context(there.to_enter)?;
            let then = Release::AfterAll(Some(there.to_record));
            Ok(session.release_after_graph(reader.handle, then))
        }
        (Some(_), Some(_)) => {
            let here = session.resolve_context(producer, known_here, capture)?;
            let there = session.resolve_context(reader, known_there, consuming)?;
            session.enter_context(there.to_enter)?;
            let after = session
                .release_after_graph(reader.handle, Release::AfterAll(Some(there.to_record)));
            if !same {
                session.join_capture((here, producer.handle), (there, reader.handle))?;
            }
            Ok(after)
        }
        (None, None) => {
            let (there, id) = session.identify_stream(reader, known_there)?;
            let release = Release::after_consumer(&session, consumer, there, id)?;
            if !same {
                let event = session.record_end_of_stream(producer, known_here)?;
                session.enter_context(there.to_enter)?;
                session.wait_for_event(reader.handle, &event)?;
            }
            advance_deferred(&session, release, reader, api);
            Ok(release.into())
        }
    }
}

/// Waits on the host until the producer's work is done. An import needs no other order, and links no other.
pub(crate) fn wait_on_host(device: Device, queue: Option<Queue>) -> Result<(), Error> {
    let api = device.device_type.stream_api();
    let (Some(api), Some(producer)) = (api, stream_of_producer(device, queue)) else {
        return Ok(());
    };
    let session = find_driver(api)?.begin_session(device)?;
    let (known, capture) = session.find_capture(producer)?;
    if active_capture(capture)?.is_some() {
        return capture_error("the producer's stream captures, so the host cannot wait for it");
    }
    let here = session.resolve_context(producer, known, capture)?;
    session.enter_context(here.to_enter)?;
    session.block_on_stream(producer.handle)?;
    limit_open_owners(api);
    Ok(())
}

/// For memory without pending writes: there is nothing to order, but a graph may outlive the tensor.
fn order_idle_memory(
    device: Device,
    api: StreamApi,
    consumer: Consumer,
) -> Result<ReleaseTerms, Error> {
    // Without a driver no stream captures.
    let Some(reader) = consumer.queue() else {
        return Ok(Release::Free.into());
    };
    let Ok(driver) = find_driver(api) else {
        return Ok(Release::AfterAll(None).into());
    };
    let session = driver.begin_session(device)?;
    let (known, capture) = session.find_capture(reader)?;
    if let Capture::Yes(_) = capture {
        let there = session.resolve_context(reader, known, capture)?;
        session.enter_context(there.to_enter)?;
        let then = Release::AfterAll(Some(there.to_record));
        return Ok(session.release_after_graph(reader.handle, then));
    }
    let (there, id) = session.identify_stream(reader, known)?;
    session.enter_context(there.to_enter)?;
    let release = Release::after_consumer(&session, consumer, there, id)?;
    if capture == Capture::No {
        advance_deferred(&session, release, reader, api);
    }
    Ok(release.into())
}

/// Advances deferred owners, now that a stream is known to live and not to capture.
fn advance_deferred(session: &DriverSession, release: Release, stream: Queue, api: StreamApi) {
    // Owners that cannot be recorded now wait for the next export; this export does not fail for it.
    let _ = record_named_stream(session, release, stream.handle, api);
    limit_open_owners(api);
}

/// The ID of the capture that a stream takes part in. An error if a capture blocks the default stream.
fn active_capture(capture: Capture) -> Result<Option<u64>, Error> {
    match capture {
        Capture::No => Ok(None),
        Capture::Yes(id) => Ok(Some(id)),
        Capture::Blocked => {
            capture_error("a default stream is needed, and a stream that it waits for captures")
        }
    }
}

/// The stream of a live tensor that this thread exported without order.
struct RememberedStream {
    device: Device,
    stream: Queue,
    /// A reference; the tensor has the other one.
    alive: Counted,
}

thread_local! {
    static REMEMBERED: RefCell<Vec<RememberedStream>> = const { RefCell::new(Vec::new()) };
}

/// Remembers the stream of an unordered export until the result is dropped.
pub(super) fn remember_stream(
    device: Device,
    queue: Option<Queue>,
) -> Result<Option<Counted>, Error> {
    let Some(stream) = stream_of_producer(device, queue) else {
        return Ok(None);
    };
    let no_memory = |bytes| Error::OutOfMemory { bytes };
    let token = Counted::new(()).map_err(|((), bytes)| no_memory(bytes))?;
    let alive = token.clone();
    // On a thread that is being torn down nothing is stored, and a query there returns the default stream.
    let remembered = REMEMBERED.try_with(|list| {
        let mut list = list.borrow_mut();
        list.retain(|one| one.device != device && one.alive.reference_count() > 1);
        let room = list.try_reserve(1);
        room.map_err(|_| no_memory(size_of::<RememberedStream>()))?;
        list.push(RememberedStream {
            device,
            stream,
            alive,
        });
        Ok(())
    });
    remembered.unwrap_or(Ok(())).map(|()| Some(token))
}

/// The producer's stream of the last tensor that this thread exported from a device without order, if that tensor still
/// lives; the default stream otherwise.
///
/// The handle belongs to the owner, so it is returned only while the owner has to keep the stream alive.
#[must_use]
pub fn current_stream(device: Device) -> usize {
    REMEMBERED
        .try_with(|list| {
            list.borrow()
                .iter()
                .find(|one| one.device == device && one.alive.reference_count() > 1)
                // A default stream of another context has no number of its own, so it is not returned.
                .filter(|one| one.stream.context().is_none() || one.stream.handle > 2)
                .map(|one| one.stream.handle)
        })
        .ok()
        .flatten()
        .unwrap_or(0)
}
