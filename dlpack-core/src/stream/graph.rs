//! CUDA and HIP graphs that read exported memory: a graph can be launched long after its consumer has dropped the tensor.
//!
//! Where the driver knows user objects (CUDA 11.3, and HIP), the graph under capture gets one, and with it a reference that
//! defers the owner. The driver releases it when the graph and everything made from it are gone, and in CUDA when its
//! launches are over too. It does so on a thread of its own, on which driver calls are forbidden and no code should block. So
//! no owner is dropped there: owners wait in [`deferred`](crate::stream::deferred), and the next sweep finds that the
//! reference was released.
#![expect(
    unsafe_code,
    reason = "gives the driver a reference count, and takes it back"
)]

use core::ffi::c_void;
use core::ptr;

use crate::stream::driver::{ApiCalls, Handle};
use crate::stream::session::{DriverSession, capture_error, handle_of};
use crate::stream::{collector::wake_collector, context::StreamContext, release::Release};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{Error, memory::counted::Counted, sync::statics};

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, `hipUserObjectNoDestructorSync`: the only flag that is defined; it is required.
const NO_SYNC: u32 = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`, `hipGraphUserObjectMove`: the graph takes over our reference instead of adding one.
const MOVE: u32 = 1;
/// `CU_STREAM_ADD_CAPTURE_DEPENDENCIES`, `hipStreamAddCaptureDependencies`: keeps the existing dependencies.
const ADD: u32 = 0;
/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`, `hipStreamCaptureStatusActive`.
const ACTIVE: i32 = 1;

/// What the release waits for, and the reference that a graph shares until it is gone.
pub(crate) struct ReleaseTerms {
    pub(crate) release: Release,
    pub(crate) graph: Option<Counted>,
}

impl From<Release> for ReleaseTerms {
    fn from(release: Release) -> Self {
        let graph = None;
        Self { release, graph }
    }
}

impl DriverSession {
    /// The condition for a consumer with a capturing stream of the current context: first the graph must be gone, then `then`
    /// applies. A driver that cannot tell when a graph is gone leaves that to the user.
    pub(super) fn release_after_graph(&self, stream: usize, then: Release) -> ReleaseTerms {
        let then = match (&self.driver.api_calls, then) {
            // Launches of the graph may still be running, on any stream.
            (ApiCalls::Hip(..), Release::Free | Release::AfterOwn) => Release::AfterAll(None),
            _ => then,
        };
        match self.share_with_graph(stream) {
            Ok(Some(hold)) => ReleaseTerms {
                release: then,
                graph: Some(hold),
            },
            _ => Release::Captured(match then {
                Release::AfterAll(context) => context,
                _ => None,
            })
            .into(),
        }
    }

    /// The graph that a stream captures; `None` if the driver cannot tell. The nodes on which the stream's next step depends are
    /// written to `front`. The driver owns their list until the stream is used again. If an edge of the graph has data, as that of a
    /// programmatic dependency has, only a query without `front` succeeds.
    fn captured_graph(
        &self,
        stream: usize,
        front: Option<&mut (*mut Handle, usize)>,
    ) -> Result<Option<Handle>, Error> {
        let (mut status, mut id, mut graph) = (0, 0, ptr::null_mut());
        let (nodes, count) = match front {
            Some((nodes, count)) => (ptr::from_mut(nodes), ptr::from_mut(count)),
            None => (ptr::null_mut(), ptr::null_mut()),
        };
        // SAFETY: the stream lives, and all pointers are valid for writing the results, except for the last two, which may be null.
        let known = unsafe {
            (self.driver).capture_graph(
                handle_of(stream),
                &raw mut status,
                &raw mut id,
                &raw mut graph,
                nodes.cast(),
                count,
            )
        }?;
        Ok((known && status == ACTIVE).then_some(graph))
    }

    /// Makes what a stream captures next depend on all that another stream has put into the same capture. An event would do
    /// that too, but it must be created in the stream's context, which cannot be queried during a capture.
    pub(super) fn join_capture(
        &self,
        (here, producer): (StreamContext, usize),
        (there, reader): (StreamContext, usize),
    ) -> Result<(), Error> {
        self.enter_context(here.to_enter)?;
        let mut front = (ptr::null_mut(), 0);
        let graph = self.captured_graph(producer, Some(&mut front))?;
        let (nodes, count) = front;
        if graph.is_none() {
            return capture_error("the driver cannot order two streams that capture");
        }
        if count == 0 {
            return Ok(());
        }
        self.enter_context(there.to_enter)?;
        // SAFETY: `reader` is a stream of the capture that `nodes` belong to, and `producer` was not used since the query.
        match unsafe { (self.driver).join_capture(handle_of(reader), nodes, count, ADD) }? {
            true => Ok(()),
            false => capture_error("the driver cannot order two streams that capture"),
        }
    }

    /// Creates a reference count that the graph under capture on this stream shares.
    fn share_with_graph(&self, stream: usize) -> Result<Option<Counted>, Error> {
        let no_memory = |((), bytes)| Error::OutOfMemory { bytes };
        let Some(graph) = self.captured_graph(stream, None)? else {
            return Ok(None);
        };
        let hold = Counted::new(()).map_err(no_memory)?;
        let theirs = hold.clone().into_raw();
        let mut object = ptr::null_mut();
        // SAFETY: `object` is valid for writing; `release_from_graph` takes back `theirs`, and the driver calls it once.
        let made = unsafe {
            (self.driver).object_create(&raw mut object, theirs, release_from_graph, 1, NO_SYNC)
        };
        if made != Ok(true) {
            // SAFETY: no object was made, so the driver does not have `theirs`, and it is taken back once.
            drop(unsafe { Counted::from_raw(theirs) });
            return Ok(None);
        }
        // SAFETY: `graph` is under capture, when user objects may be added, and we own the reference that is moved.
        let given = unsafe { (self.driver).graph_takes(graph, object, 1, MOVE) };
        if given != Ok(true) {
            // SAFETY: the move failed, so we still own the only reference on the object. The driver calls `release_from_graph`.
            let _ = unsafe { (self.driver).object_release(object, 1) };
            return Ok(None);
        }
        Ok(Some(hold))
    }
}

/// Whether the graph still holds the other reference.
pub(super) fn graph_exists(hold: &Counted) -> bool {
    hold.reference_count() > 1
}

statics! {
    /// Whether a graph is gone since the last call of `take_gone_mark`.
    static GONE: AtomicBool = AtomicBool::new(false);
}

/// Marks that a graph is gone. Callable on any thread, including the driver's, where driver calls are forbidden.
///
/// This is a swap instead of a store, so that the next `take_gone_mark` is ordered after every thread that has set the mark, not
/// only after the last one. Otherwise it could clear the mark and not see that a reference was released.
fn mark_graph_gone() {
    GONE.swap(true, Ordering::Release);
}

/// Whether a graph is gone since the last call of `take_gone_mark`. Does not clear the mark.
pub(super) fn has_gone_mark() -> bool {
    GONE.load(Ordering::Relaxed)
}

/// Clears the mark that a graph is gone, and returns whether it was set.
pub(super) fn take_gone_mark() -> bool {
    GONE.swap(false, Ordering::Acquire)
}

/// Called by the driver to release the reference of a graph.
pub(super) extern "C" fn release_from_graph(hold: *mut c_void) {
    // SAFETY: `hold` comes from `into_raw` in `share_with_graph`, and the driver calls this once.
    drop(unsafe { Counted::from_raw(hold) });
    mark_graph_gone();
    wake_collector();
}
