//! Arrays in the memory of a GPU, for work on a stream of `cudarc`.
//!
//! An array is checked when it is made. [`on`](DeviceView::on) names the stream of the work, and gives the `CudaView` that
//! kernels, copies and libraries of `cudarc` take. From then on the array is ordered on both sides:
//!
//! ```text
//! producer's stream   ──[ write ]──┐                               ┌──[ write, or free ]──
//!                                  │ on(&stream)                   │ drop
//! stream              ──────── (wait)──[ kernel ]──[ kernel ]──(event)────────────────────
//! ```
//!
//! The producer's stream is that of an export of this crate, or what [`with_stream`](DeviceView::with_stream) says. Where
//! nobody says, the producer's work is taken to be in the order of the default stream, and the drop waits on the host. On the
//! producer's stream itself nothing waits, and no driver is called.
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
use crate::features::cudarc::undisturbed;
use crate::layout::Dims;
use crate::request::Consumer;
use crate::stream::driver::failure;
use crate::stream::{Queue, link::order, release::Release, waiting::free_later};
use crate::{Device, DeviceType, Error, Managed, ProducerStream, StreamHandle, TensorRef};

/// An element of an array on a GPU: a number of which every bit pattern is a value, or an array of such numbers.
///
/// ```
/// fn may_be_on_a_gpu<T: dlpack_core::cuda::DeviceElement>() {}
///
/// may_be_on_a_gpu::<[f32; 3]>();
/// ```
///
/// Nobody looks at a `bool` on a device, so it could be anything when it comes to the host:
///
/// ```compile_fail,E0277
/// # fn may_be_on_a_gpu<T: dlpack_core::cuda::DeviceElement>() {}
/// may_be_on_a_gpu::<bool>();
/// ```
#[diagnostic::on_unimplemented(
    message = "an array on a GPU cannot hold `{Self}`",
    label = "expected a number of which every bit pattern is a value, or an array of such numbers",
    note = "for an array of `bool`, take `u8`, and have it passed as `x.view(torch.uint8)`"
)]
pub trait DeviceElement: Plain + AnyBits {}

#[diagnostic::do_not_recommend]
impl<T: Plain + AnyBits> DeviceElement for T {}

/// A tensor on a CUDA device, the stream of its producer, and the use that is made of it.
struct Place<T, L> {
    /// Its elements are on the device: nothing here reads them.
    array: Array<T, L>,
    len: usize,
    device: Device,
    /// The stream on which the producer uses the memory, if that is known.
    producer: Option<Queue>,
    /// What `cudarc` believes to be a slice of its own. It must not be dropped, which would free the memory.
    lent: Option<ManuallyDrop<CudaSlice<T>>>,
    /// Work of ours could not be ordered before the producer's.
    unordered: bool,
    /// Taken where it cannot be let go of yet.
    tensor: Option<Managed>,
}

