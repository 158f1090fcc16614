//! Owners that wait for the work of their consumers, and who looks after them.
//!
//! A deleter that may not drop its owner puts it here, and is done: it records nothing on streams that it does not know,
//! and waits for nobody. What the owner waits for becomes an event when that can be had without harm:
//!
//! | the consumer was | the event is recorded |
//! |---|---|
//! | a default stream | by the deleter, if that context still lives |
//! | any other stream, on a driver that numbers streams | when a consumer comes with that stream again: then it lives |
//! | unknown (-1), or a stream that does not come again | on the whole context, by [`collect`], or when too much waits |
//!
//! Whoever exports in order, with no capture involved, looks after the list: it records what it can, asks which events have
//! happened, and drops those owners, all of which makes nobody wait. When more than [`MANY`] owners, or [`MUCH`] memory, wait
//! for no event, it records their contexts as well. That would break a capture of any stream there, so a process in which
//! a capture was seen leaves it to [`collect`]. A driver that cannot record contexts (CUDA before 12.5, HIP) makes the host
//! wait for the device instead.
//!
//! Owners whose data is read in a capture come here when their [`graph`](crate::stream::graph) is gone.
//!
//! Where nobody exports any more, owners stay: at exit nothing is freed, since the driver takes all memory back. So it is
//! in a child process after `fork`, which can use neither the driver nor, perhaps, the lock of the list.

#![expect(unsafe_code, reason = "frees, on the caller's word, what graphs read")]

use alloc::vec::Vec;
use core::mem::{forget, take};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::stream::driver::driver;
use crate::stream::graph::{a_graph_is_gone, is_any_gone, reads};
use crate::stream::release::{Freeing, Release, Settlement, settle};
use crate::stream::rules::Origin;
use crate::stream::visit::{Capture, Event, Visit, captures_are_known, capturing};
use crate::{Device, Error, device::Api, memory::counted::Counted};

/// How many owners may wait for no event, and how many bytes of theirs.
const MANY: usize = 64;
const MUCH: usize = 1 << 28;

/// An owner that could not be dropped when its consumer was done.
pub(super) struct Waiting {
    freeing: Freeing,
    /// When its consumer is done, where that is known.
    event: Option<Counted<Event>>,
    /// A graph may hold this too: then its launches come first.
    graph: Option<Counted>,
    /// Dropped where it may be, or forgotten; none when it was.
    owner: Option<Counted>,
}

/// Those that wait for consumers.
static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());
/// Those whose data is in a graph.
static GRAPHS: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// Nothing panics while one of them is locked, and nothing of the driver's is called.
fn lock(list: &Mutex<Vec<Waiting>>) -> MutexGuard<'_, Vec<Waiting>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this is a child of the process in which an owner waited first: it can use neither the driver nor the lists,
/// which another thread may have locked when it was made.
fn is_forked() -> bool {
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    let first = PROCESS.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed);
    first.is_err_and(|first| first != process)
}

/// Keeps an owner until its consumer is done, and the graph that reads its data is gone. Without memory it is leaked: it may
/// still be in use.
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
    // Locked by nobody: what is counted may be shared, which an owner may not.
    let owner = match Counted::new(Mutex::new(owner)) {
        Ok(owner) => Some(owner.untyped()),
        Err((owner, _)) => return forget(owner),
    };
    let freeing = *freeing;
    Waiting {
        freeing,
        event,
        graph,
        owner,
    }
    .wait();
}

/// Those whose graphs are gone have to wait for their consumers alone.
fn look_for_graphs() {
    if !is_any_gone() {
        return;
    }
    let mut graphs = lock(&GRAPHS);
    let mut at = 0;
    while at < graphs.len() {
        if graphs[at].is_in_graph() {
            at += 1;
        } else {
            put_back(&WAITING, graphs.swap_remove(at));
        }
    }
}

/// Drops the owner when somebody next looks after the list, and what still uses its memory is done.
pub(crate) fn free_later<O: Send + 'static>(device: Device, release: Release, owner: O) {
    let freeing = Freeing {
        release,
        ..Freeing::new(Origin::unsaid(device))
    };
    keep(&freeing, None, None, owner);
}

fn put_back(list: &Mutex<Vec<Waiting>>, one: Waiting) {
    let mut list = lock(list);
    match list.try_reserve(1) {
        Ok(()) => list.push(one),
        Err(_) => forget(one),
    }
}

/// Does something with those that are asked for, and removes them where that is so. Whoever works on them calls drivers and
/// owners, so nobody else sees the list meanwhile; and needs no memory for that.
fn each(wanted: impl Fn(&Waiting) -> bool, mut work: impl FnMut(&mut Waiting) -> bool) {
    let mut all = take(&mut *lock(&WAITING));
    let mut at = 0;
    while at < all.len() {
        if wanted(&all[at]) && work(&mut all[at]) {
            all.swap_remove(at);
        } else {
            at += 1;
        }
    }
    let mut list = lock(&WAITING);
    if list.is_empty() {
        *list = all;
    } else {
        drop(list);
        all.into_iter().for_each(|one| put_back(&WAITING, one));
    }
}

