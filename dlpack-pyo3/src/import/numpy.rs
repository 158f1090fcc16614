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

use core::ffi::{CStr, c_int, c_long, c_uint, c_void};
use core::mem::transmute;
use core::slice;

use dlpack_core::binding::{Strided, keep_strided};
use dlpack_core::{DataType, Managed};
use pyo3::types::{PyCapsule, PyDict, PyType};
use pyo3::{ffi, intern, prelude::*, sync::PyOnceLock};

use crate::hold::{Held, attached};

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

/// `NPY_ARRAY_WRITEABLE`
const WRITABLE: c_int = 0x400;

/// The class of arrays, once NumPy was found; nothing, if its structs are others.
static CLASS: PyOnceLock<Option<Py<PyType>>> = PyOnceLock::new();

/// The tensor over an array, if the object is one of NumPy's own class and DLPack can say what is in it. All else is for
/// its methods to answer: a class that derives from NumPy's may do so in its own way.
#[inline(always)]
pub(super) fn array(object: &Bound<'_, PyAny>) -> Option<Managed> {
    let class = CLASS.get(object.py())?.as_ref()?.as_ptr();
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

    let class = CLASS.get(py).and_then(Option::as_ref);
    let class = class.map_or(core::ptr::null_mut(), |class| class.as_ptr().cast());
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

/// The data types by NumPy's numbers for them.
const TYPES: [Option<DataType>; 24] = {
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

/// Looks for NumPy, which nobody may have imported yet; whether it was found by this call.
#[inline]
pub(super) fn was_found(py: Python<'_>) -> bool {
    CLASS.get(py).is_none() && find(py).is_some()
}

#[cold]
fn find(py: Python<'_>) -> Option<()> {
    // SAFETY: attached.
    let modules = unsafe { ffi::PyImport_GetModuleDict() };
    // SAFETY: `sys.modules`, which is there for as long as there is an interpreter.
    let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, modules) }?;
    let modules = modules.cast_into::<PyDict>().ok()?;
    let names = [
        intern!(py, "numpy._core._multiarray_umath"),
        intern!(py, "numpy.core._multiarray_umath"),
    ];
    let module = |name| modules.get_item(name).ok().flatten();
    let module = names.into_iter().find_map(module)?;
    let functions = module.getattr(intern!(py, "_ARRAY_API")).ok()?;
    let functions = functions
        .cast_into::<PyCapsule>()
        .ok()?
        .pointer_checked(None)
        .ok()?;
    attached::prepare(py);
    // SAFETY: what this capsule holds, for as long as the process lives.
    let class = unsafe { class_of(py, functions.as_ptr().cast()) };
    CLASS.get_or_init(py, || class);
    Some(())
}

/// NumPy's class, if its structs are those that are known here.
///
/// # Safety
///
/// `functions` is the table of NumPy's C API.
unsafe fn class_of(py: Python<'_>, functions: *const *const c_void) -> Option<Py<PyType>> {
    type Version = unsafe extern "C" fn() -> c_uint;

    // SAFETY: `PyArray_GetNDArrayCVersion` is the first in every version.
    let version = unsafe { *functions };
    // SAFETY: as above.
    let version = unsafe { transmute::<*const c_void, Version>(version) };
    // SAFETY: it takes nothing.
    if !matches!(unsafe { version() }, 0x0100_0009 | 0x0200_0000) {
        return None;
    }
    // SAFETY: in both of these versions, the class is the third.
    let class = unsafe { functions.add(2) };
    // SAFETY: as above.
    let class = unsafe { *class };
    // SAFETY: a class.
    let class = unsafe { Bound::from_borrowed_ptr(py, class.cast_mut().cast()) };
    class.cast_into().ok().map(Bound::unbind)
}
