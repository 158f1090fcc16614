//! Names the queue that a producer's work runs on. Ordering against it is not here yet: such requests are refused.
#![expect(unsafe_code, reason = "a handle is a promise that its stream lives")]

use alloc::sync::Arc;

/// A stream of CUDA or HIP, as the raw handle that their drivers take.
///
/// ```
/// use dlpack_core::StreamHandle;
///
/// assert_eq!(StreamHandle::DEFAULT.as_raw(), 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct StreamHandle(usize);

impl StreamHandle {
    /// The default stream, which every API numbers 0.
    pub const DEFAULT: Self = Self(0);

    /// A stream by its handle.
    ///
    /// ```
    /// use dlpack_core::StreamHandle;
    ///
    /// // SAFETY: handle 2 is the per-thread default stream of CUDA, which always lives.
    /// let stream = unsafe { StreamHandle::from_raw(2) };
    /// assert_eq!(stream.as_raw(), 2);
    /// ```
    ///
    /// # Safety
    ///
    /// The handle names a stream of the driver that the data belongs to, and that stream lives as
    /// long as the data that is said to be written on it.
    #[must_use]
    pub const unsafe fn from_raw(handle: usize) -> Self {
        Self(handle)
    }

    /// The handle.
    ///
    /// ```
    /// assert_eq!(dlpack_core::StreamHandle::DEFAULT.as_raw(), 0);
    /// ```
    #[must_use]
    pub const fn as_raw(self) -> usize {
        self.0
    }
}

/// What a field marked `stream` may be.
///
/// ```
/// use dlpack_core::{ProducerStream, StreamHandle};
///
/// struct Queue { handle: StreamHandle }
///
/// impl ProducerStream for Queue {
///     fn producer_stream(&self) -> StreamHandle {
///         self.handle
///     }
/// }
/// let queue = Queue { handle: StreamHandle::DEFAULT };
/// assert_eq!(queue.producer_stream(), StreamHandle::DEFAULT);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a stream",
    label = "expected `StreamHandle` or a type implementing `ProducerStream`"
)]
pub trait ProducerStream {
    /// The stream that the work on the data was queued on.
    fn producer_stream(&self) -> StreamHandle;
}

impl ProducerStream for StreamHandle {
    #[inline]
    fn producer_stream(&self) -> StreamHandle {
        *self
    }
}

// `Arc<CudaStream>` is what crates hand out, and an `Arc` is not theirs to implement this for.
impl<S: ProducerStream + ?Sized> ProducerStream for Arc<S> {
    #[inline]
    fn producer_stream(&self) -> StreamHandle {
        (**self).producer_stream()
    }
}

impl<S: ProducerStream + ?Sized> ProducerStream for &S {
    #[inline]
    fn producer_stream(&self) -> StreamHandle {
        (**self).producer_stream()
    }
}
