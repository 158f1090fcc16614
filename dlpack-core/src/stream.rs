//! Queues of work on CUDA and HIP devices: how a producer names its own, and what is done about the consumer's.
//!
//! A kernel that writes a tensor may still be running, or not have begun, when the tensor is handed over. The
//! consumer names the stream that it will read on, and an export makes that stream wait for the producer's, on the
//! device, without stopping the host:
//!
//! ```text
//! producer's stream   ──[ write ]──(record event)─────────────────────────────────────────────[ free ]──
//!                                        │                                                      ▲
//! consumer's stream   ─────────────── (wait)──[ read ]──[ read ]──────────(record event)─ ─ ─ (happened?)
//!                                 __dlpack__(stream=..)          deleter    a later __dlpack__, or collect()
//! ```
//!
//! The deleter itself makes nobody wait, and touches nothing that a capture could mind: an owner whose consumer may still be
//! at work is kept in a list, with what it waits for. `waiting` says who looks after that list, when, and what is left
//! of it in a process that ends or forks.
//!
//! | file | job |
//! |---|---|
//! | `rules` | whose stream is whose: where memory comes from, what must be ordered, and what is already; pure |
//! | `library` | where `libcuda` and `libamdhip64` are looked for, at run time |
//! | `driver` | their entry points, one table for both, and which context is current |
//! | `primary` | the primary contexts that core retains, their unused events, and the contexts of streams |
//! | `place` | in which context, or on which device, a stream is |
//! | `visit` | the calls themselves: here an event is recorded and waited for, and memory copied, for all who ask |
//! | `order` | the left half of the picture: when the producer's event is needed; and on which stream a thread exported last |
//! | `release` | the right half: what has to be over before an owner is dropped, and whether it is |
//! | `graph` | what a graph holds as long as it can be launched |
//! | `waiting` | owners that wait for that, and how they are found to be done |
//! | `collector` | the thread that looks, and drops them |
//! | `sleep` | how that thread sleeps, and is woken |
//! | `owner` | an owner that is dropped behind its consumer's work |
//! | `link` | what that work is, on both sides of the picture |
//! | `memory` | new memory of a device, for copies |
//! | `without_std` | the same in a build without the feature `std`, which finds no driver |
//!
//! # What nobody sees to
//!
//! - *Pinned memory without a stream*, and an upload from it that goes on: a consumer that names no stream reads on the host,
//!   so its deleter says that it has read. Who starts an asynchronous copy from such memory keeps the array until that is done,
//!   or names its stream.
//! - *No stream inside of a capture.* That means the default stream, and whoever then reads on the stream that captures reads
//!   without order: name that stream. PyTorch, CuPy and JAX do.
//! - *Managed memory where `concurrentManagedAccess` is 0* (Windows, Jetson): there the host may not touch any of it while any
//!   kernel runs, and an export waits for the work on its own tensor alone.
//! - *A stream that captures in a context of its own*, which is neither the device's primary one nor current at the export: it
//!   may not be asked where it is. Whose consumer goes on with the tensor outside of the graph keeps it until that is done.
//! - *`cudaDeviceReset`* ends the device for every library of the process. What waits is gone with it, and later
//!   exports fail with the driver's error.
//! - *A driver that was loaded under a name that is not looked for.* A tensor that asks for no order (-1) is exported without a
//!   driver, and where none can be found its drop takes it that there is none. `DLPACK_LIBCUDA` and
//!   `DLPACK_LIBAMDHIP64` name it.
//! - *A consumer's stream is not kept until its deleter is called*, though that would tell exactly when it is done:
//!   [`soundness`](crate::soundness) says why.
//!
//! What the consumer's number means is read in [`request`](crate::request); when a device copies is said in `export::device_copies`.
//!
//! Nothing of this is linked. The libraries are looked for when an export needs them for the first time, and the
//! environment can name others: `DLPACK_LIBCUDA`, `DLPACK_LIBAMDHIP64`.
#![expect(unsafe_code, reason = "a handle is a promise that its stream lives")]

use alloc::sync::Arc;
use core::{marker::PhantomData, num::NonZeroUsize};

#[cfg(feature = "std")]
mod collector;
#[cfg(feature = "std")]
pub(crate) mod driver;
#[cfg(feature = "std")]
mod graph;
#[cfg(feature = "std")]
mod library;
#[cfg(feature = "std")]
pub(crate) mod link;
#[cfg(feature = "std")]
pub(crate) mod memory;
#[cfg(feature = "std")]
pub(crate) mod order;
pub(crate) mod owner;
#[cfg(feature = "std")]
pub(crate) mod place;
#[cfg(feature = "std")]
mod primary;
#[cfg(feature = "std")]
pub(crate) mod release;
pub(crate) mod rules;
#[cfg(feature = "std")]
mod sleep;
#[cfg(feature = "std")]
pub(crate) mod visit;
#[cfg(feature = "std")]
pub(crate) mod waiting;

