//! Arrays in GPU memory as arguments, for work with `cudarc`.
//!
//! The producer's current stream is read before its tensor is requested: the tensor is requested for work on that stream, which
//! needs no further order. The core orders the user's own streams behind it, and it behind them.
#![expect(
    unsafe_code,
    reason = "calls an exchange table, and asserts that a stream lives"
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
use crate::import::{from_dlpack, import_on_stream};
use crate::keepalive::attached;
use crate::view::needs::Needs;

/// One of the core's two device views.
trait OnDevice: Sized {
    const NEEDS: Needs;

    fn try_from_tensor(tensor: Managed) -> Result<Self, (Error, Managed)>;
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
            /// The elements, for work on `stream`, which runs after the work that the array's library has queued. When the
            /// argument is dropped, at the end of the function, the library's next work is ordered behind it.
            ///
            /// # Errors
            ///
            /// `BufferError` if the stream does not belong to the primary context of the array's device, if a
            /// capture would be broken, or if the driver fails.
            pub fn on(&mut self, stream: &Arc<CudaStream>) -> PyResult<$lent<'_, T>> {
                Ok(self.0.on(stream)?)
            }

            /// The stream that was current at the call of the function; see
            /// [`DeviceView::producer_stream`](cuda::DeviceView::producer_stream).
            ///
            /// # Errors
            ///
            /// `BufferError` if the context is not the primary one of the array's device.
            ///
            /// # Safety
            ///
            /// The stream is not used after the function has returned.
            pub unsafe fn producer_stream(
                &self,
                context: &Arc<CudaContext>,
            ) -> PyResult<Arc<CudaStream>> {
                // SAFETY: the caller does not use the stream after the function has returned; until then its Python caller
                // keeps the stream alive.
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
                extract_view(&object).map(|view| Self(view, PhantomData))
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
    /// An argument: an array of `T` with `N` axes on a CUDA device, of PyTorch, CuPy or any other library, for `cudarc`.
    ///
    /// [`on`](Self::on) returns the `CudaView` that kernels and copies take, and orders the work behind that of the library. At
    /// the end of the function, the library's next work is ordered behind yours. The host does not wait if the library
    /// publishes its current stream: PyTorch and others with DLPack's exchange table do, and CuPy in
    /// `__cuda_array_interface__`. For arrays of other libraries, the drop waits until the work is done, without the GIL.
    ///
    /// The elements must be contiguous, in C order; anything else is a `TypeError` that says what was found and what is needed.
    /// Shape and length are those of [`cuda::DeviceView`], to which it derefs. It lives until the end of the call: to keep an
    /// array, use [`from_dlpack`](crate::from_dlpack) and the core's [`cuda::DeviceView`].
    ///
    /// ```no_run,standalone_crate
    /// use std::sync::{Arc, OnceLock};
    ///
    /// use cudarc::driver::CudaStream;
    /// use dlpack_pyo3::DeviceView;
    /// use pyo3::exceptions::PyRuntimeError;
    /// use pyo3::prelude::*;
    ///
    /// /// Our stream, created when the module is loaded.
    /// static STREAM: OnceLock<Arc<CudaStream>> = OnceLock::new();
    ///
    /// /// Copies the elements to the host.
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

    /// An argument like [`DeviceView`], for an array that is written. A read-only array is refused.
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
    /// /// Multiplies in place, on torch's current stream: no wait is needed.
    /// #[pyfunction]
    /// fn scale(mut x: DeviceViewMut<f32, 1>, factor: f32) -> PyResult<()> {
    ///     let gpu = GPU.get().expect("there is a GPU");
    ///     // SAFETY: the stream is used in this function only.
    ///     let stream = unsafe { x.producer_stream(&gpu.context) }?;
    ///     let count = x.len() as u32;
    ///     let mut data = x.on(&stream)?;
    ///     let mut launch = stream.launch_builder(&gpu.scale);
    ///     launch.arg(&mut data).arg(&count).arg(&factor);
    ///     // SAFETY: these are the kernel's arguments, and it writes `count` elements.
    ///     unsafe { launch.launch(LaunchConfig::for_num_elems(count)) }
    ///         .map_err(|error| PyRuntimeError::new_err(format!("{error:?}")))?;
    ///     Ok(())
    /// }
    /// ```
    DeviceViewMut [const N: usize] [N] [[i64; N]: Rank] over DeviceViewMut<[i64; N]> as CudaViewMut;

    /// An argument like [`DeviceView`], with any number of axes.
    DeviceViewDyn [] [] [] over DeviceView<Dims> as CudaView;

    /// An argument like [`DeviceViewMut`], with any number of axes.
    DeviceViewMutDyn [] [] [] over DeviceViewMut<Dims> as CudaViewMut;
}

