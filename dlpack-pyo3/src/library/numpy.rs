//! NumPy's C API: finds its table of functions after NumPy was imported, and creates arrays over tensors and Rust values.
//!
//! The table is public: extensions are compiled against it, and the entries that are used here are the same in NumPy 1 and 2.
//! An array that is created through it takes half the time of `numpy.from_dlpack`, is read-only if the tensor is (before NumPy 2.1
//! too), and can have the data types of `ml_dtypes`.
//!
//! ```text
//! ndarray ── base ──▶ object that holds a Rust value (`base`): the tensor, its owner, or what the array was made of.
//!                     It is dropped after the last view of the array is gone
//! ```
#![expect(unsafe_code, reason = "calls functions of NumPy's C API")]

mod base;
mod refused;

pub(crate) use base::value_of;
pub(crate) use refused::{fractional_strides, unsupported_dtype};

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::{fmt::Display, mem::transmute, ptr::NonNull};

use dlpack_core::binding::{self, ShareCall, device_of, export_unordered, is_plain, text, view};
use dlpack_core::{DLPack, DataType, Descriptor, Device, Managed, TensorRef, abi};
use pyo3::exceptions::{PyBufferError, PyImportError, PyTypeError};
use pyo3::types::{PyCapsule, PyModule, PyType};
use pyo3::{ffi, ffi::PyObject, intern, prelude::*, sync::PyOnceLock};

use crate::capi::is_instance;
use crate::error::{OrRaise, Raised, bail, fail, try_collect};
use crate::keepalive::{ObjectGuard, attached};
use crate::library::numpy::base::ValueObject;
use crate::library::{cached_class, imported_module, not_installed};
use crate::values;

/// The entries of NumPy's table that this crate uses.
pub(crate) struct NumpyApi {
    /// The class of arrays.
    pub(crate) class: Py<PyType>,
    /// The class of data types.
    dtype_class: Py<PyType>,
    get_dtype: GetDtype,
    create_array: CreateArray,
    set_base: SetBase,
    most_axes: usize,
}

/// `PyArray_DescrFromType`
type GetDtype = unsafe extern "C" fn(c_int) -> *mut PyObject;

/// `PyArray_SetBaseObject`: an array, and the object that keeps its memory.
type SetBase = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> c_int;

