//! The way in: a tensor from any object that exports one, or that lends its memory as a buffer.
//!
//! The ways are tried from left to right, and what one of them cannot do, the next may:
//!
//! ```text
//! object ──▶ NumPy's own? ──▶ exchange table? ──▶ capsule? ──▶ only a buffer? ──▶ __dlpack_device__, __dlpack__
//!                 └──────────────────┴────────────────┴────────────────┴────────────────────────┴──▶ Managed
//! ```
//!
//! | file | job |
//! |---|---|
//! | this one | which way is taken, and what functions and arguments make of it |
//! | `ask` | the methods: which keywords, which stream, and how less is asked for |
//! | `buffer` | the buffer protocol |
//! | `consume` | takes a tensor out of a capsule, and decides who else may have its memory |
//! | `numpy` | NumPy's own arrays |
#![expect(unsafe_code, reason = "takes tensors from C functions of others")]

mod ask;
mod buffer;
mod consume;
pub(crate) mod numpy;

pub use dlpack_core::import::{FromInt, FromList, FromTensor};

use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};

use dlpack_core::binding::{device_of, take_own, unordered};
use dlpack_core::{DLPack, Device, Error, ExportRequest, FromDLPack, Managed};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::{PyTypeInfo, intern, prelude::*, types::PyCapsule};

use crate::error::{OrRaise, fail, forget_error};
use crate::exchange::lookup::{self, Unchecked};
use crate::hidden::class_attribute;
use crate::hold::attached;
use crate::import::consume::consume;
use crate::library::{self, lossy, lossy::Loss, paddle};

/// The tensor that an object exports, whatever library it comes from.
///
/// Asks the C exchange table of its class, if there is one and no subclass overrides `__dlpack__`; else `__dlpack__` for the
/// newest version, and for less if that is a `TypeError`. What the producer raises is passed on. A DLPack capsule will do as
/// well, and an object that only has a buffer, such as `bytes`, `array.array` and `mmap`; it stays locked until the tensor is
/// dropped.
///
/// On a GPU the default stream is named as the consumer: work on that stream sees the data. Managed memory of
/// CUDA, which the processor reads, has been waited for.
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
/// `AttributeError` if the object exports nothing, `BufferError` if its tensor is malformed, and
/// whatever the producer raises. `BufferError` also for a tensor of PyTorch that requires grad or has the conjugate or the
/// negative bit, and for a masked array of NumPy: the import would lose that.
pub fn from_dlpack(object: &Bound<'_, PyAny>) -> PyResult<Managed> {
    take(object)?.ok_or_else(|| no_array::<PyAttributeError>(object))
}

/// The same for an argument of a function: that it is no array is a `TypeError`, which PyO3 gives the argument's name.
pub(crate) fn argument(object: &Bound<'_, PyAny>) -> PyResult<Managed> {
    match take(object) {
        Ok(Some(tensor)) => Ok(tensor),
        Ok(None) => Err(no_array::<PyTypeError>(object)),
        Err(error) => Err(match Loss::of(object) {
            Ok(Some(loss)) => loss.refuse_argument(object.py()),
            _ => error,
        }),
    }
}

/// The tensor of an object, if it is an array at all.
#[inline]
pub(crate) fn take(object: &Bound<'_, PyAny>) -> PyResult<Option<Managed>> {
    if numpy::is_array(object) {
        if let Some(tensor) = numpy::array(object) {
            return Ok(Some(tensor));
        }
    }
    take_other(object)
}

#[inline(never)]
fn take_other(object: &Bound<'_, PyAny>) -> PyResult<Option<Managed>> {
    attached::check_interpreter(object.py()).or_fetch(object.py())?;
    if let Some((table, unchecked)) = lookup::for_import(&object.get_type()) {
        let is_torch = unchecked == Unchecked::OfTorch;
        let may_use = unchecked != Unchecked::OfPaddle || paddle::may_use_table(object);
        if may_use {
            match through_table(object, &table, is_torch) {
                Ok(None) => {}
                Ok(Some(tensor)) if is_torch => {
                    lossy::refuse_torch(object, tensor.view().dtype())?;
                    return Ok(Some(tensor));
                }
                taken => return taken,
            }
        }
    }
    if library::numpy::was_found(object.py()) {
        return take(object);
    }
    Ok(take_as(object, None, None)?.map(|(tensor, _)| tensor))
}

