//! Without the standard library no driver is found: what needs no driver works, and the rest is refused.

use crate::stream::Queue;
use crate::stream::rules::{Origin, producer};
use crate::{Device, Error, request::Consumer};

/// That there is nothing to order.
pub(crate) fn order(device: Device, queue: Option<Queue>, consumer: Consumer) -> Result<(), Error> {
    if device.device_type.stream_api().is_none() {
        return Ok(());
    }
    match producer(device, queue) {
        Some(producer) if consumer != Consumer::Unordered && !consumer.is(producer) => {
            Err(Error::CannotOrder { device })
        }
        _ => Ok(()),
    }
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

    pub(crate) fn is_of(&self, device: Device, queue: Option<Queue>) -> bool {
        self.0.device == device && self.0.queue == queue
    }

    pub(crate) fn order(&mut self, consumer: Consumer, _bytes: usize) -> Result<(), Error> {
        order(self.0.device, self.0.queue, consumer)
    }

    #[expect(clippy::unused_self, reason = "with the feature it is asked")]
    pub(crate) fn release<O>(&self, owner: O) {
        drop(owner);
    }
}
