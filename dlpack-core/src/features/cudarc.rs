//! The memory and the streams of `cudarc`.
//!
//! `cudarc` keeps one event for the last write and one for the last read of a slice, and makes the next stream wait for
//! them. We lend a slice as if its own stream were the next one: that stream waits for the last writer, and the consumer
//! is then ordered after it like any other consumer. We do not record the read event. There is only one for all readers,
//! so a consumer's read would replace a read of `cudarc`.
//!
//! If the stream captures, a wait for a writer from before the capture would break it. `cudarc` does not tell when the last writer
//! was, so such an export is refused.
//!
//! Calls of `cudarc` also make its context current, and leave it so. A caller that exports a tensor does not expect that,
//! so the previous context is restored.
#![expect(unsafe_code, reason = "lends memory that the driver allocated")]

use alloc::sync::Arc;
use core::ptr::with_exposed_provenance_mut;

use ::cudarc::driver::sys::{CUdeviceptr, CUresult, CUstreamCaptureStatus};
use ::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, DevicePtr, DeviceSlice, DriverError, HostSlice,
    PinnedHostSlice, SyncOnDrop, UnifiedSlice, result,
};

use crate::loan::{buffer::Lent, facts::Facts};
use crate::{Buffer, Device, DeviceType, Element, Loan, LoanMut, ProducerStream, StreamHandle};
use crate::{StreamRef, Writable, element::AnyBits, stream::Queue};

/// A field marked `stream` can be an `Arc<CudaStream>` of `cudarc`.
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
/// # // SAFETY: no frame is ever created.
/// # unsafe impl Send for Frame {}
/// ```
impl ProducerStream for CudaStream {
    fn producer_stream(&self) -> StreamRef<'_> {
        // SAFETY: this is a CUDA stream; `kept_by` below states how long it lives.
        let mut handle = unsafe { StreamHandle::from_raw(self.cu_stream().addr()) };
        if !self.context().is_primary() {
            // SAFETY: the stream belongs to this context and keeps it alive.
            handle = unsafe { handle.in_context(self.context().cu_ctx().addr()) };
        }
        // SAFETY: `self` keeps the stream: it is destroyed when `self` is dropped. For a borrowed stream, the contract of
        // `cudarc`'s constructor says that it outlives `self`.
        let stream = unsafe { StreamRef::kept_by(self, handle) };
        StreamRef {
            queue: stream.queue.in_primary(),
            ..stream
        }
    }
}

/// The address and the stream of a lent slice.
struct SliceLocation {
    address: usize,
    stream: Queue,
}

impl SliceLocation {
    /// Names the context explicitly for memory whose device number is always 0, whatever device it was allocated for. Without
    /// it, a default stream would be taken for that of device 0.
    fn with_context(mut self, context: &CudaContext) -> Self {
        if context.ordinal() != 0 {
            self.stream = self.stream.in_context(context.cu_ctx().addr());
        }
        self
    }
}

/// Gets the address of a slice, and makes `stream` wait for the last write to it. `waits`: whether there may be an event to wait
/// for. If there may be one, the stream must not capture.
fn locate_slice<'a>(
    stream: &'a Arc<CudaStream>,
    waits: bool,
    locate: impl FnOnce(&'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>),
) -> Result<SliceLocation, DriverError> {
    let address = with_restored_context(stream.context(), || {
        if waits {
            refuse_capturing(stream)?;
        }
        let (address, read) = locate(stream);
        // Dropping the guard would record the consumer's read in the one read event of the slice.
        core::mem::forget(read);
        Ok(address)
    })??;
    Ok(SliceLocation {
        address: usize::try_from(address).unwrap_or(0),
        stream: stream.producer_stream().queue,
    })
}

/// Whether `cudarc` makes streams wait for the events of slices of this context.
pub(super) fn waits_for_events(context: &CudaContext) -> bool {
    context.is_managing_stream_synchronization()
}

/// Whether a stream captures, or is a default stream that a capture blocks. Makes its context current.
pub(super) fn is_capturing(stream: &CudaStream) -> Result<bool, DriverError> {
    match stream.capture_status() {
        Ok(status) => Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE),
        Err(DriverError(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Refuses a stream that captures: a wait for earlier work would break its capture.
pub(super) fn refuse_capturing(stream: &CudaStream) -> Result<(), DriverError> {
    match is_capturing(stream)? {
        true => Err(DriverError(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)),
        false => Ok(()),
    }
}

/// Runs `body`, which calls `cudarc`, and restores the thread's current context afterwards.
pub(super) fn with_restored_context<R>(
    context: &CudaContext,
    body: impl FnOnce() -> R,
) -> Result<R, DriverError> {
    let before = result::ctx::get_current()?;
    let done = body();
    // `cudarc` stores errors of asynchronous calls until they are queried.
    let outcome = context.check_err();
    let before = before.unwrap_or(core::ptr::null_mut());
    // SAFETY: `before` was the current context before `body`, or is null.
    let restored = unsafe { result::ctx::set_current(before) };
    outcome.and(restored)?;
    Ok(done)
}

/// Splits the result into an address, null after an error, and a queue, which carries the error.
fn split_location<T>(found: Result<SliceLocation, DriverError>) -> (*mut T, Queue) {
    match found {
        Ok(found) => (with_exposed_provenance_mut(found.address), found.stream),
        Err(DriverError(code)) => (core::ptr::null_mut(), Queue::from_failure(code as i32)),
    }
}

fn lend_device_memory<'a, T: Element>(
    found: Result<SliceLocation, DriverError>,
    len: usize,
    context: &CudaContext,
) -> Loan<'a> {
    let device = Device::cuda(i32::try_from(context.ordinal()).unwrap_or(i32::MAX));
    let (start, stream) = split_location::<T>(found);
    // SAFETY: `cudarc` allocated `len` elements at this address, and frees them when the slice is dropped, which is
    // borrowed for `'a`. The CPU cannot read device memory, so no Rust reference into it exists.
    let loan = unsafe { Loan::from_raw_parts_mut(start, len, device) };
    with_stream(loan, stream)
}

fn with_stream<'a>(mut loan: Loan<'a>, stream: Queue) -> Loan<'a> {
    loan.memory.stream = Some(stream);
    loan
}

