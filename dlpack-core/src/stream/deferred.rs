//! Deferred owners: they wait for the work of their consumers until a thread finds that it is over.
//!
//! A deleter that may not drop its owner defers it here and returns. It records nothing on streams that it does not know, and
//! never blocks. What the owner waits for becomes an event as soon as one can be recorded without breaking a capture:
//!
//! | the consumer used | the event is recorded |
//! |---|---|
//! | a default stream | by the deleter, if that context still exists |
//! | any other stream, on a driver that numbers streams | when a consumer names that stream again: then it exists |
//! | an unknown stream (-1), or one that is not named again | on the whole context, by [`collect`], or when too many owners wait |
//!
//! An ordered export that involves no capture records what it can, which blocks no thread. When 64 more owners, or
//! 256 MB more memory, wait for no event, it records their contexts too. That breaks a capture on any stream of the
//! context, so a process in which a capture was seen leaves it to [`collect`]. A capture in which no export took part was not seen:
//! it is broken once, and then counts as seen. A driver that cannot record contexts (CUDA before
//! 12.5, HIP) makes the host wait for the device instead.
//!
//! An export neither queries events nor drops owners, as an owner's `Drop` may need a lock that the exporting thread holds. The
//! [`collector`](crate::stream::collector) does, or the caller of [`collect`]. An export examines only the owners for which it
//! records an event, and locks the lists only if some owner waits for no event.
//!
//! Owners of data that a capture reads are added here when their [`graph`](crate::stream::graph) is gone.
//!
//! At exit nothing is freed, because the driver takes all memory back. Nor is anything freed in a child process after `fork`: it
//! can use neither the driver nor, perhaps, the lock of the lists.

#![expect(unsafe_code, reason = "frees, on the caller's word, what graphs read")]

use alloc::vec::Vec;
use core::cell::Cell;
use core::mem::{forget, take};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::PoisonError;
use std::thread_local;

use crate::stream::collector::wake_collector;
use crate::stream::context::StreamContext;
use crate::stream::driver::find_driver;
use crate::stream::graph::{graph_exists, has_gone_mark, take_gone_mark};
use crate::stream::process::{is_forked, remember_process};
use crate::stream::release::{PendingRelease, Release, ReleaseDecision, decide_release};
use crate::stream::rules::Origin;
use crate::stream::session::{Capture, DriverSession, Event};
use crate::sync::{Mutex, MutexGuard, statics};
use crate::{Device, Error, device::StreamApi, memory::counted::Counted};

mod contexts;
mod lists;
#[cfg(all(test, loom))]
mod models;
mod retained;

pub(crate) use contexts::limit_open_owners;
use contexts::{prepare_limit, record_contexts};
use lists::{OPEN, OpenKey, lock_lists, read_counts};
pub(super) use retained::check_limit;
pub use retained::{Retained, captured, limit, retained};

/// An owner that could not be dropped when its consumer was done.
pub(super) struct DeferredOwner {
    pending: PendingRelease,
    /// A reference that a graph may share. If it does, the owner waits for the graph's launches first.
    graph: Option<Counted>,
    /// Dropped when that is allowed, or leaked; `None` afterwards.
    owner: Option<Counted>,
}

/// The number of existing [`DeferredOwner`] values, in the lists and outside of them.
static EXISTING: AtomicUsize = AtomicUsize::new(0);