/// `PyArray_NewFromDescr`: class, data type, axes, shape, byte strides, data, flags, and the array that it is derived from.
type CreateArray = unsafe extern "C" fn(
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

/// Set when NumPy was found; `None` if its C API has an unknown version.
static API: PyOnceLock<Option<NumpyApi>> = PyOnceLock::new();

/// The table, if NumPy was found and its C API has a known version.
#[inline(always)]
pub(crate) fn known_api(py: Python<'_>) -> Option<&'static NumpyApi> {
    API.get(py)?.as_ref()
}

/// Looks for NumPy, if it was not found before. Returns whether this call found it; it may not be imported yet.
#[inline]
pub(crate) fn find_if_imported(py: Python<'_>) -> bool {
    API.get(py).is_none() && find_api(py).is_some()
}

/// Whether an object is an instance of `numpy.ndarray` itself, once NumPy was found. A derived class may define its own export.
#[inline(always)]
pub(crate) fn is_exact_array(object: &Bound<'_, PyAny>) -> bool {
    known_api(object.py()).is_some_and(|numpy| object.get_type_ptr().cast() == numpy.class.as_ptr())
}

/// [`is_exact_array`], after a look for NumPy, as [`is_array_or_derived`] does it.
pub(crate) fn is_plain_array(object: &Bound<'_, PyAny>) -> bool {
    find_if_imported(object.py());
    is_exact_array(object)
}

/// Whether an object is an array of NumPy, also of a class that derives from NumPy's. Looks for NumPy first.
pub(crate) fn is_array_or_derived(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    find_if_imported(py);
    known_api(py).is_some_and(|numpy| is_instance(object, numpy.class.bind(py)))
}

/// Whether an object is one of NumPy's scalars, such as a record of a structured array.
pub(crate) fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    static SCALAR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

    let py = object.py();
    let class = || cached_class(&SCALAR, intern!(py, "numpy"), intern!(py, "generic"));
    // Without NumPy the class would be looked up each time.
    known_api(py).is_some() && class().is_some_and(|class| is_instance(object, class))
}

#[cold]
fn find_api(py: Python<'_>) -> Option<()> {
    let names = [
        intern!(py, "numpy._core._multiarray_umath"),
        intern!(py, "numpy.core._multiarray_umath"),
    ];
    let module = names
        .into_iter()
        .find_map(|name| imported_module(py, name))?;
    // A program may have replaced it, for example by a mock of `unittest.mock`.
    let module = module.cast_into::<PyModule>().ok()?;
    let functions = module.getattr(intern!(py, "_ARRAY_API")).ok()?;
    let functions = functions
        .cast_into::<PyCapsule>()
        .ok()?
        .pointer_checked(None)
        .ok()?;
    attached::install_hooks(py);
    // SAFETY: this capsule holds the table, which lives for the rest of the process.
    let api = unsafe { read_api(py, functions.cast()) };
    API.get_or_init(py, || api);
    Some(())
}

/// Reads the table; `None` if its version is unknown.
///
/// # Safety
///
/// `functions` is the table of NumPy's C API.
unsafe fn read_api(py: Python<'_>, functions: NonNull<*const c_void>) -> Option<NumpyApi> {
    type Version = unsafe extern "C" fn() -> c_uint;

    let entry = |index| {
        // SAFETY: the table of every version has more entries than the indices used below.
        let entry = unsafe { functions.add(index) };
        // SAFETY: an entry of the table, which lives for the rest of the process.
        unsafe { entry.read() }
    };
    // SAFETY: `PyArray_GetNDArrayCVersion` is the first in every version.
    let version = unsafe { transmute::<*const c_void, Version>(entry(0)) };
    // SAFETY: this function has no arguments and no conditions.
    let most_axes = match unsafe { version() } {
        0x0100_0009 => 32,
        0x0200_0000 => 64,
        _ => return None,
    };
    // SAFETY: in both of these versions the third entry is the class of arrays.
    let class = unsafe { Bound::from_borrowed_ptr(py, entry(2).cast_mut().cast()) };
    // SAFETY: in both of these versions the fourth entry is the class of data types.
    let dtype_class = unsafe { Bound::from_borrowed_ptr(py, entry(3).cast_mut().cast()) };
    Some(NumpyApi {
        class: class.cast_into().ok()?.unbind(),
        dtype_class: dtype_class.cast_into().ok()?.unbind(),
        // SAFETY: in both versions this entry is `PyArray_DescrFromType`.
        get_dtype: unsafe { transmute::<*const c_void, GetDtype>(entry(45)) },
        // SAFETY: in both versions this entry is `PyArray_NewFromDescr`.
        create_array: unsafe { transmute::<*const c_void, CreateArray>(entry(94)) },
        // SAFETY: in both versions this entry is `PyArray_SetBaseObject`.
        set_base: unsafe { transmute::<*const c_void, SetBase>(entry(282)) },
        most_axes,
    })
}

/// The table. Imports NumPy if no code has imported it yet.
fn import_api(py: Python<'_>) -> PyResult<&'static NumpyApi> {
    if let Some(api) = known_api(py) {
        return Ok(api);
    }
    let numpy = import_module(py, "numpy", "an array of NumPy's was asked for")?;
    find_if_imported(py);
    known_api(py).ok_or_else(|| {
        let version = numpy.getattr("__version__");
        let version = version.map_or_else(|_| String::new(), |version| version.to_string());
        fail!(py, PyImportError:
            "NumPy {version} has another C API than versions 1 and 2, which are known here; use `numpy.from_dlpack`")
        .take_exception(py)
    })
}

/// Imports a module. If it is not installed, the error says why it is needed.
fn import_module<'py>(py: Python<'py>, name: &str, why: &str) -> PyResult<Bound<'py, PyAny>> {
    let found = py.import(name).map(Bound::into_any);
    found.map_err(|error| not_installed(py, error, name, why))
}

/// An array over the memory of a tensor, which it owns. It is read-only if the tensor is.
///
/// # Errors
///
/// `TypeError` for memory that the CPU cannot read, `BufferError` for a tensor that no NumPy array can describe, and
/// `ImportError` if NumPy, or `ml_dtypes` for its types, is not installed.
#[inline(never)]
pub(crate) fn array_over_tensor(py: Python<'_>, tensor: Managed) -> PyResult<Bound<'_, PyAny>> {
    let api = import_api(py)?;
    let object = ValueObject::new(py, tensor).or_fetch(py)?;
    // SAFETY: the object is kept until the last use of the tensor.
    let tensor: &Managed = unsafe { object.value_mut() };
    let ready = check_host_readable(py, device_of(tensor))
        .and_then(|()| attached::wait_until_readable(py, tensor).or_raise(py));
    let array = ready.and_then(|()| new_array(py, api, &tensor.view()));
    array
        .and_then(|array| set_base(array, object.into_any()))
        .or_fetch(py)
}

/// An array over described memory, which `owner` keeps. `None` if the CPU has to wait before it reads, or if the memory was made for
/// this description: then an export is needed.
///
/// # Errors
///
/// The errors of [`array_over_tensor`].
///
/// # Safety
///
/// The owner keeps the described memory valid until it is dropped.
pub(crate) unsafe fn array_over_memory<'py, O: Send + 'static>(
    py: Python<'py>,
    described: &Descriptor<'_>,
    owner: impl FnOnce() -> O,
) -> Option<Result<Bound<'py, PyAny>, Raised>> {
    if !is_plain(described) || described.device() != Device::CPU {
        return None;
    }
    let create = || {
        let api = import_api(py).or_raise(py)?;
        let object = ValueObject::new(py, owner())?;
        let array = new_array(py, api, &view(described))?;
        set_base(array, object.into_any())
    };
    Some(create())
}

