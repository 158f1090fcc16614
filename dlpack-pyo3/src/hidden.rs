//! What every Python has for C, and the stable ABI of an older one does not name: by PyO3 where it names it, else by address.
//!
//! Each function here calls the one of that name: PyO3's, where this build has it, since what a function imports stands
//! before what stands beside it; else the stand-in below.
#![expect(unsafe_code, reason = "calls functions of C")]

use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::{null_mut, with_exposed_provenance_mut};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{Py_ssize_t, PyObject};
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{ffi, prelude::*, sync::PyOnceLock};

/// CPython's `Py_buffer`. Its layout is part of the stable ABI of 3.11, and was the same before.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PyBuffer {
    pub(crate) buf: *mut c_void,
    pub(crate) obj: *mut PyObject,
    pub(crate) len: Py_ssize_t,
    pub(crate) itemsize: Py_ssize_t,
    pub(crate) readonly: c_int,
    pub(crate) ndim: c_int,
    pub(crate) format: *mut c_char,
    pub(crate) shape: *mut Py_ssize_t,
    pub(crate) strides: *mut Py_ssize_t,
    pub(crate) suboffsets: *mut Py_ssize_t,
    pub(crate) internal: *mut c_void,
}

// What a consumer may ask for, by the documentation of the protocol.
pub(crate) const WRITABLE: c_int = 0x1;
pub(crate) const FORMAT: c_int = 0x4;
pub(crate) const ND: c_int = 0x8;
pub(crate) const STRIDES: c_int = 0x10 | ND;
pub(crate) const C_CONTIGUOUS: c_int = 0x20 | STRIDES;
pub(crate) const F_CONTIGUOUS: c_int = 0x40 | STRIDES;
pub(crate) const ANY_CONTIGUOUS: c_int = 0x80 | STRIDES;

/// Fills a buffer with what `object` lends; -1 and an exception if it cannot.
///
/// # Safety
///
/// `view` is a place for a buffer, which stays there until it is released.
#[inline]
pub(crate) unsafe fn get_buffer(
    object: &Bound<'_, PyAny>,
    view: *mut PyBuffer,
    flags: c_int,
) -> c_int {
    #[allow(unused_imports, clippy::wildcard_imports, reason = "see above")]
    use pyo3::ffi::*;

    // SAFETY: attached; the caller vouches for the place.
    unsafe { PyObject_GetBuffer(object.as_ptr(), view.cast(), flags) }
}

/// Gives a buffer back.
///
/// # Safety
///
/// The thread is attached, `get_buffer` filled the buffer, and nobody uses it afterwards.
#[inline]
pub(crate) unsafe fn release_buffer(view: *mut PyBuffer) {
    #[allow(unused_imports, clippy::wildcard_imports, reason = "see above")]
    use pyo3::ffi::*;

    // SAFETY: passed on to the caller.
    unsafe { PyBuffer_Release(view.cast()) }
}

/// Calls a method with those of four keywords that have a value; `names` are theirs.
#[inline]
pub(crate) fn call_method<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    values: [Option<&Bound<'py, PyAny>>; 4],
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    #[allow(unused_imports, clippy::wildcard_imports, reason = "see above")]
    use pyo3::ffi::*;

    let mut all = [object.as_ptr(); 5];
    let given = values.into_iter().flatten();
    let count = all[1..]
        .iter_mut()
        .zip(given)
        .map(|(place, value)| *place = value.as_ptr())
        .count();
    assert_eq!(
        names.map_or(0, |names| names.len()),
        count,
        "a name for each value"
    );
    let names = names.map_or(null_mut(), Bound::as_ptr);
    // SAFETY: attached; the object itself, as the one argument without a name, and a value for each name.
    let result = unsafe { PyObject_VectorcallMethod(name.as_ptr(), all.as_ptr(), 1, names) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(object.py(), result) }
}

/// An attribute of a class or of its bases, if there is one. A miss raises nothing, which would take as long as an import
/// does otherwise.
#[inline]
pub(crate) fn class_attribute<'py>(
    class: &Bound<'py, PyType>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    #[allow(unused_imports, clippy::wildcard_imports, reason = "see above")]
    use pyo3::ffi::*;

    let mut found = null_mut();
    // SAFETY: attached; a class, a string, and a place for the result.
    let status = unsafe { PyObject_GetOptionalAttr(class.as_ptr(), name.as_ptr(), &raw mut found) };
    if status < 0 {
        // SAFETY: attached. Nobody asked whether the search went well.
        unsafe { ffi::PyErr_Clear() };
    }
    // SAFETY: null, or a new reference.
    unsafe { Bound::from_owned_ptr_or_opt(class.py(), found) }
}

/// The number of the interpreter in which this thread is attached: 0 is the main one.
pub(crate) fn interpreter_id(_: Python<'_>) -> i64 {
    #[allow(unused_imports, clippy::wildcard_imports, reason = "see above")]
    use pyo3::ffi::*;

    // SAFETY: attached.
    let interpreter = unsafe { PyInterpreterState_Get() };
    // SAFETY: the interpreter of this thread.
    unsafe { PyInterpreterState_GetID(interpreter) }
}

