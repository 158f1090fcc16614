//! Errors and panics on their way into Python.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use dlpack_core::Error;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

/// The exception that a consumer expects for an error (ERR-01 to ERR-05).
///
/// `BufferError`, except for a value that makes no sense (`ValueError`) and for no memory (`MemoryError`);
/// never `TypeError`, upon which consumers ask again for less.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{SharedBuffer, py_err};
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn allocate(len: usize) -> PyResult<()> {
///     let buffer = SharedBuffer::<f32>::zeroed(len).map_err(py_err)?;
///     drop(buffer);
///     Ok(())
/// }
/// ```
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "stands in `map_err`")]
pub fn py_err(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::OutOfMemory { .. } => PyMemoryError::new_err(message),
        Error::BadStream { .. } => PyValueError::new_err(message),
        _ => PyBufferError::new_err(message),
    }
}

/// An exception is set on this thread: all that the caller has to know, in no bytes at all. A result
/// with a whole [`PyErr`] in it costs as much to pass up as an export costs otherwise.
#[derive(Debug)]
pub(crate) struct Raised;

/// Sets the exception.
#[cold]
pub(crate) fn raise(py: Python<'_>, error: PyErr) -> Raised {
    error.restore(py);
    Raised
}

/// Sets the exception for an error of the core.
#[cold]
pub(crate) fn refuse(py: Python<'_>, error: Error) -> Raised {
    raise(py, py_err(error))
}

/// Runs code of the user that Python called through us: a panic in it is a `BufferError`, since
/// `PanicException` would pass every `except Exception` (ERR-06).
#[inline(always)]
pub(crate) fn contained<R>(
    py: Python<'_>,
    body: impl FnOnce() -> Result<R, Raised>,
) -> Result<R, Raised> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => Err(panicked(py, payload)),
    }
}

#[cold]
fn panicked(py: Python<'_>, payload: Box<dyn Any + Send>) -> Raised {
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let error = PyBufferError::new_err(format!(
        "the code of the exported object panicked: {message}"
    ));
    forget_panic(payload);
    raise(py, error)
}

/// Drops what was thrown, which may panic again.
#[cold]
pub(crate) fn forget_panic(payload: Box<dyn Any + Send>) {
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    core::mem::forget(dropped);
}

/// The same for a function that Python calls with C's conventions: null stands for an exception.
#[inline(always)]
pub(crate) fn answer(
    py: Python<'_>,
    body: impl FnOnce() -> Result<*mut ffi::PyObject, Raised>,
) -> *mut ffi::PyObject {
    contained(py, body).unwrap_or(core::ptr::null_mut())
}

/// Lets code that speaks of `PyErr` run where an exception is set.
pub(crate) trait OrRaise<R> {
    fn or_raise(self, py: Python<'_>) -> Result<R, Raised>;
}

impl<R> OrRaise<R> for Result<R, Error> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> Result<R, Raised> {
        self.map_err(|error| refuse(py, error))
    }
}

impl<R> OrRaise<R> for PyResult<R> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> Result<R, Raised> {
        self.map_err(|error| raise(py, error))
    }
}

/// The other way round.
pub(crate) trait OrFetch<R> {
    fn or_fetch(self, py: Python<'_>) -> PyResult<R>;
}

impl<R> OrFetch<R> for Result<R, Raised> {
    fn or_fetch(self, py: Python<'_>) -> PyResult<R> {
        self.map_err(|Raised| PyErr::fetch(py))
    }
}
