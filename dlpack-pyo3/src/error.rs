//! Sets Python exceptions for errors and panics, without PyO3.
//!
//! PyO3's exceptions need memory and panic without it. Also, our C functions are not called through PyO3, so PyO3 does not know
//! that the thread is attached, and defers what is dropped until it is. So errors are raised here by CPython's own functions:
//! if there is no memory for an exception, in Rust or in Python, a `MemoryError` is raised.
//!
//! The texts of core's errors are in `error.rs` of dlpack-core, and the text for a panic is in this file. Other texts are written
//! where `fail!` and `bail!` raise them.
#![expect(unsafe_code, reason = "calls C functions that set exceptions")]

mod contexts;

pub(crate) use contexts::{add_cause, add_context};

use core::fmt::{self, Display};
use core::{any::Any, mem::forget, panic::AssertUnwindSafe};
use std::panic::catch_unwind;

use dlpack_core::Error;
use dlpack_core::binding::{exception, text};
use pyo3::exceptions::{PyBufferError, PyException, PyMemoryError};
use pyo3::{PyTypeInfo, ffi, ffi::PyTypeObject, prelude::*, types::PyType};

/// An exception is set on this thread. Zero-sized, because a result that contains a [`PyErr`] is as expensive to return as an
/// export.
#[derive(Debug)]
pub struct Raised;

impl Raised {
    /// Takes the exception, so that it is not set any more.
    #[cold]
    pub(crate) fn take_exception(self, py: Python<'_>) -> PyErr {
        PyErr::fetch(py)
    }

    /// Clears the exception; it is not reported.
    pub(crate) fn clear_exception(self, _: Python<'_>) {
        // SAFETY: attached, as the `Python` shows.
        unsafe { ffi::PyErr_Clear() };
    }
}

/// Sets an exception of a class, with a message like that of `format!`.
macro_rules! fail {
    ($py:expr, $class:ty: $($words:tt)*) => {
        $crate::error::raise_as::<$class>($py, format_args!($($words)*))
    };
}

/// Returns with an exception of a class, with a message like that of `format!`.
macro_rules! bail {
    ($($words:tt)*) => { return Err($crate::error::fail!($($words)*)) };
}
pub(crate) use {bail, fail};

#[cold]
pub(crate) fn raise_as<E: PyTypeInfo>(py: Python<'_>, words: fmt::Arguments<'_>) -> Raised {
    set_exception(E::type_object_raw(py), &words)
}

/// Sets an exception of a class that was looked up at run time.
#[cold]
pub(crate) fn raise_class(class: &Bound<'_, PyType>, words: fmt::Arguments<'_>) -> Raised {
    set_exception(class.as_type_ptr(), &words)
}

/// Sets the exception for an error of the core.
#[cold]
pub(crate) fn raise_core_error(py: Python<'_>, error: &Error) -> Raised {
    set_exception((exception(error).class)(py), error)
}

/// Sets the exception for an error of the core, with the name of the object's class.
#[cold]
pub(crate) fn raise_core_error_of(py: Python<'_>, class: &str, error: &Error) -> Raised {
    set_exception(
        (exception(error).class)(py),
        &format_args!("`{class}`: {error}"),
    )
}

/// Only called with an exception class, hence on an attached thread.
fn set_exception(class: *mut PyTypeObject, words: &dyn Display) -> Raised {
    let Ok(words) = text(words) else {
        return out_of_memory();
    };
    let len = ffi::Py_ssize_t::try_from(words.len()).unwrap_or(ffi::Py_ssize_t::MAX);
    // SAFETY: attached; `words` has `len` bytes of UTF-8.
    let words = unsafe { ffi::PyUnicode_FromStringAndSize(words.as_ptr().cast(), len) };
    // If the string cannot be created, a `MemoryError` is set.
    if !words.is_null() {
        // SAFETY: attached; an exception class and a string.
        unsafe { ffi::PyErr_SetObject(class.cast(), words) };
        // SAFETY: attached; `words` is a new reference, which is not used afterwards.
        unsafe { ffi::Py_DECREF(words) };
    }
    Raised
}

/// Only called on an attached thread.
#[cold]
pub(crate) fn out_of_memory() -> Raised {
    // SAFETY: attached, as every caller is. Needs no memory.
    unsafe { ffi::PyErr_NoMemory() };
    Raised
}

/// Collects values into a `Vec`; a `MemoryError` if there is no memory for it.
pub(crate) fn try_collect<T>(
    _: Python<'_>,
    of: impl ExactSizeIterator<Item = T>,
) -> Result<Vec<T>, Raised> {
    let mut list = Vec::new();
    let room = list.try_reserve_exact(of.len());
    room.map_err(|_| out_of_memory())?;
    list.extend(of);
    Ok(list)
}