impl<T: DeviceElement, L: Rank> Place<T, L> {
    #[expect(
        clippy::result_large_err,
        reason = "the tensor goes back to its caller"
    )]
    fn new(tensor: Managed, writes: bool) -> Result<Self, (Error, Managed)> {
        let (array, len) = match Self::check(&tensor.view(), writes) {
            Ok(found) => found,
            Err(error) => return Err((error, tensor)),
        };
        Ok(Self {
            array,
            len,
            device: tensor.view().device(),
            producer: tensor.stream(),
            lent: None,
            unordered: false,
            tensor: Some(tensor),
        })
    }

    fn check(tensor: &TensorRef<'_>, writes: bool) -> Result<(Array<T, L>, usize), Error> {
        let device = tensor.device();
        if device.device_type != DeviceType::CUDA {
            return Err(Error::NotOnCuda { device });
        }
        let array = Array::anywhere(tensor)?;
        let len = array.run()?;
        if writes && tensor.is_read_only() {
            return Err(Error::ReadOnly);
        }
        Ok((array, len))
    }

    /// What `cudarc` takes, when work on `stream` may use it.
    fn on(&mut self, stream: &Arc<CudaStream>) -> Result<&mut CudaSlice<T>, Error> {
        self.belongs(stream.context())?;
        self.finish()?;
        let before = self.producer.unwrap_or(Queue::DEFAULT);
        let queue = stream.producer_stream().queue;
        self.order(stream.context(), before, Consumer::on(queue))?;
        let lent = undisturbed(stream.context(), || self.lend(stream));
        let lent = lent.and_then(|lent| lent).map_err(said)?;
        Ok(self.lent.insert(lent))
    }

    fn lend(&self, stream: &Arc<CudaStream>) -> Result<ManuallyDrop<CudaSlice<T>>, DriverError> {
        let address = self.array.as_ptr().expose_provenance() as CUdeviceptr;
        // It panics where it can make no events, and has nothing then that it could free.
        let made = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `len` elements lie there (`Array::run`) as long as the tensor, whose drop waits for this to be
            // given back. Any bytes are a `T`. It is never dropped, so the memory is not freed.
            ManuallyDrop::new(unsafe { stream.upgrade_device_ptr(address, self.len) })
        }));
        let mut lent = made.map_err(|_| DriverError(CUresult::CUDA_ERROR_UNKNOWN))?;
        // From here on it was written on this stream: others of `cudarc`'s wait for that.
        drop(lent.device_ptr_mut(stream).1);
        Ok(lent)
    }
}

impl<T, L> Place<T, L> {
    /// That work of this context can use the memory.
    fn belongs(&self, context: &CudaContext) -> Result<(), Error> {
        let device = self.device;
        if context.is_primary() && i32::try_from(context.ordinal()) == Ok(device.device_id) {
            return Ok(());
        }
        Err(Error::ForeignStream { device })
    }

    /// Puts the consumer's work behind that on `before`, where default streams are those of this context.
    fn order(&self, context: &CudaContext, before: Queue, consumer: Consumer) -> Result<(), Error> {
        let ordered = undisturbed(context, || {
            context.bind_to_thread().map_err(said)?;
            order(self.device, Some(before), consumer)
        });
        ordered.map_err(said)?.map(drop)
    }

    /// Puts what the producer does next behind the work that uses the memory.
    fn finish(&mut self) -> Result<(), Error> {
        let Some(lent) = self.lent.take() else {
            return Ok(());
        };
        // Until it went well.
        let before = core::mem::replace(&mut self.unordered, true);
        let stream = Arc::clone(lent.stream());
        // The stream waits for others of `cudarc`'s that it knows of.
        undisturbed(stream.context(), || ManuallyDrop::into_inner(lent).leak()).map_err(said)?;
        let queue = stream.producer_stream().queue.on_any_thread();
        self.order(stream.context(), queue, self.behind())?;
        self.unordered = before;
        Ok(())
    }

    /// Who comes after our work.
    fn behind(&self) -> Consumer {
        match self.producer {
            // The default streams of other contexts have no number.
            Some(queue) if queue.context().is_none() || queue.handle > 2 => Consumer::on(queue),
            _ => Consumer::Host,
        }
    }
}

impl<T, L> Drop for Place<T, L> {
    fn drop(&mut self) {
        // Nobody is there to hear of a failure, but the tensor stays.
        let _ = self.finish();
        if let Some(tensor) = self.tensor.take().filter(|_| self.unordered) {
            free_later(self.device, Release::AfterAll(None), tensor);
        }
    }
}

/// What `cudarc` says.
fn said(DriverError(code): DriverError) -> Error {
    failure("cudarc", code as i32)
}

