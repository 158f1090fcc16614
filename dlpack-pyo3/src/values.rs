//! Converts Rust values to Python objects, and creates classes of C functions. If there is no memory for an object, a `MemoryError`
//! is returned; PyO3's conversions panic.
#![expect(unsafe_code, reason = "calls C functions that make objects")]

use core::ffi::{CStr, c_int, c_longlong, c_uint, c_ulong, c_void};
use core::ptr;

use dlpack_core::{DataType, binding::Numbers};
use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::types::{PyBool, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{prelude::*, sync::PyOnceLock};

use crate::capi::{STABLE_ABI, set_new_item};

/// Wraps the result of a C function.
///
/// # Safety
///
/// `object` is a new reference, or null with an exception.
#[inline]
unsafe fn from_new_reference(py: Python<'_>, object: *mut PyObject) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: same contract as this function's: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, object) }
}

pub(crate) fn new_bool(py: Python<'_>, value: bool) -> Bound<'_, PyAny> {
    PyBool::new(py, value).to_owned().into_any()
}

pub(crate) fn new_int(py: Python<'_>, value: i64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached, as `py` shows.
    let object = unsafe { ffi::PyLong_FromLongLong(c_longlong::from(value)) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { from_new_reference(py, object) }
}

pub(crate) fn new_unsigned_int(py: Python<'_>, value: u64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached, as `py` shows.
    let object = unsafe { ffi::PyLong_FromUnsignedLongLong(value) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { from_new_reference(py, object) }
}

/// A size or an address.
pub(crate) fn new_size(py: Python<'_>, value: usize) -> PyResult<Bound<'_, PyInt>> {
    // SAFETY: attached, as `py` shows.
    let object = unsafe { ffi::PyLong_FromSize_t(value) };
    // SAFETY: a new reference, or null with an exception.
    let value = unsafe { from_new_reference(py, object) }?;
    Ok(value.cast_into()?)
}

/// A signed integer that may have more than 64 bits.
pub(crate) fn new_wide_int(py: Python<'_>, value: i128) -> PyResult<Bound<'_, PyAny>> {
    if let Ok(value) = i64::try_from(value) {
        return new_int(py, value);
    }
    let [high, low] = [value >> 64, value & i128::from(u64::MAX)];
    let high = new_int(py, i64::try_from(high).expect("the upper half"))?;
    join_halves(high, u64::try_from(low).expect("the lower half"))
}

/// An unsigned integer that may have more than 64 bits.
pub(crate) fn new_wide_unsigned_int(py: Python<'_>, value: u128) -> PyResult<Bound<'_, PyAny>> {
    if let Ok(value) = u64::try_from(value) {
        return new_unsigned_int(py, value);
    }
    let [high, low] = [value >> 64, value & u128::from(u64::MAX)];
    let high = new_unsigned_int(py, u64::try_from(high).expect("the upper half"))?;
    join_halves(high, u64::try_from(low).expect("the lower half"))
}

/// `high << 64 | low`
fn join_halves(high: Bound<'_, PyAny>, low: u64) -> PyResult<Bound<'_, PyAny>> {
    let py = high.py();
    let (by, low) = (new_int(py, 64)?, new_unsigned_int(py, low)?);
    // SAFETY: attached, as `py` shows; two valid objects.
    let object = unsafe { ffi::PyNumber_Lshift(high.as_ptr(), by.as_ptr()) };
    // SAFETY: a new reference, or null with an exception.
    let high = unsafe { from_new_reference(py, object) }?;
    // SAFETY: attached, as `py` shows.
    let object = unsafe { ffi::PyNumber_Or(high.as_ptr(), low.as_ptr()) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { from_new_reference(py, object) }
}

pub(crate) fn new_float(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached, as `py` shows.
    let object = unsafe { ffi::PyFloat_FromDouble(value) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { from_new_reference(py, object) }
}

pub(crate) fn new_complex(
    py: Python<'_>,
    [real, imaginary]: [f64; 2],
) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached, as `py` shows.
    let object = unsafe { ffi::PyComplex_FromDoubles(real, imaginary) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { from_new_reference(py, object) }
}

pub(crate) fn new_string<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    let len = Py_ssize_t::try_from(text.len()).expect("no more than memory has");
    // SAFETY: attached, as `py` shows; `text` has `len` bytes of UTF-8.
    let object = unsafe { ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), len) };
    // SAFETY: a new reference, or null with an exception.
    let string = unsafe { from_new_reference(py, object) }?;
    Ok(string.cast_into()?)
}

/// An empty list.
pub(crate) fn new_list(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    // SAFETY: attached, as `py` shows.
    let object = unsafe { ffi::PyList_New(0) };
    // SAFETY: a new reference, or null with an exception.
    let list = unsafe { from_new_reference(py, object) }?;
    Ok(list.cast_into()?)
}

/// A list of the next `len` numbers, for each of the usual types by a loop of its own. `None` for any other type, and `Some(None)`
/// with an exception.
pub(crate) fn list_of_numbers<'py>(
    py: Python<'py>,
    len: usize,
    numbers: &mut Numbers,
) -> Option<Option<Bound<'py, PyAny>>> {
    macro_rules! lists {
        ($($dtype:ident: $type:ident, $make:ident;)*) => {
            match numbers.dtype() {
                $(DataType::$dtype => {
                    let make = |bytes| {
                        let number = $type::from_ne_bytes(bytes);
                        // SAFETY: attached.
                        unsafe { ffi::$make(number.into()) }
                    };
                    // SAFETY: the function makes a number, or raises.
                    Some(unsafe { fill_list(py, numbers.take_bytes(len), make) })
                })*
                _ => None,
            }
        };
    }
    lists! {
        F64: f64, PyFloat_FromDouble;
        F32: f32, PyFloat_FromDouble;
        I64: i64, PyLong_FromLongLong;
        I32: i32, PyLong_FromLongLong;
        I16: i16, PyLong_FromLongLong;
        I8: i8, PyLong_FromLongLong;
        U64: u64, PyLong_FromUnsignedLongLong;
        U32: u32, PyLong_FromUnsignedLongLong;
        U16: u16, PyLong_FromUnsignedLongLong;
        U8: u8, PyLong_FromUnsignedLongLong;
    }
}

/// A list of what `make` gives for each `N` bytes; `None` with an exception.
///
/// # Safety
///
/// `make` gives a new reference to a number, or null with an exception. Making a number runs no garbage collection, so no other
/// code sees the list before it is filled.
unsafe fn fill_list<'py, const N: usize>(
    py: Python<'py>,
    bytes: &[u8],
    make: impl Fn([u8; N]) -> *mut PyObject,
) -> Option<Bound<'py, PyAny>> {
    let items = bytes.chunks_exact(N);
    let len = Py_ssize_t::try_from(items.len()).expect("no more than memory has");
    // SAFETY: attached.
    let list = unsafe { ffi::PyList_New(len) };
    // SAFETY: a new reference, or null with an exception.
    let list = unsafe { Bound::from_owned_ptr_or_opt(py, list) }?;
    for (index, item) in (0..len).zip(items) {
        let number = make(item.try_into().expect("so many bytes"));
        if number.is_null() {
            return None;
        }
        // SAFETY: a new list with such an index, where it has no item; the reference to the number is given away.
        unsafe { set_new_item(list.as_ptr(), index, number) };
    }
    Some(list)
}

/// A list of one item.
pub(crate) fn list_of_one<'py>(item: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: attached, as the item shows.
    let list = unsafe { ffi::PyList_New(1) };
    // SAFETY: a new reference, or null with an exception.
    let list = unsafe { from_new_reference(item.py(), list) }?;
    // SAFETY: a new list with such an index, where it has no item; the reference to the item is given away.
    unsafe { set_new_item(list.as_ptr(), 0, item.into_ptr()) };
    Ok(list)
}

/// A tuple of these items; or the first error among them.
pub(crate) fn new_tuple<'py>(
    py: Python<'py>,
    items: impl IntoIterator<Item = PyResult<Bound<'py, PyAny>>, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyTuple>> {
    let items = items.into_iter();
    let len = Py_ssize_t::try_from(items.len()).expect("no more than memory has");
    // SAFETY: attached, as `py` shows.
    let object = unsafe { ffi::PyTuple_New(len) };
    // SAFETY: a new reference, or null with an exception.
    let tuple = unsafe { from_new_reference(py, object) }?;
    for (index, item) in (0..len).zip(items) {
        // SAFETY: attached; no other code has the tuple, which has this index; the reference to the item is transferred to it.
        unsafe { ffi::PyTuple_SetItem(tuple.as_ptr(), index, item?.into_ptr()) };
    }
    Ok(tuple.cast_into()?)
}