/// How many there are of those that are asked for.
fn count(wanted: impl Fn(&Waiting) -> bool) -> usize {
    lock(&WAITING).iter().filter(|one| wanted(one)).count()
}

impl Waiting {
    /// Puts it into the list where it belongs.
    fn wait(self) {
        if self.is_in_graph() {
            put_back(&GRAPHS, self);
            // It may have gone meanwhile.
            a_graph_is_gone();
        } else {
            put_back(&WAITING, self);
        }
    }

    fn is_of(&self, api: Api) -> bool {
        self.freeing.origin.device.device_type.api() == Some(api)
    }

    /// Whether a graph may read its data at any time.
    fn is_in_graph(&self) -> bool {
        matches!(self.freeing.release, Release::Captured(_))
            || self.graph.as_ref().is_some_and(reads)
    }

    /// Whether nobody knows when its consumer will be done.
    fn is_open(&self) -> bool {
        let unknown = matches!(
            self.freeing.release,
            Release::AfterStream(..) | Release::AfterAll(_) | Release::AfterDefault(_)
        );
        unknown && self.event.is_none()
    }

    /// What is left to wait for when the work that was recorded is over, of the whole context or the stream.
    fn pass(&mut self, outer: &Visit) -> Result<(), Error> {
        let rest = match self.freeing.release {
            Release::AfterAll(context) => {
                let visit = outer.nested(self.freeing.origin.device)?;
                // The consumer can have been at work in the producer's own context too.
                let own = match context {
                    Some(context) => context,
                    None => visit.place(self.freeing.own())?.whole,
                };
                let elsewhere = own != visit.primary()?.whole;
                elsewhere.then_some(Release::AfterStream(None, own))
            }
            _ => None,
        };
        self.freeing.release = rest.unwrap_or(Release::Free);
        self.event = None;
        Ok(())
    }

    /// Drops the owner if that can be done now; whether it was. `asked`: the event that was asked for last, and whether it
    /// has happened.
    fn advance(&mut self, visit: &Visit, asked: &mut Option<(Counted<Event>, bool)>) -> bool {
        if let Some(event) = &self.event {
            let known = asked.as_ref().filter(|(known, _)| known.is(event));
            let over = match known {
                Some((_, over)) => *over,
                None => {
                    let over = visit.is_over(event).unwrap_or(false);
                    *asked = Some((event.clone(), over));
                    over
                }
            };
            if !over || self.pass(visit).is_err() {
                return false;
            }
        }
        match settle(&self.freeing, |device| visit.nested(device)) {
            Ok(Settlement::Free(visit)) => {
                let owner = &mut self.owner;
                visit.let_go(&mut || drop(owner.take()));
                true
            }
            Ok(Settlement::At(event)) => {
                self.event = Some(event);
                false
            }
            Ok(Settlement::Unknown) | Err(_) => false,
        }
    }
}

/// Records what those wait for who wait for this stream of the current context, which a consumer has just named.
pub(super) fn note(visit: &Visit, release: Release, stream: usize) -> Result<(), Error> {
    let wanted = |one: &Waiting| one.is_open() && one.freeing.release == release;
    // Without a number it may be any stream.
    let unknown = matches!(release, Release::AfterStream(None, _));
    if unknown || is_forked() {
        return Ok(());
    }
    look_for_graphs();
    if count(wanted) == 0 {
        return Ok(());
    }
    let mut end = None;
    each(wanted, |one| {
        let event = end.get_or_insert_with(|| {
            let event = visit.event()?;
            visit.record(&event, stream)?;
            visit.lasting(event)
        });
        one.event = event.as_ref().ok().cloned();
        false
    });
    end.map_or(Ok(()), |event| event.map(drop))
}

/// Drops the owners whose consumers are done. Makes nobody wait, and breaks no capture.
pub(crate) fn sweep(api: Api) {
    if is_forked() {
        return;
    }
    look_for_graphs();
    let Some(visit) = base(api, |one| one.is_of(api)) else {
        return;
    };
    let mut asked = None;
    each(|one| one.is_of(api), |one| one.advance(&visit, &mut asked));
}

/// Some context that is current while such owners are worked on: their events cannot be asked or destroyed without. `None`
/// where there are none.
fn base(api: Api, wanted: impl Fn(&Waiting) -> bool) -> Option<Visit> {
    let device = {
        let list = lock(&WAITING);
        let first = list.iter().find(|one| wanted(one));
        first.map(|one| one.freeing.origin.device)?
    };
    let visit = driver(api).ok()?.visit(device).ok()?;
    visit.enter(visit.primary().ok()?.enter).ok()?;
    Some(visit)
}

/// Does what an export does that has nothing to do with any capture: looks after the list, and keeps it small.
pub(crate) fn relieve(api: Api) {
    sweep(api);
    let (count, bytes) = lock(&WAITING)
        .iter()
        .filter(|one| one.is_open() && one.is_of(api))
        .fold((0, 0_usize), |(count, bytes), one| {
            (count + 1, bytes.saturating_add(one.freeing.bytes))
        });
    if (count >= MANY || bytes >= MUCH) && !captures_are_known() {
        record_contexts(api);
        sweep(api);
    }
}