/// Sets a PyO3 exception.
#[cold]
pub(crate) fn raise_pyo3_error(py: Python<'_>, error: PyErr) -> Raised {
    let restored = catch_unwind(AssertUnwindSafe(move || {
        let mut error = Some(error);
        let mut restore = |py: Python<'_>| error.take().map_or((), |error| error.restore(py));
        // Within `try_attach`, PyO3 drops objects at once. During interpreter shutdown it does not run the closure, so the
        // call below does.
        Python::try_attach(&mut restore);
        restore(py);
    }));
    if let Err(payload) = restored {
        // PyO3 panics if there is no memory.
        discard_panic(payload);
        return out_of_memory();
    }
    Raised
}

/// Whether an error says something about the object that raised it, so that another way to read the object may succeed. An
/// interrupt, an exit and exhausted memory say nothing about it, and are passed on.
#[cold]
pub(crate) fn concerns_object(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyMemoryError>(py)
}

/// Drops a PyO3 exception. PyO3 does not know that this thread is attached, as CPython called us directly. A plain drop would
/// put the exception into a list of PyO3's until the thread attaches through PyO3, and abort if there is no memory for the
/// list.
#[cold]
pub(crate) fn discard_error(py: Python<'_>, error: PyErr) {
    raise_pyo3_error(py, error).clear_exception(py);
}

/// Drops an error that [concerns the object](concerns_object) that raised it, and returns any other.
#[cold]
pub(crate) fn discard_if_concerns_object(py: Python<'_>, error: PyErr) -> PyResult<()> {
    if !concerns_object(py, &error) {
        return Err(error);
    }
    discard_error(py, error);
    Ok(())
}

/// Returns `None` instead of an error that [concerns the object](concerns_object) that raised it.
pub(crate) fn none_if_concerns_object<T>(
    py: Python<'_>,
    found: PyResult<Option<T>>,
) -> PyResult<Option<T>> {
    found.or_else(|error| discard_if_concerns_object(py, error).map(|()| None))
}

/// An object as a message shows it: its text, or its class if it has no text, such as an integer of too many digits.
///
/// # Errors
///
/// An interrupt, or exhausted memory, in `__str__`.
#[cold]
pub(crate) fn show_object<'py>(object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Raised> {
    let py = object.py();
    let text = none_if_concerns_object(py, object.str().map(Some)).or_raise(py)?;
    Ok(text.map_or_else(|| object.get_type().into_any(), Bound::into_any))
}

/// Runs user code called by CPython; a panic in it raises `BufferError`. PyO3's `PanicException` would pass every
/// `except Exception`.
// ERR-06
#[inline(always)]
pub(crate) fn catch_panics<R>(
    py: Python<'_>,
    body: impl FnOnce() -> Result<R, Raised>,
) -> Result<R, Raised> {
    let body = AssertUnwindSafe(move || {
        let halt = HaltThread;
        let result = body();
        forget(halt);
        result
    });
    catch_unwind(body).unwrap_or_else(|payload| Err(raise_panic(py, payload)))
}

/// Halts a thread that CPython ends by unwinding: before Python 3.14 that happens to threads that attach after interpreter
/// shutdown. Catching the unwinding would abort the process.
pub(crate) struct HaltThread;

impl Drop for HaltThread {
    fn drop(&mut self) {
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}

#[cold]
fn raise_panic(py: Python<'_>, payload: Box<dyn Any + Send>) -> Raised {
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let raised = fail!(py, PyBufferError: "the code of the exported object panicked: {message}");
    discard_panic(payload);
    raised
}

/// Drops a panic payload; that may panic again.
#[cold]
pub(crate) fn discard_panic(payload: Box<dyn Any + Send>) {
    forget(catch_unwind(AssertUnwindSafe(|| drop(payload))));
}

/// Runs user code called by CPython, and returns null with an exception for an error or a panic.
#[inline(always)]
pub(crate) fn catch_into_null(
    py: Python<'_>,
    body: impl FnOnce() -> Result<*mut ffi::PyObject, Raised>,
) -> *mut ffi::PyObject {
    catch_panics(py, body).unwrap_or(core::ptr::null_mut())
}

/// Converts errors: `or_raise` for code that sets exceptions, `or_fetch` for code that returns [`PyErr`].
pub(crate) trait OrRaise<R>: Sized {
    fn or_raise(self, py: Python<'_>) -> Result<R, Raised>;

    fn or_fetch(self, py: Python<'_>) -> PyResult<R> {
        self.or_raise(py)
            .map_err(|raised| raised.take_exception(py))
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
        self.map_err(|error| raise_core_error(py, &error))
    }
}

/// For a description that is used where it is: it is large, and each move copies it.
impl<'a, R> OrRaise<&'a R> for &'a Result<R, Error> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> Result<&'a R, Raised> {
        self.as_ref().map_err(|error| raise_core_error(py, error))
    }
}

impl<R> OrRaise<R> for PyResult<R> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> Result<R, Raised> {
        self.map_err(|error| raise_pyo3_error(py, error))
    }
}

/// A list of numbers, displayed like a Python tuple.
pub(crate) struct DisplayTuple<'a>(pub(crate) &'a [i64]);

impl Display for DisplayTuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (axis, number) in self.0.iter().enumerate() {
            let before = if axis == 0 { "" } else { ", " };
            write!(f, "{before}{number}")?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}
