//! Imports a tensor from any Python object with `__dlpack__` or the buffer protocol.
//!
//! The paths are tried from left to right; what one path cannot import, a later one may:
//!
//! ```text
//! object ──▶ NumPy's own? ──▶ exchange table? ──▶ capsule? ──▶ only a buffer, or JAX's own? ──▶ __dlpack_device__, __dlpack__
//!                 └──────────────────┴────────────────┴─────────────────────┴───────────────────────────┴──▶ Managed
//! ```
//!
//! | file | job |
//! |---|---|
//! | this file | chooses the path, and defines the import functions and argument types |
//! | `method` | calls `__dlpack_device__` and `__dlpack__`: which keywords, which stream, and what to retry without |
//! | `buffer` | the buffer protocol |
//! | `consume` | takes the tensor out of a capsule, and decides whether its memory is exclusively ours |
//! | `numpy` | NumPy arrays, read without a Python call |
//! | `root` | finds our memory behind an imported object |
#![expect(unsafe_code, reason = "calls C functions of other libraries")]

mod buffer;
mod consume;
mod method;
pub(crate) mod numpy;
mod root;

pub(crate) use buffer::bytes_of_buffer;
pub use dlpack_core::import::{FromInt, FromList, FromTensor};

use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};

use dlpack_core::binding::{device_of, take_own, take_versioned, unordered_stream};
use dlpack_core::{DLPack, Device, Error, ExportRequest, FromDLPack, Managed};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::{PyTypeInfo, intern, prelude::*, types::PyCapsule};

use crate::capi::class_attribute;
use crate::error::{OrRaise, concerns_object, discard_error, fail, none_if_concerns_object};
use crate::exchange::lookup::{self, Unchecked};
use crate::import::consume::consume_capsule;
use crate::keepalive::attached;
use crate::library::{self, jax, lossy, lossy::Loss, paddle, torch};

/// Imports the tensor that an object of any library exports.
///
/// Uses the C exchange table of the object's class, if it has one and no subclass overrides `__dlpack__`. Otherwise calls
/// `__dlpack__` for the newest version, and again with fewer keywords if that raises `TypeError`. Other exceptions of the
/// producer are passed on. An array of JAX in host memory is read by its buffer, which is faster.
///
/// A DLPack capsule is accepted too, and so is an object that only has a buffer, such as `bytes`, `array.array` and `mmap`; its
/// buffer stays locked until the tensor is dropped.
///
/// For data on a GPU the consumer's stream is the default stream: work on that stream sees the data. For CUDA managed memory,
/// which the CPU reads, this function waits until the data is written.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::from_dlpack;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn largest(obj: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
///     let tensor = from_dlpack(obj)?;
///     Ok(tensor.view().iter::<i64>()?.max())
/// }
/// ```
///
/// # Errors
///
/// `AttributeError` if the object exports nothing, `BufferError` if its tensor is malformed, `ValueError` for a consumed capsule,
/// `TypeError` for a capsule of another kind, `ImportError` in a sub-interpreter, `MemoryError`, and any exception of the producer.
/// `BufferError` also for a PyTorch tensor that requires grad or has the conjugate or negative bit, and for a NumPy masked
/// array: the import would lose that.
pub fn from_dlpack(object: &Bound<'_, PyAny>) -> PyResult<Managed> {
    import_if_array(object)?.ok_or_else(|| not_an_array_error::<PyAttributeError>(object))
}

/// Imports an argument of a function. For an object that is not an array it raises `TypeError`, unlike [`from_dlpack`]; PyO3
/// adds the argument's name.
pub(crate) fn import_argument(object: &Bound<'_, PyAny>) -> PyResult<Managed> {
    match import_if_array(object) {
        Ok(Some(tensor)) => Ok(tensor),
        Ok(None) => Err(not_an_array_error::<PyTypeError>(object)),
        Err(error) if concerns_object(object.py(), &error) => Err(explain_error(object, error)),
        Err(error) => Err(error),
    }
}

/// The error for an argument whose export raised `error`: if the import would lose a part of the array, or if NumPy does not export
/// such strides, it says so, and what to pass instead.
#[cold]
fn explain_error(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = object.py();
    match none_if_concerns_object(py, describe_refused(object)) {
        Ok(None) => error,
        Ok(Some(other)) | Err(other) => {
            discard_error(py, error);
            other
        }
    }
}