/// Records the contexts of those who wait for no event yet; where the driver cannot, the host waits for them.
fn record_contexts(api: Api) {
    let open = |one: &Waiting| one.is_open() && one.is_of(api);
    let Some(visit) = base(api, open) else {
        return;
    };
    let mut known = Vec::new();
    each(open, |one| {
        // Where this fails nothing has changed.
        let _ = one.record(&visit, &mut known);
        false
    });
}

/// A context, and the end of all its work; none if that is over.
type Recorded = (usize, Option<Counted<Event>>);

impl Waiting {
    /// Records the context whose work it waits for, if that has not been done.
    fn record(&mut self, outer: &Visit, known: &mut Vec<Recorded>) -> Result<(), Error> {
        let visit = outer.nested(self.freeing.origin.device)?;
        let own = visit.place(self.freeing.own())?;
        let context = match self.freeing.release {
            Release::AfterStream(_, context) => context,
            // Its default stream is recorded as soon as no capture is in the way.
            Release::AfterDefault(place) if visit.lives(place.enter, own) => return Ok(()),
            Release::AfterDefault(place) => place.whole,
            _ => visit.primary()?.whole,
        };
        let found = known.iter().find(|(known, _)| *known == context);
        let event = match found {
            Some((_, event)) => event.clone(),
            // It is recorded when it is current again, if it still lives.
            None if !visit.lives(context, own) => return Ok(()),
            None => {
                let event = end_of(&visit, context)?;
                if known.try_reserve(1).is_ok() {
                    known.push((context, event.clone()));
                }
                event
            }
        };
        match event {
            None => self.pass(outer)?,
            Some(_) => self.event = event,
        }
        Ok(())
    }
}

/// The end of all work of a context; none if that is over.
fn end_of(visit: &Visit, context: usize) -> Result<Option<Counted<Event>>, Error> {
    visit.enter(context)?;
    if visit.capture(0)? != Capture::No {
        return capturing("a context cannot be recorded while a stream captures");
    }
    let event = visit.event()?;
    if !visit.record_all(&event)? {
        return visit.synchronize_all().map(|()| None);
    }
    visit.lasting(event).map(Some)
}

/// Drops the owners whose consumers are done, and says how many still wait for theirs, but for those that another thread is
/// looking after just now.
///
/// An export does the same when it can, so few programs need this: those that want memory back now, and those that export
/// nothing any more. No stream waits for anything, and with CUDA 12.5 or later the host does not either: what is still
/// at work on the device goes on, and its owners are dropped by a later call. Before, and in HIP, the host waits for the
/// device.
///
/// Do not call it while a stream captures: that capture breaks where an owner waits for a stream that nobody can name.
///
/// ```
/// assert_eq!(dlpack_core::stream::collect(), 0);
/// ```
pub fn collect() -> usize {
    if is_forked() {
        return 0;
    }
    for api in [Api::Cuda, Api::Hip] {
        sweep(api);
        // Twice: some wait for one context after the other.
        for _ in 0..2 {
            if lock(&WAITING)
                .iter()
                .any(|one| one.is_open() && one.is_of(api))
            {
                record_contexts(api);
                sweep(api);
            }
        }
    }
    count(|_| true)
}

/// How many owners are kept because their data was read in a capture: a graph may be launched long after its consumer
/// has let go of the tensor.
///
/// When such a graph is destroyed, and everything that was made of it, its owners wait for their consumers alone, and are
/// dropped by a later export or by [`collect`]. CUDA before 11.3 cannot tell; then they stay until [`release_captured`].
///
/// ```
/// assert_eq!(dlpack_core::stream::captured(), 0);
/// ```
#[must_use]
pub fn captured() -> usize {
    if is_forked() {
        return 0;
    }
    let graphs = lock(&GRAPHS);
    graphs.iter().filter(|one| one.is_in_graph()).count()
}

/// Drops the owners of data that was read in captures, as [`collect`] does: what is running still is not waited for.
///
/// Where the driver tells when a graph is gone, nobody needs this but who keeps graphs that are not launched any more.
///
/// ```
/// // SAFETY: nothing was ever captured here.
/// unsafe { dlpack_core::stream::release_captured() };
/// ```
///
/// # Safety
///
/// No graph that reads their data is launched any more.
pub unsafe fn release_captured() {
    if is_forked() {
        return;
    }
    let read = take(&mut *lock(&GRAPHS));
    for mut one in read {
        one.graph = None;
        // What was launched may run on any stream.
        one.freeing.release = match one.freeing.release {
            Release::Captured(context) | Release::AfterStream(_, context) => {
                Release::AfterStream(None, context)
            }
            Release::AfterDefault(place) => Release::AfterStream(None, place.whole),
            Release::AfterAll(context) => Release::AfterAll(context),
            Release::Free | Release::AfterOwn => Release::AfterAll(None),
        };
        put_back(&WAITING, one);
    }
    collect();
}
