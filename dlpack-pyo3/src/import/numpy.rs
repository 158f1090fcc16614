//! Imports NumPy arrays by reading the structs of NumPy's C API, without a call into NumPy.
//!
//! Most arguments are such arrays. An import through `__dlpack_device__` and `__dlpack__` takes more than a microsecond, one
//! through a buffer, which NumPy creates for each request, a tenth of that, and this one half of that. The structs are public:
//! extensions are compiled against them, and they are the same in NumPy 1 and 2. If NumPy reports another ABI, its arrays are
//! imported through their methods.
//!
//! Two references keep the array that owns the memory alive; for a view that is its base ([`ArrayKeepalive`] says why two). It is
//! also found behind a `memoryview`, a `PickleBuffer`, the result of a method `__buffer__`, a scalar of NumPy's, and the object that
//! `sliding_window_view` puts between two arrays. If the
//! memory belongs to an object that is no array, such as a `bytearray`, a buffer locks it:
//!
//! | Python code applies this to the array, or to its base | while a tensor shares the memory |
//! |---|---|
//! | `resize(..)` | `ValueError` |
//! | `shape = ..`, `strides = ..`, `dtype = ..` | allowed; the tensor keeps its shape, strides and data type |
//! | `base.clear()`, `base.append(..)`, `base.release()`, `base.close()` of a `bytearray`, a `memoryview`, a mapped file | `BufferError` |
//! | writes, `setflags(write=False)` | allowed; the tensor sees the writes, and stays writable |
//! | `resize(.., refcheck=False)`, `__setstate__(..)`, `data = ..` (NumPy before 2.4) | not prevented by NumPy: frees the memory under every consumer, also under `numpy.from_dlpack` |
#![expect(unsafe_code, reason = "reads structs of NumPy's C API")]

use core::ffi::{CStr, c_int};
use core::slice;

use dlpack_core::abi::{kDLFloat8_e3m4, kDLFloat8_e8m0fnu};
use dlpack_core::binding::{Strided, dtype_of_name, keep_strided};
use dlpack_core::{DataType, Managed};
use pyo3::types::{PyByteArray, PyBytes, PyCapsule, PyMemoryView, PyString, PyType};
use pyo3::{ffi, intern, prelude::*};

use crate::capi::{class_attribute, has_buffer};
use crate::error::{OrRaise, Raised, none_if_concerns_object};
use crate::import::root::keep_by_root;
use crate::keepalive::{ArrayKeepalive, BasedArray, attached::may_keep_objects};
use crate::lender::Wrapper;
use crate::library::numpy::{
    OWNS_DATA, TYPES, WRITABLE, is_array_or_derived, is_exact_array, is_scalar, known_api,
};

/// `PyArrayObject_fields`, up to the last field that is read here.
#[repr(C)]
struct ArrayFields {
    head: ffi::PyObject,
    data: *mut u8,
    ndim: c_int,
    shape: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    dtype: *const DtypeFields,
    flags: c_int,
}

/// `PyArray_Descr`, up to the last field that is read here.
#[repr(C)]
struct DtypeFields {
    head: ffi::PyObject,
    scalar: *mut ffi::PyTypeObject,
    kind: u8,
    letter: u8,
    byte_order: u8,
    flags: u8,
    number: c_int,
}

/// Imports an array; `None` if [`read_array`] returns `None`, or there is no memory.
#[inline(never)]
pub(super) fn import_array(object: &Bound<'_, PyAny>) -> Result<Option<Managed>, Raised> {
    let Some((array, owner)) = read_array(object)? else {
        return Ok(None);
    };
    let is_based = owner.is_based();
    // SAFETY: the owner keeps the memory alive. All other writes there come from Python.
    let tensor = unsafe { keep_strided(owner, |_| Ok(array), |_| ()) }.ok();
    match tensor {
        Some(tensor) if is_based => keep_by_root(tensor, object).or_raise(object.py()).map(Some),
        tensor => Ok(tensor),
    }
}

