//! Stream ordering on CUDA and HIP devices: how a producer names its stream, and how the consumer's stream is ordered after it.
//!
//! A kernel that writes a tensor may still be running, or not have started, when the tensor is exported. The
//! consumer names the stream that it will read on. The export makes that stream wait for the producer's stream on the
//! device, without blocking the host:
//!
//! ```text
//! producer's stream   ──[ write ]──(record event)─────────────────────────────────────────────[ free ]──
//!                                        │                                                      ▲
//! consumer's stream   ─────────────── (wait)──[ read ]──[ read ]──────────(record event)─ ─ ─ (happened?)
//!                                 __dlpack__(stream=..)          deleter    a later __dlpack__, or collect()
//! ```
//!
//! The deleter never blocks and makes no call that a capture forbids. If the consumer may still be at work, the owner is
//! deferred: it is kept in a list with the condition that it waits for. `deferred` documents which thread examines that list,
//! when it does so, and what happens to the list at process exit and after `fork`.
//!
//! Functions of several callers are `inline(never)` here. A call of a driver takes far longer than a call of such a function, and
//! each copy of one would enlarge every module that exports an object.
//!
//! | file | job |
//! |---|---|
//! | `rules` | pure rules: the stream that memory comes from, what must be ordered, and what is ordered already |
//! | `library` | finds and loads `libcuda` and `libamdhip64` at run time |
//! | `driver` | the drivers' entry points in one table for both APIs, and the current context |
//! | `primary` | the primary contexts that core retains, their unused events, and the contexts of streams |
//! | `context` | the context, or in HIP the device, that a stream belongs to, and an event in it for the work of the stream |
//! | `session` | driver calls for all other files: recording events, waiting for them, copying memory |
//! | `order` | left half of the picture: when the producer's event is needed, and the stream of a thread's last export |
//! | `release` | right half of the picture: which work must be over before an owner is dropped, and whether it is over |
//! | `graph` | what a graph holds as long as it can be launched |
//! | `deferred` | deferred owners, and how their work is found to be over |
//! | `process` | whether this is a forked child, which can use neither driver nor locks |
//! | `collector` | the thread that drops deferred owners |
//! | `sleep` | how the collector sleeps and is woken |
//! | `owner` | an owner that is dropped after its consumer's work |
//! | `state` | the stream state of an exported buffer: ordering at export, release after use |
//! | `memory` | new device memory for copies |
//! | `without_streams` | replacement of `state` in a build without the feature `streams`, which refuses exports that need a driver |
//!
//! # What is not covered
//!
//! - *Pinned memory without a stream*, where an upload from it is still running: a consumer that names no stream reads on the
//!   host, so its deleter signals that all reads are over. A consumer that starts an asynchronous copy from such memory must
//!   keep the array until the copy is done, or name its stream.
//! - *No stream inside of a capture.* This means the default stream, so reads on the capturing stream are not ordered.
//!   The consumer must name the capturing stream, as PyTorch, CuPy and JAX do.
//! - *Managed memory where `concurrentManagedAccess` is 0* (Windows, Jetson): the host may not touch any managed memory while
//!   any kernel runs there, but an export waits only for the work on its own tensor.
//! - *A stream that captures in a context of its own*, which is neither the device's primary context nor current at the export:
//!   its context cannot be queried. A consumer that uses the tensor outside of the graph must keep it until that work is done.
//! - *`cudaDeviceReset`* resets the device for every library of the process. The memory of deferred owners is gone
//!   with it, and later exports fail with the driver's error.
//! - *A driver that was loaded under a name that is not searched.* An unordered tensor (-1) is exported without a driver. If no
//!   driver is found when it is dropped, core assumes that there is none. `DLPACK_LIBCUDA` and `DLPACK_LIBAMDHIP64` name the
//!   driver.
//! - *A consumer's stream is not kept until its deleter is called*, although the stream would tell exactly when the consumer is
//!   done: [`soundness`](crate::soundness) says why.
//!
//! [`request`](crate::request) reads the consumer's stream number; `export::device_copies` says when a device copies.
//!
//! No driver is linked. The libraries are searched when an export first needs them, and the environment variables
//! `DLPACK_LIBCUDA` and `DLPACK_LIBAMDHIP64` can name other files.
#![expect(unsafe_code, reason = "a handle is a promise that its stream lives")]

use alloc::sync::Arc;
use core::{marker::PhantomData, num::NonZeroUsize};