/// `numpy.asarray(object)`: an array over the buffer of an object.
///
/// # Errors
///
/// `ImportError` if NumPy is not installed, and errors of NumPy.
pub(crate) fn asarray_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let numpy = import_module(py, "numpy", "an array of NumPy's was asked for")?;
    values::call_one(&numpy.getattr(intern!(py, "asarray"))?, object.clone())
}

/// Refuses memory that the CPU cannot read.
pub(crate) fn check_host_readable(py: Python<'_>, device: Device) -> Result<(), Raised> {
    if device.device_type.is_host_readable() {
        return Ok(());
    }
    bail!(py, PyTypeError:
        "the data is on {device}, where NumPy cannot read it: `numpy.from_dlpack(x, device=\"cpu\")` copies it to the \
        host; `torch.from_dlpack(x)` reads it in place")
}

/// An array over the memory of a Rust value, which is moved into the base object of the array.
///
/// # Errors
///
/// The errors of [`array_over_tensor`], and those of the value's description.
#[inline]
pub(crate) fn array_over_value<T: DLPack + 'static>(
    py: Python<'_>,
    value: T,
) -> PyResult<Bound<'_, PyAny>> {
    let mut call = ShareCall::default();
    let by_address = binding::share(&value, None, &mut call);
    debug_assert!(by_address.is_none(), "`by_address` is not set");
    if let Some(tensor) = call.outcome {
        // An import of the array finds the allocation behind it, so that no chain of arrays is built.
        return array_over_tensor(py, tensor.or_fetch(py)?);
    }
    let object = ValueObject::new(py, value).or_fetch(py)?;
    // SAFETY: the object is kept until the last use of the description, which borrows the value.
    let described = unsafe { object.value_mut() }.describe_mut();
    // Used where it is: a description is large, and each move of it copies it.
    match &described {
        Ok(plain) if is_plain(plain) && plain.device() == Device::CPU => {
            let array = new_array(py, import_api(py)?, &view(plain)).or_fetch(py)?;
            return set_base(array, object.into_any()).or_fetch(py);
        }
        _ => {}
    }
    let described = described.or_fetch(py)?;
    if const { T::EXTRAS.facts.lends_host_memory() } {
        // Decided at compile time, so that the exports below are not linked for such types.
        unreachable!(
            "facts of a type say that it lends host memory, and no value of it does otherwise"
        );
    }
    let tensor = if described.is_made_on_request() {
        // A second description would compute the elements again.
        let owner = ObjectGuard::new((), &object.into_any());
        // SAFETY: the owner keeps the object alive, and the object the described value.
        unsafe { export_unordered(owner, described) }?
    } else {
        drop(described);
        object.into_value().into_dlpack()?
    };
    array_over_tensor(py, tensor)
}

/// A new array over memory that the CPU can read. Nothing keeps the memory alive until [`set_base`] is called.
fn new_array<'py>(
    py: Python<'py>,
    api: &NumpyApi,
    view: &TensorRef<'_>,
) -> Result<Bound<'py, PyAny>, Raised> {
    const FEW: usize = 6;

    let (rank, most) = (view.shape().len(), api.most_axes);
    if rank > most {
        bail!(py, PyBufferError: "this NumPy supports at most {most} axes, and the tensor has {rank}");
    }
    let dtype = dtype_object(py, api, view.dtype())?;
    let itemsize = view.dtype().itemsize().unwrap_or(1) as isize;
    let size = |number: &i64| isize::try_from(*number).expect("checked when it was described");
    // The stride of an axis of size 1 may be any number, and is not used.
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
        // There are no elements, and for null NumPy would allocate memory.
        data = NonNull::<u128>::dangling().as_ptr().cast();
    }
    let flags = if view.is_read_only() { 0 } else { WRITABLE };
    let class = api.class.as_ptr().cast();
    let (shape, strides) = (shape.as_ptr(), strides.as_ptr());
    let rank = c_int::try_from(rank).expect("at most 64 axes");
    let none = core::ptr::null_mut();
    // SAFETY: the class of arrays; a data type, whose reference NumPy takes; lists of at least `rank` numbers, which NumPy copies;
    // and the address of memory that the caller keeps alive.
    let array = unsafe {
        (api.create_array)(
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
    let numpy = known_api(array.py()).expect("it made the array");
    // SAFETY: an array without a base, and an object, whose reference NumPy takes even if it fails.
    if unsafe { (numpy.set_base)(array.as_ptr(), base.into_ptr()) } != 0 {
        return Err(Raised);
    }
    Ok(array)
}

/// NumPy's object for a data type.
fn dtype_object<'py>(
    py: Python<'py>,
    api: &NumpyApi,
    dtype: DataType,
) -> Result<Bound<'py, PyAny>, Raised> {
    let Some(number) = type_number(dtype) else {
        return ml_dtype_object(py, api, dtype);
    };
    // SAFETY: attached, as `py` shows; the number of a type that every NumPy version has.
    let dtype = unsafe { (api.get_dtype)(number) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_opt(py, dtype) }.ok_or(Raised)
}