impl Drop for DeferredOwner {
    fn drop(&mut self) {
        EXISTING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Defers an owner until its consumer is done and the graph that reads its data is gone. If no memory is left, the owner is
/// leaked, because it may still be in use.
#[cold]
pub(super) fn defer_owner<O: Send + 'static>(
    pending: &PendingRelease,
    event: Option<Counted<Event>>,
    graph: Option<Counted>,
    owner: O,
) {
    if is_forked() {
        return forget((event, graph, owner));
    }
    // The mutex is never locked. It makes the counted value `Sync`, which an owner may not be.
    match Counted::new(Mutex::new(owner)) {
        Ok(owner) => defer_counted(pending, event, graph, owner.erase_type()),
        Err((owner, _)) => forget(owner),
    }
}

/// Defers an owner as [`defer_owner`] does. Compiled once for all types of owners.
#[inline(never)]
fn defer_counted(
    pending: &PendingRelease,
    event: Option<Counted<Event>>,
    graph: Option<Counted>,
    owner: Counted,
) {
    remember_process();
    prepare_limit();
    let owner = Some(owner);
    EXISTING.fetch_add(1, Ordering::SeqCst);
    let one = DeferredOwner {
        pending: *pending,
        graph,
        owner,
    };
    match &event {
        Some(event) => lock_lists().add_recorded(event, one),
        // If the graph is gone already, this sees it: the mark is taken before the lists are locked.
        None => lock_lists().add_owner(one),
    }
    wake_collector();
}

/// Defers an owner: the next sweep that finds its memory unused drops it.
pub(crate) fn defer_free<O: Send + 'static>(device: Device, release: Release, owner: O) {
    let pending = PendingRelease {
        release,
        ..PendingRelease::new(Origin::of_device(device))
    };
    defer_owner(&pending, None, None, owner);
}

/// Moves owners without a live graph to the lists of owners that wait only for their consumers.
#[inline(never)]
fn release_gone_graphs() {
    if !take_gone_mark() {
        return;
    }
    let mut lists = lock_lists();
    let mut at = 0;
    while at < lists.graphs.len() {
        if lists.graphs[at].is_in_graph() {
            at += 1;
        } else {
            let one = lists.graphs.swap_remove(at);
            lists.add_owner(one);
        }
    }
}

impl DeferredOwner {
    fn list_key(&self) -> OpenKey {
        let api = self.pending.origin.device.device_type.stream_api();
        (api.map_or(0, |api| api as usize), self.pending.release)
    }

    fn is_of(&self, api: StreamApi) -> bool {
        self.pending.origin.device.device_type.stream_api() == Some(api)
    }

    /// Whether a graph may read the owner's data at any time.
    fn is_in_graph(&self) -> bool {
        matches!(self.pending.release, Release::Captured(_))
            || self.graph.as_ref().is_some_and(graph_exists)
    }

    /// Makes the context current that the owner frees its memory in, and queries whether its stream captures.
    #[inline(never)]
    fn enter_own_context(
        &self,
        session: &DriverSession,
    ) -> Result<(StreamContext, Capture), Error> {
        session.enter_stream_context(self.pending.owner_stream())
    }

    /// Whether its event may not be queried: older versions of HIP break the capture of the stream that it was recorded on.
    #[inline(never)]
    fn is_query_forbidden(&self, outer: &DriverSession) -> bool {
        let recorded = self.pending.release == Release::AfterOwn && self.is_of(StreamApi::Hip);
        let captures = || {
            let session = outer.begin_nested(self.pending.origin.device)?;
            Ok::<_, Error>(self.enter_own_context(&session)?.1 != Capture::No)
        };
        recorded && captures().unwrap_or(true)
    }

    /// Sets what is left to wait for when the recorded work, of the whole context or the stream, is over.
    #[inline(never)]
    fn advance_release(&mut self, outer: &DriverSession) -> Result<(), Error> {
        let rest = match self.pending.release {
            Release::AfterAll(context) => {
                let session = outer.begin_nested(self.pending.origin.device)?;
                // The consumer may have worked in the producer's own context too.
                let own = match context {
                    Some(context) => context,
                    None => self.enter_own_context(&session)?.0.to_record,
                };
                let is_recorded = match session.is_without_device() {
                    true => session.driver.retains_context(own),
                    false => own == session.home_context()?.to_record,
                };
                (!is_recorded).then_some(Release::AfterStream(None, own))
            }
            _ => None,
        };
        self.pending.release = rest.unwrap_or(Release::Free);
        Ok(())
    }