macro_rules! kinds {
    ($($view:ident: $writes:literal;)*) => {$(
        impl<T: DeviceElement, L: Rank> OnDevice for cuda::$view<T, L> {
            const NEEDS: Needs = Needs {
                dtype: T::DTYPE,
                rank: L::RANK,
                element: T::TRAILING,
                contiguous: true,
                as_bytes: false,
                convert: None,
                promise: false,
                writes: $writes,
                cuda: true,
            };

            fn try_from_tensor(tensor: Managed) -> Result<Self, (Error, Managed)> {
                Self::try_new(tensor)
            }

            fn on_stream(self, stream: StreamHandle) -> Self {
                self.with_stream(stream)
            }
        }
    )*};
}
kinds! {
    DeviceView: false;
    DeviceViewMut: true;
}

/// Extracts the view from an argument.
fn extract_view<V: OnDevice>(object: &Bound<'_, PyAny>) -> PyResult<V> {
    let (py, needs) = (object.py(), &const { V::NEEDS });
    // Dropping the view may block.
    attached::install_hooks(py);
    let taken = import_ordered(object, needs);
    let (tensor, stream) =
        taken.or_else(|error| Err(needs.loss_error(object)?.unwrap_or(error)))?;
    needs.refuse_copy(object, &tensor)?;
    let view = V::try_from_tensor(tensor)
        .map_err(|(error, tensor)| needs.unsuitable_tensor(py, &error, &tensor.view()))?;
    Ok(match stream {
        Some(stream) => view.on_stream(stream),
        None => view,
    })
}

/// Imports the tensor of an argument. Also returns the stream that it is ordered for, if that is its library's current stream.
fn import_ordered(
    object: &Bound<'_, PyAny>,
    needs: &Needs,
) -> PyResult<(Managed, Option<StreamHandle>)> {
    let py = object.py();
    if object.is_instance_of::<PyCapsule>() {
        return Ok((from_dlpack(object)?, None));
    }
    let where_it_is = intern!(py, "__dlpack_device__");
    let (kind, index) = match object.call_method0(where_it_is) {
        Err(_) if !object.hasattr(where_it_is)? => return Err(needs.not_an_array(object)),
        pair => pair?.extract::<(i32, i32)>()?,
    };
    let device = Device::new(DeviceType(kind), index);
    if device.device_type != DeviceType::CUDA {
        // Refused before an export is requested.
        return Err(needs.not_on_cuda(py, device));
    }
    let Some(handle) = current_stream(object, device) else {
        return Ok((from_dlpack(object)?, None));
    };
    // The default stream has another number in the protocol than its handle.
    let number = i64::try_from(handle.max(1)).unwrap_or(i64::MAX);
    let tensor = import_on_stream(object, number)?.ok_or_else(|| needs.not_an_array(object))?;
    // SAFETY: a stream that is current in a function's caller exists while the function runs, and the view lives no longer than
    // the call.
    let stream = unsafe { StreamHandle::from_raw(handle) };
    Ok((tensor, Some(stream)))
}

/// The current stream of an object's library on this thread, if the library publishes it.
fn current_stream(object: &Bound<'_, PyAny>, device: Device) -> Option<usize> {
    let py = object.py();
    let table = lookup::table_of_class(&object.get_type());
    let Some(current) = table.and_then(|table| table.api.current_work_stream) else {
        let interface = object.getattr(intern!(py, "__cuda_array_interface__"));
        let stream = interface.and_then(|interface| interface.get_item(intern!(py, "stream")));
        return stream.ok()?.extract().ok();
    };
    let mut stream = ptr::null_mut();
    // SAFETY: attached, as `object` shows; the table is that of the object's class, and `stream` is valid for writes.
    let status = unsafe { current(device.device_type.0, device.device_id, &raw mut stream) };
    if status != 0 {
        drop(PyErr::take(py));
        return None;
    }
    Some(stream.addr())
}