/// GPU memory. Consumers may write to it, because code with a `&CudaSlice` can do so too.
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
        let waits = waits_for_events(self.context());
        let found = locate_slice(self.stream(), waits, |stream| self.device_ptr(stream));
        lend_device_memory::<T>(found, self.len(), self.context())
    }
}

impl<T: AnyBits> Writable for CudaSlice<T> {}

/// A view of a [`CudaSlice`], for example `data = self.slice.slice(4..)`.
impl<'a, T: Element> From<CudaView<'a, T>> for Loan<'a> {
    fn from(view: CudaView<'a, T>) -> Self {
        let (stream, len) = (view.stream().clone(), view.len());
        let waits = waits_for_events(stream.context());
        let found = locate_slice(&stream, waits, |stream| {
            // The address is that of the view. The guard must not record a read event, see `locate_slice`.
            let (address, read) = view.device_ptr(stream);
            core::mem::forget(read);
            (address, SyncOnDrop::Sync(None))
        });
        lend_device_memory::<T>(found, len, stream.context())
    }
}

impl<'a, T: Element> Lent<'a> for CudaView<'a, T> {
    fn loan(self) -> Loan<'a> {
        Loan::from(self)
    }
}

/// Implements `Buffer` for memory that the CPU reads too, with its own device type.
macro_rules! host_readable {
    ($($(#[$doc:meta])* $slice:ident on $device:ident by $find:ident;)*) => {$(
        $(#[$doc])*
        impl<T: Element> Buffer for $slice<T> {
            const FACTS: Facts = Facts::list::<T>().dynamic_device().writable();

            fn lend(&self) -> Loan<'_> {
                let (start, stream) = $find(self);
                let device = Device::new(DeviceType::$device, 0);
                // SAFETY: `cudarc` allocated `len` elements at this address, and the slice is borrowed. A shared reference
                // only reads; a consumer is ordered after the writes of the device before it reads.
                let loan = unsafe { Loan::from_raw_parts(start, self.len(), device) };
                with_stream(loan, stream)
            }

            fn lend_mut(&mut self) -> LoanMut<'_> {
                let (start, stream) = $find(self);
                let device = Device::new(DeviceType::$device, 0);
                // SAFETY: `cudarc` allocated `len` elements at this address, and `&mut self` is the only access to them.
                let mut loan = unsafe { LoanMut::from_raw_parts(start, self.len(), device) };
                loan.memory.stream = Some(stream);
                loan
            }
        }

        impl<T: AnyBits> Writable for $slice<T> {}
    )*};
}
host_readable! {
    /// Memory that both the CPU and a GPU can access. Other code with a `&UnifiedSlice` may be reading it, so a consumer may
    /// write only if it owns the slice.
    UnifiedSlice on CUDA_MANAGED by locate_unified;
    /// Host memory that is page-locked for fast transfers, with its own device type.
    PinnedHostSlice on CUDA_HOST by locate_pinned;
}

fn locate_unified<T: Element>(slice: &UnifiedSlice<T>) -> (*mut T, Queue) {
    let stream = DeviceSlice::stream(slice);
    let found = locate_slice(stream, true, |stream| slice.device_ptr(stream));
    split_location(found.map(|found| found.with_context(stream.context())))
}

/// Gets the address of pinned memory. It belongs to no stream, and `cudarc` would make the host wait for its last use.
/// Instead the per-thread default stream waits, which usually has no pending work.
fn locate_pinned<T: Element>(slice: &PinnedHostSlice<T>) -> (*mut T, Queue) {
    let stream = slice.context().per_thread_stream();
    let found = locate_slice(&stream, true, |stream| {
        // SAFETY: only the address is used; consumers are ordered after the stream before they read.
        let (elements, read) = unsafe { slice.stream_synced_slice(stream) };
        core::mem::forget(read);
        let address = CUdeviceptr::try_from(elements.as_ptr().expose_provenance());
        (address.unwrap_or(0), SyncOnDrop::Sync(None))
    });
    split_location(found.map(|found| found.with_context(slice.context())))
}
