//! The memory and the streams of `cudarc`.
//!
//! `cudarc` keeps an event for the last write and one for the last read of a slice, and waits for them where it is
//! told which stream comes next. A slice is lent as if its own stream came next: that stream waits for whoever wrote
//! last, and the consumer is then put behind it like any other. The event for reads is left alone: there is one for
//! all readers, so a consumer in it would push out a reader of `cudarc`'s.
//!
//! It also makes its context the current one wherever it does something, and leaves it so. Nobody who asks us for a
//! tensor expects that, so the one before is restored.
#![expect(unsafe_code, reason = "lends memory that the driver allocated")]

use alloc::sync::Arc;
use core::ptr::with_exposed_provenance_mut;

use ::cudarc::driver::sys::CUdeviceptr;
use ::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, DevicePtr, DeviceSlice, DriverError, HostSlice,
    PinnedHostSlice, SyncOnDrop, UnifiedSlice, result,
};

use crate::loan::{buffer::Lent, facts::Facts};
use crate::{Buffer, Device, DeviceType, Element, Loan, LoanMut, ProducerStream, StreamHandle};
use crate::{StreamRef, Writable, element::AnyBits, stream::Queue};

/// A field marked `stream` can be the `Arc<CudaStream>` that `cudarc` hands out.
///
/// ```
/// use std::sync::Arc;
/// use cudarc::driver::CudaStream;
/// use dlpack_core::{DLPack, Device};
///
/// #[derive(DLPack)]
/// #[dlpack(unsafe(data = self.start, len = self.len))]
/// struct Frame {
///     start: *mut f32,
///     len: usize,
///     #[dlpack(device)]
///     device: Device,
///     #[dlpack(stream)]
///     stream: Arc<CudaStream>,
/// }
/// # // SAFETY: nothing is ever done with one.
/// # unsafe impl Send for Frame {}
/// ```
impl ProducerStream for CudaStream {
    fn producer_stream(&self) -> StreamRef<'_> {
        // SAFETY: a stream of CUDA; how long it lives is said below.
        let mut handle = unsafe { StreamHandle::from_raw(self.cu_stream().addr()) };
        if !self.context().is_primary() {
            // SAFETY: it is the stream's, which keeps it.
            handle = unsafe { handle.in_context(self.context().cu_ctx().addr()) };
        }
        // SAFETY: a stream is destroyed when it is dropped, or by whoever promised `cudarc` to keep it.
        let stream = unsafe { StreamRef::kept_by(self, handle) };
        StreamRef {
            queue: stream.queue.in_primary(),
            ..stream
        }
    }
}

/// What lending found out about a slice.
struct Whereabouts {
    address: usize,
    stream: Queue,
}

impl Whereabouts {
    /// The same for memory of a kind that is said to be of device 0, wherever it was allocated: the numbers of default
    /// streams would be taken for those of that device.
    fn within(mut self, context: &CudaContext) -> Self {
        if context.ordinal() != 0 {
            self.stream = self.stream.in_context(context.cu_ctx().addr());
        }
        self
    }
}

/// Asks a slice where it lies, which makes `stream` wait for the last write to it.
fn find<'a>(
    stream: &'a Arc<CudaStream>,
    ask: impl FnOnce(&'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>),
) -> Result<Whereabouts, DriverError> {
    let address = undisturbed(stream.context(), || {
        let (address, read) = ask(stream);
        // Dropped, it would put our consumer's read into the one event for all of them.
        core::mem::forget(read);
        address
    })?;
    Ok(Whereabouts {
        address: usize::try_from(address).unwrap_or(0),
        stream: stream.producer_stream().queue,
    })
}

/// Lets `cudarc` do something, and leaves the thread as it was.
pub(super) fn undisturbed<R>(
    context: &CudaContext,
    body: impl FnOnce() -> R,
) -> Result<R, DriverError> {
    let before = result::ctx::get_current()?;
    let done = body();
    // It keeps errors to itself until somebody asks.
    let outcome = context.check_err();
    let before = before.unwrap_or(core::ptr::null_mut());
    // SAFETY: what was current right before, or nothing.
    let restored = unsafe { result::ctx::set_current(before) };
    outcome.and(restored)?;
    Ok(done)
}

/// The address, null if there is none, and the stream or what went wrong.
fn apart<T>(found: Result<Whereabouts, DriverError>) -> (*mut T, Queue) {
    match found {
        Ok(found) => (with_exposed_provenance_mut(found.address), found.stream),
        Err(DriverError(code)) => (core::ptr::null_mut(), Queue::failed(code as i32)),
    }
}