#[cfg(feature = "streams")]
mod collector;
#[cfg(feature = "streams")]
pub(crate) mod context;
#[cfg(feature = "streams")]
pub(crate) mod deferred;
#[cfg(feature = "streams")]
pub(crate) mod driver;
#[cfg(feature = "streams")]
mod graph;
#[cfg(feature = "streams")]
mod library;
#[cfg(feature = "streams")]
pub(crate) mod memory;
#[cfg(feature = "streams")]
pub(crate) mod order;
pub(crate) mod owner;
#[cfg(feature = "streams")]
mod primary;
#[cfg(feature = "streams")]
mod process;
#[cfg(feature = "streams")]
pub(crate) mod release;
pub(crate) mod rules;
#[cfg(feature = "streams")]
pub(crate) mod session;
#[cfg(feature = "streams")]
mod sleep;
#[cfg(feature = "streams")]
pub(crate) mod state;

#[cfg(not(feature = "streams"))]
#[path = "stream/without_streams.rs"]
pub(crate) mod state;

#[cfg(feature = "streams")]
pub use collector::collect_in_background;
#[doc(hidden)]
#[cfg(feature = "streams")]
pub use collector::sweep_all;
#[cfg(feature = "streams")]
pub use deferred::{Retained, captured, collect, limit, release_captured, retained};
#[doc(hidden)]
#[cfg(feature = "streams")]
pub use driver::ENTRY_POINTS;
#[cfg(feature = "streams")]
pub use driver::available;
#[doc(hidden)]
#[cfg(feature = "streams")]
pub use primary::spare_events;

/// A CUDA or HIP stream, identified by its driver handle.
///
/// ```
/// use dlpack_core::StreamHandle;
///
/// assert_eq!(StreamHandle::DEFAULT.as_raw(), 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct StreamHandle(Queue);

impl StreamHandle {
    /// The default stream, which both APIs number 0.
    pub const DEFAULT: Self = Self(Queue::DEFAULT);

    /// Creates a stream from its driver handle.
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
    /// The handle names a stream of the driver that the data belongs to. That stream lives as long as the
    /// data that is declared to be written on it. As in CUDA, the numbers of default streams mean those of the
    /// context that is current at the export. If no context is current, or one of another device, they mean
    /// those of the device's primary context. Pinned and managed memory belongs to no device: for it, they always mean
    /// those of the current context or, in HIP, of the current device. If no context is current, they mean those of the first
    /// device that has a primary context. Where another context of the device may be current when the data is freed, the owner makes
    /// its own context current, or the stream has [`in_context`](Self::in_context).
    #[must_use]
    pub const unsafe fn from_raw(handle: usize) -> Self {
        Self(Queue::new(handle))
    }

    /// Binds the stream to this CUDA context, whichever context is current at the export.
    ///
    /// Only default streams need this: of any other stream, the driver knows the context. They need it in programs with several
    /// contexts on one device, and for pinned or managed memory that is exported or dropped while another device is current. It has
    /// no effect in HIP.
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
    /// The stream belongs to this `CUcontext`, and the context lives as long as the stream.
    #[must_use]
    pub const unsafe fn in_context(self, context: usize) -> Self {
        Self(self.0.in_context(context))
    }

    /// Returns the driver handle.
    ///
    /// ```
    /// assert_eq!(dlpack_core::StreamHandle::DEFAULT.as_raw(), 0);
    /// ```
    #[must_use]
    pub const fn as_raw(self) -> usize {
        self.0.handle
    }
}

/// A stream that lives as long as a borrowed value.
///
/// The lifetime ties the stream to the value that keeps it alive. An export keeps that value borrowed until the consumer
/// is done, so the stream still exists when the memory is freed on it.
///
/// ```
/// use dlpack_core::{StreamHandle, StreamRef};
///
/// assert_eq!(StreamRef::from(StreamHandle::DEFAULT).as_raw(), 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct StreamRef<'a> {
    pub(crate) queue: Queue,
    pub(crate) keeper: PhantomData<&'a ()>,
}

impl<'a> StreamRef<'a> {
    /// Creates a stream from a handle that `keeper` keeps alive.
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
    /// The stream lives as long as `keeper` stays borrowed. This replaces the lifetime requirement of [`StreamHandle::from_raw`].
    #[must_use]
    pub const unsafe fn kept_by<T: ?Sized>(keeper: &'a T, handle: StreamHandle) -> Self {
        let _ = keeper;
        Self::new(handle.0)
    }

    pub(crate) const fn new(queue: Queue) -> Self {
        let keeper = PhantomData;
        Self { queue, keeper }
    }

    /// Returns the driver handle.
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

/// [`StreamHandle::from_raw`] requires that the stream lives long enough.
impl From<StreamHandle> for StreamRef<'_> {
    #[inline]
    fn from(handle: StreamHandle) -> Self {
        Self::new(handle.0)
    }
}

/// A type that names a stream: the type of a field marked `stream`.
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
    /// Returns the stream that the work on the data was queued on.
    fn producer_stream(&self) -> StreamRef<'_>;
}

