//! Which stream wrote an exported buffer, and what must happen before it is read or freed.

use crate::stream::graph::{ReleaseTerms, graph_exists};
use crate::stream::order::remember_stream;
use crate::stream::process::is_forked;
use crate::stream::release::{PendingRelease, Release, ReleaseDecision, decide_release};
use crate::stream::session::{DriverSession, Event};
use crate::stream::{Queue, deferred::defer_owner, driver::find_driver, rules::Origin};
use crate::{Device, Error, memory::counted::Counted, request::Consumer};

pub(crate) use crate::stream::order::{order_streams, wait_on_host};

/// What becomes of an owner whose tensor is deleted.
enum DropDecision {
    /// The owner is dropped now, and the [`DriverSession`] after it.
    Drop(Option<DriverSession>),
    /// The owner is deferred until this event, if one is known, has happened and this graph is gone.
    Defer(Option<Counted<Event>>, Option<Counted>),
}

/// The stream state of an exported buffer: what its release waits for, and the references that others check.
#[derive(Debug)]
pub(crate) struct StreamState {
    pending: PendingRelease,
    /// Tells the thread that remembers the stream that the tensor still lives.
    _alive: Option<Counted>,
    /// A reference shared with a graph that reads the memory.
    graph: Option<Counted>,
}

impl StreamState {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            pending: PendingRelease::new(origin),
            _alive: None,
            graph: None,
        }
    }

    /// Sets the release condition, for memory that was exported in stream order.
    pub(crate) fn with_release(self, release: Release, bytes: usize) -> Self {
        let pending = PendingRelease {
            release,
            bytes,
            ..self.pending
        };
        Self { pending, ..self }
    }

    /// The stream that the memory is written on, if the producer named one, with a number that is valid on any thread.
    pub(crate) fn queue(&self) -> Option<Queue> {
        self.pending.origin.queue.map(Queue::on_any_thread)
    }

    /// Whether memory that is freed after work on this stream of this device is freed in order even without this state.
    pub(crate) fn frees_on(&self, device: Device, queue: Option<Queue>) -> bool {
        let origin = &self.pending.origin;
        origin.device == device && origin.queue == queue
    }

    /// Orders the consumer's work after the producer's, and stores the release condition that follows.
    pub(crate) fn order_consumer(&mut self, consumer: Consumer, bytes: usize) -> Result<(), Error> {
        let Origin { device, queue, .. } = self.pending.origin;
        let ReleaseTerms { release, graph } = order_streams(device, queue, consumer)?;
        if consumer == Consumer::Unordered {
            self._alive = remember_stream(device, queue)?;
        }
        self.graph = graph;
        // From here on the consumer may read.
        self.pending.release = release;
        self.pending.bytes = bytes;
        Ok(())
    }

    /// Drops the owner, or defers it if the consumer's work may not be over.
    pub(crate) fn release_owner<O: Send + 'static>(&mut self, owner: O) {
        match self.decide_drop() {
            DropDecision::Drop(Some(session)) => {
                let mut owner = Some(owner);
                session.drop_owner(&mut || drop(owner.take()));
            }
            DropDecision::Drop(None) => drop(owner),
            DropDecision::Defer(event, graph) => defer_owner(&self.pending, event, graph, owner),
        }
    }

    /// Decides whether the owner is dropped now. This does not depend on the owner's type: compiled once for all owners.
    fn decide_drop(&mut self) -> DropDecision {
        let Some(api) = self.pending.origin.device.device_type.stream_api() else {
            return DropDecision::Drop(None);
        };
        if is_forked() {
            return DropDecision::Defer(None, None);
        }
        let driver = match find_driver(api) {
            Ok(driver) => driver,
            // No work was ever queued, or only the producer has queued any.
            Err(Error::NoDriver { .. }) => return DropDecision::Drop(None),
            Err(_) if self.pending.release == Release::Free => return DropDecision::Drop(None),
            Err(Error::DriverFailed {
                code: NO_DEVICE, ..
            }) => return DropDecision::Drop(None),
            // The driver exists, and the consumer may have found more of its entry points than core did.
            Err(_) => return DropDecision::Defer(None, None),
        };
        let mut event = None;
        let graph = self.graph.take();
        if !graph.as_ref().is_some_and(graph_exists) || self.pending.is_immediate() {
            match decide_release(&self.pending, |device| driver.begin_session(device)) {
                Ok(ReleaseDecision::Free(session)) => return DropDecision::Drop(Some(session)),
                Ok(ReleaseDecision::At(moment)) => event = Some(moment),
                Ok(ReleaseDecision::Unknown) | Err(_) => {}
            }
        }
        DropDecision::Defer(event, graph)
    }
}

/// `CUDA_ERROR_NO_DEVICE`, `hipErrorNoDevice`.
const NO_DEVICE: i32 = 100;
