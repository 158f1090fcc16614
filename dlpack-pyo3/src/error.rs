//! Errors and panics on their way into Python.
//!
//! Whoever calls our C functions calls nothing of PyO3's, which makes an exception out of memory that it has to have,
//! and keeps what is dropped until somebody calls a function of its own. So every refusal is made here, by Python's own
//! functions: where there is no memory for it, in Rust or in Python, it is a `MemoryError`.
#![expect(unsafe_code, reason = "sets exceptions by C functions")]

use core::fmt::{self, Display};
use core::{any::Any, mem::forget, panic::AssertUnwindSafe};
use std::panic::catch_unwind;

use dlpack_core::Error;
use dlpack_core::binding::{exception, text};
use pyo3::exceptions::PyBufferError;
use pyo3::{PyTypeInfo, ffi, ffi::PyTypeObject, prelude::*, types::PyType};

/// An exception is set on this thread: all that the caller has to know, in no bytes at all. A result
/// with a whole [`PyErr`] in it costs as much to pass up as an export costs otherwise.
#[derive(Debug)]
pub struct Raised;

impl Raised {
    /// The exception, which is not set any more.
    #[cold]
    pub(crate) fn fetch(self, py: Python<'_>) -> PyErr {
        PyErr::fetch(py)
    }

    /// Nobody is told.
    pub(crate) fn forget(self, _: Python<'_>) {
        // SAFETY: attached.
        unsafe { ffi::PyErr_Clear() };
    }
}

/// Sets an exception of a class, with a text as of `format!`.
macro_rules! fail {
    ($py:expr, $class:ty: $($words:tt)*) => {
        $crate::error::fail_as::<$class>($py, format_args!($($words)*))
    };
}

/// Returns with such an exception.
macro_rules! bail {
    ($($words:tt)*) => { return Err($crate::error::fail!($($words)*)) };
}
pub(crate) use {bail, fail};

#[cold]
pub(crate) fn fail_as<E: PyTypeInfo>(py: Python<'_>, words: fmt::Arguments<'_>) -> Raised {
    set(E::type_object_raw(py), &words)
}

/// The same for a class that was looked up, of exceptions.
#[cold]
pub(crate) fn fail_of(class: &Bound<'_, PyType>, words: fmt::Arguments<'_>) -> Raised {
    set(class.as_type_ptr(), &words)
}

/// Sets the exception for an error of the core.
#[cold]
pub(crate) fn refuse(py: Python<'_>, error: &Error) -> Raised {
    set((exception(error).class)(py), error)
}

/// The same for an object of this class, which is named: where there are many, that says which.
#[cold]
pub(crate) fn refuse_of(py: Python<'_>, class: &str, error: &Error) -> Raised {
    set(
        (exception(error).class)(py),
        &format_args!("`{class}`: {error}"),
    )
}

/// Only called with a class of exceptions, so on an attached thread.
fn set(class: *mut PyTypeObject, words: &dyn Display) -> Raised {
    let Ok(words) = text(words) else {
        return out_of_memory();
    };
    let len = ffi::Py_ssize_t::try_from(words.len()).unwrap_or(ffi::Py_ssize_t::MAX);
    // SAFETY: attached, and so many bytes of UTF-8.
    let words = unsafe { ffi::PyUnicode_FromStringAndSize(words.as_ptr().cast(), len) };
    // Or there is a `MemoryError`.
    if !words.is_null() {
        // SAFETY: attached; a class of exceptions, and a string.
        unsafe { ffi::PyErr_SetObject(class.cast(), words) };
        // SAFETY: attached; the reference was given right above.
        unsafe { ffi::Py_DECREF(words) };
    }
    Raised
}

/// Only called on an attached thread.
#[cold]
pub(crate) fn out_of_memory() -> Raised {
    // SAFETY: attached. It needs no memory.
    unsafe { ffi::PyErr_NoMemory() };
    Raised
}

