//! Queues of work on CUDA and HIP devices: how a producer names its own, and what is done about the consumer's.
//!
//! A kernel that writes a tensor may still be running, or not have begun, when the tensor is handed over. The
//! consumer names the stream that it will read on, and an export makes that stream wait for the producer's, on the
//! device, without stopping the host:
//!
//! ```text
//! producer's stream   ──[ write ]──(record event)──────────────────────(wait)──[ free ]──
//!                                        │                                ▲
//! consumer's stream   ─────────────── (wait)──[ read ]──[ read ]──(record event)────────
//!                                 __dlpack__(stream=..)               deleter
//! ```
//!
//! | file | job |
//! |---|---|
//! | `rules` | what the consumer's number means on which device; pure |
//! | `library` | where `libcuda` and `libamdhip64` are looked for, at run time |
//! | `driver` | their entry points, one table for both, and who is current |
//! | `visit` | what is done with them: events, waits, copies |
//! | `order` | the left half of the picture |
//! | `release` | the right half |
//! | `copies` | copies that devices make |
//!
//! Nothing of this is linked. The libraries are looked for when an export needs them for the first time, and the
//! environment can name others: `DLPACK_LIBCUDA`, `DLPACK_LIBAMDHIP64`.
#![expect(unsafe_code, reason = "a handle is a promise that its stream lives")]

use alloc::sync::Arc;
use core::marker::PhantomData;

#[cfg(feature = "std")]
pub(crate) mod copies;
#[cfg(feature = "std")]
pub(crate) mod driver;
#[cfg(feature = "std")]
mod library;
#[cfg(feature = "std")]
pub(crate) mod order;
#[cfg(feature = "std")]
pub(crate) mod release;
pub(crate) mod rules;
#[cfg(feature = "std")]
pub(crate) mod visit;

#[cfg(not(feature = "std"))]
#[path = "stream/without_std.rs"]
pub(crate) mod release;

#[cfg(feature = "std")]
pub use release::{captured, release_captured};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::Error;
use crate::request::ReleasePolicy;
use crate::stream::rules::{Consumer, Queue};

/// Whether the driver for a device's work was found and has a device. Exports find out by themselves; this is for a
/// program that wants to know before it tries anything, such as one with `cudarc`, which panics where there is no driver.
///
/// Makes no context. The answer holds for the whole process: drivers are looked for once.
///
/// ```
/// use dlpack_core::{Device, stream};
///
/// assert_eq!(stream::available(Device::CPU), Ok(()));
/// if let Err(why) = stream::available(Device::cuda(0)) {
///     println!("no GPU here: {why}");
/// }
/// ```
///
/// # Errors
///
/// [`Error::NoDriver`], [`Error::NoEntryPoint`], or what the driver said when it was asked to begin.
#[cfg(feature = "std")]
pub fn available(device: Device) -> Result<(), Error> {
    let Some(api) = device.device_type.api() else {
        return Ok(());
    };
    driver::driver(api).map(|_| ())
}

/// Where described memory comes from, as far as streams go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) device: Device,
    said: Option<Queue>,
    #[cfg_attr(
        not(feature = "std"),
        expect(dead_code, reason = "nothing waits there")
    )]
    policy: ReleasePolicy,
}

impl Origin {
    /// Nothing where there are no streams.
    pub(crate) fn of(descriptor: &Descriptor<'_>) -> Option<Self> {
        descriptor.device.device_type.api()?;
        Some(Self {
            device: descriptor.device,
            said: descriptor.stream,
            policy: descriptor.release,
        })
    }
}

/// Puts the consumer's work behind that on what was described, which somebody else sees to the freeing of.
pub(crate) fn order_only(descriptor: &Descriptor<'_>, consumer: Consumer) -> Result<(), Error> {
    #[cfg(feature = "std")]
    use order::order;
    #[cfg(not(feature = "std"))]
    use release::order;

    if descriptor.data.is_null() {
        return Ok(());
    }
    order(descriptor.device, descriptor.stream, consumer).map(|_| ())
}

/// A stream of CUDA or HIP, by the handle that their drivers take.
///
/// ```
/// use dlpack_core::StreamHandle;
///
/// assert_eq!(StreamHandle::DEFAULT.as_raw(), 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct StreamHandle(Queue);

impl StreamHandle {
    /// The default stream, which every API numbers 0.
    pub const DEFAULT: Self = Self(Queue::DEFAULT);

    /// A stream by its handle.
    ///
    /// ```
    /// use dlpack_core::StreamHandle;
    ///
    /// // SAFETY: handle 1 is the legacy default stream of CUDA, which always lives.
    /// let stream = unsafe { StreamHandle::from_raw(1) };
    /// assert_eq!(stream.as_raw(), 1);
    /// ```
    ///
    /// # Safety
    ///
    /// The handle names a stream of the driver that the data belongs to, and that stream lives as
    /// long as the data that is said to be written on it. The numbers that stand for default streams mean those
    /// of the device's primary context.
    #[must_use]
    pub const unsafe fn from_raw(handle: usize) -> Self {
        Self(Queue::new(handle))
    }

