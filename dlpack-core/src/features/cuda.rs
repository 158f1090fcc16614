//! Typed views of GPU memory, for work on a `cudarc` stream.
//!
//! A tensor is checked when the view is created. [`on`](DeviceView::on) takes the stream of the work, and returns the
//! `CudaView` that kernels, copies and libraries of `cudarc` accept. The work is ordered on both sides:
//!
//! ```text
//! producer's stream   ──[ write ]──┐                               ┌──[ write, or free ]──
//!                                  │ on(&stream)                   │ drop
//! stream              ──────── (wait)──[ kernel ]──[ kernel ]──(event)────────────────────
//! ```
//!
//! The producer's stream is the stream of an export of this crate, or the argument of
//! [`with_stream`](DeviceView::with_stream). If it is unknown, the producer's work is assumed to be ordered by the default
//! stream, and the drop blocks the host until the work is done. If both streams are the same, no wait is needed, and no
//! driver function is called.
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use dlpack_core::{DLPack, cuda::DeviceViewMut};
//!
//! let context = CudaContext::new(0)?;
//! let samples = context.new_stream()?.clone_htod(&[1.0_f32, 2.0])?;
//! let mut samples = DeviceViewMut::<f32, [i64; 1]>::new(samples.into_dlpack()?)?;
//!
//! let stream = context.new_stream()?;
//! stream.memset_zeros(&mut samples.on(&stream)?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![expect(unsafe_code, reason = "gives `cudarc` the address of a tensor")]

use alloc::sync::Arc;
use core::fmt;
use core::mem::ManuallyDrop;
use core::panic::AssertUnwindSafe;
use core::ptr::without_provenance_mut;
use std::panic::catch_unwind;

use ::cudarc::driver::sys::{CUdeviceptr, CUresult};
use ::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtrMut, DriverError,
};

use crate::array::{Array, Rank};
use crate::element::{AnyBits, Plain};
use crate::features::cudarc::{
    is_capturing, refuse_capturing, waits_for_events, with_restored_context,
};
use crate::layout::Dims;
use crate::request::Consumer;
use crate::stream::driver::cuda_error;
use crate::stream::{Queue, deferred::defer_free, release::Release, state::order_streams};
use crate::{Device, DeviceType, Error, Managed, ProducerStream, StreamHandle, TensorRef};

/// An element of a GPU array: a number type of which every bit pattern is a value, or an array of such numbers.
///
/// ```
/// fn may_be_on_a_gpu<T: dlpack_core::cuda::DeviceElement>() {}
///
/// may_be_on_a_gpu::<[f32; 3]>();
/// ```
///
/// A `bool` on a device is not checked, so it could have any bit pattern when it is copied to the host:
///
/// ```compile_fail,E0277
/// # fn may_be_on_a_gpu<T: dlpack_core::cuda::DeviceElement>() {}
/// may_be_on_a_gpu::<bool>();
/// ```
#[diagnostic::on_unimplemented(
    message = "an array on a GPU cannot hold `{Self}`",
    label = "expected a number type for which every bit pattern is valid, or an array of such numbers",
    note = "for an array of `bool`, take `u8`, and have it passed as `x.view(torch.uint8)`"
)]
pub trait DeviceElement: Plain + AnyBits {}

#[diagnostic::do_not_recommend]
impl<T: Plain + AnyBits> DeviceElement for T {}

/// A tensor on a CUDA device, the stream of its producer, and the current use of its memory.
struct DeviceArray<T, L> {
    /// Shape and address of the elements. They are in device memory, which this module does not read.
    array: Array<T, L>,
    len: usize,
    device: Device,
    /// The stream on which the producer uses the memory, if it is known.
    producer: Option<Queue>,
    /// The slice that was lent to `cudarc`.
    lent: Option<LentSlice<T>>,
    /// Whether work of this view could not be ordered before the producer's next work.
    unordered: bool,
    /// `Some` until the drop, which takes it out to release it later.
    tensor: Option<Managed>,
}

/// A slice that was lent to `cudarc`.
struct LentSlice<T> {
    /// It must not be dropped, because its drop would free the memory.
    slice: ManuallyDrop<CudaSlice<T>>,
    /// Whether its stream captured when it was lent, so that its events are of that capture. Not queried if it has none.
    in_capture: bool,
}