/// Where a C function of this Python is.
pub(crate) fn address_of(py: Python<'_>, name: &str) -> PyResult<usize> {
    let ctypes = py.import("ctypes")?;
    let function = ctypes.getattr("pythonapi")?.getattr(name)?;
    let pointer = ctypes.call_method1("cast", (function, ctypes.getattr("c_void_p")?))?;
    pointer.getattr("value")?.extract()
}

/// The same, looked for once; null where it is not found.
fn find(known: &PyOnceLock<usize>, name: &str) -> *mut c_void {
    // SAFETY: whoever calls a function of C here is attached.
    let py = unsafe { Python::assume_attached() };
    let address = known.get_or_init(py, || address_of(py, name).unwrap_or(0));
    with_exposed_provenance_mut(*address)
}

#[allow(dead_code, non_snake_case, reason = "stands in where PyO3 has none")]
unsafe fn PyObject_GetBuffer(object: *mut PyObject, view: *mut c_void, flags: c_int) -> c_int {
    type Get = unsafe extern "C" fn(*mut PyObject, *mut c_void, c_int) -> c_int;
    static ADDRESS: PyOnceLock<usize> = PyOnceLock::new();

    let function = find(&ADDRESS, "PyObject_GetBuffer");
    if function.is_null() {
        // As of an object that has none.
        // SAFETY: attached, as whoever asks for a buffer.
        PyTypeError::new_err(()).restore(unsafe { Python::assume_attached() });
        return -1;
    }
    // SAFETY: the address of such a function.
    let function = unsafe { transmute::<*mut c_void, Get>(function) };
    // SAFETY: passed on to the caller.
    unsafe { function(object, view, flags) }
}

#[allow(dead_code, non_snake_case, reason = "stands in where PyO3 has none")]
unsafe fn PyInterpreterState_Get() {}

#[allow(dead_code, non_snake_case, reason = "stands in where PyO3 has none")]
unsafe fn PyInterpreterState_GetID((): ()) -> i64 {
    0
}

#[allow(dead_code, non_snake_case, reason = "stands in where PyO3 has none")]
unsafe fn PyBuffer_Release(view: *mut c_void) {
    type Release = unsafe extern "C" fn(*mut c_void);
    static ADDRESS: PyOnceLock<usize> = PyOnceLock::new();

    let function = find(&ADDRESS, "PyBuffer_Release");
    if !function.is_null() {
        // SAFETY: the address of such a function.
        let function = unsafe { transmute::<*mut c_void, Release>(function) };
        // SAFETY: passed on to the caller.
        unsafe { function(view) };
    }
}

#[allow(dead_code, non_snake_case, reason = "stands in where PyO3 has none")]
unsafe fn PyObject_VectorcallMethod(
    name: *mut PyObject,
    values: *const *mut PyObject,
    _: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: attached, as whoever calls a method.
    let py = unsafe { Python::assume_attached() };
    let call = || {
        // SAFETY: there is at least one value, the object.
        let object = unsafe { *values };
        // SAFETY: an object.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        // SAFETY: a string.
        let name = unsafe { Bound::from_borrowed_ptr(py, name) };
        let method = object.getattr(name.cast_into::<PyString>()?)?;
        // SAFETY: null, or a tuple.
        let Some(names) = (unsafe { Bound::from_borrowed_ptr_or_opt(py, names) }) else {
            return method.call0();
        };
        // PyO3's own function panics without memory.
        // SAFETY: attached.
        let keywords = unsafe { ffi::PyDict_New() };
        // SAFETY: a new reference, or null with an exception.
        let keywords = unsafe { Bound::from_owned_ptr_or_err(py, keywords) }?;
        let keywords = keywords.cast_into::<PyDict>()?;
        for (index, name) in names.cast_into::<PyTuple>()?.iter().enumerate() {
            // SAFETY: a value for each name, behind the object.
            let value = unsafe { values.add(index + 1) };
            // SAFETY: as above.
            let value = unsafe { *value };
            // SAFETY: an object.
            keywords.set_item(name, unsafe { Bound::from_borrowed_ptr(py, value) })?;
        }
        method.call((), Some(&keywords))
    };
    call().map_or_else(
        |error: PyErr| {
            error.restore(py);
            null_mut()
        },
        Bound::into_ptr,
    )
}

/// By the search that `getattr` itself makes, which caches what it does not find. It is in every Python from before the
/// function of this name.
#[allow(dead_code, non_snake_case, reason = "stands in where PyO3 has none")]
unsafe fn PyObject_GetOptionalAttr(
    class: *mut PyObject,
    name: *mut PyObject,
    found: *mut *mut PyObject,
) -> c_int {
    type Search = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;
    static ADDRESS: PyOnceLock<usize> = PyOnceLock::new();

    let function = find(&ADDRESS, "_PyType_Lookup");
    let attribute = if function.is_null() {
        // SAFETY: passed on to the caller.
        unsafe { ffi::PyObject_GetAttr(class, name) }
    } else {
        // SAFETY: the address of such a function.
        let function = unsafe { transmute::<*mut c_void, Search>(function) };
        // SAFETY: passed on to the caller.
        let borrowed = unsafe { function(class, name) };
        // With the lock, nobody takes it from the class meanwhile.
        // SAFETY: null, or an object that the class holds.
        unsafe { ffi::Py_XINCREF(borrowed) };
        borrowed
    };
    // SAFETY: the caller passes a place.
    unsafe { found.write(attribute) };
    if attribute.is_null() && function.is_null() {
        -1
    } else {
        0
    }
}
