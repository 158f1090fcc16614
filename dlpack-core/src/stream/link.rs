//! How memory that is exported hangs together with streams.

use crate::stream::order::remember;
use crate::stream::release::{
    Freeing, GRAPHS, RETRIES, Release, Settlement, Unfreed, retry, settle,
};
use crate::stream::{Queue, driver::driver, rules::Origin};
use crate::{Device, Error, memory::counted::Counted, request::Consumer};

pub(crate) use crate::stream::order::order;

/// What its freeing waits for, and that it still lives.
#[derive(Debug)]
pub(crate) struct Link {
    freeing: Freeing,
    /// Tells who remembers the stream that it still lives.
    _alive: Option<Counted>,
}

impl Link {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            freeing: Freeing::new(origin),
            _alive: None,
        }
    }

    /// For memory that was handed over in order, and is freed at once.
    pub(crate) fn freed_at_once(device: Device, release: Release) -> Self {
        Self {
            freeing: Freeing::at_once(device, release),
            _alive: None,
        }
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
    pub(crate) fn order(&mut self, consumer: Consumer) -> Result<(), Error> {
        let Origin { device, queue, .. } = self.freeing.origin;
        self.freeing.release = order(device, queue, consumer)?;
        if consumer == Consumer::Unordered {
            self._alive = remember(device, queue)?;
        }
        Ok(())
    }

    /// Drops the owner behind the consumer's work, or keeps it where that cannot be done now.
    pub(crate) fn release<O: Send + 'static>(&self, owner: O) {
        let Some(api) = self.freeing.origin.device.device_type.api() else {
            return drop(owner);
        };
        let driver = match driver(api) {
            Ok(driver) => driver,
            // It was not looked for, and somebody may have read.
            Err(Error::OutOfMemory { .. }) if self.freeing.release != Release::Free => {
                return Unfreed::push(&RETRIES, &self.freeing, owner);
            }
            // Where there is none, nothing was ever queued.
            Err(_) => return drop(owner),
        };
        match settle(driver, &self.freeing) {
            Ok(Settlement::Free(visit)) => {
                drop(owner);
                drop(visit);
                retry(api);
            }
            Ok(Settlement::Captured) => Unfreed::push(&GRAPHS, &self.freeing, owner),
            Err(_) => Unfreed::push(&RETRIES, &self.freeing, owner),
        }
    }
}
