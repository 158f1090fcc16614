//! NumPy's C API: found once NumPy is there, and by it an array over any tensor.
//!
//! The table of its functions is public, the same in NumPy 1 and 2 as far as it is used here, and compiled into the
//! extensions of others. Made this way an array costs half of what `numpy.from_dlpack` takes, knows what is read-only
//! before NumPy 2.1 too, and has the types of `ml_dtypes`.
//!
//! ```text
//! ndarray ── base ──▶ capsule ──▶ tensor ──▶ its deleter, once the last view of the array is gone
//!            └ or ──▶ object with a value of Rust in it (`base`)
//! ```
#![expect(unsafe_code, reason = "calls functions of NumPy's")]

mod base;

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::{mem::transmute, ptr::NonNull};

use dlpack_core::binding::{export_unordered, is_plain, text, view};
use dlpack_core::{DLPack, DataType, Device, Managed, TensorRef, abi};
use pyo3::exceptions::{PyBufferError, PyImportError, PyTypeError};
use pyo3::types::{PyCapsule, PyType};
use pyo3::{ffi, ffi::PyObject, intern, prelude::*, sync::PyOnceLock};

use crate::error::{OrRaise, Raised, bail, fail, try_collect};
use crate::export::capsule;
use crate::keepalive::{ObjectGuard, attached};
use crate::library::numpy::base::ValueObject;
use crate::library::{imported_module, is_instance, not_installed};

/// The functions that are called here.
pub(crate) struct Api {
    /// The class of arrays.
    pub(crate) class: Py<PyType>,
    dtype_of: DtypeOf,
    make: Make,
    set_base: SetBase,
    most_axes: usize,
}

/// `PyArray_DescrFromType`
type DtypeOf = unsafe extern "C" fn(c_int) -> *mut PyObject;

/// `PyArray_SetBaseObject`: an array, and what keeps its memory.
type SetBase = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> c_int;

/// `PyArray_NewFromDescr`: class, data type, axes, shape, byte strides, data, flags, and what an array made it from.
type Make = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    *mut PyObject,
    c_int,
    *const isize,
    *const isize,
    *mut c_void,
    c_int,
    *mut PyObject,
) -> *mut PyObject;

/// `NPY_ARRAY_OWNDATA`
pub(crate) const OWNS_DATA: c_int = 0x4;

/// `NPY_ARRAY_WRITEABLE`
pub(crate) const WRITABLE: c_int = 0x400;

/// NumPy, once it was found; nothing, if its structs are others than those that are known here.
static API: PyOnceLock<Option<Api>> = PyOnceLock::new();

/// NumPy, if it was found, and is one that is known here.
#[inline(always)]
pub(crate) fn found(py: Python<'_>) -> Option<&'static Api> {
    API.get(py)?.as_ref()
}

/// Looks for NumPy, which nobody may have imported yet; whether it was found by this call.
#[inline]
pub(crate) fn was_found(py: Python<'_>) -> bool {
    API.get(py).is_none() && find(py).is_some()
}

/// Whether an object is an instance of NumPy's own class of arrays, and of none that derives from it.
pub(crate) fn is_exact_array(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    was_found(py);
    found(py).is_some_and(|numpy| object.get_type_ptr().cast() == numpy.class.as_ptr())
}

/// The data type of a NumPy array, if NumPy exports no such type: objects, strings, times, records, and another byte order.
#[cold]
pub(crate) fn unsupported_dtype<'py>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if !found(py).is_some_and(|numpy| is_instance(object, numpy.class.bind(py))) {
        return Ok(None);
    }
    let dtype = object.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let is_native = dtype.getattr(intern!(py, "isnative"))?.is_truthy()?;
    Ok((!is_native || "OSUVTMm".contains(&kind)).then_some(dtype))
}

