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
//! An ordered export that involves no capture records what it can, which blocks no thread. When [`MANY`] more owners, or
//! [`MUCH`] more memory, wait for no event, it records their contexts too. That would break a capture on any stream of the
//! context, so a process in which a capture was seen leaves it to [`collect`]. A driver that cannot record contexts (CUDA before
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

use crate::stream::collector::wake;
use crate::stream::driver::driver;
use crate::stream::graph::{a_graph_is_gone, is_any_gone, may_be_gone, reads};
use crate::stream::process::{is_forked, remember_process};
use crate::stream::release::{Freeing, Release, Settlement, settle};
use crate::stream::rules::Origin;
use crate::stream::visit::{Capture, Event, Visit, captures_are_known, capturing};
use crate::sync::{Mutex, MutexGuard, statics};
use crate::{Device, Error, device::StreamApi, memory::counted::Counted};

mod lists;
#[cfg(all(test, loom))]
mod models;
mod retained;

use lists::{Key, OPEN, lists, read};
pub(super) use retained::has_room;
pub use retained::{Retained, captured, limit, retained};

/// The number of owners without an event, and of their bytes, at which an export records their contexts.
const MANY: usize = 64;
const MUCH: usize = 1 << 28;

/// An owner that could not be dropped when its consumer was done.
pub(super) struct Waiting {
    freeing: Freeing,
    /// A reference that a graph may share. If it does, the owner waits for the graph's launches first.
    graph: Option<Counted>,
    /// Dropped when that is allowed, or leaked; `None` afterwards.
    owner: Option<Counted>,
}

/// The number of existing [`Waiting`] values, in the lists and outside of them.
static EXISTING: AtomicUsize = AtomicUsize::new(0);

impl Drop for Waiting {
    fn drop(&mut self) {
        EXISTING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The value of [`OPEN`] after the contexts were last recorded. The owners that were left cannot be recorded.
static TRIED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Defers an owner until its consumer is done and the graph that reads its data is gone. If no memory is left, the owner is
/// leaked, because it may still be in use.
#[cold]
pub(super) fn keep<O: Send + 'static>(
    freeing: &Freeing,
    event: Option<Counted<Event>>,
    graph: Option<Counted>,
    owner: O,
) {
    if is_forked() {
        return forget((event, graph, owner));
    }
    remember_process();
    // The mutex is never locked. It makes the counted value `Sync`, which an owner may not be.
    let owner = match Counted::new(Mutex::new(owner)) {
        Ok(owner) => Some(owner.erase_type()),
        Err((owner, _)) => return forget(owner),
    };
    EXISTING.fetch_add(1, Ordering::SeqCst);
    let one = Waiting {
        freeing: *freeing,
        graph,
        owner,
    };
    let in_graph = one.is_in_graph();
    match &event {
        Some(event) => lists().add_recorded(event, one),
        None => lists().add(one),
    }
    if in_graph {
        // The graph may have been destroyed meanwhile.
        a_graph_is_gone();
    }
    wake();
}

/// Defers an owner: the next sweep that finds its memory unused drops it.
pub(crate) fn free_later<O: Send + 'static>(device: Device, release: Release, owner: O) {
    let freeing = Freeing {
        release,
        ..Freeing::new(Origin::unsaid(device))
    };
    keep(&freeing, None, None, owner);
}

/// Moves owners without a live graph to the lists of owners that wait only for their consumers.
fn look_for_graphs() {
    if !is_any_gone() {
        return;
    }
    let mut lists = lists();
    let mut at = 0;
    while at < lists.graphs.len() {
        if lists.graphs[at].is_in_graph() {
            at += 1;
        } else {
            let one = lists.graphs.swap_remove(at);
            lists.add(one);
        }
    }
}

impl Waiting {
    fn key(&self) -> Key {
        let api = self.freeing.origin.device.device_type.stream_api();
        (api.map_or(0, |api| api as usize), self.freeing.release)
    }

    fn is_of(&self, api: StreamApi) -> bool {
        self.freeing.origin.device.device_type.stream_api() == Some(api)
    }

    /// Whether a graph may read the owner's data at any time.
    fn is_in_graph(&self) -> bool {
        matches!(self.freeing.release, Release::Captured(_))
            || self.graph.as_ref().is_some_and(reads)
    }

    /// Whether its event may not be queried: older versions of HIP break the capture of the stream that it was recorded on.
    fn is_unaskable(&self, outer: &Visit) -> bool {
        let recorded = self.freeing.release == Release::AfterOwn && self.is_of(StreamApi::Hip);
        let captures = || {
            let visit = outer.nested(self.freeing.origin.device)?;
            Ok::<_, Error>(visit.find(self.freeing.own())?.1 != Capture::No)
        };
        recorded && captures().unwrap_or(true)
    }