    /// Drops the owner if that is possible now, and else puts it back into the list that it belongs to.
    #[inline(never)]
    fn drop_or_defer(mut self, session: &DriverSession) {
        match decide_release(&self.pending, |device| session.begin_nested(device)) {
            Ok(ReleaseDecision::Free(session)) => {
                let owner = &mut self.owner;
                session.drop_owner(&mut || drop(owner.take()));
            }
            Ok(ReleaseDecision::At(event)) => lock_lists().add_recorded(&event, self),
            Ok(ReleaseDecision::Unknown) => lock_lists().add_open(self),
            Err(_) => lock_lists().add_owner(self),
        }
    }
}

/// Records an event for the owners that wait for this stream of the current context, which a consumer has just named.
#[inline(never)]
pub(super) fn record_named_stream(
    session: &DriverSession,
    release: Release,
    stream: usize,
    api: StreamApi,
) -> Result<(), Error> {
    // Without an ID it may be any stream.
    let unknown = matches!(release, Release::AfterStream(None, _));
    if unknown || read_counts(&OPEN)[0] == 0 || is_forked() {
        return Ok(());
    }
    let owners = lock_lists().take_open((api as usize, release));
    if owners.is_empty() {
        return Ok(());
    }
    let recorded = || {
        let mut event = session.acquire_event()?;
        session.record_event(&mut event, stream)?;
        session.make_lasting(event)
    };
    let event = recorded();
    let mut lists = lock_lists();
    for one in owners {
        match &event {
            Ok(event) => lists.add_recorded(event, one),
            Err(_) => lists.add_open(one),
        }
    }
    drop(lists);
    wake_collector();
    event.map(drop)
}

/// Whether another [`sweep_owners`] could find work.
pub(super) fn is_busy() -> bool {
    if is_forked() {
        return false;
    }
    let lists = lock_lists();
    has_gone_mark()
        || !lists.recorded.is_empty()
        || !lists.again.is_empty()
        || !lists.ready.is_empty()
}

/// Drops the owners that no consumer uses any more. Does not block, and breaks no capture.
pub(super) fn sweep_owners(api: StreamApi) {
    find_ready(api);
    drop_ready(api);
}

statics! {
    static QUERYING: Mutex<()> = Mutex::new(());
}

/// Waits until no other thread has taken owners out of the lists to query their events.
fn lock_queries() -> MutexGuard<'static, ()> {
    QUERYING.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Whether this thread is dropping an owner in [`drop_ready`].
    static IS_DROPPING: Cell<bool> = const { Cell::new(false) };
}

/// Moves the owners that no consumer uses any more to the list of owners that any thread may drop.
///
/// Only one thread runs this at a time: it takes owners out of the lists while it queries the driver, and other threads must not
/// miss them. It runs no code of an owner and waits for no device, so the calling thread may hold any lock, such as the GIL.
#[inline(never)]
fn find_ready(api: StreamApi) {
    let _no_other_thread = lock_queries();
    release_gone_graphs();
    let mut recorded = take(&mut lock_lists().recorded);
    let owners = recorded.iter().flat_map(|(_, owners)| owners);
    if let Some(session) = open_session(api, owners) {
        let mut at = 0;
        while at < recorded.len() {
            let (event, owners) = &recorded[at];
            let is_forbidden =
                |one: &DeferredOwner| !one.is_of(api) || one.is_query_forbidden(&session);
            if owners.iter().any(is_forbidden) || !session.is_event_over(event).unwrap_or(false) {
                at += 1;
                continue;
            }
            let (event, owners) = recorded.swap_remove(at);
            for mut one in owners {
                match one.advance_release(&session) {
                    Ok(()) => lock_lists().add_ready(one),
                    Err(_) => lock_lists().add_owner(one),
                }
            }
            drop(event);
        }
    }
    put_back(recorded);
    let mut lists = lock_lists();
    for one in take(&mut lists.again) {
        match one.is_of(api) {
            true => lists.add_ready(one),
            false => lists.add_owner(one),
        }
    }
}

/// Drops the owners that are ready, one at a time. If an owner's `Drop` waits for a lock, the thread that holds the lock can
/// drop the rest. If an owner's `Drop` calls [`collect`], that call drops none, and this one drops the rest: nested calls for
/// each of many owners would overflow the stack.
#[inline(never)]
fn drop_ready(api: StreamApi) {
    if IS_DROPPING.replace(true) {
        return;
    }
    let mut session = None;
    while let Some(one) = { lock_lists().take_ready(api) } {
        session = session.or_else(|| open_session(api, [&one]));
        match &session {
            Some(session) => one.drop_or_defer(session),
            None => lock_lists().add_owner(one),
        }
    }
    IS_DROPPING.set(false);
}