/// The error for an array that is refused because of a loss, or because of its strides; `None` for other objects.
fn describe_refused(object: &Bound<'_, PyAny>) -> PyResult<Option<PyErr>> {
    let py = object.py();
    if let Some(loss) = Loss::of_object(object)? {
        return Ok(Some(lossy::argument_error(py, &loss)));
    }
    let found = library::numpy::fractional_strides(object)?;
    Ok(found.map(|found| lossy::argument_error(py, &found)))
}

/// Imports the tensor of an object; `None` if the object is not an array.
#[inline]
pub(crate) fn import_if_array(object: &Bound<'_, PyAny>) -> PyResult<Option<Managed>> {
    if library::numpy::is_exact_array(object) {
        if let Some(tensor) = numpy::import_array(object).or_fetch(object.py())? {
            return Ok(Some(tensor));
        }
    }
    import_other(object)
}

#[inline(never)]
fn import_other(object: &Bound<'_, PyAny>) -> PyResult<Option<Managed>> {
    attached::check_interpreter(object.py()).or_fetch(object.py())?;
    attached::install_hooks(object.py());
    if let Some((table, unchecked)) = lookup::table_for_import(&object.get_type()) {
        let is_torch = unchecked == Unchecked::OfTorch;
        let may_use = match unchecked {
            Unchecked::Nothing => true,
            Unchecked::OfTorch => torch::inherits_method(object),
            Unchecked::OfPaddle => paddle::may_use_table(object),
        };
        if may_use {
            match import_by_table(object, &table, is_torch) {
                Ok(None) => {}
                Ok(Some(tensor)) if is_torch => {
                    lossy::refuse_torch(object, tensor.view().dtype())?;
                    return Ok(Some(tensor));
                }
                taken => return taken,
            }
        }
    }
    if library::numpy::find_if_imported(object.py()) {
        return import_if_array(object);
    }
    let taken = import_by_method(object, None, None)?;
    taken
        .map(|(tensor, _)| root::keep_by_root_of_array(tensor, object))
        .transpose()
}

/// Imports without the exchange table. Also returns whether the producer accepted both `device` and `copy`.
fn import_by_method(
    object: &Bound<'_, PyAny>,
    device: Option<Device>,
    copy: Option<bool>,
) -> PyResult<Option<(Managed, bool)>> {
    let py = object.py();
    attached::check_interpreter(py).or_fetch(py)?;
    attached::install_hooks(py);
    if let Ok(capsule) = object.cast::<PyCapsule>() {
        let tensor = wait_until_ready(py, consume_capsule(capsule, None)?)?;
        return Ok(Some((tensor, false)));
    }
    // Not checked for a capsule, which is nothing but a tensor.
    if class_attribute(&object.get_type(), intern!(py, "__dlpack__")).is_some() {
        if jax::is_jax_array(object) {
            if device.is_none() && copy.is_none() {
                if let Some(tensor) = import_jax_buffer(object)? {
                    return Ok(Some((tensor, false)));
                }
            }
            jax::refuse_deleted(object)?;
        }
        lossy::refuse_lossy(object)?;
    } else {
        lossy::refuse_masked(object)?;
        if let Some(tensor) = buffer::of_buffer(object)? {
            return Ok(Some((tensor, false)));
        }
    }
    let answer = method::call_dlpack(object, device, copy, None)?;
    let tensor = |(capsule, in_full): (Bound<'_, PyCapsule>, bool)| {
        let copied_by = (in_full && copy == Some(true)).then_some(object);
        Ok((
            wait_until_ready(py, consume_capsule(&capsule, copied_by)?)?,
            in_full,
        ))
    };
    answer.map(tensor).transpose()
}

/// Imports the buffer of an array of JAX; `None` if `__dlpack__` must be called: for an array on a GPU, or with a data type that a
/// buffer cannot have.
fn import_jax_buffer(array: &Bound<'_, PyAny>) -> PyResult<Option<Managed>> {
    none_if_concerns_object(array.py(), buffer::of_buffer(array))
}