/// A list of so many values, where there is memory for it.
pub(crate) fn list<T>(
    _: Python<'_>,
    of: impl ExactSizeIterator<Item = T>,
) -> Result<Vec<T>, Raised> {
    let mut list = Vec::new();
    let room = list.try_reserve_exact(of.len());
    room.map_err(|_| out_of_memory())?;
    list.extend(of);
    Ok(list)
}

/// Sets an exception of PyO3's.
#[cold]
pub(crate) fn raise(py: Python<'_>, error: PyErr) -> Raised {
    let restored = catch_unwind(AssertUnwindSafe(move || {
        let mut error = Some(error);
        let mut restore = |py: Python<'_>| error.take().map_or((), |error| error.restore(py));
        // What is dropped in here is gone at once. A Python that ends lets nobody in, and needs it no more.
        Python::try_attach(&mut restore);
        restore(py);
    }));
    if let Err(payload) = restored {
        // PyO3 panics where it finds no memory.
        forget_panic(payload);
        return out_of_memory();
    }
    Raised
}

/// Drops an exception of PyO3's. PyO3 does not know that a thread is attached that Python called through us: a mere drop
/// puts the exception into a list until it is told, and ends the process where there is no memory for that.
#[cold]
pub(crate) fn forget_error(py: Python<'_>, error: PyErr) {
    raise(py, error).forget(py);
}

/// Runs code of the user that Python called through us: a panic in it is a `BufferError`, since
/// `PanicException` would pass every `except Exception`.
// ERR-06
#[inline(always)]
pub(crate) fn contained<R>(
    py: Python<'_>,
    body: impl FnOnce() -> Result<R, Raised>,
) -> Result<R, Raised> {
    let body = AssertUnwindSafe(move || {
        let halt = Halt;
        let result = body();
        forget(halt);
        result
    });
    catch_unwind(body).unwrap_or_else(|payload| Err(panicked(py, payload)))
}

/// Halts a thread that is being ended: before Python 3.14 that is how one learns, by unwinding, that it came back to a
/// Python that is gone. Who stopped that would end the process.
pub(crate) struct Halt;

impl Drop for Halt {
    fn drop(&mut self) {
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}

#[cold]
fn panicked(py: Python<'_>, payload: Box<dyn Any + Send>) -> Raised {
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let raised = fail!(py, PyBufferError: "the code of the exported object panicked: {message}");
    forget_panic(payload);
    raised
}

/// Drops what was thrown, which may panic again.
#[cold]
pub(crate) fn forget_panic(payload: Box<dyn Any + Send>) {
    forget(catch_unwind(AssertUnwindSafe(|| drop(payload))));
}

/// The same for a function that Python calls with C's conventions: null stands for an exception.
#[inline(always)]
pub(crate) fn answer(
    py: Python<'_>,
    body: impl FnOnce() -> Result<*mut ffi::PyObject, Raised>,
) -> *mut ffi::PyObject {
    contained(py, body).unwrap_or(core::ptr::null_mut())
}

/// Lets code that speaks of errors run where an exception is set, and the other way round.
pub(crate) trait OrRaise<R>: Sized {
    fn or_raise(self, py: Python<'_>) -> Result<R, Raised>;

    fn or_fetch(self, py: Python<'_>) -> PyResult<R> {
        self.or_raise(py).map_err(|raised| raised.fetch(py))
    }
}

impl<R> OrRaise<R> for Result<R, Raised> {
    fn or_raise(self, _: Python<'_>) -> Self {
        self
    }
}

impl<R> OrRaise<R> for Result<R, Error> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> Result<R, Raised> {
        self.map_err(|error| refuse(py, &error))
    }
}

impl<R> OrRaise<R> for PyResult<R> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> Result<R, Raised> {
        self.map_err(|error| raise(py, error))
    }
}

/// A list of numbers, which is shown as Python writes a tuple.
pub(crate) struct Tuple<'a>(pub(crate) &'a [i64]);

impl Display for Tuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (axis, number) in self.0.iter().enumerate() {
            let before = if axis == 0 { "" } else { ", " };
            write!(f, "{before}{number}")?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}
