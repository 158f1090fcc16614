//! NumPy's own arrays, read where they lie: by the structs of its C API, without a call of NumPy.
//!
//! They are what nearly every function is given. Asked by `__dlpack_device__` and `__dlpack__` such an array takes over a
//! microsecond; by a buffer, which NumPy makes anew each time, a tenth of that; and half of that here. The structs
//! are public, the same in NumPy 1 and 2, and compiled into the extensions of others; a NumPy that says that it has another
//! ABI is asked by its methods.
//!
//! Two references keep the array that owns the memory, which is the base of a view ([`ArrayKeepalive`] says why two):
//!
//! | what Python code does to the array, or to the one that owns its memory | while a tensor is over it |
//! |---|---|
//! | `resize(..)` | `ValueError` |
//! | `shape = ..`, `strides = ..`, `dtype = ..` | allowed; the tensor has the shape, strides and type that were there before |
//! | elements, `setflags(write=False)` | allowed; a write shows, and a flag does not |
//! | `resize(.., refcheck=False)`, `__setstate__(..)`, `data = ..` (NumPy before 2.4) | not prevented by NumPy: frees the memory under every consumer, NumPy's own `from_dlpack` too |
#![expect(unsafe_code, reason = "reads structs of NumPy's")]

use core::ffi::{CStr, c_int};
use core::slice;

use dlpack_core::Managed;
use dlpack_core::binding::{Strided, keep_strided};
use pyo3::{ffi, prelude::*, types::PyCapsule};

use crate::keepalive::ArrayKeepalive;
use crate::library::numpy::{OWNS_DATA, TYPES, WRITABLE, found};

/// `PyArrayObject_fields`, as far as it is read here.
#[repr(C)]
struct Array {
    head: ffi::PyObject,
    data: *mut u8,
    ndim: c_int,
    shape: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    dtype: *const Dtype,
    flags: c_int,
}

/// `PyArray_Descr`, as far as it is read here.
#[repr(C)]
struct Dtype {
    head: ffi::PyObject,
    scalar: *mut ffi::PyTypeObject,
    kind: u8,
    letter: u8,
    byte_order: u8,
    flags: u8,
    number: c_int,
}

/// Whether an object is of NumPy's own class, and not of one that derives from it: that may answer in its own way.
#[inline(always)]
pub(super) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    found(object.py()).is_some_and(|numpy| object.get_type_ptr().cast() == numpy.class.as_ptr())
}

/// The tensor over an array that is [`described`].
#[inline(never)]
pub(super) fn array(object: &Bound<'_, PyAny>) -> Option<Managed> {
    let array = described(object)?;
    let owner = keep(object)?;
    // SAFETY: the owner holds references to the array that keeps the memory. What else writes there is Python's.
    unsafe { keep_strided(owner, |_| Ok(array), |_| ()) }.ok()
}

/// What lies in an object, if it [is an array](is_array) and DLPack can say it. All else is for its methods to answer.
///
/// It is read before any code of Python's can run, which may change shape and strides.
#[inline(always)]
pub(crate) fn described<'a>(object: &'a Bound<'_, PyAny>) -> Option<Strided<'a>> {
    if !is_array(object) {
        return None;
    }
    // SAFETY: an array of this class starts with this struct, and `object` keeps it.
    describe(unsafe { &*object.as_ptr().cast::<Array>() })
}

/// What lies in a structured array, read in one step.
pub(crate) struct Snapshot<'py> {
    pub(crate) data: *mut u8,
    pub(crate) shape: Vec<isize>,
    pub(crate) strides: Vec<isize>,
    pub(crate) read_only: bool,
    /// The object that the array had as its data type.
    pub(crate) dtype: Bound<'py, PyAny>,
    /// What keeps the memory.
    pub(crate) keeper: ArrayKeepalive,
}