/// Imports the tensor of an object that has the methods of a class of ours, or overrides them in Python: by these methods alone.
///
/// Every class links this function, but [`from_dlpack`] only a module that imports arrays of other libraries.
pub(crate) fn import_from_own_class(
    object: &Bound<'_, PyAny>,
    copy: Option<bool>,
) -> PyResult<Managed> {
    let py = object.py();
    attached::check_interpreter(py).or_fetch(py)?;
    attached::install_hooks(py);
    let answer = method::call_dlpack(object, None, copy, None)?;
    let (capsule, _) = answer.ok_or_else(|| not_an_array_error::<PyAttributeError>(object))?;
    wait_until_ready(py, consume_capsule(&capsule, None)?)
}

/// Imports by `__dlpack__`, for work on a stream of the tensor's device. `stream` is its number in the protocol.
#[cfg(feature = "cudarc")]
pub(crate) fn import_on_stream(
    object: &Bound<'_, PyAny>,
    stream: i64,
) -> PyResult<Option<Managed>> {
    attached::check_interpreter(object.py()).or_fetch(object.py())?;
    lossy::refuse_lossy(object)?;
    let answer = method::call_dlpack(object, None, None, Some(stream))?;
    let tensor = |(capsule, _)| wait_until_ready(object.py(), consume_capsule(&capsule, None)?);
    answer.map(tensor).transpose()
}

#[cold]
fn not_an_array_error<E: PyTypeInfo>(object: &Bound<'_, PyAny>) -> PyErr {
    let (py, class) = (object.py(), object.get_type());
    fail!(py, E: "an object of {class} is no array: it has no `__dlpack__` and `__dlpack_device__`, nor a buffer; \
        pass an array of NumPy, PyTorch, JAX or the like, such as `numpy.asarray(x)`").take_exception(py)
}