/// The same by anything but the table; also says whether the producer took all wishes.
fn take_as(
    object: &Bound<'_, PyAny>,
    device: Option<Device>,
    copy: Option<bool>,
) -> PyResult<Option<(Managed, bool)>> {
    let py = object.py();
    attached::check_interpreter(py).or_fetch(py)?;
    if let Ok(capsule) = object.cast::<PyCapsule>() {
        let tensor = readable(py, consume(capsule, None)?)?;
        return Ok(Some((tensor, false)));
    }
    // Behind the capsule, which has no state but its own.
    if class_attribute(&object.get_type(), intern!(py, "__dlpack__")).is_some() {
        lossy::refuse(object)?;
    } else {
        lossy::refuse_masked(object)?;
        if let Some(tensor) = buffer::of_buffer(object)? {
            return Ok(Some((tensor, false)));
        }
    }
    let answer = ask::ask(object, device, copy, None)?;
    let tensor = |(capsule, in_full): (Bound<'_, PyCapsule>, bool)| {
        let copied_by = (in_full && copy == Some(true)).then_some(object);
        Ok((readable(py, consume(&capsule, copied_by)?)?, in_full))
    };
    answer.map(tensor).transpose()
}

/// The tensor of an object by the method, for work on a stream of its device, as its API numbers it.
#[cfg(feature = "cudarc")]
pub(crate) fn take_on(object: &Bound<'_, PyAny>, stream: i64) -> PyResult<Option<Managed>> {
    attached::check_interpreter(object.py()).or_fetch(object.py())?;
    lossy::refuse(object)?;
    let answer = ask::ask(object, None, None, Some(stream))?;
    let tensor = |(capsule, _)| readable(object.py(), consume(&capsule, None)?);
    answer.map(tensor).transpose()
}

#[cold]
fn no_array<E: PyTypeInfo>(object: &Bound<'_, PyAny>) -> PyErr {
    let (py, class) = (object.py(), object.get_type());
    fail!(py, E: "an object of {class} is no array: it has no `__dlpack__` and `__dlpack_device__`, nor a buffer; \
        pass an array of NumPy, PyTorch, JAX or the like, such as `numpy.asarray(x)`").fetch(py)
}

/// The same, with the data on a device of one's choice, or with a word on copies.
///
/// A producer that knows nothing of these wishes is asked without them; a copy is then made here.
///
/// The elements of a copy are lent as a slice if it was made here, or by exactly `numpy.ndarray`. Of a copy that another
/// producer made it cannot be known who else reaches it: [`to_vec`](dlpack_core::TensorRef::to_vec) reads that.
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
    let taken = take_as(object, device, copy)?;
    let (tensor, in_full) = taken.ok_or_else(|| no_array::<PyAttributeError>(object))?;
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

/// Through the exchange table; nothing if the table cannot do it, but the method may.
// XAP-32
fn through_table(
    object: &Bound<'_, PyAny>,
    table: &lookup::ClassTable,
    is_torch: bool,
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
        // The words of PyTorch's table are a trace of C++.
        if !is_torch && !error.is_instance_of::<PyBufferError>(py) {
            return Err(error);
        }
        // The method may be asked.
        forget_error(py, error);
        return Ok(None);
    }
    let Some(tensor) = NonNull::new(tensor) else {
        let why = fail!(py, PyBufferError: "the producer's exchange table gave no tensor");
        return Err(why.fetch(py));
    };
    let tensor = if table.device.is_some() {
        // SAFETY: a table of ours gave it to us. Others may write: it is shared at once.
        unsafe { take_own(tensor) }.shared()
    } else {
        // SAFETY: the table gave it to us. Others may write: it is shared at once.
        unsafe { Managed::from_raw(tensor) }.or_fetch(py)?.shared()
    };
    // Nothing was waited for.
    if has_order(device_of(&tensor)) {
        return Ok(None);
    }
    Ok(Some(tensor))
}

/// Whether work on the data may have to be waited for, which the method sees to, and the table does not.
fn has_order(device: Device) -> bool {
    unordered(device).is_some() || !is_host(Device::CPU, device)
}

/// The tensor, when the processor may read it if it can.
#[inline]
fn readable(py: Python<'_>, tensor: Managed) -> PyResult<Managed> {
    attached::readable(py, &tensor).or_fetch(py)?;
    Ok(tensor)
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

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::ARRAY;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let tensor = argument(&object)?;
        T::from_dlpack(tensor).map(Self).or_fetch(object.py())
    }
}
