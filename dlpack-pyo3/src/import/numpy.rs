//! NumPy's own arrays, read where they lie: by the structs of its C API, without a call of NumPy.
//!
//! They are what nearly every function is given. Asked by `__dlpack_device__` and `__dlpack__` such an array takes over a
//! microsecond; by a buffer, which NumPy makes anew each time, a tenth of that; and half of that here. The structs
//! are public, the same in NumPy 1 and 2, and compiled into the extensions of others; a NumPy that says that it has another
//! ABI is asked by its methods.
//!
//! A reference keeps the array, as `__dlpack__` does. So a write shows, `array.shape = ..` does not, as shape and strides
//! were copied; and `array.resize(.., refcheck=False)` is as wrong as with any array that NumPy shares its memory with.
#![expect(unsafe_code, reason = "reads structs of NumPy's")]

use core::ffi::{CStr, c_int};
use core::slice;

use dlpack_core::Managed;
use dlpack_core::binding::{Strided, keep_strided};
use pyo3::{ffi, prelude::*, types::PyCapsule};

use crate::hold::Held;
use crate::library::numpy::{TYPES, WRITABLE, found};

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

/// The tensor over an array, if the object is one of NumPy's own class and DLPack can say what is in it. All else is for
/// its methods to answer: a class that derives from NumPy's may do so in its own way.
#[inline(always)]
pub(super) fn array(object: &Bound<'_, PyAny>) -> Option<Managed> {
    let class = found(object.py())?.class.as_ptr();
    if object.get_type_ptr().cast() != class {
        return None;
    }
    // SAFETY: an array of this class starts with this struct, and `object` keeps it.
    let array = unsafe { object.as_ptr().cast::<Array>().as_ref() }?;
    let describe = |_: &mut Held<()>| describe(object.py(), array).ok_or(());
    // SAFETY: the array, to which the owner holds a reference, keeps its memory. What else writes there is Python's.
    unsafe { keep_strided(Held::new((), object), describe, |_| ()) }.ok()
}

#[inline]
fn describe<'a>(py: Python<'_>, array: &'a Array) -> Option<Strided<'a>> {
    // SAFETY: an array has a data type.
    let dtype = unsafe { &*array.dtype };
    // Whatever else there is to say of a type, such as its fields, its number is another then.
    if !matches!(dtype.byte_order, b'=' | b'|') || is_elsewhere(py, array) {
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

/// Whether the memory comes from another producer, by `numpy.from_dlpack`: NumPy knows its device, as it may be pinned.
#[inline]
fn is_elsewhere(py: Python<'_>, array: &Array) -> bool {
    // Nearly all own their memory, or are views of one that does.
    !array.base.is_null() && is_foreign(py, array.base)
}

fn is_foreign(py: Python<'_>, mut base: *mut ffi::PyObject) -> bool {
    const NAMES: [&CStr; 2] = [c"numpy_dltensor", c"numpy_dltensor_versioned"];

    let class = found(py).map_or(core::ptr::null_mut(), |numpy| numpy.class.as_ptr().cast());
    // SAFETY: null, or an object that the array keeps.
    while !base.is_null() && unsafe { ffi::PyObject_TypeCheck(base, class) } != 0 {
        // SAFETY: an array, which starts with this struct.
        base = unsafe { (*base.cast::<Array>()).base };
    }
    // SAFETY: as above.
    let base = unsafe { Bound::from_borrowed_ptr_or_opt(py, base) };
    let capsule = base.and_then(|base| base.cast_into::<PyCapsule>().ok());
    capsule.is_some_and(|capsule| {
        NAMES
            .iter()
            .any(|name| capsule.is_valid_checked(Some(name)))
    })
}
