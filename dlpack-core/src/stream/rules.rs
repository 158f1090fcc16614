//! What the integer that Python calls `stream` means on which device; pure, a table.

use core::num::NonZeroUsize;

use crate::device::{Device, DeviceType};
use crate::error::Error;
use crate::request::ExportRequest;

/// A stream, as the driver knows it. It lives as long as the [`StreamRef`](crate::StreamRef) that it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) struct Queue {
    pub(crate) handle: usize,
    context: NonZeroUsize,
}

/// What stands for the primary context of the device. No context has this address, or the next.
const PRIMARY: NonZeroUsize = NonZeroUsize::MIN;
/// What stands for no context, since the driver failed when the data asked it, with the handle for a code.
#[cfg(feature = "cudarc")]
const FAILED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

impl Queue {
    pub(crate) const DEFAULT: Self = Self::new(0);

    /// A stream of the device's primary context, or any that is not a default stream.
    pub(crate) const fn new(handle: usize) -> Self {
        Self {
            handle,
            context: PRIMARY,
        }
    }

    pub(crate) const fn in_context(self, context: usize) -> Self {
        let context = match NonZeroUsize::new(context) {
            Some(context) => context,
            None => PRIMARY,
        };
        Self { context, ..self }
    }

    /// A stream that is the same on every thread, and that waits for this one where it is not the same.
    pub(crate) const fn on_any_thread(self) -> Self {
        match self.handle {
            PER_THREAD => Self { handle: 0, ..self },
            _ => self,
        }
    }

    /// The context, if it is not the primary one of the device.
    pub(crate) fn context(self) -> Option<usize> {
        (self.context != PRIMARY).then_some(self.context.get())
    }

    /// In place of a stream that the data could not tell: lending memory has no way to say so.
    #[cfg(feature = "cudarc")]
    pub(crate) fn failed(code: i32) -> Self {
        Self {
            handle: usize::try_from(code).unwrap_or(0),
            context: FAILED,
        }
    }

    /// The code with which the driver failed, if there is no stream here.
    #[cfg(feature = "cudarc")]
    pub(crate) fn failure(self) -> Option<i32> {
        (self.context == FAILED).then_some(i32::try_from(self.handle).unwrap_or(0))
    }
}

/// Whose streams a device's work is queued on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Api {
    Cuda,
    Hip,
}

impl DeviceType {
    /// The API that orders work on memory of this kind, if there is one.
    pub(crate) const fn api(self) -> Option<Api> {
        match self {
            Self::CUDA | Self::CUDA_HOST | Self::CUDA_MANAGED => Some(Api::Cuda),
            Self::ROCM | Self::ROCM_HOST => Some(Api::Hip),
            _ => None,
        }
    }
}

/// Who reads a tensor first.
///
/// ```
/// use dlpack_core::{Consumer, Device, ExportRequest, consumer};
///
/// let request = ExportRequest { stream: Some(1), ..ExportRequest::versioned() };
/// assert_eq!(consumer(&request, Device::cuda(0))?, Consumer::Legacy);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Consumer {
    /// Somebody who sees to the order of things, or needs none.
    Unordered,
    /// The processor, at once.
    Host,
    /// Work on the default stream that all threads share.
    Legacy,
    /// Work on the default stream of the thread that asks.
    PerThread,
    /// Work on the stream with this handle, which is passed on and never looked into (STC-16).
    Stream(usize),
}

impl Consumer {
    /// The handle for the driver, where there is one.
    #[cfg_attr(
        not(feature = "std"),
        expect(dead_code, reason = "asked by the driver")
    )]
    pub(crate) const fn handle(self) -> Option<usize> {
        match self {
            Self::Unordered | Self::Host => None,
            Self::Legacy => Some(0),
            Self::PerThread => Some(PER_THREAD),
            Self::Stream(handle) => Some(handle),
        }
    }

    /// Whether its work is queued on this very stream: then that stream is all the order it takes.
    pub(crate) fn is(self, producer: Queue, api: Api) -> bool {
        let own = match (api, producer.handle) {
            (Api::Cuda, LEGACY) => 0,
            (_, handle) => handle,
        };
        // The numbers of default streams mean others in another context.
        let primary = producer.context().is_none();
        match self {
            Self::Unordered | Self::Host => false,
            Self::Legacy => own == 0 && primary,
            Self::PerThread => own == PER_THREAD && primary,
            Self::Stream(handle) => own == handle,
        }
    }
}

/// CUDA's numbers of the default streams. By the plain names of its functions, 0 is the first of them too.
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

/// Who reads data on `device` first, by the number that they call their stream (STC-01 to STC-07, STC-12, STC-15, STR-01
/// to STR-06).
///
/// | data on | none | -1 | 0 | 1 | 2 | more |
/// |---|---|---|---|---|---|---|
/// | `cuda` | default | nobody waits | - | default | the thread's default | a `CUstream` |
/// | `cuda_managed`, `cuda_host` | the processor | nobody waits | - | default | the thread's default | a `CUstream` |
/// | `rocm` | default | nobody waits | default | - | - | a `hipStream_t` |
/// | `rocm_host` | the processor | nobody waits | default | - | - | a `hipStream_t` |
/// | anything else | nobody waits | - | - | - | - | - |
///
/// With `dl_device` the cpu, data comes from any of the first four without a stream, and is waited for.
///
/// ```
/// use dlpack_core::{Consumer, Device, ExportRequest, consumer};
///
/// let nothing_said = ExportRequest::versioned();
/// assert_eq!(consumer(&nothing_said, Device::rocm(0))?, Consumer::Legacy);
/// assert_eq!(consumer(&nothing_said, Device::CPU)?, Consumer::Unordered);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::BadStream`] for a number that means nothing there.
pub fn consumer(request: &ExportRequest, device: Device) -> Result<Consumer, Error> {
    let bad = |found| Err(Error::BadStream { found, device });
    let Some(api) = device.device_type.api() else {
        return request.stream.map_or(Ok(Consumer::Unordered), bad);
    };
    // DEV-09: what goes to the processor is waited for, whatever stream the consumer thinks of.
    if request.dl_device == Some(Device::CPU) {
        return match request.stream {
            None => Ok(Consumer::Host),
            Some(found) => bad(found),
        };
    }
    match (api, request.stream) {
        // Whoever names no stream for memory that the processor can read may read it at once.
        (_, None) if device.device_type.is_host_readable() => Ok(Consumer::Host),
        (_, None) | (Api::Cuda, Some(1)) | (Api::Hip, Some(0)) => Ok(Consumer::Legacy),
        (_, Some(-1)) => Ok(Consumer::Unordered),
        (Api::Cuda, Some(2)) => Ok(Consumer::PerThread),
        (_, Some(found @ 3..)) => match usize::try_from(found) {
            Ok(handle) => Ok(Consumer::Stream(handle)),
            Err(_) => bad(found),
        },
        (_, Some(found)) => bad(found),
    }
}

/// The stream that the producer's work on the data is queued on; none where nothing is pending.
///
/// Who names none has used none: the work of a program that knows nothing of streams is on the default one.
/// Pinned memory is ordinary memory, which only somebody with a stream hands to a device.
pub(crate) fn producer(device: Device, said: Option<Queue>) -> Option<Queue> {
    let queued = !matches!(
        device.device_type,
        DeviceType::CUDA_HOST | DeviceType::ROCM_HOST
    );
    said.or(queued.then_some(Queue::DEFAULT))
}