    /// Sets what is left to wait for when the recorded work, of the whole context or the stream, is over.
    fn pass(&mut self, outer: &Visit) -> Result<(), Error> {
        let rest = match self.freeing.release {
            Release::AfterAll(context) => {
                let visit = outer.nested(self.freeing.origin.device)?;
                // The consumer may have worked in the producer's own context too.
                let own = match context {
                    Some(context) => context,
                    None => visit.find(self.freeing.own())?.0.whole,
                };
                let elsewhere = own != visit.primary()?.whole;
                elsewhere.then_some(Release::AfterStream(None, own))
            }
            _ => None,
        };
        self.freeing.release = rest.unwrap_or(Release::Free);
        Ok(())
    }

    /// Drops the owner if that is possible now, and else puts it back into the list that it belongs to.
    fn settle(mut self, visit: &Visit) {
        match settle(&self.freeing, |device| visit.nested(device)) {
            Ok(Settlement::Free(visit)) => {
                let owner = &mut self.owner;
                visit.let_go(&mut || drop(owner.take()));
            }
            Ok(Settlement::At(event)) => lists().add_recorded(&event, self),
            Ok(Settlement::Unknown) => lists().add_open(self),
            Err(_) => lists().add(self),
        }
    }
}

/// Records an event for the owners that wait for this stream of the current context, which a consumer has just named.
pub(super) fn note(
    visit: &Visit,
    release: Release,
    stream: usize,
    api: StreamApi,
) -> Result<(), Error> {
    // Without an ID it may be any stream.
    let unknown = matches!(release, Release::AfterStream(None, _));
    if unknown || read(&OPEN)[0] == 0 || is_forked() {
        return Ok(());
    }
    let owners = lists().take_open((api as usize, release));
    if owners.is_empty() {
        return Ok(());
    }
    let recorded = || {
        let mut event = visit.event()?;
        visit.record(&mut event, stream)?;
        visit.lasting(event)
    };
    let event = recorded();
    let mut lists = lists();
    for one in owners {
        match &event {
            Ok(event) => lists.add_recorded(event, one),
            Err(_) => lists.add_open(one),
        }
    }
    drop(lists);
    wake();
    event.map(drop)
}

/// Whether another [`sweep`] could find work.
pub(super) fn is_busy() -> bool {
    if is_forked() {
        return false;
    }
    let lists = lists();
    may_be_gone()
        || !lists.recorded.is_empty()
        || !lists.again.is_empty()
        || !lists.ready.is_empty()
}

/// Drops the owners that no consumer uses any more. Does not block, and breaks no capture.
pub(super) fn sweep(api: StreamApi) {
    find_ready(api);
    drop_ready(api);
}

statics! {
    static ONE_THREAD: Mutex<()> = Mutex::new(());
}

fn lock_queries() -> MutexGuard<'static, ()> {
    ONE_THREAD.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Whether this thread is dropping an owner in [`drop_ready`].
    static DROPS: Cell<bool> = const { Cell::new(false) };
}

/// Moves the owners that no consumer uses any more to the list of owners that any thread may drop.
///
/// Only one thread runs this at a time: it takes owners out of the lists while it queries the driver, and other threads must not
/// miss them. It runs no code of an owner and waits for no device, so the calling thread may hold any lock, such as the GIL.
fn find_ready(api: StreamApi) {
    let _no_other_thread = lock_queries();
    look_for_graphs();
    let mut recorded = take(&mut lists().recorded);
    let owners = recorded.iter().flat_map(|(_, owners)| owners);
    if let Some(visit) = base(api, owners) {
        let mut at = 0;
        while at < recorded.len() {
            let (event, owners) = &recorded[at];
            let unaskable = |one: &Waiting| !one.is_of(api) || one.is_unaskable(&visit);
            if owners.iter().any(unaskable) || !visit.is_over(event).unwrap_or(false) {
                at += 1;
                continue;
            }
            let (event, owners) = recorded.swap_remove(at);
            for mut one in owners {
                match one.pass(&visit) {
                    Ok(()) => lists().add_ready(one),
                    Err(_) => lists().add(one),
                }
            }
            drop(event);
        }
    }
    put_back(recorded);
    let mut lists = lists();
    for one in take(&mut lists.again) {
        match one.is_of(api) {
            true => lists.add_ready(one),
            false => lists.add(one),
        }
    }
}

/// Drops the owners that are ready, one at a time. If an owner's `Drop` waits for a lock, the thread that holds the lock can
/// drop the rest. If an owner's `Drop` calls [`collect`], the rest is left to the outer call: the stack could not hold one call
/// inside another for each of many owners.
fn drop_ready(api: StreamApi) {
    if DROPS.replace(true) {
        return;
    }
    let mut visit = None;
    while let Some(one) = { lists().take_ready(api) } {
        visit = visit.or_else(|| base(api, [&one]));
        match &visit {
            Some(visit) => one.settle(visit),
            None => lists().add(one),
        }
    }
    DROPS.set(false);
}

fn put_back(recorded: Vec<(Counted<Event>, Vec<Waiting>)>) {
    if recorded.is_empty() {
        return;
    }
    let mut lists = lists();
    if lists.recorded.is_empty() {
        lists.recorded = recorded;
    } else {
        for (event, owners) in recorded {
            lists.push_recorded(event, owners);
        }
    }
    drop(lists);
    // The collector may have gone to sleep while the list was empty.
    wake();
}