/// Calls an object with one argument. For the stable ABI, PyO3's `call1` makes a tuple, and panics if there is no memory for it.
pub(crate) fn call_one<'py>(
    callable: &Bound<'py, PyAny>,
    argument: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if STABLE_ABI {
        let arguments = new_tuple(callable.py(), [Ok(argument)])?;
        callable.call1(arguments)
    } else {
        callable.call1((argument,))
    }
}

/// A tuple of integers.
pub(crate) fn new_int_tuple<'py>(
    py: Python<'py>,
    numbers: impl IntoIterator<Item = i64, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyTuple>> {
    new_tuple(py, numbers.into_iter().map(|number| new_int(py, number)))
}

/// Returns the value of a cell, or stores the one that `make` creates.
///
/// `make` may run any Python code, for example a finalizer during a garbage collection, and that code may need the same cell. So it
/// runs before the cell is locked: within `get_or_init` the second call would wait for the first, on the same thread.
pub(crate) fn get_or_make<'a, T>(
    cell: &'a PyOnceLock<T>,
    py: Python<'_>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<&'a T> {
    if let Some(value) = cell.get(py) {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(py, || value))
}

/// A class of objects that begin with a `T` and have any number of items of `itemsize` bytes behind it. Python code cannot
/// instantiate or change it.
///
/// # Safety
///
/// `T` is `repr(C)` and begins with a `PyVarObject`. Each function has the type of its slot, and accepts such objects.
pub(crate) unsafe fn new_class<T>(
    py: Python<'_>,
    name: &'static CStr,
    itemsize: usize,
    flags: c_ulong,
    functions: &[(c_int, *mut c_void)],
) -> PyResult<Py<PyType>> {
    const END: (c_int, *mut c_void) = (0, ptr::null_mut());

    // CPython reads up to the first zero.
    let mut slots = [END; 4].map(|(slot, pfunc)| ffi::PyType_Slot { slot, pfunc });
    assert!(
        functions.len() < slots.len(),
        "a zero follows the functions"
    );
    for (place, &(slot, pfunc)) in slots.iter_mut().zip(functions) {
        *place = ffi::PyType_Slot { slot, pfunc };
    }
    // Python code that adds `__buffer__` to a class could make NumPy believe that an array's read-only base is writable.
    let fixed = ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION | ffi::Py_TPFLAGS_IMMUTABLETYPE;
    let flags = flags | ffi::Py_TPFLAGS_DEFAULT | fixed;
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: c_int::try_from(size_of::<T>()).expect("some words"),
        itemsize: c_int::try_from(itemsize).expect("a word"),
        flags: c_uint::try_from(flags).expect("in the lower half"),
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: attached, as `py` shows; a list of slots that ends with zeros, with functions of their types by this function's
    // contract.
    let class = unsafe { ffi::PyType_FromSpec(&raw mut spec) };
    // SAFETY: a new reference, or null with an exception.
    let class = unsafe { from_new_reference(py, class) }?;
    Ok(class.cast_into::<PyType>()?.unbind())
}
