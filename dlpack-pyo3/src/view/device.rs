//! Arrays in the memory of a GPU as arguments, for work of `cudarc`.
//!
//! The producer is asked for its current stream before it is asked for the tensor: for work on that stream, which
//! is in order then by itself. Streams of the user's own are put behind it, and it behind them, by core.
#![expect(
    unsafe_code,
    reason = "asks an exchange table, and vouches for a stream"
)]

use core::marker::PhantomData;
use core::ops::Deref;
use core::{fmt, ptr};
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, CudaView, CudaViewMut};
use dlpack_core::array::Rank;
use dlpack_core::cuda::{self, DeviceElement};
use dlpack_core::layout::Dims;
use dlpack_core::{Device, DeviceType, Error, Managed, StreamHandle};
use pyo3::{intern, prelude::*, types::PyCapsule};

use crate::exchange::lookup;
use crate::hold::attached;
use crate::import::{from_dlpack, take_on};
use crate::view::needs::Needs;

/// One of the two views of core's.
trait Kind: Sized {
    const NEEDS: Needs;

    #[expect(
        clippy::result_large_err,
        reason = "the tensor goes back to its caller"
    )]
    fn of(tensor: Managed) -> Result<Self, (Error, Managed)>;
    fn on_stream(self, stream: StreamHandle) -> Self;
}

macro_rules! views {
    ($(
        $(#[$doc:meta])*
        $name:ident [$($parameter:tt)*] [$($argument:tt)*] [$($bound:tt)*] over $view:ident<$list:ty> as $lent:ident;
    )*) => {$(
        $(#[$doc])*
        pub struct $name<'py, T: DeviceElement, $($parameter)*>(
            cuda::$view<T, $list>,
            PhantomData<&'py ()>,
        )
        where $($bound)*;

        impl<T: DeviceElement, $($parameter)*> $name<'_, T, $($argument)*>
        where $($bound)*
        {
            /// The elements, for work on this stream: it comes after what the array's library has queued. When the
            /// argument is dropped, at the end of the function, whatever the library does next is put behind the work.
            ///
            /// # Errors
            ///
            /// `BufferError` if the stream does not belong to the primary context of the array's device, if a
            /// capture would be broken, or if the driver fails.
            pub fn on(&mut self, stream: &Arc<CudaStream>) -> PyResult<$lent<'_, T>> {
                Ok(self.0.on(stream)?)
            }

            /// The stream that is current where the function was called, as
            /// [`DeviceView::producer_stream`](cuda::DeviceView::producer_stream).
            ///
            /// # Errors
            ///
            /// `BufferError` if the context is not the primary one of the array's device.
            ///
            /// # Safety
            ///
            /// It is not used after the function has returned.
            pub unsafe fn producer_stream(
                &self,
                context: &Arc<CudaContext>,
            ) -> PyResult<Arc<CudaStream>> {
                // SAFETY: the caller's promise; until the function returns, its caller has the stream.
                Ok(unsafe { self.0.producer_stream(context) }?)
            }
        }

        impl<T: DeviceElement, $($parameter)*> Deref for $name<'_, T, $($argument)*>
        where $($bound)*
        {
            type Target = cuda::$view<T, $list>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl<'a, 'py, T: DeviceElement, $($parameter)*> FromPyObject<'a, 'py> for $name<'py, T, $($argument)*>
        where $($bound)*
        {
            type Error = PyErr;

            #[cfg(feature = "stubs")]
            const INPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::PRODUCER;

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                extract(&object).map(|view| Self(view, PhantomData))
            }
        }

        impl<T: DeviceElement, $($parameter)*> fmt::Debug for $name<'_, T, $($argument)*>
        where $($bound)*
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )*};
}