fn on_device<'a, T: Element>(
    found: Result<Whereabouts, DriverError>,
    len: usize,
    context: &CudaContext,
) -> Loan<'a> {
    let device = Device::cuda(i32::try_from(context.ordinal()).unwrap_or(i32::MAX));
    let (start, stream) = apart::<T>(found);
    // SAFETY: `cudarc` allocated so many elements there, and frees them when the slice is dropped, which is borrowed
    // for `'a`. The processor cannot read them, so no reference of Rust's ever sees them change.
    let loan = unsafe { Loan::from_raw_parts_mut(start, len, device) };
    with(loan, stream)
}

fn with<'a>(mut loan: Loan<'a>, stream: Queue) -> Loan<'a> {
    loan.memory.stream = Some(stream);
    loan
}

/// Memory of a GPU. Consumers may write to it, as whoever has a `&CudaSlice` can.
///
/// ```no_run
/// use cudarc::driver::CudaContext;
/// use dlpack_core::{DLPack, Device};
///
/// let stream = CudaContext::new(0)?.new_stream()?;
/// let samples = stream.clone_htod(&[1.0_f32, 2.0])?;
/// let tensor = samples.into_dlpack()?;
/// assert_eq!(tensor.view().device(), Device::cuda(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<T: Element> Buffer for CudaSlice<T> {
    const FACTS: Facts = Facts::list::<T>().dynamic_device().writable_shared();

    fn lend(&self) -> Loan<'_> {
        let found = find(self.stream(), |stream| self.device_ptr(stream));
        on_device::<T>(found, self.len(), self.context())
    }
}

impl<T: AnyBits> Writable for CudaSlice<T> {}

/// A part of a [`CudaSlice`], for `data = self.slice.slice(4..)`.
impl<'a, T: Element> From<CudaView<'a, T>> for Loan<'a> {
    fn from(view: CudaView<'a, T>) -> Self {
        let (stream, len) = (view.stream().clone(), view.len());
        let found = find(&stream, |stream| {
            // The address is the view's, and the guard is not kept.
            let (address, read) = view.device_ptr(stream);
            core::mem::forget(read);
            (address, SyncOnDrop::Sync(None))
        });
        on_device::<T>(found, len, stream.context())
    }
}

impl<'a, T: Element> Lent<'a> for CudaView<'a, T> {
    fn loan(self) -> Loan<'a> {
        Loan::from(self)
    }
}

/// Memory that the processor reads too, on a device type of its own.
macro_rules! host_readable {
    ($($(#[$doc:meta])* $slice:ident on $device:ident by $find:ident;)*) => {$(
        $(#[$doc])*
        impl<T: Element> Buffer for $slice<T> {
            const FACTS: Facts = Facts::list::<T>().dynamic_device().writable();

            fn lend(&self) -> Loan<'_> {
                let (start, stream) = $find(self);
                let device = Device::new(DeviceType::$device, 0);
                // SAFETY: `cudarc` allocated so many elements there, and the slice is borrowed. Through a shared
                // reference it is only read; what a device still writes is waited for before a consumer reads.
                let loan = unsafe { Loan::from_raw_parts(start, self.len(), device) };
                with(loan, stream)
            }

            fn lend_mut(&mut self) -> LoanMut<'_> {
                let (start, stream) = $find(self);
                let device = Device::new(DeviceType::$device, 0);
                // SAFETY: as above, and `&mut self` is the one way to it.
                let mut loan = unsafe { LoanMut::from_raw_parts(start, self.len(), device) };
                loan.memory.stream = Some(stream);
                loan
            }
        }

        impl<T: AnyBits> Writable for $slice<T> {}
    )*};
}
host_readable! {
    /// Memory that both the processor and a GPU reach. Whoever has a `&UnifiedSlice` may be reading it, so a consumer may
    /// write only if it owns the slice.
    UnifiedSlice on CUDA_MANAGED by unified;
    /// Memory of the host that devices reach quickly, on the device type for it.
    PinnedHostSlice on CUDA_HOST by pinned;
}

fn unified<T: Element>(slice: &UnifiedSlice<T>) -> (*mut T, Queue) {
    let stream = DeviceSlice::stream(slice);
    let found = find(stream, |stream| slice.device_ptr(stream));
    apart(found.map(|found| found.within(stream.context())))
}

/// Asks pinned memory where it lies. It belongs to no stream, and `cudarc` would have the host wait for its last use:
/// instead this thread's own default stream does, on which nothing else is pending as a rule.
fn pinned<T: Element>(slice: &PinnedHostSlice<T>) -> (*mut T, Queue) {
    let stream = slice.context().per_thread_stream();
    let found = find(&stream, |stream| {
        // SAFETY: only the address is taken; who reads there is put behind the stream.
        let (elements, read) = unsafe { slice.stream_synced_slice(stream) };
        core::mem::forget(read);
        let address = CUdeviceptr::try_from(elements.as_ptr().expose_provenance());
        (address.unwrap_or(0), SyncOnDrop::Sync(None))
    });
    apart(found.map(|found| found.within(slice.context())))
}
