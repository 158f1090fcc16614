//! The meaning of Python's `stream` argument on each device: a table without side effects.

use crate::{Device, Error, device::StreamApi, request::ExportRequest};

/// Where the consumer first reads a tensor.
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
    /// The consumer orders its work itself, or needs no order.
    Unordered,
    /// The host, immediately.
    Host,
    /// Work on the default stream that all threads share.
    Legacy,
    /// Work on the default stream of the calling thread.
    PerThread,
    /// Work on the stream with this handle, which is only passed to the driver.
    Stream(usize),
}

/// Where the consumer of an export reads first. An export without a request is unordered.
pub(crate) fn consumer_of(
    request: Option<&ExportRequest>,
    device: Device,
) -> Result<Consumer, Error> {
    request.map_or(Ok(Consumer::Unordered), |request| consumer(request, device))
}

/// Where the consumer first reads data on `device`, by the `stream` of its request.
///
/// | data on | none | -1 | 0 | 1 | 2 | more |
/// |---|---|---|---|---|---|---|
/// | `cuda` | default | unordered | - | default | per-thread default | a `CUstream` |
/// | `cuda_managed`, `cuda_host` | the host | unordered | - | default | per-thread default | a `CUstream` |
/// | `rocm` | default | unordered | default | - | - | a `hipStream_t` |
/// | `rocm_host` | the host | unordered | default | - | - | a `hipStream_t` |
/// | any other device | unordered | unordered | - | - | - | - |
///
/// If `dl_device` is the CPU, data on the first four kinds must be requested without a stream, and the host waits for it.
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
/// [`Error::BadStream`] for a number that is invalid on the device.
pub fn consumer(request: &ExportRequest, device: Device) -> Result<Consumer, Error> {
    let bad = |found| Err(Error::BadStream { found, device });
    let Some(api) = device.device_type.stream_api() else {
        return match request.stream {
            // On a device without streams no work is pending, so both values mean the same.
            None | Some(-1) => Ok(Consumer::Unordered),
            Some(found) => bad(found),
        };
    };
    // DEV-09: the host waits for data that it requests, so the request must not name a stream.
    if request.requested_device() == Some(Device::CPU) {
        return match request.stream {
            None => Ok(Consumer::Host),
            Some(found) => bad(found),
        };
    }
    match (api, request.stream) {
        // A consumer that names no stream for host-readable memory may read it on the host immediately.
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
