//! C-API functions that older stable ABIs do not declare: from PyO3 where it declares them, else looked up by name.
//!
//! Each wrapper calls the C function of its name. A glob import within the wrapper takes precedence over the items of this
//! module: it provides PyO3's declaration if this build has one. Otherwise the name resolves to the replacement below.
#![expect(unsafe_code, reason = "calls functions of C")]

use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::{null_mut, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyo3::exceptions::{PyAttributeError, PyImportError, PyTypeError};
use pyo3::ffi::{Py_ssize_t, PyObject};
use pyo3::types::{PyDict, PyInt, PyModule, PyString, PyTuple, PyType};
use pyo3::{ffi, prelude::*};

/// Whether this build uses the stable ABI, which hides the layout of types and most functions on thread states.
pub(crate) const STABLE_ABI: bool = size_of::<ffi::PyTypeObject>() == 0;

/// CPython's `Py_buffer`. The stable ABI contains it since 3.11; its layout was the same before.
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

impl PyBuffer {
    /// A buffer of no memory, with no format, shape or strides.
    pub(crate) const EMPTY: Self = Self {
        buf: null_mut(),
        obj: null_mut(),
        len: 0,
        itemsize: 0,
        readonly: 0,
        ndim: 0,
        format: null_mut(),
        shape: null_mut(),
        strides: null_mut(),
        suboffsets: null_mut(),
        internal: null_mut(),
    };
}

/// CPython's `getbufferproc`: fills a buffer of an object with what the flags request.
pub(crate) type GetBuffer = unsafe extern "C" fn(*mut PyObject, *mut PyBuffer, c_int) -> c_int;

// The flags of a buffer request, as documented for the buffer protocol.
pub(crate) const WRITABLE: c_int = 0x1;
pub(crate) const FORMAT: c_int = 0x4;
pub(crate) const ND: c_int = 0x8;
pub(crate) const STRIDES: c_int = 0x10 | ND;
pub(crate) const C_CONTIGUOUS: c_int = 0x20 | STRIDES;
pub(crate) const F_CONTIGUOUS: c_int = 0x40 | STRIDES;
pub(crate) const ANY_CONTIGUOUS: c_int = 0x80 | STRIDES;

/// Fills `view` with a buffer of `object`; returns -1 with an exception if the object cannot export one.
///
/// # Safety
///
/// `view` is valid for writes, and the buffer is not moved until it is released.
#[inline]
pub(crate) unsafe fn get_buffer(
    object: &Bound<'_, PyAny>,
    view: *mut PyBuffer,
    flags: c_int,
) -> c_int {
    #[allow(
        unused_imports,
        clippy::wildcard_imports,
        reason = "PyO3's declaration, if this build has one"
    )]
    use pyo3::ffi::*;

    // SAFETY: attached, as `object` shows; `view` is valid and stays in place, by this function's contract.
    unsafe { PyObject_GetBuffer(object.as_ptr(), view.cast(), flags) }
}

/// Whether the class of `object` exports buffers.
#[inline]
pub(crate) fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    #[allow(
        unused_imports,
        clippy::wildcard_imports,
        reason = "PyO3's declaration, if this build has one"
    )]
    use pyo3::ffi::*;

    // SAFETY: attached, as `object` shows; a live object.
    unsafe { PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// Releases a buffer.
///
/// # Safety
///
/// The thread is attached, `get_buffer` filled the buffer, and it is not used afterwards.
#[inline]
pub(crate) unsafe fn release_buffer(view: *mut PyBuffer) {
    #[allow(
        unused_imports,
        clippy::wildcard_imports,
        reason = "PyO3's declaration, if this build has one"
    )]
    use pyo3::ffi::*;

    // SAFETY: attached, and a filled buffer that is not used afterwards, by this function's contract.
    unsafe { PyBuffer_Release(view.cast()) }
}