/// Describes the memory of an object that [is an array](is_exact_array) of a data type that DLPack has, and keeps it alive. `None`
/// for other objects, which are imported through their methods, and for memory of another DLPack producer.
///
/// The fields are read in one step, since Python code may change shape and strides.
///
/// # Errors
///
/// An interrupt, or exhausted memory, in code of the array's base.
#[inline(always)]
pub(crate) fn read_array<'a>(
    object: &'a Bound<'_, PyAny>,
) -> Result<Option<(Strided<'a>, ArrayKeepalive)>, Raised> {
    if !is_exact_array(object) || !may_keep_objects(object.py()) {
        return Ok(None);
    }
    // Taken before the fields are read: a base that lends its memory may run code that changes the array.
    let Some(keepalive) = keepalive_of(object)? else {
        return Ok(None);
    };
    // SAFETY: an instance of this class begins with this struct, and `object` keeps it alive.
    let fields = unsafe { &*object.as_ptr().cast::<ArrayFields>() };
    Ok(describe_fields(object.py(), fields).map(|array| (array, keepalive)))
}

/// The fields of a structured array, read in one step.
pub(crate) struct ArraySnapshot<'py> {
    pub(crate) data: *mut u8,
    pub(crate) shape: Vec<isize>,
    pub(crate) strides: Vec<isize>,
    pub(crate) read_only: bool,
    /// The data type that the array had when the snapshot was taken.
    pub(crate) dtype: Bound<'py, PyAny>,
    pub(crate) keepalive: ArrayKeepalive,
}

/// Reads the fields of a NumPy array, also of a derived class; `None` for other objects. No Python code runs between them, so they
/// belong together.
///
/// # Errors
///
/// Those of [`read_array`].
pub(crate) fn take_snapshot<'py>(
    object: &Bound<'py, PyAny>,
) -> Result<Option<ArraySnapshot<'py>>, Raised> {
    let py = object.py();
    if !is_array_or_derived(object) {
        return Ok(None);
    }
    // An array over a tensor of another producer keeps that tensor alive itself. Taken before the fields are read.
    let keepalive = keepalive_of_array(object)?;
    // SAFETY: an array of this or a derived class begins with this struct, and `object` keeps it alive.
    let array = unsafe { &*object.as_ptr().cast::<ArrayFields>() };
    // NumPy has arrays of 64 axes at most.
    let rank = usize::try_from(array.ndim).unwrap_or(0);
    let [shape, strides] = [array.shape, array.strides].map(|list| match rank {
        0 => Vec::new(),
        // SAFETY: an array with axes has one number for each in both lists, and nothing changes them before they are copied.
        _ => unsafe { slice::from_raw_parts(list, rank) }.to_vec(),
    });
    // SAFETY: an array has a data type, and keeps it alive.
    let dtype = unsafe { Bound::from_borrowed_ptr(py, array.dtype.cast_mut().cast()) };
    Ok(Some(ArraySnapshot {
        data: array.data,
        shape,
        strides,
        read_only: array.flags & WRITABLE == 0,
        dtype,
        keepalive,
    }))
}

/// Keeps the memory of an array alive; `None` if the memory comes from another DLPack producer. The caller has checked that the
/// object is an array.
#[inline(always)]
fn keepalive_of(object: &Bound<'_, PyAny>) -> Result<Option<ArrayKeepalive>, Raised> {
    // SAFETY: an array, which begins with this struct, and which `object` keeps alive.
    let base = unsafe { (*object.as_ptr().cast::<ArrayFields>()).base };
    // Without a base the array owns its memory.
    if base.is_null() {
        Ok(Some(ArrayKeepalive::of_array(object)))
    } else {
        keepalive_of_view(object)
    }
}

#[inline(always)]
fn describe_fields<'a>(py: Python<'_>, array: &'a ArrayFields) -> Option<Strided<'a>> {
    // SAFETY: an array has a data type, and keeps it alive; every data type begins with this struct.
    let dtype = unsafe { &*array.dtype };
    // A data type with more properties, such as fields, has another type number.
    if !matches!(dtype.byte_order, b'=' | b'|') {
        return None;
    }
    let known = TYPES.get(usize::try_from(dtype.number).ok()?);
    let dtype = match known.copied().flatten() {
        Some(dtype) => dtype,
        None => ml_dtype_of(py, dtype)?,
    };
    let rank = usize::try_from(array.ndim).ok()?;
    let [shape, strides] = [array.shape, array.strides].map(|list| match rank {
        0 => &[][..],
        // SAFETY: an array with axes has one number for each in both lists. They change only if Python code runs, before which every
        // caller reads them. Without a GIL, NumPy leaves it to its users not to change an array that other threads use.
        _ => unsafe { slice::from_raw_parts(list, rank) },
    });
    Some(Strided {
        data: array.data,
        shape,
        strides: Some(strides),
        dtype,
        read_only: array.flags & WRITABLE == 0,
    })
}