macro_rules! views {
    ($(
        $(#[$doc:meta])*
        $name:ident writes $writes:literal: $(#[$on_doc:meta])* $lent:ident by $lend:ident
    )*) => {$(
        $(#[$doc])*
        pub struct $name<T, L>(Place<T, L>);

        impl<T: DeviceElement, L: Rank> $name<T, L> {
            /// The array that a tensor is.
            ///
            /// # Errors
            ///
            /// [`Error::NotOnCuda`]; another data type or rank, elements that do not lie one after another, the last axis
            /// fastest, or not where their type has to; for one that is written, [`Error::ReadOnly`].
            pub fn new(tensor: Managed) -> Result<Self, Error> {
                Self::try_new(tensor).map_err(|(error, _)| error)
            }

            /// The same; where the tensor is no such array, its caller has it back.
            ///
            /// # Errors
            ///
            /// As `new`.
            #[expect(
                clippy::result_large_err,
                reason = "the tensor goes back to its caller"
            )]
            pub fn try_new(tensor: Managed) -> Result<Self, (Error, Managed)> {
                Place::new(tensor, $writes).map(Self)
            }

            /// The same array, of which it is known that its producer uses the memory on this stream: before us, and again
            /// when this is dropped. The stream lives as long as the array, as whoever made the handle has promised.
            #[must_use]
            pub fn with_stream(mut self, stream: StreamHandle) -> Self {
                self.0.producer = Some(stream.producer_stream().queue.on_any_thread());
                self
            }

            $(#[$on_doc])*
            ///
            /// # Errors
            ///
            /// [`Error::ForeignStream`], a capture that this would break, or what the driver says.
            pub fn on(&mut self, stream: &Arc<CudaStream>) -> Result<$lent<'_, T>, Error> {
                self.0.on(stream).map(|slice| slice.$lend())
            }

            /// The producer's stream, for `cudarc`. Work on it needs no waits: neither before it, nor after. Where it is not
            /// known, this is the default stream, and the drop waits on the host.
            ///
            /// # Errors
            ///
            /// [`Error::ForeignStream`] if the context is not the primary one of the device, or not that of the stream.
            ///
            /// # Safety
            ///
            /// The result is not used when the producer's stream is destroyed. PyTorch destroys none; in a function that
            /// Python calls, the stream that is current there stays until the function returns.
            pub unsafe fn producer_stream(
                &self,
                context: &Arc<CudaContext>,
            ) -> Result<Arc<CudaStream>, Error> {
                self.0.belongs(context)?;
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
                        // SAFETY: a stream of the device, which lives as the caller says; what is ordered by it is all
                        // that the producer does with the memory.
                        unsafe { context.wrap_borrowed_stream(handle) }
                    }
                })
            }

            /// How many elements there are.
            #[must_use]
            pub fn len(&self) -> usize {
                self.0.len
            }

            /// Whether there are none.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Where the memory lies.
            #[must_use]
            pub fn device(&self) -> Device {
                self.0.device
            }
        }

        impl<T: DeviceElement, const N: usize> $name<T, [i64; N]> {
            /// The extents, one an axis.
            #[must_use]
            pub fn shape(&self) -> [usize; N] {
                self.0.array.shape()
            }
        }

        impl<T: DeviceElement> $name<T, Dims> {
            /// The extents, one an axis.
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
    /// A tensor on a CUDA device whose elements are `T`, one after another, with the axes of `L`: `[i64; N]` for `N` of
    /// them, [`Dims`] for any number.
    ///
    /// It keeps the tensor. Work that it was lent to is ordered before whatever the producer does with the memory after the
    /// drop; whoever forgets it keeps the tensor for ever.
    ///
    /// ```no_run
    /// use cudarc::driver::CudaStream;
    /// use dlpack_core::{Managed, cuda::DeviceView};
    /// use std::sync::Arc;
    ///
    /// /// The pixels, copied to the host behind all work on them.
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
    /// What [`on`](Self::on) gives is gone with it:
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
    /// The elements, for work on `stream` that reads them: it comes after what the producer has queued. What other streams of
    /// `cudarc` do with the result is ordered as that of any `CudaView`.
    CudaView by as_view

    /// A [`DeviceView`] that may be written.
    ///
    /// ```no_run
    /// use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
    /// use dlpack_core::cuda::DeviceViewMut;
    /// use std::sync::Arc;
    ///
    /// /// Multiplies by a factor, with a kernel that takes the elements, their count and the factor.
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
    /// The elements, for work on `stream` that reads and writes them: it comes after what the producer has queued. What other
    /// streams of `cudarc` do with the result is ordered as that of any `CudaViewMut`.
    ///
    /// Two views of the same memory are two such slices: device memory belongs to all who have it.
    CudaViewMut by as_view_mut
}