#[cold]
fn find(py: Python<'_>) -> Option<()> {
    let names = [
        intern!(py, "numpy._core._multiarray_umath"),
        intern!(py, "numpy.core._multiarray_umath"),
    ];
    let module = names
        .into_iter()
        .find_map(|name| imported_module(py, name))?;
    let functions = module.getattr(intern!(py, "_ARRAY_API")).ok()?;
    let functions = functions
        .cast_into::<PyCapsule>()
        .ok()?
        .pointer_checked(None)
        .ok()?;
    attached::enable_detached_waits(py);
    // SAFETY: what this capsule holds, for as long as the process lives.
    let api = unsafe { api_of(py, functions.cast()) };
    API.get_or_init(py, || api);
    Some(())
}

/// The functions, if the table is one that is known here.
///
/// # Safety
///
/// `functions` is the table of NumPy's C API.
unsafe fn api_of(py: Python<'_>, functions: NonNull<*const c_void>) -> Option<Api> {
    type Version = unsafe extern "C" fn() -> c_uint;

    let entry = |index| {
        // SAFETY: every version has more entries than are asked for here.
        let entry = unsafe { functions.add(index) };
        // SAFETY: as above.
        unsafe { entry.read() }
    };
    // SAFETY: `PyArray_GetNDArrayCVersion` is the first in every version.
    let version = unsafe { transmute::<*const c_void, Version>(entry(0)) };
    // SAFETY: it takes nothing.
    let most_axes = match unsafe { version() } {
        0x0100_0009 => 32,
        0x0200_0000 => 64,
        _ => return None,
    };
    // SAFETY: in both of these versions, the class is the third.
    let class = unsafe { Bound::from_borrowed_ptr(py, entry(2).cast_mut().cast()) };
    Some(Api {
        class: class.cast_into().ok()?.unbind(),
        // SAFETY: in both, this is `PyArray_DescrFromType`.
        dtype_of: unsafe { transmute::<*const c_void, DtypeOf>(entry(45)) },
        // SAFETY: in both, this is `PyArray_NewFromDescr`.
        make: unsafe { transmute::<*const c_void, Make>(entry(94)) },
        // SAFETY: in both, this is `PyArray_SetBaseObject`.
        set_base: unsafe { transmute::<*const c_void, SetBase>(entry(282)) },
        most_axes,
    })
}

/// The same, imported where nobody has done so yet.
fn api(py: Python<'_>) -> PyResult<&'static Api> {
    if let Some(api) = found(py) {
        return Ok(api);
    }
    let numpy = import(py, "numpy", "an array of NumPy's was asked for")?;
    was_found(py);
    found(py).ok_or_else(|| {
        let version = numpy.getattr("__version__");
        let version = version.map_or_else(|_| String::new(), |version| version.to_string());
        fail!(py, PyImportError:
            "NumPy {version} has another C API than versions 1 and 2, which are known here; use `numpy.from_dlpack`")
        .take_exception(py)
    })
}

/// A module, with a word on why where it is not installed.
fn import<'py>(py: Python<'py>, name: &str, why: &str) -> PyResult<Bound<'py, PyAny>> {
    let found = py.import(name).map(Bound::into_any);
    found.map_err(|error| not_installed(py, error, name, why))
}

/// An array over a tensor, which it keeps, and never copies; it may be written where the tensor may.
///
/// # Errors
///
/// `TypeError` for memory that the processor cannot read, `BufferError` for what no array of NumPy's can be, and
/// `ImportError` where NumPy, or `ml_dtypes` for its types, is not installed.
#[inline(never)]
pub(crate) fn array(py: Python<'_>, tensor: Managed) -> PyResult<Bound<'_, PyAny>> {
    // Let go when the exception is not set any more: its deleter may be code of Python.
    let mut tensor = Some(tensor);
    make(py, api(py)?, &mut tensor).or_fetch(py)
}

/// `numpy.asarray(object)`, which makes an array over the buffer of an object.
///
/// # Errors
///
/// `ImportError` where NumPy is not installed, and what NumPy raises.
pub(crate) fn asarray<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let numpy = import(py, "numpy", "an array of NumPy's was asked for")?;
    numpy.call_method1(intern!(py, "asarray"), (object,))
}