/// The data type under its name in the package `ml_dtypes`; `None` if that has no such type. The items of some occupy a byte each
/// there, in spite of fewer bits.
#[cold]
pub(crate) fn ml_dtype(dtype: DataType) -> Option<DataType> {
    let has = matches!(
        dtype.code(),
        abi::kDLBfloat | abi::kDLFloat8_e3m4..=abi::kDLFloat4_e2m1fn
    );
    (has && dtype.lanes() == 1).then(|| DataType::new(dtype.code(), dtype.bits(), 1))
}

/// The package `ml_dtypes`; if it is not installed, the error names the data type that needs it. Once it is imported, NumPy knows
/// the names of its types.
#[cold]
pub(crate) fn import_ml_dtypes(py: Python<'_>, name: impl Display) -> PyResult<Bound<'_, PyAny>> {
    let why = format!("NumPy itself has no {name}");
    import_module(py, "ml_dtypes", &why)
}

/// NumPy's object for a data type of the package `ml_dtypes`, which uses the same names as this crate.
#[cold]
fn ml_dtype_object<'py>(
    py: Python<'py>,
    api: &NumpyApi,
    dtype: DataType,
) -> Result<Bound<'py, PyAny>, Raised> {
    let none = || fail!(py, PyBufferError: "NumPy has no data type for {dtype}");
    let scalar = ml_dtype(dtype).ok_or_else(none)?;
    let itemsize = dtype.itemsize().ok_or_else(none)?;
    let name = text(scalar).or_raise(py)?;
    let types = import_ml_dtypes(py, &name).or_raise(py)?;
    let found = types.getattr(&*name).map_err(|_| none())?;
    let numpy = py.import("numpy").or_raise(py)?;
    let found = numpy.call_method1("dtype", (found,)).or_raise(py)?;
    // NumPy's C function reads this object as the struct of a data type, and `numpy.dtype` may be a mock.
    if !is_instance(&found, api.dtype_class.bind(py)) {
        return Err(none());
    }
    let size = found
        .getattr("itemsize")
        .and_then(|size| size.extract::<usize>());
    if size.or_raise(py)? == itemsize {
        Ok(found)
    } else {
        Err(none())
    }
}

/// NumPy's number of the C type that `i64` is: `long` if that has 8 bytes, else `long long`.
const I64: usize = if size_of::<c_long>() == 8 { 7 } else { 9 };

macro_rules! numbers {
    ($($name:ident = $number:expr;)*) => {
        /// NumPy's number of a data type: the index in [`TYPES`].
        #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "small numbers")]
        fn type_number(dtype: DataType) -> Option<c_int> {
            Some(match dtype {
                $(DataType::$name => const { $number as c_int },)*
                _ => return None,
            })
        }

        /// The data types, indexed by NumPy's type numbers.
        pub(crate) const TYPES: [Option<DataType>; 24] = {
            let mut types = [None; 24];
            $(types[$number] = Some(DataType::$name);)*
            // The C type of the same size: `long long` beside `long`, or `long` beside `int`.
            let same = if I64 == 7 { 7 } else { 5 };
            (types[16 - I64], types[17 - I64]) = (types[same], types[same + 1]);
            types
        };
    };
}
numbers! {
    BOOL = 0;
    I8 = 1;
    U8 = 2;
    I16 = 3;
    U16 = 4;
    I32 = 5;
    U32 = 6;
    I64 = I64;
    U64 = I64 + 1;
    F32 = 11;
    F64 = 12;
    C64 = 14;
    C128 = 15;
    F16 = 23;
}