views! {
    /// An argument: an array of `T` with `N` axes on a CUDA device, of torch, CuPy or any other library, for `cudarc`.
    ///
    /// [`on`](Self::on) gives the `CudaView` that kernels and copies take, and puts the work behind that of the library; the
    /// end of the function puts what the library does next behind the work. No host waits for that if the library tells its
    /// current stream: PyTorch and others with DLPack's exchange table do, and CuPy in `__cuda_array_interface__`. For arrays
    /// of others, the drop waits until the work is done, without the GIL.
    ///
    /// The elements lie one after another, the last axis fastest; anything else is a `TypeError` that says what was found and
    /// what is needed. Shape and length are those of [`cuda::DeviceView`], to which it derefs. It is for the length of a call:
    /// to keep an array, take [`from_dlpack`](crate::from_dlpack) and core's [`cuda::DeviceView`].
    ///
    /// ```no_run,standalone_crate
    /// use std::sync::{Arc, OnceLock};
    ///
    /// use cudarc::driver::CudaStream;
    /// use dlpack_pyo3::DeviceView;
    /// use pyo3::exceptions::PyRuntimeError;
    /// use pyo3::prelude::*;
    ///
    /// /// Ours, which the module makes when it is loaded.
    /// static STREAM: OnceLock<Arc<CudaStream>> = OnceLock::new();
    ///
    /// /// The elements, on the host.
    /// #[pyfunction]
    /// fn download(mut x: DeviceView<f32, 1>) -> PyResult<Vec<f32>> {
    ///     let stream = STREAM.get().expect("there is a GPU");
    ///     let failed = |error| PyRuntimeError::new_err(format!("{error:?}"));
    ///     let values = stream.clone_dtoh(&x.on(stream)?).map_err(failed)?;
    ///     stream.synchronize().map_err(failed)?;
    ///     Ok(values)
    /// }
    /// ```
    ///
    /// ```compile_fail,standalone_crate
    /// use dlpack_pyo3::DeviceView;
    ///
    /// fn keep(x: DeviceView<'_, f32, 1>) -> Box<dyn core::any::Any> {
    ///     Box::new(x)
    /// }
    /// ```
    DeviceView [const N: usize] [N] [[i64; N]: Rank] over DeviceView<[i64; N]> as CudaView;

    /// As a [`DeviceView`], for an array that is written. A read-only one is refused.
    ///
    /// ```no_run,standalone_crate
    /// use std::sync::{Arc, OnceLock};
    ///
    /// use cudarc::driver::{CudaContext, CudaFunction, LaunchConfig, PushKernelArg};
    /// use dlpack_pyo3::DeviceViewMut;
    /// use pyo3::exceptions::PyRuntimeError;
    /// use pyo3::prelude::*;
    ///
    /// struct Gpu { context: Arc<CudaContext>, scale: CudaFunction }
    /// static GPU: OnceLock<Gpu> = OnceLock::new();
    ///
    /// /// Multiplies in place, on the stream that is current in torch: no wait is needed.
    /// #[pyfunction]
    /// fn scale(mut x: DeviceViewMut<f32, 1>, factor: f32) -> PyResult<()> {
    ///     let gpu = GPU.get().expect("there is a GPU");
    ///     // SAFETY: it is used in this function only.
    ///     let stream = unsafe { x.producer_stream(&gpu.context) }?;
    ///     let count = x.len() as u32;
    ///     let mut data = x.on(&stream)?;
    ///     let mut launch = stream.launch_builder(&gpu.scale);
    ///     launch.arg(&mut data).arg(&count).arg(&factor);
    ///     // SAFETY: these are its arguments, and it writes `count` elements.
    ///     unsafe { launch.launch(LaunchConfig::for_num_elems(count)) }
    ///         .map_err(|error| PyRuntimeError::new_err(format!("{error:?}")))?;
    ///     Ok(())
    /// }
    /// ```
    DeviceViewMut [const N: usize] [N] [[i64; N]: Rank] over DeviceViewMut<[i64; N]> as CudaViewMut;

    /// As a [`DeviceView`], for any number of axes.
    DeviceViewDyn [] [] [] over DeviceView<Dims> as CudaView;

    /// As a [`DeviceViewMut`], for any number of axes.
    DeviceViewMutDyn [] [] [] over DeviceViewMut<Dims> as CudaViewMut;
}

