//! Which stream wrote an exported buffer, and what must happen before it is read or freed.

use crate::stream::graph::{After, reads};
use crate::stream::order::remember;
use crate::stream::process::is_forked;
use crate::stream::release::{Freeing, Release, Settlement, settle};
use crate::stream::visit::{Event, Visit};
use crate::stream::{Queue, driver::driver, rules::Origin, waiting::keep};
use crate::{Device, Error, memory::counted::Counted, request::Consumer};

pub(crate) use crate::stream::order::order;

/// The release decision for an owner.
enum Fate {
    /// The owner is dropped now, and the [`Visit`] after it.
    Drop(Option<Visit>),
    /// The owner is deferred until this event, if one is known, has happened and this graph is gone.
    Keep(Option<Counted<Event>>, Option<Counted>),
}

/// The stream state of an exported buffer: what its release waits for, and the references that others check.
#[derive(Debug)]
pub(crate) struct Link {
    freeing: Freeing,
    /// Tells the thread that remembers the stream that the tensor still lives.
    _alive: Option<Counted>,
    /// A reference shared with a graph that reads the memory.
    graph: Option<Counted>,
}

impl Link {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            freeing: Freeing::new(origin),
            _alive: None,
            graph: None,
        }
    }

    /// Sets the release condition, for memory that was exported in stream order.
    pub(crate) fn after(self, release: Release, bytes: usize) -> Self {
        let freeing = Freeing {
            release,
            bytes,
            ..self.freeing
        };
        Self { freeing, ..self }
    }

    /// The stream that the memory is written on, if the producer named one, with a number that is valid on any thread.
    pub(crate) fn queue(&self) -> Option<Queue> {
        self.freeing.origin.queue.map(Queue::on_any_thread)
    }

    /// Whether memory that is freed after work on this stream of this device is freed in order, without this link.
    pub(crate) fn is_of(&self, device: Device, queue: Option<Queue>) -> bool {
        let origin = &self.freeing.origin;
        origin.device == device && origin.queue == queue
    }

    /// Orders the consumer's work after the producer's, and stores the release condition that follows.
    pub(crate) fn order(&mut self, consumer: Consumer, bytes: usize) -> Result<(), Error> {
        let Origin { device, queue, .. } = self.freeing.origin;
        let After { release, graph } = order(device, queue, consumer)?;
        if consumer == Consumer::Unordered {
            self._alive = remember(device, queue)?;
        }
        self.graph = graph;
        // From here on the consumer may read.
        self.freeing.release = release;
        self.freeing.bytes = bytes;
        Ok(())
    }

    /// Drops the owner, or defers it if the consumer's work may not be over.
    pub(crate) fn release<O: Send + 'static>(&mut self, owner: O) {
        match self.fate() {
            Fate::Drop(Some(visit)) => {
                let mut owner = Some(owner);
                visit.let_go(&mut || drop(owner.take()));
            }
            Fate::Drop(None) => drop(owner),
            Fate::Keep(event, graph) => keep(&self.freeing, event, graph, owner),
        }
    }

    /// The release decision, which does not depend on the owner's type: compiled once for all owners.
    fn fate(&mut self) -> Fate {
        let Some(api) = self.freeing.origin.device.device_type.stream_api() else {
            return Fate::Drop(None);
        };
        if is_forked() {
            return Fate::Keep(None, None);
        }
        let driver = match driver(api) {
            Ok(driver) => driver,
            // No work was ever queued, or only the producer has queued any.
            Err(Error::NoDriver { .. }) => return Fate::Drop(None),
            Err(_) if self.freeing.release == Release::Free => return Fate::Drop(None),
            Err(Error::DriverFailed {
                code: NO_DEVICE, ..
            }) => return Fate::Drop(None),
            // The driver exists, and the consumer may have found more of its entry points than core did.
            Err(_) => return Fate::Keep(None, None),
        };
        let mut event = None;
        let graph = self.graph.take();
        if !graph.as_ref().is_some_and(reads) || self.freeing.is_immediate() {
            match settle(&self.freeing, |device| driver.visit(device)) {
                Ok(Settlement::Free(visit)) => return Fate::Drop(Some(visit)),
                Ok(Settlement::At(moment)) => event = Some(moment),
                Ok(Settlement::Unknown) | Err(_) => {}
            }
        }
        Fate::Keep(event, graph)
    }
}

/// `CUDA_ERROR_NO_DEVICE`, `hipErrorNoDevice`.
const NO_DEVICE: i32 = 100;