/// A session with a current context and a relaxed capture mode, for work on these owners: their events cannot be queried or
/// destroyed without a context. `None` if no owner belongs to this API, or if the driver fails.
fn base<'a>(api: StreamApi, owners: impl IntoIterator<Item = &'a Waiting>) -> Option<Visit> {
    let first = owners.into_iter().find(|one| one.is_of(api))?;
    let visit = driver(api).ok()?;
    let visit = visit.visit(first.freeing.origin.device).ok()?;
    visit.enter(visit.primary().ok()?.enter).ok()?;
    // Relaxed once for all owners.
    visit.relax().ok()?;
    Some(visit)
}

/// Limits the number of owners without an event. Called by exports that involve no capture.
pub(crate) fn relieve(api: StreamApi) {
    let (open, mut tried) = (read(&OPEN), read(&TRIED));
    for at in 0..2 {
        tried[at] = tried[at].min(open[at]);
        TRIED[at].store(tried[at], Ordering::Relaxed);
    }
    let much = open[0] - tried[0] >= MANY || open[1] - tried[1] >= MUCH;
    if much && !captures_are_known() && !is_forked() {
        record_contexts(api);
        let left = read(&OPEN);
        for at in 0..2 {
            TRIED[at].store(left[at], Ordering::Relaxed);
        }
    }
}

/// Records the contexts of owners without an event; if the driver cannot do that, the host waits for the contexts.
fn record_contexts(api: StreamApi) {
    let groups = lists().take_all_open(api);
    let owners = || groups.iter().flat_map(|(_, owners)| owners);
    let visit = base(api, owners());
    let mut known = Vec::new();
    for mut one in groups.into_iter().flat_map(|(_, owners)| owners) {
        let recorded = visit.as_ref().map(|visit| one.record(visit, &mut known));
        match recorded {
            Some(Ok(Some(event))) => lists().add_recorded(&event, one),
            Some(Ok(None)) => lists().add(one),
            _ => lists().add_open(one),
        }
    }
    wake();
}

/// A context, and the event at the end of all its work; `None` if that is over.
type Recorded = (usize, Option<Counted<Event>>);

impl Waiting {
    /// The event at the end of the context's work; `None` if the owner needs no such event any more.
    fn record(
        &mut self,
        outer: &Visit,
        known: &mut Vec<Recorded>,
    ) -> Result<Option<Counted<Event>>, Error> {
        let visit = outer.nested(self.freeing.origin.device)?;
        let context = match self.freeing.release {
            // The default stream is recorded as soon as no capture prevents it.
            Release::AfterDefault(place) if self.knows(&visit, place.enter)? => return Ok(None),
            Release::AfterDefault(place) => place.whole,
            Release::AfterStream(_, context) => context,
            _ => visit.primary()?.whole,
        };
        let found = known.iter().find(|(known, _)| *known == context);
        let event = match found {
            Some((_, event)) => event.clone(),
            // A context that may be gone is recorded when it is current again, if it still exists.
            None if !self.knows(&visit, context)? => return capturing("a context may be gone"),
            None => {
                let event = end_of(&visit, context)?;
                if known.try_reserve(1).is_ok() {
                    known.push((context, event.clone()));
                }
                event
            }
        };
        if event.is_none() {
            self.pass(outer)?;
        }
        Ok(event)
    }

    /// Whether a context is certain to live.
    fn knows(&self, visit: &Visit, context: usize) -> Result<bool, Error> {
        Ok(visit.lives(context) || visit.find(self.freeing.own())?.0.enter == context)
    }
}

/// The event at the end of all work of a context; `None` if that is over.
fn end_of(visit: &Visit, context: usize) -> Result<Option<Counted<Event>>, Error> {
    visit.enter(context)?;
    if visit.capture(0)? != Capture::No {
        return capturing("a context cannot be recorded while a stream captures");
    }
    let mut event = visit.event()?;
    if !visit.record_all(&mut event)? {
        return visit.synchronize_all().map(|()| None);
    }
    visit.lasting(event).map(Some)
}

/// Drops the owners that no consumer uses any more, and returns how many still wait for their consumers.
///
/// The owners are dropped on this thread: do not call this while holding a lock that one of them takes. An owner that another
/// thread is dropping now is neither waited for nor counted ([`Retained::in_progress`]). The collector thread does this
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
        sweep(api);
        // Twice, because some owners wait for two contexts in turn.
        for _ in 0..2 {
            if read(&OPEN)[0] > 0 {
                record_contexts(api);
                sweep(api);
            }
        }
    }
    // Another thread may have taken owners out of the lists, to query their events.
    let _no_other_thread = lock_queries();
    lists().waiting().count()
}

/// Drops the owners of data that was read in captures, as [`collect`] does. Running work is not waited for.
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
    let read = take(&mut lists().graphs);
    for mut one in read {
        one.graph = None;
        // Launched work may still be running on any stream.
        one.freeing.release = match one.freeing.release {
            Release::Captured(context) | Release::AfterAll(context) => Release::AfterAll(context),
            _ => Release::AfterAll(None),
        };
        lists().add(one);
    }
    collect();
}