/// The data type of this crate for one of the package `ml_dtypes`, which NumPy itself does not export.
#[cold]
#[inline(never)]
fn ml_dtype_of(py: Python<'_>, dtype: &DtypeFields) -> Option<DataType> {
    /// The number of the first data type that is not NumPy's own.
    const FIRST_OF_OTHERS: c_int = 256;

    if dtype.number < FIRST_OF_OTHERS {
        return None;
    }
    // SAFETY: a data type has a scalar type, and keeps it alive.
    let scalar = unsafe { Bound::from_borrowed_ptr(py, dtype.scalar.cast()) };
    let scalar = scalar.cast_into::<PyType>().ok()?;
    if scalar.module().ok()? != "ml_dtypes" {
        return None;
    }
    let known = dtype_of_name(scalar.name().ok()?.to_str().ok()?)?;
    // Smaller items would have to be packed.
    let is_float_of_bytes =
        known == DataType::BF16 || (kDLFloat8_e3m4..=kDLFloat8_e8m0fnu).contains(&known.code());
    // SAFETY: a live data type, which begins with this struct.
    let object = unsafe { Bound::from_borrowed_ptr(py, (&raw const dtype.head).cast_mut()) };
    // Python code can rename a scalar type, but not change the size of its items.
    let itemsize: usize = object
        .getattr(intern!(py, "itemsize"))
        .ok()?
        .extract()
        .ok()?;
    (is_float_of_bytes && known.itemsize() == Some(itemsize)).then_some(known)
}

/// Keeps the memory of a view alive, by the first array in the chain of bases that owns memory, else by the last one and what is
/// known of its base.
///
/// `None` if NumPy imported the memory through `numpy.from_dlpack`: only NumPy knows its device then, such as pinned host memory.
/// Also `None` if Python code that runs meanwhile gives the view other memory.
#[inline(never)]
fn keepalive_of_view(view: &Bound<'_, PyAny>) -> Result<Option<ArrayKeepalive>, Raised> {
    keepalive_of_chain(view, MOST_LINKS)
}

/// A chain of arrays with more objects between them that are no arrays is imported by NumPy's method: each takes a step of recursion.
const MOST_LINKS: u32 = 16;

/// [`keepalive_of_view`], through at most `links` objects that are no arrays.
fn keepalive_of_chain(
    view: &Bound<'_, PyAny>,
    links: u32,
) -> Result<Option<ArrayKeepalive>, Raised> {
    let py = view.py();
    let Some(api) = known_api(py) else {
        return Ok(None);
    };
    let class = api.class.as_ptr().cast();
    let mut array = view.as_ptr();
    let base = loop {
        // SAFETY: an array begins with this struct; `view` keeps its bases alive.
        let fields = unsafe { &*array.cast::<ArrayFields>() };
        if fields.flags & OWNS_DATA != 0 || fields.base.is_null() {
            break None;
        }
        // SAFETY: attached, as `py` shows; the array keeps its base alive; a class.
        if unsafe { ffi::PyObject_TypeCheck(fields.base, class) } == 0 {
            break Some(fields.base);
        }
        array = fields.base;
    };
    // SAFETY: `view` itself or one of its bases, which it keeps alive.
    let array = unsafe { Bound::from_borrowed_ptr(py, array) };
    let Some(base) = base else {
        return Ok(Some(ArrayKeepalive::of_array(&array)));
    };
    // SAFETY: the array keeps its base alive.
    let base = unsafe { Bound::from_borrowed_ptr(py, base) };
    let memory_of = |array: &Bound<'_, PyAny>| {
        // SAFETY: an array begins with this struct.
        let fields = unsafe { &*array.as_ptr().cast::<ArrayFields>() };
        (fields.data, fields.base)
    };
    let before = memory_of(view);
    let keepalive = keepalive_of_foreign_base(&array, &base, links)?;
    Ok(keepalive.filter(|_| memory_of(view) == before))
}

