//! Owners of which no event is known: records the end of all work of their contexts.
//!
//! That breaks a capture on any stream of such a context. So an export does it only while no capture was ever seen. The driver
//! cannot be asked whether any stream of a context captures: the capture that no export has seen is broken, and seen by that.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use super::lists::{OPEN, lock_lists, read_counts};
use super::{DeferredOwner, open_session};
use crate::stream::collector::wake_collector;
use crate::stream::process::is_forked;
use crate::stream::release::Release;
use crate::stream::session::{Capture, DriverSession, Event, capture_error, captures_are_known};
use crate::{Error, device::StreamApi, memory::counted::Counted};

/// The number of owners without an event, and of their bytes, at which an export records their contexts.
const MANY: usize = 64;
const MUCH: usize = 1 << 28;

/// The value of [`OPEN`] after the contexts were last recorded. The owners that were left cannot be recorded.
static TRIED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// [`record_uncaptured_contexts`], since the first owner was deferred. So code that defers no owner, such as an import that waits
/// for its producer, does not link it.
static RECORD_CONTEXTS: OnceLock<fn(StreamApi)> = OnceLock::new();

/// Called before an owner is deferred.
pub(super) fn prepare_limit() {
    // Each call sets the same function.
    let _ = RECORD_CONTEXTS.set(record_uncaptured_contexts);
}

/// Limits the number of owners without an event. Called by exports that involve no capture.
pub(crate) fn limit_open_owners(api: StreamApi) {
    let (open, mut tried) = (read_counts(&OPEN), read_counts(&TRIED));
    for at in 0..2 {
        tried[at] = tried[at].min(open[at]);
        TRIED[at].store(tried[at], Ordering::Relaxed);
    }
    let much = open[0] - tried[0] >= MANY || open[1] - tried[1] >= MUCH;
    let Some(record_contexts) = RECORD_CONTEXTS.get() else {
        return;
    };
    if much && !captures_are_known() && !is_forked() {
        record_contexts(api);
        let left = read_counts(&OPEN);
        for at in 0..2 {
            TRIED[at].store(left[at], Ordering::Relaxed);
        }
    }
}

/// Records the contexts of owners without an event; if the driver cannot do that, the host waits for the contexts.
pub(super) fn record_contexts(api: StreamApi) {
    record_contexts_while(|| true, api);
}

/// Records contexts until the driver refuses one for a capture.
fn record_uncaptured_contexts(api: StreamApi) {
    record_contexts_while(|| !captures_are_known(), api);
}

#[inline(never)]
fn record_contexts_while(is_allowed: fn() -> bool, api: StreamApi) {
    let groups = lock_lists().take_all_open(api);
    let owners = || groups.iter().flat_map(|(_, owners)| owners);
    let session = open_session(api, owners());
    let mut known = Vec::new();
    for mut one in groups.into_iter().flat_map(|(_, owners)| owners) {
        let recorded = session
            .as_ref()
            .filter(|_| is_allowed())
            .map(|session| one.record_context_end(session, &mut known));
        match recorded {
            Some(Ok(Some(event))) => lock_lists().add_recorded(&event, one),
            Some(Ok(None)) => lock_lists().add_owner(one),
            _ => lock_lists().add_open(one),
        }
    }
    wake_collector();
}

/// Marks the primary contexts of all devices. No context has this address.
const ALL_CONTEXTS: usize = usize::MAX - 1;

/// A context, and the event at the end of all its work: `None` if that is over, an error if the context cannot be recorded now.
type RecordedContext = (usize, Result<Option<Counted<Event>>, ()>);

impl DeferredOwner {
    /// The event at the end of the context's work; `None` if the owner needs no such event any more.
    #[inline(never)]
    fn record_context_end(
        &mut self,
        outer: &DriverSession,
        known: &mut Vec<RecordedContext>,
    ) -> Result<Option<Counted<Event>>, Error> {
        let session = outer.begin_nested(self.pending.origin.device)?;
        let context = match self.pending.release {
            // The default stream is recorded as soon as no capture prevents it.
            Release::AfterDefault(place) | Release::FreeIn(place)
                if self.is_context_certain(&session, place.to_enter)? =>
            {
                return Ok(None);
            }
            Release::AfterDefault(place) | Release::FreeIn(place) => place.to_record,
            Release::AfterStream(_, context) => context,
            _ if session.is_without_device() => ALL_CONTEXTS,
            _ => session.home_context()?.to_record,
        };
        let found = known.iter().find(|(known, _)| *known == context);
        let event = match found {
            Some((_, Ok(event))) => event.clone(),
            Some((_, Err(()))) => return capture_error("a context could not be recorded"),
            // A context that may be gone is recorded when it is current again, if it still exists.
            None if context != ALL_CONTEXTS && !self.is_context_certain(&session, context)? => {
                return capture_error("a context may be gone");
            }
            None => {
                let recorded = match context {
                    ALL_CONTEXTS => record_end_of_contexts(&session),
                    context => record_end_of_context(&session, context),
                };
                if known.try_reserve(1).is_ok() {
                    let outcome = match &recorded {
                        Ok(event) => Ok(event.clone()),
                        Err(_) => Err(()),
                    };
                    known.push((context, outcome));
                }
                recorded?
            }
        };
        if event.is_none() {
            self.advance_release(outer)?;
        }
        Ok(event)
    }

    /// Whether a context is certain to live.
    #[inline(never)]
    fn is_context_certain(&self, session: &DriverSession, context: usize) -> Result<bool, Error> {
        Ok(session.is_context_alive(context)
            || self.enter_own_context(session)?.0.to_enter == context)
    }
}

/// The event at the end of all work of the primary contexts of all devices; `None` if that is over.
#[inline(never)]
fn record_end_of_contexts(session: &DriverSession) -> Result<Option<Counted<Event>>, Error> {
    let mut joined: Option<Counted<Event>> = None;
    for device in 0..session.driver.count_devices()? {
        let Some(context) = session.driver.find_existing_context(device)? else {
            continue;
        };
        if let Some(event) = record_end_of_context(session, context)? {
            joined = Some(match joined {
                // In a primary context that core keeps.
                Some(earlier) => session.make_lasting(session.join_events(&[&earlier, &event])?)?,
                None => event,
            });
        }
    }
    Ok(joined)
}

/// The event at the end of all work of a context; `None` if that is over.
#[inline(never)]
fn record_end_of_context(
    session: &DriverSession,
    context: usize,
) -> Result<Option<Counted<Event>>, Error> {
    session.enter_context(context)?;
    if session.query_capture(0)? != Capture::No {
        return capture_error("a context cannot be recorded while a stream captures");
    }
    let mut event = session.acquire_event()?;
    if !session.record_context(&mut event)? {
        return session.block_on_context().map(|()| None);
    }
    session.make_lasting(event).map(Some)
}
