//! Pure rules about streams: which stream memory comes from, what must be ordered, and what is ordered already.

use crate::stream::{LEGACY, PER_THREAD, Queue};
use crate::{Device, ReleasePolicy, request::Consumer};

/// The origin of described memory: its device, its stream and its release policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) device: Device,
    pub(crate) queue: Option<Queue>,
    pub(crate) policy: ReleasePolicy,
}

#[cfg(feature = "streams")]
impl Origin {
    /// Memory of which only the device is known.
    pub(crate) fn of_device(device: Device) -> Self {
        Self {
            device,
            queue: None,
            policy: ReleasePolicy::Safe,
        }
    }
}

impl Consumer {
    /// The consumer that queues its work on this stream, which belongs to the primary context.
    #[cfg(feature = "cudarc")]
    pub(crate) const fn working_on(stream: Queue) -> Self {
        match stream.handle {
            0 | LEGACY => Self::Legacy,
            PER_THREAD => Self::PerThread,
            handle => Self::Stream(handle),
        }
    }

    /// The handle for the driver, if the consumer has a stream.
    const fn stream_handle(self) -> Option<usize> {
        match self {
            Self::Unordered | Self::Host => None,
            Self::Legacy => Some(0),
            Self::PerThread => Some(PER_THREAD),
            Self::Stream(handle) => Some(handle),
        }
    }

    /// The stream that the consumer's work is queued on, if it has one.
    #[cfg_attr(
        not(feature = "streams"),
        expect(dead_code, reason = "asked by the driver")
    )]
    pub(crate) fn queue(self) -> Option<Queue> {
        self.stream_handle().map(Queue::new)
    }

    /// Whether its work is queued on the producer's stream, as far as the numbers tell. Then no further order is needed.
    pub(crate) fn works_on(self, producer: Queue) -> bool {
        match self {
            Self::Unordered | Self::Host => false,
            Self::Legacy => producer == Queue::DEFAULT,
            Self::PerThread => producer == Queue::new(PER_THREAD),
            Self::Stream(handle) => producer.handle == handle,
        }
    }
}

/// The stream that the producer's work on the data is queued on; `None` if no work is pending.
///
/// A producer that names no stream has used the default stream, because that is where a program without streams works.
/// Pinned memory without a stream has no pending work: only a program that uses streams gives it to a device.
///
/// Both APIs number the default stream 0 and also 1: CUDA's `CU_STREAM_LEGACY`, HIP's `hipStreamLegacy`. Older versions of
/// HIP would take 1 for an address.
pub(crate) fn stream_of_producer(device: Device, queue: Option<Queue>) -> Option<Queue> {
    let queued = !device.device_type.is_pinned();
    let queue = queue.or(queued.then_some(Queue::DEFAULT))?;
    Some(match queue.handle {
        LEGACY => Queue { handle: 0, ..queue },
        _ => queue,
    })
}
