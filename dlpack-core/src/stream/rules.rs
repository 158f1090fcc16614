//! Whose stream is whose: where memory comes from, what must be ordered, and what is in order already; pure.

use crate::stream::{LEGACY, PER_THREAD, Queue};
use crate::{Device, ReleasePolicy, request::Consumer};

/// Where described memory comes from, as far as streams go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) device: Device,
    pub(crate) queue: Option<Queue>,
    #[cfg_attr(
        not(feature = "std"),
        expect(dead_code, reason = "nothing waits there")
    )]
    pub(crate) policy: ReleasePolicy,
}

#[cfg(feature = "std")]
impl Origin {
    /// Memory of which nothing is known but where it is.
    pub(crate) fn unsaid(device: Device) -> Self {
        Self {
            device,
            queue: None,
            policy: ReleasePolicy::Safe,
        }
    }
}

impl Consumer {
    /// Whose work is queued on this stream, which belongs to the primary context.
    #[cfg(feature = "cudarc")]
    pub(crate) const fn on(stream: Queue) -> Self {
        match stream.handle {
            0 | LEGACY => Self::Legacy,
            PER_THREAD => Self::PerThread,
            handle => Self::Stream(handle),
        }
    }

    /// The handle for the driver, where there is one.
    const fn handle(self) -> Option<usize> {
        match self {
            Self::Unordered | Self::Host => None,
            Self::Legacy => Some(0),
            Self::PerThread => Some(PER_THREAD),
            Self::Stream(handle) => Some(handle),
        }
    }

    /// The stream that its work is queued on, where there is one.
    #[cfg_attr(
        not(feature = "std"),
        expect(dead_code, reason = "asked by the driver")
    )]
    pub(crate) fn queue(self) -> Option<Queue> {
        self.handle().map(Queue::new)
    }

    /// Whether its work is queued on this very stream, as far as the numbers tell: then that stream is all the order it takes.
    pub(crate) fn is(self, producer: Queue) -> bool {
        match self {
            Self::Unordered | Self::Host => false,
            Self::Legacy => producer == Queue::DEFAULT,
            Self::PerThread => producer == Queue::new(PER_THREAD),
            Self::Stream(handle) => producer.handle == handle,
        }
    }
}

/// The stream that the producer's work on the data is queued on; none where nothing is pending.
///
/// Who names none has used none: the work of a program that knows nothing of streams is on the default one.
/// Pinned memory is ordinary memory, which only somebody with a stream hands to a device.
///
/// Both APIs number the default stream 0, and 1 as well: CUDA's `CU_STREAM_LEGACY`, HIP's `hipStreamLegacy`, which older
/// ones would take for an address.
pub(crate) fn producer(device: Device, queue: Option<Queue>) -> Option<Queue> {
    let queued = !device.device_type.is_pinned();
    let queue = queue.or(queued.then_some(Queue::DEFAULT))?;
    Some(match queue.handle {
        LEGACY => Queue { handle: 0, ..queue },
        _ => queue,
    })
}