/// Calls a method with keyword arguments: those of the four `values` that are given, under these `names`.
#[inline]
pub(crate) fn call_method<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    values: [Option<&Bound<'py, PyAny>>; 4],
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    #[allow(
        unused_imports,
        clippy::wildcard_imports,
        reason = "PyO3's declaration, if this build has one"
    )]
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
    // SAFETY: attached, as `object` shows; the array has the object, the one positional argument, and a value for each name.
    let result = unsafe { PyObject_VectorcallMethod(name.as_ptr(), all.as_ptr(), 1, names) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(object.py(), result) }
}

/// An attribute of a class or its bases, if there is one. A missing attribute sets no exception, which would cost as much as a
/// whole import.
#[inline]
pub(crate) fn class_attribute<'py>(
    class: &Bound<'py, PyType>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    #[allow(
        unused_imports,
        clippy::wildcard_imports,
        reason = "PyO3's declaration, if this build has one"
    )]
    use pyo3::ffi::*;

    let mut found = null_mut();
    // SAFETY: attached, as `class` shows; a type, a string, and a pointer that is valid for writes.
    let status = unsafe { PyObject_GetOptionalAttr(class.as_ptr(), name.as_ptr(), &raw mut found) };
    if status < 0 {
        // SAFETY: attached, as `class` shows. An error of the lookup counts as a missing attribute.
        unsafe { PyErr_Clear() };
    }
    // SAFETY: null, or a new reference.
    unsafe { Bound::from_owned_ptr_or_opt(class.py(), found) }
}

/// Sets an item of a new list, as `PyList_SetItem` does without its checks.
///
/// # Safety
///
/// The thread is attached. `list` is a list with this index, which has no item yet, and no other code has the list. The reference to
/// `item` is given away.
#[inline(always)]
pub(crate) unsafe fn set_new_item(list: *mut PyObject, index: Py_ssize_t, item: *mut PyObject) {
    #[allow(
        unused_imports,
        clippy::wildcard_imports,
        reason = "PyO3's declaration, if this build has one"
    )]
    use pyo3::ffi::*;

    // SAFETY: a new list with such an index, and a reference that is given away, by this function's contract.
    unsafe { PyList_SET_ITEM(list, index, item) };
}

/// The id of the interpreter to which this thread is attached; 0 is the main interpreter.
pub(crate) fn interpreter_id(_: Python<'_>) -> i64 {
    #[allow(
        unused_imports,
        clippy::wildcard_imports,
        reason = "PyO3's declaration, if this build has one"
    )]
    use pyo3::ffi::*;

    // SAFETY: attached, as the `Python` shows.
    let interpreter = unsafe { PyInterpreterState_Get() };
    // SAFETY: the interpreter to which this thread is attached.
    unsafe { PyInterpreterState_GetID(interpreter) }
}