impl<T: DeviceElement, L: Rank> DeviceArray<T, L> {
    fn new(tensor: Managed, writes: bool) -> Result<Self, (Error, Managed)> {
        let (array, len) = match Self::check_tensor(&tensor.view(), writes) {
            Ok(found) => found,
            Err(error) => return Err((error, tensor)),
        };
        Ok(Self {
            array,
            len,
            device: tensor.view().device(),
            producer: tensor.owner_stream(),
            lent: None,
            unordered: false,
            tensor: Some(tensor),
        })
    }

    fn check_tensor(tensor: &TensorRef<'_>, writes: bool) -> Result<(Array<T, L>, usize), Error> {
        let device = tensor.device();
        if device.device_type != DeviceType::CUDA {
            return Err(Error::NotOnCuda { device });
        }
        let array = Array::from_device_tensor(tensor)?;
        let len = array.check_slice_len()?;
        if writes && tensor.is_read_only() {
            return Err(Error::ReadOnly);
        }
        Ok((array, len))
    }

    /// Orders `stream` after the producer, and returns the slice for work on `stream`.
    fn lend_to_stream(&mut self, stream: &Arc<CudaStream>) -> Result<&mut CudaSlice<T>, Error> {
        self.check_context(stream.context())?;
        self.order_producer()?;
        let before = self.producer.unwrap_or(Queue::DEFAULT);
        let queue = stream.producer_stream().queue;
        self.order_consumer(stream.context(), before, Consumer::working_on(queue))?;
        let lent = with_restored_context(stream.context(), || self.wrap_slice(stream));
        let lent = lent.and_then(|lent| lent).map_err(driver_error)?;
        Ok(&mut self.lent.insert(lent).slice)
    }

    fn wrap_slice(&self, stream: &Arc<CudaStream>) -> Result<LentSlice<T>, DriverError> {
        let in_capture = waits_for_events(stream.context()) && is_capturing(stream)?;
        let address = self.array.as_ptr().expose_provenance() as CUdeviceptr;
        // `upgrade_device_ptr` panics if it cannot create events. It has then created nothing that would free the memory.
        let made = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `len` elements are at this address (`Array::run`) while the tensor lives, and `order_producer` takes
            // the slice before the tensor is dropped. Any bytes are a `T`. `ManuallyDrop` keeps the slice from freeing
            // the memory.
            ManuallyDrop::new(unsafe { stream.upgrade_device_ptr(address, self.len) })
        }));
        let mut slice = made.map_err(|_| DriverError(CUresult::CUDA_ERROR_UNKNOWN))?;
        // Marks the slice as written on this stream, so that other `cudarc` streams wait for it.
        drop(slice.device_ptr_mut(stream).1);
        Ok(LentSlice { slice, in_capture })
    }
}

impl<T, L> DeviceArray<T, L> {
    /// Checks that `context` is the primary context of the tensor's device.
    fn check_context(&self, context: &CudaContext) -> Result<(), Error> {
        let device = self.device;
        if context.is_primary() && i32::try_from(context.ordinal()) == Ok(device.device_id) {
            return Ok(());
        }
        Err(Error::ForeignStream { device })
    }

    /// Orders the consumer's work after the work on `before`. Default streams are those of this context.
    fn order_consumer(
        &self,
        context: &CudaContext,
        before: Queue,
        consumer: Consumer,
    ) -> Result<(), Error> {
        let ordered = with_restored_context(context, || {
            context.bind_to_thread().map_err(driver_error)?;
            order_streams(self.device, Some(before), consumer)
        });
        ordered.map_err(driver_error)?.map(drop)
    }

    /// Orders the producer's next work after the work that used the slice.
    fn order_producer(&mut self) -> Result<(), Error> {
        let Some(lent) = self.lent.take() else {
            return Ok(());
        };
        // Stays true if one of the calls below fails.
        let before = core::mem::replace(&mut self.unordered, true);
        let stream = Arc::clone(lent.slice.stream());
        let ended = with_restored_context(stream.context(), || {
            if waits_for_events(stream.context()) && !lent.in_capture {
                // Then the events of the slice are neither waited for nor destroyed.
                refuse_capturing(&stream)?;
            }
            // This makes the stream wait for the other `cudarc` streams that used the slice.
            ManuallyDrop::into_inner(lent.slice).leak();
            Ok(())
        });
        ended.and_then(|ended| ended).map_err(driver_error)?;
        let queue = stream.producer_stream().queue.on_any_thread();
        self.order_consumer(stream.context(), queue, self.next_consumer())?;
        self.unordered = before;
        Ok(())
    }