/// What lies in an object, if that is an array of NumPy's, of whatever class. No code of Python's runs here, so all of it
/// belongs together.
pub(crate) fn snapshot<'py>(object: &Bound<'py, PyAny>) -> Option<Snapshot<'py>> {
    let py = object.py();
    let class = found(py)?.class.as_ptr().cast();
    // SAFETY: an object, and a class.
    if unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), class) } == 0 {
        return None;
    }
    // SAFETY: an array of whatever class starts with this struct, and `object` keeps it.
    let array = unsafe { &*object.as_ptr().cast::<Array>() };
    let rank = usize::try_from(array.ndim).ok()?;
    let [shape, strides] = [array.shape, array.strides].map(|list| match rank {
        0 => Vec::new(),
        // SAFETY: as in `describe`.
        _ => unsafe { slice::from_raw_parts(list, rank) }.to_vec(),
    });
    // SAFETY: an array has a data type, which it keeps.
    let dtype = unsafe { Bound::from_borrowed_ptr(py, array.dtype.cast_mut().cast()) };
    Some(Snapshot {
        data: array.data,
        shape,
        strides,
        read_only: array.flags & WRITABLE == 0,
        dtype,
        // An array over a tensor of another producer keeps that.
        keeper: keep(object).unwrap_or_else(|| ArrayKeepalive::new(object)),
    })
}

/// The references that keep the memory of an array which is [`described`]; none if it comes from another producer.
#[inline(always)]
pub(crate) fn keep(object: &Bound<'_, PyAny>) -> Option<ArrayKeepalive> {
    // SAFETY: what was described is an array, which `object` keeps.
    let base = unsafe { (*object.as_ptr().cast::<Array>()).base };
    // Nearly all own their memory, or are views of one that does.
    if base.is_null() {
        Some(ArrayKeepalive::new(object))
    } else {
        keep_owner(object)
    }
}

#[inline(never)]
fn keep_owner(view: &Bound<'_, PyAny>) -> Option<ArrayKeepalive> {
    Some(ArrayKeepalive::new(&owner_of(view)?))
}

#[inline(always)]
fn describe(array: &Array) -> Option<Strided<'_>> {
    // SAFETY: an array has a data type.
    let dtype = unsafe { &*array.dtype };
    // Whatever else there is to say of a type, such as its fields, its number is another then.
    if !matches!(dtype.byte_order, b'=' | b'|') {
        return None;
    }
    let dtype = TYPES.get(usize::try_from(dtype.number).ok()?).copied()??;
    let rank = usize::try_from(array.ndim).ok()?;
    let [shape, strides] = [array.shape, array.strides].map(|list| match rank {
        0 => &[][..],
        // SAFETY: an array has so many of each, and they are changed with the interpreter's lock, or on one's own risk.
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

/// The array that keeps the memory of a view: the first in the chain of bases that owns memory, else the last one.
///
/// None if the memory comes from another producer, by `numpy.from_dlpack`: NumPy knows its device, as it may be pinned.
fn owner_of<'py>(view: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    const NAMES: [&CStr; 2] = [c"numpy_dltensor", c"numpy_dltensor_versioned"];

    let py = view.py();
    let class = found(py)?.class.as_ptr().cast();
    let mut array = view.as_ptr();
    let base = loop {
        // SAFETY: an array, which starts with this struct, and which `view` keeps, as it does all its bases.
        let fields = unsafe { &*array.cast::<Array>() };
        if fields.flags & OWNS_DATA != 0 || fields.base.is_null() {
            break None;
        }
        // SAFETY: an object, which the array keeps.
        if unsafe { ffi::PyObject_TypeCheck(fields.base, class) } == 0 {
            break Some(fields.base);
        }
        array = fields.base;
    };
    // SAFETY: null, or an object that the array keeps.
    let base = base.map(|base| unsafe { Bound::from_borrowed_ptr(py, base) });
    let is_foreign = base.and_then(|base| base.cast_into::<PyCapsule>().ok());
    let is_foreign = is_foreign.is_some_and(|capsule| {
        NAMES
            .iter()
            .any(|name| capsule.is_valid_checked(Some(name)))
    });
    // SAFETY: an array that `view` keeps.
    (!is_foreign).then(|| unsafe { Bound::from_borrowed_ptr(py, array) })
}