impl ProducerStream for StreamHandle {
    #[inline]
    fn producer_stream(&self) -> StreamRef<'_> {
        StreamRef::from(*self)
    }
}

// Other crates hand out `Arc<CudaStream>`, and the orphan rule forbids them to implement this trait for `Arc`.
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

/// A stream as the driver knows it. It lives as long as the [`StreamRef`] that it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) struct Queue {
    pub(crate) handle: usize,
    context: NonZeroUsize,
}

/// Marks an unspecified context: that of the stream, or the current context for a default stream. No context has this
/// address, or the next two.
const UNSPECIFIED: NonZeroUsize = NonZeroUsize::MIN;
/// Marks the primary context of the device.
const PRIMARY: NonZeroUsize = UNSPECIFIED.saturating_add(1);
/// Marks a failed query: the driver failed when the data asked it for the stream. The handle is the error code.
#[cfg(feature = "cudarc")]
const FAILED: NonZeroUsize = PRIMARY.saturating_add(1);

impl Queue {
    pub(crate) const DEFAULT: Self = Self::new(0);

    /// A stream with CUDA's meaning of the number: a default stream is that of the current context.
    pub(crate) const fn new(handle: usize) -> Self {
        let context = UNSPECIFIED;
        Self { handle, context }
    }

    pub(crate) const fn in_context(self, context: usize) -> Self {
        let context = match NonZeroUsize::new(context) {
            Some(context) => context,
            None => UNSPECIFIED,
        };
        Self { context, ..self }
    }

    /// Binds a default stream without a specified context to the device's primary context, whichever context is current.
    #[cfg(feature = "cudarc")]
    pub(crate) fn in_primary(self) -> Self {
        let context = match (self.handle, self.is_placed()) {
            (0..=PER_THREAD, false) => PRIMARY,
            _ => self.context,
        };
        Self { context, ..self }
    }

    /// Whether the handle is the number of a default stream.
    #[cfg(feature = "streams")]
    pub(crate) fn is_default(self) -> bool {
        self.handle <= PER_THREAD
    }

    /// Whether its context is specified. If so, a default stream can differ from the default stream of the current context.
    pub(crate) fn is_placed(self) -> bool {
        self.context != UNSPECIFIED
    }

    /// Whether `other` can name this stream: it is equal, or it has the handle without a context and this has no named context.
    pub(crate) fn goes_by(self, other: Self) -> bool {
        self == other
            || (self.handle == other.handle && self.context().is_none() && !other.is_placed())
    }

    /// The stream itself if its number means the same stream on every thread; else a stream that waits for it and does.
    pub(crate) const fn on_any_thread(self) -> Self {
        match self.handle {
            PER_THREAD => Self { handle: 0, ..self },
            _ => self,
        }
    }

    /// The context, if one is specified that is not the device's primary context.
    pub(crate) fn context(self) -> Option<usize> {
        let is_named = ![UNSPECIFIED, PRIMARY].contains(&self.context);
        is_named.then_some(self.context.get())
    }

    /// Replaces a stream that the data could not determine: borrowing memory has no way to return an error.
    #[cfg(feature = "cudarc")]
    pub(crate) fn from_failure(code: i32) -> Self {
        Self {
            handle: usize::try_from(code).unwrap_or(0),
            context: FAILED,
        }
    }

    /// The error code of the driver, if this replaces a stream that could not be determined.
    #[cfg(feature = "cudarc")]
    pub(crate) fn failure_code(self) -> Option<i32> {
        (self.context == FAILED).then_some(i32::try_from(self.handle).unwrap_or(0))
    }
}

/// CUDA's numbers of the default streams. In its functions without a suffix, 0 also means the legacy default stream.
pub(crate) const LEGACY: usize = 1;
pub(crate) const PER_THREAD: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_goes_by_its_handle_if_no_context_is_named() {
        let stream = Queue::new(77);
        let placed = stream.in_context(4096);
        assert!(stream.goes_by(stream) && placed.goes_by(placed));
        assert!(!stream.goes_by(placed) && !placed.goes_by(stream));
        assert!(!stream.goes_by(Queue::new(78)));
    }

    #[cfg(feature = "cudarc")]
    #[test]
    fn only_a_default_stream_without_a_context_moves_to_the_primary_one() {
        for handle in [0, LEGACY, PER_THREAD] {
            let default = Queue::new(handle);
            let moved = default.in_primary();
            assert!(moved.is_placed() && moved.context().is_none(), "{handle}");
            assert_eq!(moved.handle, handle);
            let placed = default.in_context(4096);
            assert_eq!(placed.in_primary(), placed);
        }
        let made = Queue::new(77);
        assert_eq!(made.in_primary(), made);
    }
}