    /// The same stream, which belongs to this context of CUDA and not to the device's primary one.
    ///
    /// Only who makes contexts of their own needs this, and only for their default streams: of any other
    /// stream, the driver knows the context.
    ///
    /// ```
    /// use dlpack_core::StreamHandle;
    ///
    /// // SAFETY: nothing is ever said to be written on it.
    /// let stream = unsafe { StreamHandle::DEFAULT.in_context(0x1234) };
    /// assert_ne!(stream, StreamHandle::DEFAULT);
    /// ```
    ///
    /// # Safety
    ///
    /// The stream belongs to this `CUcontext`, which lives as long as it.
    #[must_use]
    pub const unsafe fn in_context(self, context: usize) -> Self {
        Self(self.0.in_context(context))
    }

    /// The handle.
    ///
    /// ```
    /// assert_eq!(dlpack_core::StreamHandle::DEFAULT.as_raw(), 0);
    /// ```
    #[must_use]
    pub const fn as_raw(self) -> usize {
        self.0.handle
    }
}

/// A stream that lives as long as something is borrowed.
///
/// This is what ties a stream to the value that keeps it: an export keeps the value borrowed until the consumer is
/// done, and so the stream is there when the memory is freed on it.
///
/// ```
/// use dlpack_core::{StreamHandle, StreamRef};
///
/// assert_eq!(StreamRef::from(StreamHandle::DEFAULT).as_raw(), 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct StreamRef<'a> {
    pub(crate) queue: Queue,
    keeper: PhantomData<&'a ()>,
}

impl<'a> StreamRef<'a> {
    /// The stream of a handle that `keeper` keeps alive.
    ///
    /// ```
    /// use dlpack_core::{ProducerStream, StreamHandle, StreamRef};
    ///
    /// /// A stream of some driver's, which is destroyed when this is dropped.
    /// struct Queue { handle: usize }
    ///
    /// impl ProducerStream for Queue {
    ///     fn producer_stream(&self) -> StreamRef<'_> {
    ///         // SAFETY: the stream is destroyed with `self`, and not before.
    ///         unsafe { StreamRef::kept_by(self, StreamHandle::from_raw(self.handle)) }
    ///     }
    /// }
    /// ```
    ///
    /// # Safety
    ///
    /// The stream lives as long as `keeper` stays borrowed. With this, that is all that is asked of the handle.
    #[must_use]
    pub const unsafe fn kept_by<T: ?Sized>(keeper: &'a T, handle: StreamHandle) -> Self {
        let _ = keeper;
        Self::new(handle.0)
    }

    pub(crate) const fn new(queue: Queue) -> Self {
        Self {
            queue,
            keeper: PhantomData,
        }
    }

    /// The handle.
    ///
    /// ```
    /// use dlpack_core::{StreamHandle, StreamRef};
    ///
    /// assert_eq!(StreamRef::from(StreamHandle::DEFAULT).as_raw(), 0);
    /// ```
    #[must_use]
    pub const fn as_raw(self) -> usize {
        self.queue.handle
    }
}

/// Whoever made the handle promised that the stream lives long enough.
impl From<StreamHandle> for StreamRef<'_> {
    #[inline]
    fn from(handle: StreamHandle) -> Self {
        Self::new(handle.0)
    }
}

/// What a field marked `stream` may be.
///
/// ```
/// use dlpack_core::{ProducerStream, StreamHandle, StreamRef};
///
/// struct Pipeline { stream: StreamHandle }
///
/// impl ProducerStream for Pipeline {
///     fn producer_stream(&self) -> StreamRef<'_> {
///         self.stream.producer_stream()
///     }
/// }
/// let pipeline = Pipeline { stream: StreamHandle::DEFAULT };
/// assert_eq!(pipeline.producer_stream().as_raw(), 0);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a stream",
    label = "expected `StreamHandle` or a type implementing `ProducerStream`"
)]
pub trait ProducerStream {
    /// The stream that the work on the data was queued on.
    fn producer_stream(&self) -> StreamRef<'_>;
}

impl ProducerStream for StreamHandle {
    #[inline]
    fn producer_stream(&self) -> StreamRef<'_> {
        StreamRef::from(*self)
    }
}

// `Arc<CudaStream>` is what crates hand out, and an `Arc` is not theirs to implement this for.
impl<S: ProducerStream + ?Sized> ProducerStream for Arc<S> {
    #[inline]
    fn producer_stream(&self) -> StreamRef<'_> {
        (**self).producer_stream()
    }
}

impl<S: ProducerStream + ?Sized> ProducerStream for &S {
    #[inline]
    fn producer_stream(&self) -> StreamRef<'_> {
        (**self).producer_stream()
    }
}