/// Imports the tensor that an object exports, on a requested device, or with a requirement on copies.
///
/// If the producer does not accept the keywords, or cannot copy, it is called without them, and the copy is made here. With
/// `copy=False`, a producer that does not accept `copy` must then return a versioned tensor, which has a flag for copies.
///
/// The elements of a copy can be borrowed as a slice if the copy was made here or by exactly `numpy.ndarray`. A copy of another
/// producer may have other references: read it with [`to_vec`](dlpack_core::TensorRef::to_vec).
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{Device, from_dlpack_with};
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn own(obj: &Bound<'_, PyAny>) -> PyResult<usize> {
///     let tensor = from_dlpack_with(obj, Some(Device::CPU), Some(true))?;
///     Ok(tensor.view().len_bytes())
/// }
/// ```
///
/// # Errors
///
/// Those of [`from_dlpack`]; `BufferError` if the device or the copy cannot be provided.
pub fn from_dlpack_with(
    object: &Bound<'_, PyAny>,
    device: Option<Device>,
    copy: Option<bool>,
) -> PyResult<Managed> {
    if device.is_none() && copy.is_none() {
        return from_dlpack(object);
    }
    let py = object.py();
    library::numpy::find_if_imported(py);
    let on_host = device.is_none_or(|device| device == Device::CPU);
    let import_array = || match on_host {
        true => numpy::import_array(object).or_fetch(py),
        false => Ok(None),
    };
    let is_copy = copy == Some(true);
    // A copy needs no lock on the array, so NumPy's own method may make it.
    let array = if is_copy { None } else { import_array()? };
    let taken = match array {
        Some(tensor) => Some((tensor, false)),
        None => match import_by_method(object, device, copy) {
            // NumPy exports no types of `ml_dtypes`, and before version 2.1 no read-only arrays.
            Err(error) if is_copy && error.is_instance_of::<PyBufferError>(py) => {
                Some((import_array()?.ok_or(error)?, false))
            }
            taken => taken?,
        },
    };
    let (tensor, in_full) = taken.ok_or_else(|| not_an_array_error::<PyAttributeError>(object))?;
    let data = tensor.view().device();
    let unreachable = |wanted: &Device| *wanted != data && !is_host(*wanted, data);
    if let Some(requested) = device.filter(unreachable) {
        return Err(Error::UnreachableDevice { data, requested }).or_fetch(py);
    }
    if copy == Some(false) && tensor.view().is_copied() {
        let why = "the producer gave one all the same";
        return Err(Error::CopyForbidden { why }).or_fetch(py);
    }
    // CPY-12: what the producer copied for this call is not copied again. A capsule may be older.
    let was_copied = tensor.view().is_copied() && !object.is_instance_of::<PyCapsule>();
    if copy == Some(true) && !in_full && !was_copied {
        let mut request = ExportRequest::versioned();
        request.copy = copy;
        return tensor.into_dlpack_with(&request).or_fetch(py);
    }
    Ok(tensor)
}

/// Whether host memory was requested and found, under any of the device types that the CPU can read.
fn is_host(wanted: Device, found: Device) -> bool {
    wanted == Device::CPU && found.device_type.is_host_readable()
}

/// Imports through the exchange table; `None` if the table cannot export the object, but `__dlpack__` may.
// XAP-32
fn import_by_table(
    object: &Bound<'_, PyAny>,
    table: &lookup::ClassTable,
    is_torch: bool,
) -> PyResult<Option<Managed>> {
    let py = object.py();
    // To release an unordered export, the producer would wait for all work on the device.
    let device = table.device.and_then(|device| device(object));
    if device.is_some_and(needs_ordering) {
        return Ok(None);
    }
    let Some(from_object) = table.api.managed_tensor_from_py_object_no_sync else {
        return Ok(None);
    };
    let mut tensor = ptr::null_mut();
    // SAFETY: attached, as `object` shows; the table is that of the object's class (XAP-11).
    let status = unsafe { from_object(object.as_ptr().cast(), &raw mut tensor) };
    if status != 0 {
        let error = PyErr::fetch(py);
        // The text of an error of PyTorch's table is a C++ stack trace.
        if !is_torch && !error.is_instance_of::<PyBufferError>(py) {
            return Err(error);
        }
        // `__dlpack__` may succeed, or raise a clearer error.
        discard_error(py, error);
        return Ok(None);
    }
    let Some(tensor) = NonNull::new(tensor) else {
        let why = fail!(py, PyBufferError: "the producer's exchange table returned no tensor");
        return Err(why.take_exception(py));
    };
    let tensor = if table.device.is_some() {
        // SAFETY: a table of ours returned an owning tensor. It is marked as shared, as other code may write to its memory.
        unsafe { take_own(tensor) }.shared()
    } else {
        // SAFETY: the table returned an owning tensor. It is marked as shared, as other code may write to its memory.
        unsafe { take_versioned(tensor) }.or_fetch(py)?.shared()
    };
    // The table does not wait for pending writes, so this tensor is dropped, and `__dlpack__` is called.
    if needs_ordering(device_of(&tensor)) {
        return Ok(None);
    }
    Ok(Some(tensor))
}

/// Whether writes to the data may be pending on a stream: `__dlpack__` orders the consumer after them, the table does not.
fn needs_ordering(device: Device) -> bool {
    unordered_stream(device).is_some() || !is_host(Device::CPU, device)
}

/// Waits until the CPU may read the tensor, if it can read its memory.
#[inline]
fn wait_until_ready(py: Python<'_>, tensor: Managed) -> PyResult<Managed> {
    attached::wait_until_readable(py, &tensor).or_fetch(py)?;
    Ok(tensor)
}

/// An argument of a function that is created from any producer's tensor, by [`FromDLPack`].
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{FromDLPack, Imported};
/// use pyo3::prelude::*;
///
/// #[derive(FromDLPack)]
/// struct Points {
///     #[dlpack(data)]
///     values: Vec<f32>,
///     #[dlpack(shape)]
///     dims: [usize; 2],
/// }
///
/// #[pyfunction]
/// fn count(points: Imported<Points>) -> usize {
///     points.dims[0]
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Imported<T>(pub T);

impl<T> Deref for Imported<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Imported<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<'a, 'py, T: FromDLPack> FromPyObject<'a, 'py> for Imported<T> {
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::ARRAY;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let tensor = import_argument(&object)?;
        T::from_dlpack(tensor).map(Self).or_fetch(object.py())
    }
}
