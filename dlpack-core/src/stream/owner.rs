//! An owner of memory that work on a device may still be using when it is dropped.
#![expect(unsafe_code, reason = "takes the owner out of what is being dropped")]

use alloc::sync::Arc;
use core::mem::ManuallyDrop;

use crate::stream::release::{Freeing, Release, Settlement, settle};
use crate::stream::unfreed::{GRAPHS, RETRIES, Unfreed, retry};
use crate::stream::{Queue, driver::driver, ledger::remember, order::order, origin::Origin};
use crate::{Device, Error, request::Consumer};

/// An owner of memory that work on a device may still be using when it is dropped.
pub(crate) struct StreamOwner<O: Send + 'static> {
    link: Link,
    owner: ManuallyDrop<O>,
}

/// What its freeing waits for, and that it still lives.
#[derive(Debug)]
pub(crate) struct Link {
    freeing: Freeing,
    /// Tells who remembers the stream that it still lives.
    _alive: Option<Arc<()>>,
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

    /// Puts the consumer's work behind the producer's, and remembers what follows from that.
    pub(crate) fn order(&mut self, consumer: Consumer) -> Result<(), Error> {
        let Origin { device, queue, .. } = self.freeing.origin;
        self.freeing.release = order(device, queue, consumer)?;
        if consumer == Consumer::Unordered {
            self._alive = remember(device, queue);
        }
        Ok(())
    }
}

impl<O: Send + 'static> StreamOwner<O> {
    pub(crate) fn new(owner: O, link: Link) -> Self {
        Self {
            link,
            owner: ManuallyDrop::new(owner),
        }
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl<O: Send + 'static> Drop for StreamOwner<O> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here, and nobody sees `self` afterwards.
        let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
        let Some(api) = self.link.freeing.origin.device.device_type.api() else {
            return drop(owner);
        };
        // Where there is no driver, nothing was ever queued.
        let Ok(driver) = driver(api) else {
            return drop(owner);
        };
        match settle(driver, &self.link.freeing) {
            Ok(Settlement::Free(visit)) => {
                drop(owner);
                drop(visit);
                retry(api);
            }
            Ok(Settlement::Captured) => Unfreed::push(&GRAPHS, &self.link.freeing, owner),
            Err(_) => Unfreed::push(&RETRIES, &self.link.freeing, owner),
        }
    }
}
