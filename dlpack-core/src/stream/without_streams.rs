//! Stream ordering in a build without the feature `streams`: exports that need a driver are refused.
//!
//! Device memory is exported only where its author declares [`ReleasePolicy::Immediate`], and the consumer needs no order.

use crate::stream::Queue;
use crate::stream::rules::{Origin, stream_of_producer};
use crate::{Device, Error, ReleasePolicy, request::Consumer};

pub(crate) use self::StateWithoutDriver as StreamState;

/// Checks that the consumer's work needs no ordering by a driver.
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

/// Checks that the host need not wait for the producer's work.
pub(crate) fn wait_on_host(device: Device, queue: Option<Queue>) -> Result<(), Error> {
    check_order_without_driver(device, queue, Consumer::Host)
}

/// The origin of exported memory, with the interface of the `StreamState` that is built with `streams`.
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

    /// Checks that a driver is needed neither before the consumer reads nor to find out when it has read.
    pub(crate) fn order_consumer(
        &mut self,
        consumer: Consumer,
        _bytes: usize,
    ) -> Result<(), Error> {
        let Origin { device, policy, .. } = self.0;
        if policy == ReleasePolicy::Safe && consumer != Consumer::Host {
            return Err(Error::CannotOrder { device });
        }
        check_order_without_driver(device, self.0.queue, consumer)
    }

    #[expect(clippy::unused_self, reason = "with the feature, it waits")]
    pub(crate) fn release_owner<O>(&self, owner: O) {
        drop(owner);
    }
}

/// The default stream, since no export remembers another one.
#[must_use]
pub fn current_stream(_: Device) -> usize {
    0
}

/// Does nothing: without a driver, no call blocks.
pub fn around_blocking(_: fn(&mut dyn FnMut())) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceType;

    #[test]
    fn what_needs_a_driver_is_refused() {
        let (cuda, pinned) = (Device::cuda(0), Device::new(DeviceType::CUDA_HOST, 0));
        let stream = Queue::new(0x10);
        let check = |device, queue, policy, consumer| {
            let origin = Origin {
                device,
                queue,
                policy,
            };
            StreamState::new(origin).order_consumer(consumer, 4).is_ok()
        };
        let (safe, immediate) = (ReleasePolicy::Safe, ReleasePolicy::Immediate);
        let (host, unordered, same) = (Consumer::Host, Consumer::Unordered, Consumer::Stream(0x10));
        // Memory that only the host has written and reads.
        assert!(check(pinned, None, safe, host));
        // A consumer's kernel may still read when the memory is freed.
        for consumer in [unordered, same, Consumer::Legacy] {
            assert!(!check(pinned, None, safe, consumer), "{consumer:?}");
            assert!(!check(cuda, Some(stream), safe, consumer), "{consumer:?}");
        }
        assert!(check(cuda, Some(stream), immediate, unordered));
        assert!(check(cuda, Some(stream), immediate, same));
        // The consumer would read what the producer's stream has not written yet.
        assert!(!check(cuda, Some(stream), immediate, Consumer::Legacy));
        assert!(!check(cuda, None, immediate, host));
        assert!(!check(pinned, Some(stream), immediate, host));
    }
}