#[cfg(not(feature = "std"))]
#[path = "stream/without_std.rs"]
pub(crate) mod link;

#[cfg(feature = "std")]
pub use collector::collect_in_background;
#[doc(hidden)]
#[cfg(feature = "std")]
pub use collector::look;
#[doc(hidden)]
#[cfg(feature = "std")]
pub use driver::ENTRY_POINTS;
#[cfg(feature = "std")]
pub use driver::available;
#[doc(hidden)]
#[cfg(feature = "std")]
pub use primary::spare_events;
#[cfg(feature = "std")]
pub use waiting::{Retained, captured, collect, limit, release_captured, retained};

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
    /// long as the data that is said to be written on it. The numbers that stand for default streams mean, as in CUDA,
    /// those of the context that is current where the tensor is exported; of the device's primary context if that is none,
    /// or one of another device.
    #[must_use]
    pub const unsafe fn from_raw(handle: usize) -> Self {
        Self(Queue::new(handle))
    }

    /// The same stream, which belongs to this context of CUDA, whatever is current where the tensor is exported.
    ///
    /// Only who has several contexts on a device needs this, and only for their default streams: of any other
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
    pub(crate) keeper: PhantomData<&'a ()>,
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
        let keeper = PhantomData;
        Self { queue, keeper }
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

/// A stream, as the driver knows it. It lives as long as the [`StreamRef`](crate::StreamRef) that it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) struct Queue {
    pub(crate) handle: usize,
    context: NonZeroUsize,
}

/// What stands for the context in which the handle has its meaning: that of the stream, or for a default stream the one
/// that is current. No context has this address, or the next two.
const UNSAID: NonZeroUsize = NonZeroUsize::MIN;
/// What stands for the primary context of the device.
const PRIMARY: NonZeroUsize = UNSAID.saturating_add(1);
/// What stands for no context, since the driver failed when the data asked it, with the handle for a code.
#[cfg(feature = "cudarc")]
const FAILED: NonZeroUsize = PRIMARY.saturating_add(1);

impl Queue {
    pub(crate) const DEFAULT: Self = Self::new(0);

    /// A stream as CUDA means the number: a default stream is that of the context which is current.
    pub(crate) const fn new(handle: usize) -> Self {
        let context = UNSAID;
        Self { handle, context }
    }

    pub(crate) const fn in_context(self, context: usize) -> Self {
        let context = match NonZeroUsize::new(context) {
            Some(context) => context,
            None => UNSAID,
        };
        Self { context, ..self }
    }

    /// The same, where a default stream that is in no other context is that of the device's primary one, whatever is current.
    #[cfg(feature = "cudarc")]
    pub(crate) fn in_primary(self) -> Self {
        let context = match (self.handle, self.is_placed()) {
            (0..=PER_THREAD, false) => PRIMARY,
            _ => self.context,
        };
        Self { context, ..self }
    }

    /// Whether the number stands for a default stream.
    #[cfg(feature = "std")]
    pub(crate) fn is_default(self) -> bool {
        self.handle <= PER_THREAD
    }

    /// Whether its context is said: a default stream can be another one than what is the default on this thread.
    pub(crate) fn is_placed(self) -> bool {
        self.context != UNSAID
    }

    /// Whether somebody may mean it by `other`, who perhaps leaves the context unsaid.
    pub(crate) fn goes_by(self, other: Self) -> bool {
        self == other
            || (self.handle == other.handle && self.context().is_none() && !other.is_placed())
    }

    /// A stream that is the same on every thread, and that waits for this one where it is not the same.
    pub(crate) const fn on_any_thread(self) -> Self {
        match self.handle {
            PER_THREAD => Self { handle: 0, ..self },
            _ => self,
        }
    }

    /// The context, if one is said that is not the device's primary one.
    pub(crate) fn context(self) -> Option<usize> {
        let is_named = ![UNSAID, PRIMARY].contains(&self.context);
        is_named.then_some(self.context.get())
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

/// CUDA's numbers of the default streams. By the plain names of its functions, 0 is the first of them too.
pub(crate) const LEGACY: usize = 1;
pub(crate) const PER_THREAD: usize = 2;