    /// The consumer that has to wait for this view's work: the producer's stream, or the host.
    fn next_consumer(&self) -> Consumer {
        match self.producer {
            // The default streams of other contexts have no number that identifies them.
            Some(queue) if queue.context().is_none() || queue.handle > 2 => {
                Consumer::working_on(queue)
            }
            _ => Consumer::Host,
        }
    }
}

impl<T, L> Drop for DeviceArray<T, L> {
    fn drop(&mut self) {
        // A drop cannot return an error. If ordering failed, the tensor is released after all work of the device.
        let _ = self.order_producer();
        if let Some(tensor) = self.tensor.take().filter(|_| self.unordered) {
            defer_free(self.device, Release::AfterAll(None), tensor);
        }
    }
}

/// Converts an error of `cudarc`.
fn driver_error(DriverError(code): DriverError) -> Error {
    cuda_error("cudarc", code as i32)
}

macro_rules! views {
    ($(
        $(#[$doc:meta])*
        $name:ident writes $writes:literal: $(#[$on_doc:meta])* $lent:ident by $lend:ident
    )*) => {$(
        $(#[$doc])*
        pub struct $name<T, L>(DeviceArray<T, L>);

        impl<T: DeviceElement, L: Rank> $name<T, L> {
            /// Creates a view of a tensor, and checks it.
            ///
            /// # Errors
            ///
            /// [`Error::NotOnCuda`]; another dtype or rank; elements that are not contiguous in C order or not aligned for
            /// their type; and for a mutable view [`Error::ReadOnly`].
            pub fn new(tensor: Managed) -> Result<Self, Error> {
                Self::try_new(tensor).map_err(|(error, _)| error)
            }

            /// Creates a view of a tensor, or returns the tensor with the error if a check fails.
            ///
            /// # Errors
            ///
            /// The errors of `new`.
            pub fn try_new(tensor: Managed) -> Result<Self, (Error, Managed)> {
                DeviceArray::new(tensor, $writes).map(Self)
            }

            /// Sets the stream on which the producer uses the memory, both before this view and after its drop. The stream
            /// lives as long as the view, by the contract under which the handle was created.
            #[must_use]
            pub fn with_stream(mut self, stream: StreamHandle) -> Self {
                self.0.producer = Some(stream.producer_stream().queue.on_any_thread());
                self
            }

            $(#[$on_doc])*
            ///
            /// # Errors
            ///
            /// [`Error::ForeignStream`], a capture that the wait would invalidate, or an error of the driver.
            pub fn on(&mut self, stream: &Arc<CudaStream>) -> Result<$lent<'_, T>, Error> {
                self.0.lend_to_stream(stream).map(|slice| slice.$lend())
            }

            /// Returns the producer's stream for `cudarc`. Work on it needs no waits. If the producer's stream is unknown, this
            /// is the default stream, and the drop blocks the host.
            ///
            /// # Errors
            ///
            /// [`Error::ForeignStream`] if the context is not the primary one of the device, or not that of the stream.
            ///
            /// # Safety
            ///
            /// The result is not used after the producer's stream is destroyed. PyTorch destroys no stream. In a function that
            /// Python calls, the current stream exists until the function returns.
            pub unsafe fn producer_stream(
                &self,
                context: &Arc<CudaContext>,
            ) -> Result<Arc<CudaStream>, Error> {
                self.0.check_context(context)?;
                Ok(match self.0.producer {
                    None => context.default_stream(),
                    Some(queue) if queue.handle == 0 && queue.context().is_none() => {
                        context.default_stream()
                    }
                    Some(queue) if queue.context().is_some() => {
                        let device = self.0.device;
                        return Err(Error::ForeignStream { device });
                    }
                    Some(queue) => {
                        let handle = without_provenance_mut(queue.handle);
                        // SAFETY: this is a stream of the device, which lives as long as the result is used, by this
                        // function's contract. The producer orders all its work on the memory by it.
                        unsafe { context.wrap_borrowed_stream(handle) }
                    }
                })
            }

            /// The number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                self.0.len
            }

            /// Whether the array has no elements.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The device that the memory is on.
            #[must_use]
            pub fn device(&self) -> Device {
                self.0.device
            }
        }

        impl<T: DeviceElement, const N: usize> $name<T, [i64; N]> {
            /// The shape: the size of each axis.
            #[must_use]
            pub fn shape(&self) -> [usize; N] {
                self.0.array.shape()
            }
        }

        impl<T: DeviceElement> $name<T, Dims> {
            /// The shape: the size of each axis.
            #[must_use]
            pub fn shape(&self) -> &[i64] {
                self.0.array.shape()
            }
        }

        impl<T: DeviceElement, L: Rank> fmt::Debug for $name<T, L> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut shown = f.debug_tuple(stringify!($name));
                shown.field(&self.0.array).field(&self.0.device).finish()
            }
        }
    )*};
}