/// Keeps the memory of an array with a base that is no array: by the array behind the base, and by a buffer of the base. May run
/// Python code.
#[cold]
fn keepalive_of_foreign_base(
    array: &Bound<'_, PyAny>,
    base: &Bound<'_, PyAny>,
    links: u32,
) -> Result<Option<ArrayKeepalive>, Raised> {
    const NAMES: [&CStr; 2] = [c"numpy_dltensor", c"numpy_dltensor_versioned"];

    if let Ok(capsule) = base.cast::<PyCapsule>() {
        let mut names = NAMES.iter();
        if names.any(|name| capsule.is_valid_checked(Some(name))) {
            return Ok(None);
        }
    }
    let py = base.py();
    let mut base = base.clone();
    let mut based = BasedArray::new(array, &base)?;
    if based[0].exporter(py).is_none() {
        // NumPy keeps the wrapper and not the memoryview in it, which has the buffer.
        let inside = none_if_concerns_object(py, Wrapper::of(&base)).or_raise(py)?;
        if let Some(wrapper) = inside {
            base = wrapper.view;
            based = BasedArray::new(array, &base)?;
        }
    }
    let exporter = based[0].exporter(py);
    let mut owner = None;
    if let Some(behind) = array_behind(&base, exporter.as_ref().unwrap_or(&base))? {
        owner = match links.checked_sub(1) {
            Some(links) => keepalive_of_chain(&behind, links)?,
            None => None,
        };
        if owner.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(ArrayKeepalive::of_based(based, owner)))
}

/// Keeps the memory of an array whose buffer is imported. The buffer alone does not prevent NumPy from freeing the memory.
pub(super) fn keepalive_of_array(array: &Bound<'_, PyAny>) -> Result<ArrayKeepalive, Raised> {
    let keepalive = keepalive_of(array)?;
    Ok(keepalive.unwrap_or_else(|| ArrayKeepalive::of_array(array)))
}

/// The array that owns the memory of an object, if it is another object. `exporter` exports the buffer of the object, or is the object
/// itself if it has none.
///
/// A `memoryview` and a method `__buffer__` pass on the buffer of another object. Any other object with a buffer has the memory itself,
/// but for a scalar of NumPy's. The object that `sliding_window_view` and `as_strided` put in between has no buffer. These two have an
/// attribute `base`.
pub(super) fn array_behind<'py>(
    object: &Bound<'py, PyAny>,
    exporter: &Bound<'py, PyAny>,
) -> Result<Option<Bound<'py, PyAny>>, Raised> {
    let py = object.py();
    let mut found = exporter.clone();
    for _ in 0..MOST_LINKS {
        let next = if found.is_exact_instance_of::<PyMemoryView>() {
            attribute_of(&found, intern!(py, "obj"))?
        } else if is_array_or_derived(&found) {
            return Ok(Some(found));
        } else if is_bytes(&found) {
            // These own their memory, and asking them would cost as much as an import.
            return Ok(None);
        } else if found.is(object) {
            None
        } else {
            let given = none_if_concerns_object(py, Wrapper::of(&found)).or_raise(py)?;
            given.map(|wrapper| wrapper.view)
        };
        let Some(next) = next else { break };
        found = next;
    }
    let name = intern!(py, "base");
    let may_have_base = if has_buffer(&found) {
        is_scalar(&found)
    } else {
        // The lookup in an object without attributes of its own would raise an exception.
        let class = found.get_type();
        class_attribute(&class, name).is_some()
            || class_attribute(&class, intern!(py, "__dict__")).is_some()
    };
    if !may_have_base {
        return Ok(None);
    }
    Ok(attribute_of(&found, name)?.filter(is_array_or_derived))
}

/// Whether an object is a `bytes` or a `bytearray`, which owns its memory.
pub(super) fn is_bytes(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyByteArray>() || object.is_exact_instance_of::<PyBytes>()
}

/// An attribute of an object; `None` if it has none, or raises an error that concerns the object.
fn attribute_of<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Result<Option<Bound<'py, PyAny>>, Raised> {
    let py = object.py();
    let found = none_if_concerns_object(py, object.getattr_opt(name));
    found.or_raise(py)
}
