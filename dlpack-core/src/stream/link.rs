//! How memory that is exported hangs together with streams.

use crate::stream::graph::{After, reads};
use crate::stream::order::remember;
use crate::stream::release::{Freeing, Release, Settlement, settle};
use crate::stream::visit::{Event, Visit};
use crate::stream::{Queue, driver::driver, rules::Origin, waiting::keep};
use crate::{Device, Error, memory::counted::Counted, request::Consumer};

pub(crate) use crate::stream::order::order;

/// What becomes of an owner.
enum Fate {
    /// It is dropped now, and then the visit.
    Drop(Option<Visit>),
    /// It waits for this to happen, if that is known, and for this graph to go.
    Keep(Option<Counted<Event>>, Option<Counted>),
}

/// What its freeing waits for, and that it still lives.
#[derive(Debug)]
pub(crate) struct Link {
    freeing: Freeing,
    /// Tells who remembers the stream that it still lives.
    _alive: Option<Counted>,
    /// A graph that reads the memory holds this too.
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

    /// For memory that was handed over in order.
    pub(crate) fn after(self, release: Release, bytes: usize) -> Self {
        let freeing = Freeing {
            release,
            bytes,
            ..self.freeing
        };
        Self { freeing, ..self }
    }

    /// The stream that the memory is written on, if somebody said, for whoever asks on any thread.
    pub(crate) fn queue(&self) -> Option<Queue> {
        self.freeing.origin.queue.map(Queue::on_any_thread)
    }

    /// Whether what is freed behind work on this stream of this device is freed in order, without this.
    pub(crate) fn is_of(&self, device: Device, queue: Option<Queue>) -> bool {
        let origin = &self.freeing.origin;
        origin.device == device && origin.queue == queue
    }

    /// Puts the consumer's work behind the producer's, and remembers what follows from that.
    pub(crate) fn order(&mut self, consumer: Consumer, bytes: usize) -> Result<(), Error> {
        let Origin { device, queue, .. } = self.freeing.origin;
        let After { release, graph } = order(device, queue, consumer)?;
        if consumer == Consumer::Unordered {
            self._alive = remember(device, queue)?;
        }
        self.graph = graph;
        // From here on somebody may read.
        self.freeing.release = release;
        self.freeing.bytes = bytes;
        Ok(())
    }

    /// Drops the owner, or keeps it where the consumer's work may not be over.
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

    /// What becomes of the owner, whatever it is: compiled once for all.
    fn fate(&mut self) -> Fate {
        let Some(api) = self.freeing.origin.device.device_type.stream_api() else {
            return Fate::Drop(None);
        };
        let driver = match driver(api) {
            Ok(driver) => driver,
            // Nothing was ever queued, or nobody but the producer has queued anything.
            Err(Error::NoDriver { .. }) => return Fate::Drop(None),
            Err(_) if self.freeing.release == Release::Free => return Fate::Drop(None),
            Err(Error::DriverFailed {
                code: NO_DEVICE, ..
            }) => return Fate::Drop(None),
            // It is there, and somebody else may have found more of it than we did.
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
