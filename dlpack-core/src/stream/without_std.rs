//! Stream ordering in a build without `std`: no driver is found, so exports that need a driver are refused.

use crate::stream::Queue;
use crate::stream::rules::{Origin, stream_of_producer};
use crate::{Device, Error, request::Consumer};

pub(crate) use self::{
    StateWithoutDriver as StreamState, check_order_without_driver as order_streams,
};

/// Checks that the export needs no ordering by a driver.
pub(crate) fn check_order_without_driver(
    device: Device,
    queue: Option<Queue>,
    consumer: Consumer,
) -> Result<(), Error> {
    if device.device_type.stream_api().is_none() {
        return Ok(());
    }
    match stream_of_producer(device, queue) {
        Some(producer) if consumer != Consumer::Unordered && !consumer.works_on(producer) => {
            Err(Error::CannotOrder { device })
        }
        _ => Ok(()),
    }
}

/// The origin of exported memory, with the interface of the `StreamState` that is built with `std`.
pub(crate) struct StateWithoutDriver(Origin);

impl StateWithoutDriver {
    pub(crate) fn new(origin: Origin) -> Self {
        Self(origin)
    }

    pub(crate) fn queue(&self) -> Option<Queue> {
        self.0.queue.map(Queue::on_any_thread)
    }

    pub(crate) fn frees_on(&self, device: Device, queue: Option<Queue>) -> bool {
        self.0.device == device && self.0.queue == queue
    }

    pub(crate) fn order_consumer(
        &mut self,
        consumer: Consumer,
        _bytes: usize,
    ) -> Result<(), Error> {
        check_order_without_driver(self.0.device, self.0.queue, consumer)
    }

    #[expect(clippy::unused_self, reason = "with the feature it is asked")]
    pub(crate) fn release_owner<O>(&self, owner: O) {
        drop(owner);
    }
}