/// Refuses memory that the processor cannot read.
pub(crate) fn check(py: Python<'_>, device: Device) -> Result<(), Raised> {
    if device.device_type.is_host_readable() {
        return Ok(());
    }
    bail!(py, PyTypeError:
        "the data is on {device}, where NumPy cannot read it: `numpy.from_dlpack(x, device=\"cpu\")` copies it to the \
        host; `torch.from_dlpack(x)` reads it in place")
}

/// An array over the memory of a value of Rust, which is moved into the object behind the array.
///
/// # Errors
///
/// As [`array`], and whatever describing the value gives.
#[inline]
pub(crate) fn array_of<T: DLPack + 'static>(
    py: Python<'_>,
    value: T,
) -> PyResult<Bound<'_, PyAny>> {
    let object = ValueObject::new(py, value).or_fetch(py)?;
    // SAFETY: the object is kept until the description was last used.
    let described = unsafe { object.value() }.describe_mut().or_fetch(py)?;
    if is_plain(&described) && described.device() == Device::CPU {
        let array = new_array(py, api(py)?, &view(&described)).or_fetch(py)?;
        return set_base(array, object.into_any()).or_fetch(py);
    }
    let tensor = if described.is_made_on_request() {
        // Not described again, which would compute it again.
        let owner = ObjectGuard::new((), &object.into_any());
        // SAFETY: the owner keeps the object, and that the value.
        unsafe { export_unordered(owner, described) }?
    } else {
        drop(described);
        object.into_value().into_dlpack()?
    };
    array(py, tensor)
}

/// An array over a tensor. It takes the tensor once nothing is left to be refused.
fn make<'py>(
    py: Python<'py>,
    api: &Api,
    offered: &mut Option<Managed>,
) -> Result<Bound<'py, PyAny>, Raised> {
    let tensor = offered.as_ref().expect("the caller has it");
    check(py, tensor.view().device())?;
    attached::wait_until_readable(py, tensor).or_raise(py)?;
    let array = new_array(py, api, &tensor.view())?;
    let base = capsule::wrap_as_base(py, offered.take().expect("it was there right above"))?;
    set_base(array, base)
}

/// A new array over memory that the processor can read, which nothing keeps yet.
fn new_array<'py>(
    py: Python<'py>,
    api: &Api,
    view: &TensorRef<'_>,
) -> Result<Bound<'py, PyAny>, Raised> {
    const FEW: usize = 6;

    let (rank, most) = (view.shape().len(), api.most_axes);
    if rank > most {
        bail!(py, PyBufferError: "this NumPy supports at most {most} axes, and the tensor has {rank}");
    }
    let dtype = dtype_of(py, api, view.dtype())?;
    let itemsize = view.dtype().itemsize().unwrap_or(1) as isize;
    let size = |number: &i64| isize::try_from(*number).expect("checked when it was described");
    // A single index has any stride, which leads nowhere.
    let step = |stride: &i64| size(stride).wrapping_mul(itemsize);
    let (mut few, many);
    let (shape, strides) = if rank <= FEW {
        few = [[0; FEW]; 2];
        let extents = view.shape().iter().map(size);
        few[0]
            .iter_mut()
            .zip(extents)
            .for_each(|(place, extent)| *place = extent);
        let steps = view.strides().iter().map(step);
        few[1]
            .iter_mut()
            .zip(steps)
            .for_each(|(place, step)| *place = step);
        (&few[0][..], &few[1][..])
    } else {
        let extents = try_collect(py, view.shape().iter().map(size))?;
        many = [extents, try_collect(py, view.strides().iter().map(step))?];
        (&many[0][..], &many[1][..])
    };
    let mut data = view.as_ptr().cast_mut();
    if data.is_null() {
        // Nothing is there to be read, and null stands for memory that NumPy is to allocate.
        data = NonNull::<u128>::dangling().as_ptr().cast();
    }
    let flags = if view.is_read_only() { 0 } else { WRITABLE };
    let class = api.class.as_ptr().cast();
    let (shape, strides) = (shape.as_ptr(), strides.as_ptr());
    let rank = c_int::try_from(rank).expect("at most 64 axes");
    let none = core::ptr::null_mut();
    // SAFETY: the class of arrays, a data type, whose reference is taken; as many extents and steps as are said, which
    // are copied; and the memory that they reach, which the caller keeps.
    let array = unsafe {
        (api.make)(
            class,
            dtype.into_ptr(),
            rank,
            shape,
            strides,
            data.cast(),
            flags,
            none,
        )
    };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_opt(py, array) }.ok_or(Raised)
}

