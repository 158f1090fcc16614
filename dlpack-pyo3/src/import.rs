//! The way in: a tensor from any object that exports one.
#![expect(unsafe_code, reason = "takes tensors from C functions of others")]

pub use dlpack_core::import::{FromInt, FromList, FromTensor};

use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};

use dlpack_core::binding::{settle, unordered};
use dlpack_core::{DLPack, Device, DeviceType, Error, ExportRequest, FromDLPack, Managed, Version};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{ffi, intern, prelude::*};

use crate::error::{OrRaise, fail};
use crate::{exchange::lookup, export::capsule, hold::attached};

/// The tensor that an object exports, whatever library it comes from.
///
/// Asks the C exchange table of its class, if there is one; else `__dlpack__` for the newest version, and for less if
/// that is a `TypeError`. A DLPack capsule will do as well. What the producer raises is passed on.
///
/// On a GPU the default stream is named as the consumer: work on that stream sees the data. Managed memory of
/// CUDA, which the processor reads, has been waited for.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{from_dlpack, py_err};
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn largest(obj: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
///     let tensor = from_dlpack(obj)?;
///     Ok(tensor.view().iter::<i64>().map_err(py_err)?.max())
/// }
/// ```
///
/// # Errors
///
/// `AttributeError` if the object exports nothing, `BufferError` if its tensor is malformed, and
/// whatever the producer raises.
pub fn from_dlpack(object: &Bound<'_, PyAny>) -> PyResult<Managed> {
    if let Ok(capsule) = object.cast::<PyCapsule>() {
        return readable(object.py(), capsule::consume(capsule)?);
    }
    if let Some(table) = lookup::of_class(&object.get_type()) {
        if let Some(tensor) = through_table(object, &table)? {
            return Ok(tensor);
        }
    }
    ask(object, None, None).map(|(tensor, _)| tensor)
}

/// The same, with the data on a device of one's choice, or with a word on copies.
///
/// A producer that knows nothing of these wishes is asked without them; a copy is then made here.
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
/// As [`from_dlpack`]; `BufferError` if the wishes cannot be met.
pub fn from_dlpack_with(
    object: &Bound<'_, PyAny>,
    device: Option<Device>,
    copy: Option<bool>,
) -> PyResult<Managed> {
    if device.is_none() && copy.is_none() {
        return from_dlpack(object);
    }
    let (tensor, in_full) = match object.cast::<PyCapsule>() {
        Ok(capsule) => (readable(object.py(), capsule::consume(capsule)?)?, false),
        Err(_) => ask(object, device, copy)?,
    };
    let (py, data) = (object.py(), tensor.view().device());
    let unreachable = |wanted: &Device| *wanted != data && !is_host(*wanted, data);
    if let Some(requested) = device.filter(unreachable) {
        return Err(Error::UnreachableDevice { data, requested }).or_fetch(py);
    }
    if copy == Some(false) && tensor.view().is_copied() {
        let why = "the producer gave one all the same";
        return Err(Error::CopyForbidden { why }).or_fetch(py);
    }
    if copy == Some(true) && !in_full {
        let mut request = ExportRequest::versioned();
        request.copy = copy;
        attached::prepare(py);
        return tensor.into_dlpack_with(&request).or_fetch(py);
    }
    Ok(tensor)
}

/// Whether memory of the host was wanted and found, by whatever name.
fn is_host(wanted: Device, found: Device) -> bool {
    wanted == Device::CPU && found.device_type.is_host_readable()
}

/// Through the exchange table; nothing if the table cannot do it, but the method may (XAP-32).
fn through_table(
    object: &Bound<'_, PyAny>,
    table: &lookup::ClassTable,
) -> PyResult<Option<Managed>> {
    let py = object.py();
    // To give back what nobody has ordered, its producer waits for all work on the device.
    let device = table.device.and_then(|device| device(object));
    if device.is_some_and(has_order) {
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
        let may_ask = error.is_instance_of::<PyBufferError>(py);
        return if may_ask { Ok(None) } else { Err(error) };
    }
    let Some(tensor) = NonNull::new(tensor) else {
        let why = fail!(py, PyBufferError: "the producer's exchange table gave no tensor");
        return Err(why.fetch(py));
    };
    // SAFETY: the table gave it to us. Nobody can promise that the producer does not write: `shared`.
    let tensor = unsafe { Managed::from_raw(tensor) }.or_fetch(py)?.shared();
    // Nothing was waited for.
    Ok((!has_order(tensor.view().device())).then_some(tensor))
}

/// Whether work on the data may have to be waited for, which the method sees to, and the table does not.
fn has_order(device: Device) -> bool {
    unordered(device).is_some() || !is_host(Device::CPU, device)
}

/// Asks `__dlpack__` for the tensor; also says whether the producer took all wishes.
fn ask(
    object: &Bound<'_, PyAny>,
    device: Option<Device>,
    copy: Option<bool>,
) -> PyResult<(Managed, bool)> {
    let py = object.py();
    let failed = |error| no_protocol(object, error);
    let method = |name| object.getattr(name).map_err(failed);
    let dlpack = method(intern!(py, "__dlpack__"))?;
    // Every producer has it; one without is none (ERR-08).
    let where_it_is = method(intern!(py, "__dlpack_device__"))?;
    let stream = match device {
        // DEV-09: what goes to the processor is waited for.
        Some(Device::CPU) => None,
        _ => default_stream(py, where_it_is.call0(), device)?,
    };

    let newest = (Version::CURRENT.major, Version::CURRENT.minor);
    // First without the wishes, then without the version too, at last without anything.
    let ask_without = |less: u8| {
        // PyO3's own function panics without memory.
        // SAFETY: attached.
        let keywords = unsafe { ffi::PyDict_New() };
        // SAFETY: a new reference, or null with an exception.
        let keywords = unsafe { Bound::from_owned_ptr_or_err(py, keywords) }?;
        let keywords = keywords.cast_into::<PyDict>()?;
        if less < 2 {
            keywords.set_item(intern!(py, "max_version"), newest)?;
        }
        if let Some(stream) = stream.filter(|_| less < 3) {
            keywords.set_item(intern!(py, "stream"), stream)?;
        }
        if let Some(device) = device.filter(|_| less < 1) {
            let pair = (device.device_type.0, device.device_id);
            keywords.set_item(intern!(py, "dl_device"), pair)?;
        }
        if let Some(copy) = copy.filter(|_| less < 1) {
            keywords.set_item(intern!(py, "copy"), copy)?;
        }
        dlpack.call((), Some(&keywords))
    };
    let wishes = device.is_some() || copy.is_some();
    let (mut answer, mut in_full) = (ask_without(0), true);
    // A producer from before a keyword existed says so by a `TypeError` (NEG-14).
    for (less, is_less) in [(1, wishes), (2, stream.is_some()), (3, true)] {
        let refused = |error: &PyErr| error.is_instance_of::<PyTypeError>(py);
        if is_less && answer.as_ref().is_err_and(refused) {
            (answer, in_full) = (ask_without(less), false);
        }
    }
    let capsule = capsule::expect(answer?, "__dlpack__")?;
    Ok((readable(py, capsule::consume(&capsule)?)?, in_full))
}

/// The default stream of a producer's device, as its API numbers it (STC-10, STC-11, STR-07). The core takes it for
/// the one that a tensor without a stream of its own is written on.
///
/// Nothing is said of memory that the processor can read, as others do (STC-15), and nothing where the data is
/// wanted elsewhere.
fn default_stream(
    py: Python<'_>,
    device: PyResult<Bound<'_, PyAny>>,
    wanted: Option<Device>,
) -> PyResult<Option<i64>> {
    let device = match device {
        Ok(pair) => pair.extract::<(i32, i32)>().ok(),
        // DEV-11: it has none, which the other method will say too.
        Err(error) if error.is_instance_of::<PyBufferError>(py) => None,
        Err(error) => return Err(error),
    };
    let kind = device.map(|(kind, _)| DeviceType(kind));
    Ok(match kind {
        Some(kind) if wanted.is_some_and(|wanted| wanted.device_type != kind) => None,
        Some(DeviceType::CUDA) => Some(1),
        Some(DeviceType::ROCM) => Some(0),
        _ => None,
    })
}

/// The tensor, when the processor may read it if it can.
#[inline]
fn readable(py: Python<'_>, tensor: Managed) -> PyResult<Managed> {
    if tensor.view().device().device_type == DeviceType::CUDA_MANAGED {
        attached::prepare(py);
        settle(&tensor).or_fetch(py)?;
    }
    Ok(tensor)
}

#[cold]
fn no_protocol(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = object.py();
    if !error.is_instance_of::<PyAttributeError>(py) {
        return error;
    }
    let class = object.get_type();
    let told = fail!(py, PyAttributeError:
        "an object of {class} does not export a tensor: it lacks `__dlpack__` or `__dlpack_device__`").fetch(py);
    told.set_cause(py, Some(error));
    told
}

/// An argument of a function that is made of any producer's tensor, by [`FromDLPack`].
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

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let tensor = from_dlpack(&object)?;
        T::from_dlpack(tensor).map(Self).or_fetch(object.py())
    }
}