/// Whether an object is an instance of a class or a subclass. Calls no `__instancecheck__`, unlike `isinstance`.
pub(crate) fn is_instance(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> bool {
    // SAFETY: attached, as `object` shows; both are valid types.
    unsafe { ffi::PyType_IsSubtype(object.get_type_ptr(), class.as_type_ptr()) != 0 }
}

/// The address of a function of CPython's C API.
///
/// # Errors
///
/// `TypeError` also if a program replaced `ctypes` by another object, such as a mock of `unittest.mock`, which would return any
/// address.
pub(crate) fn address_of(py: Python<'_>, name: &str) -> PyResult<usize> {
    let ctypes = py.import("ctypes")?.into_any();
    let ctypes = ctypes.cast::<PyModule>()?;
    let library = ctypes.getattr("pythonapi")?;
    let class = ctypes.getattr("PyDLL")?;
    if !is_instance(&library, class.cast::<PyType>()?) {
        return Err(PyTypeError::new_err("`ctypes.pythonapi` was replaced"));
    }
    let function = library.getattr(name)?;
    let pointer = ctypes.call_method1("cast", (function, ctypes.getattr("c_void_p")?))?;
    // Only an `int`: other objects have an `__index__` of their own.
    let address = pointer.getattr("value")?.cast_into_exact::<PyInt>()?;
    address.extract()
}

/// The address of a function of CPython's C API, which is stored in `known` once it was found.
fn find_address(py: Python<'_>, known: &AtomicUsize, name: &str) -> PyResult<*mut c_void> {
    let mut address = known.load(Ordering::Relaxed);
    if address == 0 {
        address = address_of(py, name)?;
        known.store(address, Ordering::Relaxed);
    }
    Ok(with_exposed_provenance_mut(address))
}

/// The address of `PyBuffer_Release`, looked up before the first buffer is requested.
static BUFFER_RELEASE: AtomicUsize = AtomicUsize::new(0);

#[allow(dead_code, non_snake_case, reason = "used if PyO3 has no declaration")]
unsafe fn PyObject_GetBuffer(object: *mut PyObject, view: *mut c_void, flags: c_int) -> c_int {
    type Get = unsafe extern "C" fn(*mut PyObject, *mut c_void, c_int) -> c_int;
    static ADDRESS: AtomicUsize = AtomicUsize::new(0);

    // SAFETY: attached, as `PyObject_GetBuffer` requires.
    let py = unsafe { Python::assume_attached() };
    let release = find_address(py, &BUFFER_RELEASE, "PyBuffer_Release");
    let function = match release.and_then(|_| find_address(py, &ADDRESS, "PyObject_GetBuffer")) {
        Ok(function) => function,
        Err(error) => {
            // Without `ctypes`, raises what an object without a buffer would raise.
            let is_absent = error.is_instance_of::<PyImportError>(py);
            let is_absent = is_absent || error.is_instance_of::<PyAttributeError>(py);
            let error = if is_absent {
                PyTypeError::new_err(())
            } else {
                error
            };
            error.restore(py);
            return -1;
        }
    };
    // SAFETY: `find_address` returned the address of the function with this signature.
    let function = unsafe { transmute::<*mut c_void, Get>(function) };
    // SAFETY: the caller upholds the contract of the C function of this name.
    unsafe { function(object, view, flags) }
}

#[allow(dead_code, non_snake_case, reason = "used if PyO3 has no declaration")]
unsafe fn PyObject_CheckBuffer(object: *mut PyObject) -> c_int {
    type Check = unsafe extern "C" fn(*mut PyObject) -> c_int;
    static ADDRESS: AtomicUsize = AtomicUsize::new(0);

    // SAFETY: attached, as `PyObject_CheckBuffer` requires.
    let py = unsafe { Python::assume_attached() };
    let function = match find_address(py, &ADDRESS, "PyObject_CheckBuffer") {
        Ok(function) => function,
        Err(error) => {
            // A request would fail too.
            error.restore(py);
            // SAFETY: attached, as `py` shows.
            unsafe { ffi::PyErr_Clear() };
            return 0;
        }
    };
    // SAFETY: `find_address` returned the address of the function with this signature.
    let function = unsafe { transmute::<*mut c_void, Check>(function) };
    // SAFETY: the caller upholds the contract of the C function of this name.
    unsafe { function(object) }
}

#[allow(dead_code, non_snake_case, reason = "used if PyO3 has no declaration")]
unsafe fn PyList_SET_ITEM(list: *mut PyObject, index: Py_ssize_t, item: *mut PyObject) {
    // SAFETY: attached; a list with such an index, and a reference that is given away, by the contract of the macro of this name.
    unsafe { ffi::PyList_SetItem(list, index, item) };
}

#[allow(dead_code, non_snake_case, reason = "used if PyO3 has no declaration")]
unsafe fn PyInterpreterState_Get() {}

#[allow(dead_code, non_snake_case, reason = "used if PyO3 has no declaration")]
unsafe fn PyInterpreterState_GetID((): ()) -> i64 {
    0
}

#[allow(dead_code, non_snake_case, reason = "used if PyO3 has no declaration")]
unsafe fn PyBuffer_Release(view: *mut c_void) {
    type Release = unsafe extern "C" fn(*mut c_void);

    let function = with_exposed_provenance_mut::<c_void>(BUFFER_RELEASE.load(Ordering::Relaxed));
    // SAFETY: `PyObject_GetBuffer` above filled the buffer, and stored the address of the function with this signature.
    let function = unsafe { transmute::<*mut c_void, Release>(function) };
    // SAFETY: the caller upholds the contract of the C function of this name.
    unsafe { function(view) };
}

#[allow(dead_code, non_snake_case, reason = "used if PyO3 has no declaration")]
unsafe fn PyObject_VectorcallMethod(
    name: *mut PyObject,
    values: *const *mut PyObject,
    _: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: attached, as `PyObject_VectorcallMethod` requires.
    let py = unsafe { Python::assume_attached() };
    let call = || {
        // SAFETY: the array has a first value, the object with the method.
        let object = unsafe { *values };
        // SAFETY: a valid object, which the caller keeps alive.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        // SAFETY: a valid string, which the caller keeps alive.
        let name = unsafe { Bound::from_borrowed_ptr(py, name) };
        let method = object.getattr(name.cast_into::<PyString>()?)?;
        // SAFETY: null, or a valid tuple that the caller keeps alive.
        let Some(names) = (unsafe { Bound::from_borrowed_ptr_or_opt(py, names) }) else {
            return method.call0();
        };
        // PyO3's `PyDict::new` panics if there is no memory.
        // SAFETY: attached, as `py` shows.
        let keywords = unsafe { ffi::PyDict_New() };
        // SAFETY: a new reference, or null with an exception.
        let keywords = unsafe { Bound::from_owned_ptr_or_err(py, keywords) }?;
        let keywords = keywords.cast_into::<PyDict>()?;
        for (index, name) in names.cast_into::<PyTuple>()?.iter().enumerate() {
            // SAFETY: `values` has the object, followed by a value for each name.
            let value = unsafe { values.add(index + 1) };
            // SAFETY: `value` points into the array of values.
            let value = unsafe { *value };
            // SAFETY: a valid object, which the caller keeps alive.
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

/// Uses the lookup that `getattr` itself uses, which also caches missing attributes. Every Python from before
/// `PyObject_GetOptionalAttr` has it.
#[allow(dead_code, non_snake_case, reason = "used if PyO3 has no declaration")]
unsafe fn PyObject_GetOptionalAttr(
    class: *mut PyObject,
    name: *mut PyObject,
    found: *mut *mut PyObject,
) -> c_int {
    type Search = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;
    static ADDRESS: AtomicUsize = AtomicUsize::new(0);
    /// Whether this Python has no `ctypes`.
    static IS_ABSENT: AtomicBool = AtomicBool::new(false);

    // SAFETY: attached, as `PyObject_GetOptionalAttr` requires.
    let py = unsafe { Python::assume_attached() };
    let function = if IS_ABSENT.load(Ordering::Relaxed) {
        null_mut()
    } else {
        find_address(py, &ADDRESS, "_PyType_Lookup").unwrap_or_else(|error| {
            // An import calls this function several times, and each time the import of `ctypes` would fail again.
            IS_ABSENT.store(error.is_instance_of::<PyImportError>(py), Ordering::Relaxed);
            error.restore(py);
            // SAFETY: attached, as `PyObject_GetOptionalAttr` requires.
            unsafe { ffi::PyErr_Clear() };
            null_mut()
        })
    };
    let attribute = if function.is_null() {
        // SAFETY: attached, with a valid type and string, as `PyObject_GetOptionalAttr` requires.
        unsafe { ffi::PyObject_GetAttr(class, name) }
    } else {
        // SAFETY: `find_address` returned the address of the function with this signature.
        let function = unsafe { transmute::<*mut c_void, Search>(function) };
        // SAFETY: attached, with a valid type and string, as `PyObject_GetOptionalAttr` requires.
        let borrowed = unsafe { function(class, name) };
        // These Python versions have the GIL, so no other thread removes the attribute in between.
        // SAFETY: null, or an object that the class keeps alive.
        unsafe { ffi::Py_XINCREF(borrowed) };
        borrowed
    };
    // SAFETY: `found` is valid for writes, as `PyObject_GetOptionalAttr` requires.
    unsafe { found.write(attribute) };
    if attribute.is_null() && function.is_null() {
        -1
    } else {
        0
    }
}