/// Puts owners back whose events have not happened yet.
#[inline(never)]
fn put_back(recorded: Vec<(Counted<Event>, Vec<DeferredOwner>)>) {
    if recorded.is_empty() {
        return;
    }
    let mut lists = lock_lists();
    if lists.recorded.is_empty() {
        lists.recorded = recorded;
    } else {
        for (event, owners) in recorded {
            lists.push_recorded(event, owners);
        }
    }
    drop(lists);
    // The collector may have gone to sleep while the list was empty.
    wake_collector();
}

/// A session with a current context and a relaxed capture mode, for work on these owners: their events cannot be queried or
/// destroyed without a context. `None` if no owner belongs to this API, or if the driver fails.
fn open_session<'a>(
    api: StreamApi,
    owners: impl IntoIterator<Item = &'a DeferredOwner>,
) -> Option<DriverSession> {
    let first = owners.into_iter().find(|one| one.is_of(api))?;
    let session = find_driver(api).ok()?;
    let session = session.begin_session(first.pending.origin.device).ok()?;
    session
        .enter_context(session.home_context().ok()?.to_enter)
        .ok()?;
    // Relaxed once for all owners.
    session.relax_capture_mode().ok()?;
    Some(session)
}

/// Drops the owners that no consumer uses any more, and returns how many still wait for their consumers.
///
/// The owners are dropped on this thread: do not call this while holding a lock that one of them takes. An owner that another
/// thread is dropping now is neither waited for nor counted ([`Retained::in_progress`]). Called by an owner's `Drop` that this
/// function has started, it drops nothing. The collector thread does this
/// several times a second while owners wait for events ([`collect_in_background`](super::collect_in_background)), so few programs
/// need to call it: those that need memory back now, and those with consumers that name no stream, name it once, or capture.
/// For such consumers no other code may query the end of their work. No stream waits, and with CUDA 12.5 or later neither does
/// the host: running work continues, and its owners are dropped later. Before CUDA 12.5, and in HIP, the host waits for the
/// device.
///
/// Do not call this while a stream captures: it breaks that capture if an owner waits for a stream that cannot be named.
///
/// ```
/// assert_eq!(dlpack_core::stream::collect(), 0);
/// ```
pub fn collect() -> usize {
    if is_forked() {
        return 0;
    }
    for api in [StreamApi::Cuda, StreamApi::Hip] {
        sweep_owners(api);
        // Twice, because some owners wait for two contexts in turn.
        for _ in 0..2 {
            if read_counts(&OPEN)[0] > 0 {
                record_contexts(api);
                sweep_owners(api);
            }
        }
    }
    let _no_other_thread = lock_queries();
    lock_lists().owners_outside_graphs().count()
}

/// Drops the owners of data that was read in captures, as [`collect`] does. While a consumer's work on the data is still
/// running, the owner is kept. Before CUDA 12.5, and in HIP, this function waits for the device instead.
///
/// Where the driver tells when a graph is gone, only programs that keep graphs without launching them again need this.
///
/// ```
/// // SAFETY: nothing was ever captured here.
/// unsafe { dlpack_core::stream::release_captured() };
/// ```
///
/// # Safety
///
/// No graph that reads their data is launched any more. No launch of such a graph is still running in a context other than
/// the primary context of the device.
pub unsafe fn release_captured() {
    if is_forked() {
        return;
    }
    let read = take(&mut lock_lists().graphs);
    for mut one in read {
        one.graph = None;
        // Launched work may still be running on any stream.
        one.pending.release = match one.pending.release {
            Release::Captured(context) | Release::AfterAll(context) => Release::AfterAll(context),
            _ => Release::AfterAll(None),
        };
        lock_lists().add_owner(one);
    }
    collect();
}
