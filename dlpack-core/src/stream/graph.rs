//! Graphs that hold what they read: a graph can be launched long after its consumer has let go of the tensor.
//!
//! Where the driver knows user objects (CUDA 11.3, and HIP), the graph that is being captured gets one, and with it a hold on
//! the tensor. The driver gives it back when the graph is gone, and everything that was made of it, and in CUDA when its
//! launches are over. It does so on a thread of its own, on which no call of the driver is allowed and nobody should wait. So
//! no owner is dropped there: they wait in [`waiting`](crate::stream::waiting), and whoever looks after them finds that
//! the hold has come back.
#![expect(unsafe_code, reason = "hands a hold to the driver, and has it back")]

use core::ffi::c_void;
use core::ptr;

use crate::stream::driver::{Handle, Own};
use crate::stream::visit::{Visit, capturing, raw};
use crate::stream::{collector::wake, place::Place, release::Release};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{Error, memory::counted::Counted, sync::statics};

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, `hipUserObjectNoDestructorSync`: the one flag there is, which has to be.
const NO_SYNC: u32 = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`, `hipGraphUserObjectMove`: the graph gets our hold, not another one.
const MOVE: u32 = 1;
/// `CU_STREAM_ADD_CAPTURE_DEPENDENCIES`, `hipStreamAddCaptureDependencies`: those from before stay.
const ADD: u32 = 0;
/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`, `hipStreamCaptureStatusActive`.
const ACTIVE: i32 = 1;

/// What the freeing waits for, and what a graph holds until then.
pub(crate) struct After {
    pub(crate) release: Release,
    pub(crate) graph: Option<Counted>,
}

impl From<Release> for After {
    fn from(release: Release) -> Self {
        let graph = None;
        Self { release, graph }
    }
}

impl Visit {
    /// For a consumer whose stream, of the current context, captures: the graph has to be gone, and then it is as `then`
    /// says. A driver that cannot tell when it is gone leaves that to the user.
    pub(super) fn captured(&self, stream: usize, then: Release) -> After {
        let then = match (&self.driver.own, then) {
            // Its launches may be running still, on any stream.
            (Own::Hip(..), Release::Free | Release::AfterOwn) => Release::AfterAll(None),
            _ => then,
        };
        match self.held_by_graph(stream) {
            Ok(Some(hold)) => After {
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

    /// The graph that a stream captures, and what its next step comes behind: a list of nodes, which is the driver's until
    /// the stream is used again. None if the driver cannot tell.
    fn captured_graph(&self, stream: usize) -> Result<Option<(Handle, *mut Handle, usize)>, Error> {
        let (mut status, mut id, mut graph) = (0, 0, ptr::null_mut());
        let (mut nodes, mut count) = (ptr::null_mut::<Handle>(), 0);
        // SAFETY: a stream that lives, and places for the results.
        let known = unsafe {
            (self.driver).capture_graph(
                raw(stream),
                &raw mut status,
                &raw mut id,
                &raw mut graph,
                (&raw mut nodes).cast(),
                &raw mut count,
            )
        }?;
        Ok((known && status == ACTIVE).then_some((graph, nodes, count)))
    }

    /// Puts what a stream captures next behind all that another one has put into the same capture. An event would do
    /// that too, if it was made in the stream's context, which cannot be asked for.
    pub(super) fn join_capture(
        &self,
        (here, producer): (Place, usize),
        (there, reader): (Place, usize),
    ) -> Result<(), Error> {
        self.enter(here.enter)?;
        let Some((_, nodes, count)) = self.captured_graph(producer)? else {
            return capturing("the driver cannot order two streams that capture");
        };
        if count == 0 {
            return Ok(());
        }
        self.enter(there.enter)?;
        // SAFETY: a stream of the same capture, and nodes of that, which nobody has changed since.
        match unsafe { (self.driver).join_capture(raw(reader), nodes, count, ADD) }? {
            true => Ok(()),
            false => capturing("the driver cannot order two streams that capture"),
        }
    }

    /// A hold of which the graph that the stream captures has another.
    fn held_by_graph(&self, stream: usize) -> Result<Option<Counted>, Error> {
        let no_memory = |((), bytes)| Error::OutOfMemory { bytes };
        let Some((graph, ..)) = self.captured_graph(stream)? else {
            return Ok(None);
        };
        let hold = Counted::new(()).map_err(no_memory)?;
        let theirs = hold.clone().into_raw();
        let mut object = ptr::null_mut();
        // SAFETY: a place for the result; `end` takes back what is given here, and is called once.
        let made = unsafe { (self.driver).object_create(&raw mut object, theirs, end, 1, NO_SYNC) };
        if made != Ok(true) {
            // SAFETY: nobody else has it.
            drop(unsafe { Counted::from_raw(theirs) });
            return Ok(None);
        }
        // SAFETY: a graph that is being captured may be given what it holds, and the object is ours to give.
        let given = unsafe { (self.driver).graph_takes(graph, object, 1, MOVE) };
        if given != Ok(true) {
            // SAFETY: the one hold on the object is still ours. That calls `end`.
            let _ = unsafe { (self.driver).object_release(object, 1) };
            return Ok(None);
        }
        Ok(Some(hold))
    }
}

/// Whether the graph that has the other hold is still there.
pub(super) fn reads(hold: &Counted) -> bool {
    hold.reference_count() > 1
}

statics! {
    /// Whether a graph is gone since this was asked last.
    static GONE: AtomicBool = AtomicBool::new(false);
}

/// To be called on any thread, also where nothing else may be called.
///
/// A swap and no store: the next `is_any_gone` is then ordered after every thread that has set the mark, and not after the
/// last one alone. Otherwise it could take the mark away and still see a hold that was given back.
pub(super) fn a_graph_is_gone() {
    GONE.swap(true, Ordering::Release);
}

/// Whether `is_any_gone` would say so.
pub(super) fn may_be_gone() -> bool {
    GONE.load(Ordering::Relaxed)
}

pub(super) fn is_any_gone() -> bool {
    GONE.swap(false, Ordering::Acquire)
}

/// The driver gives a hold back.
pub(super) extern "C" fn end(hold: *mut c_void) {
    // SAFETY: the driver has it from `held_by_graph`, and calls this once.
    drop(unsafe { Counted::from_raw(hold) });
    a_graph_is_gone();
    wake();
}