macro_rules! kinds {
    ($($view:ident)*) => {$(
        impl<T: DeviceElement, L: Rank> Kind for cuda::$view<T, L> {
            const NEEDS: Needs = Needs {
                dtype: T::DTYPE,
                rank: L::RANK,
                element: T::TRAILING,
                contiguous: true,
                convert: false,
                promise: false,
                cuda: true,
            };

            fn of(tensor: Managed) -> Result<Self, (Error, Managed)> {
                Self::try_new(tensor)
            }

            fn on_stream(self, stream: StreamHandle) -> Self {
                self.with_stream(stream)
            }
        }
    )*};
}
kinds! { DeviceView DeviceViewMut }

/// The view of an argument.
fn extract<V: Kind>(object: &Bound<'_, PyAny>) -> PyResult<V> {
    let (py, needs) = (object.py(), &const { V::NEEDS });
    // Whoever drops the view may have to wait.
    attached::prepare(py);
    let taken = take(object, needs);
    let (tensor, stream) = taken.map_err(|error| needs.loss(object).unwrap_or(error))?;
    let view =
        V::of(tensor).map_err(|(error, tensor)| needs.refusal(py, &error, &tensor.view()))?;
    Ok(match stream {
        Some(stream) => view.on_stream(stream),
        None => view,
    })
}

/// The tensor of an argument, and the stream that it is ordered for, if that is one that its library goes on with.
fn take(object: &Bound<'_, PyAny>, needs: &Needs) -> PyResult<(Managed, Option<StreamHandle>)> {
    let py = object.py();
    if object.is_instance_of::<PyCapsule>() {
        return Ok((from_dlpack(object)?, None));
    }
    let where_it_is = intern!(py, "__dlpack_device__");
    let (kind, index) = match object.call_method0(where_it_is) {
        Err(_) if !object.hasattr(where_it_is)? => return Err(needs.no_array(object)),
        pair => pair?.extract::<(i32, i32)>()?,
    };
    let device = Device::new(DeviceType(kind), index);
    if device.device_type != DeviceType::CUDA {
        // It need not be asked for.
        return Err(needs.elsewhere(py, device));
    }
    let Some(handle) = current_stream(object, device) else {
        return Ok((from_dlpack(object)?, None));
    };
    // The protocol has a number for the default stream that is not its handle.
    let number = i64::try_from(handle.max(1)).unwrap_or(i64::MAX);
    let tensor = take_on(object, number)?.ok_or_else(|| needs.no_array(object))?;
    // SAFETY: the stream that is current in the caller of a function stays while the function runs, and the view lives no
    // longer than that.
    let stream = unsafe { StreamHandle::from_raw(handle) };
    Ok((tensor, Some(stream)))
}

/// The stream that is current in an object's library, on this thread, if it tells.
fn current_stream(object: &Bound<'_, PyAny>, device: Device) -> Option<usize> {
    let py = object.py();
    let table = lookup::of_class(&object.get_type());
    let Some(current) = table.and_then(|table| table.api.current_work_stream) else {
        let interface = object.getattr(intern!(py, "__cuda_array_interface__"));
        let stream = interface.and_then(|interface| interface.get_item(intern!(py, "stream")));
        return stream.ok()?.extract().ok();
    };
    let mut stream = ptr::null_mut();
    // SAFETY: attached, as `object` shows, and a place for the result; the table is that of the object's class.
    let status = unsafe { current(device.device_type.0, device.device_id, &raw mut stream) };
    if status != 0 {
        drop(PyErr::take(py));
        return None;
    }
    Some(stream.addr())
}
