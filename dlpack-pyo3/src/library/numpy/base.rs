//! The object behind an array over a value of Rust: it holds the value itself, which is dropped with the last view of the array.
//!
//! ```text
//! ndarray ── base ──▶ object with the value in it
//! ```
//!
//! The garbage collector does not see the value: it may be of any type.
#![expect(unsafe_code, reason = "stores a value in an object of Python's")]

use core::ffi::{c_int, c_uint, c_void};
use core::marker::PhantomData;
use core::mem::{forget, needs_drop};
use core::panic::AssertUnwindSafe;
use core::ptr;
use std::panic::catch_unwind;

use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::{prelude::*, sync::PyOnceLock, types::PyType};

use crate::error::{OrRaise, Raised};
use crate::keepalive::PendingException;

/// An object with a value behind it, at the first address that is aligned for its type.
#[repr(C)]
struct Object {
    head: ffi::PyVarObject,
    /// Drops the value; null while there is none.
    drop_value: Option<unsafe fn(*mut PyObject)>,
}

/// An object that holds a `T`, and that only this value has a reference to.
pub(super) struct ValueObject<'py, T>(Bound<'py, PyAny>, PhantomData<T>);

/// Where the value of an object is.
fn place<T>(object: *mut PyObject) -> *mut T {
    let start = object.wrapping_byte_add(size_of::<Object>()).cast::<u8>();
    let padding = start.addr().wrapping_neg() % align_of::<T>();
    start.wrapping_byte_add(padding).cast()
}

impl<'py, T: Send + 'static> ValueObject<'py, T> {
    /// Moves a value into a new object. Without memory it is dropped.
    pub(super) fn new(py: Python<'py>, value: T) -> Result<Self, Raised> {
        let bytes = size_of::<T>().saturating_add(align_of::<T>() - 1);
        let Some(object) = allocate(py, bytes) else {
            // The value's `Drop` shall not see the exception.
            let _pending = PendingException::save_current();
            drop(value);
            return Err(Raised);
        };
        // SAFETY: aligned, with room for a `T` behind it, and nobody else has the object.
        unsafe { place::<T>(object.as_ptr()).write(value) };
        let drop_value = |object| {
            // SAFETY: `dealloc` calls this once, for an object with a `T` in it that nobody uses any more.
            unsafe { place::<T>(object).drop_in_place() }
        };
        if needs_drop::<T>() {
            // SAFETY: an object of the class below, which nobody else has.
            unsafe { (*object.as_ptr().cast::<Object>()).drop_value = Some(drop_value) };
        }
        Ok(Self(object, PhantomData))
    }

    /// The value, which stays where it is until the object is freed.
    ///
    /// # Safety
    ///
    /// The object outlives the reference, the reference is not used after `into_value`, and this is called once.
    pub(super) unsafe fn value<'a>(&self) -> &'a mut T {
        // SAFETY: `new` wrote it; the rest is passed on to the caller.
        unsafe { &mut *place::<T>(self.0.as_ptr()) }
    }

    /// The value, moved out of the object.
    pub(super) fn into_value(self) -> T {
        // SAFETY: an object of the class below, which nobody else has.
        unsafe { (*self.0.as_ptr().cast::<Object>()).drop_value = None };
        // SAFETY: `new` wrote it, and nothing drops or uses it any more.
        unsafe { place::<T>(self.0.as_ptr()).read() }
    }

    pub(super) fn into_any(self) -> Bound<'py, PyAny> {
        self.0
    }
}

/// A new object with so many bytes for a value.
fn allocate(py: Python<'_>, bytes: usize) -> Option<Bound<'_, PyAny>> {
    let class = class(py).or_raise(py).ok()?;
    // A type is smaller than `isize::MAX`; what is too large with its alignment is refused as any size is.
    let bytes = Py_ssize_t::try_from(bytes).unwrap_or(Py_ssize_t::MAX);
    // SAFETY: a class whose objects have any number of bytes behind them.
    let object = unsafe { ffi::PyType_GenericAlloc(class.as_type_ptr(), bytes) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_opt(py, object) }
}

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

    let make = || {
        let dealloc = dealloc as ffi::destructor as *mut c_void;
        let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
        let mut slots = [slot(ffi::Py_tp_dealloc, dealloc), slot(0, ptr::null_mut())];
        let flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
        let mut spec = ffi::PyType_Spec {
            name: c"dlpack_pyo3.Value".as_ptr(),
            basicsize: c_int::try_from(size_of::<Object>()).expect("some words"),
            itemsize: 1,
            flags: c_uint::try_from(flags).expect("in the lower half"),
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: a list of slots that ends with a zero, and a function of its type.
        let class = unsafe { ffi::PyType_FromSpec(&raw mut spec) };
        // SAFETY: a new reference, or null with an exception.
        let class = unsafe { Bound::from_owned_ptr_or_err(py, class) }?;
        Ok::<_, PyErr>(class.cast_into::<PyType>()?.unbind())
    };
    CLASS.get_or_try_init(py, make).map(|class| class.bind(py))
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: an object of the class, which nobody has any more.
    let drop_value = unsafe { (*object.cast::<Object>()).drop_value };
    if let Some(drop_value) = drop_value {
        let _pending = PendingException::save_current();
        // SAFETY: there is a value, and this is its one drop.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { drop_value(object) }));
        // Its payload's own `Drop` could panic.
        forget(dropped);
    }
    // SAFETY: an object of the class.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: how an object without a garbage collector's header is freed.
    unsafe { ffi::PyObject_Free(object.cast()) };
    // SAFETY: each object of a class that was made at run time holds a reference to it.
    unsafe { ffi::Py_DECREF(class.cast()) };
}