views! {
    /// A tensor on a CUDA device with contiguous elements of type `T` in C order. `L` is its rank: `[i64; N]` for `N` axes,
    /// [`Dims`] for any number.
    ///
    /// It owns the tensor. Work on a slice from [`on`](Self::on) is ordered before everything that the producer does with
    /// the memory after the drop. `mem::forget` on a view leaks the tensor.
    ///
    /// ```no_run
    /// use cudarc::driver::CudaStream;
    /// use dlpack_core::{Managed, cuda::DeviceView};
    /// use std::sync::Arc;
    ///
    /// /// Copies the pixels to the host, after all work on them.
    /// fn download(image: Managed, stream: &Arc<CudaStream>) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    ///     let mut image = DeviceView::<f32, [i64; 2]>::new(image)?;
    ///     let [height, width] = image.shape();
    ///     assert_eq!(image.len(), height * width);
    ///     let pixels = stream.clone_dtoh(&image.on(stream)?)?;
    ///     stream.synchronize()?;
    ///     Ok(pixels)
    /// }
    /// ```
    ///
    /// The result of [`on`](Self::on) borrows the view:
    ///
    /// ```compile_fail,E0505
    /// # use cudarc::driver::CudaStream;
    /// # use dlpack_core::cuda::DeviceView;
    /// # fn copy(mut image: DeviceView<f32, [i64; 2]>, stream: &std::sync::Arc<CudaStream>) {
    /// let pixels = image.on(stream).unwrap();
    /// drop(image);
    /// stream.clone_dtoh(&pixels).unwrap();
    /// # }
    /// ```
    DeviceView writes false:
    /// Returns the elements for work on `stream` that reads them. This work is ordered after the work that the producer has
    /// queued. Other `cudarc` streams are ordered with the result as with any `CudaView`.
    CudaView by as_view

    /// A [`DeviceView`] with write access to its elements.
    ///
    /// ```no_run
    /// use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
    /// use dlpack_core::cuda::DeviceViewMut;
    /// use std::sync::Arc;
    ///
    /// /// Multiplies the samples by a factor, with a kernel that takes the elements, their count and the factor.
    /// fn scale(
    ///     samples: &mut DeviceViewMut<f32, [i64; 1]>,
    ///     factor: f32,
    ///     (stream, kernel): (&Arc<CudaStream>, &CudaFunction),
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     let count = samples.len() as u32;
    ///     let mut samples = samples.on(stream)?;
    ///     let mut launch = stream.launch_builder(kernel);
    ///     launch.arg(&mut samples).arg(&count).arg(&factor);
    ///     // SAFETY: these are its arguments, and it writes `count` elements.
    ///     unsafe { launch.launch(LaunchConfig::for_num_elems(count)) }?;
    ///     Ok(())
    /// }
    /// ```
    DeviceViewMut writes true:
    /// Returns the elements for work on `stream` that reads and writes them. This work is ordered after the work that the
    /// producer has queued. Other `cudarc` streams are ordered with the result as with any `CudaViewMut`.
    ///
    /// Two views of the same memory return slices that alias, because device memory is shared by all its users.
    CudaViewMut by as_view_mut
}
