//! What the integer that Python calls `stream` means on which device; pure, a table.

use crate::{Device, Error, device::StreamApi, request::ExportRequest};

/// Who reads a tensor first.
///
/// ```
/// use dlpack_core::{Device, ExportRequest};
/// use dlpack_core::request::{Consumer, consumer};
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
    /// Work on the stream with this handle, which is passed on and never looked into.
    Stream(usize),
}

/// Who reads what is handed over. Between Rust and Rust that is not ours to know.
pub(crate) fn reader(request: Option<&ExportRequest>, device: Device) -> Result<Consumer, Error> {
    request.map_or(Ok(Consumer::Unordered), |request| consumer(request, device))
}

/// Who reads data on `device` first, by the number that they call their stream.
///
/// | data on | none | -1 | 0 | 1 | 2 | more |
/// |---|---|---|---|---|---|---|
/// | `cuda` | default | nobody waits | - | default | the thread's default | a `CUstream` |
/// | `cuda_managed`, `cuda_host` | the processor | nobody waits | - | default | the thread's default | a `CUstream` |
/// | `rocm` | default | nobody waits | default | - | - | a `hipStream_t` |
/// | `rocm_host` | the processor | nobody waits | default | - | - | a `hipStream_t` |
/// | anything else | nobody waits | nobody waits | - | - | - | - |
///
/// With `dl_device` the cpu, data comes from any of the first four without a stream, and is waited for.
///
/// ```
/// use dlpack_core::{Device, ExportRequest};
/// use dlpack_core::request::{Consumer, consumer};
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
    let Some(api) = device.device_type.stream_api() else {
        return match request.stream {
            // Whoever wants no order has it, where there are no streams.
            None | Some(-1) => Ok(Consumer::Unordered),
            Some(found) => bad(found),
        };
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
        (_, None) | (StreamApi::Cuda, Some(1)) | (StreamApi::Hip, Some(0)) => Ok(Consumer::Legacy),
        (_, Some(-1)) => Ok(Consumer::Unordered),
        (StreamApi::Cuda, Some(2)) => Ok(Consumer::PerThread),
        (_, Some(found @ 3..)) => match usize::try_from(found) {
            Ok(handle) => Ok(Consumer::Stream(handle)),
            Err(_) => bad(found),
        },
        (_, Some(found)) => bad(found),
    }
}