/// Stores the object that keeps an array's memory.
fn set_base<'py>(
    array: Bound<'py, PyAny>,
    base: Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>, Raised> {
    let numpy = found(array.py()).expect("it made the array");
    // SAFETY: an array that has no base yet, and an object, whose reference is taken in any case.
    if unsafe { (numpy.set_base)(array.as_ptr(), base.into_ptr()) } != 0 {
        return Err(Raised);
    }
    Ok(array)
}

/// NumPy's object for a data type.
fn dtype_of<'py>(py: Python<'py>, api: &Api, dtype: DataType) -> Result<Bound<'py, PyAny>, Raised> {
    let known = TYPES
        .iter()
        .zip(0..)
        .find(|(known, _)| **known == Some(dtype));
    let Some((_, number)) = known else {
        return ml_dtype(py, dtype);
    };
    // SAFETY: attached, and the number of a type that every NumPy has.
    let dtype = unsafe { (api.dtype_of)(number) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_opt(py, dtype) }.ok_or(Raised)
}

/// The same for a type that only `ml_dtypes` has, by the name that both have for it.
#[cold]
fn ml_dtype(py: Python<'_>, dtype: DataType) -> Result<Bound<'_, PyAny>, Raised> {
    let (scalar, itemsize) = (
        DataType::new(dtype.code(), dtype.bits(), 1),
        dtype.itemsize(),
    );
    let has = matches!(
        dtype.code(),
        abi::kDLBfloat | abi::kDLFloat8_e3m4..=abi::kDLFloat4_e2m1fn
    );
    let is_one = itemsize.filter(|_| has && dtype.lanes() == 1);
    let none = || fail!(py, PyBufferError: "NumPy has no data type for {dtype}");
    let itemsize = is_one.ok_or_else(none)?;
    let name = text(scalar).or_raise(py)?;
    let why = format!("NumPy itself has no {name}");
    let types = import(py, "ml_dtypes", &why).or_raise(py)?;
    let found = types.getattr(&*name).map_err(|_| none())?;
    let numpy = py.import("numpy").or_raise(py)?;
    let found = numpy.call_method1("dtype", (found,)).or_raise(py)?;
    let size = found
        .getattr("itemsize")
        .and_then(|size| size.extract::<usize>());
    if size.or_raise(py)? == itemsize {
        Ok(found)
    } else {
        Err(none())
    }
}

/// The data types by NumPy's numbers for them.
pub(crate) const TYPES: [Option<DataType>; 24] = {
    let is_long = size_of::<c_long>() == 8;
    let mut types = [None; 24];
    types[0] = Some(DataType::BOOL);
    types[1] = Some(DataType::I8);
    types[2] = Some(DataType::U8);
    types[3] = Some(DataType::I16);
    types[4] = Some(DataType::U16);
    types[5] = Some(DataType::I32);
    types[6] = Some(DataType::U32);
    types[7] = Some(if is_long {
        DataType::I64
    } else {
        DataType::I32
    });
    types[8] = Some(if is_long {
        DataType::U64
    } else {
        DataType::U32
    });
    types[9] = Some(DataType::I64);
    types[10] = Some(DataType::U64);
    types[11] = Some(DataType::F32);
    types[12] = Some(DataType::F64);
    types[14] = Some(DataType::C64);
    types[15] = Some(DataType::C128);
    types[23] = Some(DataType::F16);
    types
};
