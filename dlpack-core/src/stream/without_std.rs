//! Without the standard library no driver is found: what needs no driver works, and the rest is refused.

use crate::stream::{Queue, origin::Origin, rules::producer};
use crate::{Device, Error, request::Consumer};

/// That there is nothing to order.
pub(crate) fn order(device: Device, queue: Option<Queue>, consumer: Consumer) -> Result<(), Error> {
    let Some(api) = device.device_type.api() else {
        return Ok(());
    };
    match producer(device, queue) {
        Some(producer) if consumer != Consumer::Unordered && !consumer.is(producer, api) => {
            Err(Error::CannotOrder { device })
        }
        _ => Ok(()),
    }
}

/// An owner of memory of a device; nothing can be done for it here but to drop it.
pub(crate) struct StreamOwner<O> {
    link: Link,
    _owner: O,
}

/// How it hangs together with streams.
pub(crate) struct Link(Origin);

impl Link {
    pub(crate) fn new(origin: Origin) -> Self {
        Self(origin)
    }

    pub(crate) fn queue(&self) -> Option<Queue> {
        self.0.queue.map(Queue::on_any_thread)
    }

    pub(crate) fn order(&mut self, consumer: Consumer) -> Result<(), Error> {
        order(self.0.device, self.0.queue, consumer)
    }
}

impl<O> StreamOwner<O> {
    pub(crate) fn new(owner: O, link: Link) -> Self {
        Self {
            link,
            _owner: owner,
        }
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}
