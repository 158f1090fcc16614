//! Converts errors to Python exceptions, so that `?` works in PyO3 functions.

use alloc::{string::String, vec::Vec};

use pyo3::exceptions::{PyBufferError, PyIndexError, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, PyTypeInfo, Python, ffi::PyTypeObject};

use crate::{Error, error::text};

/// Converts an error to the exception that consumers expect: `BufferError`, except for an invalid value (`ValueError`), an
/// index out of range (`IndexError`), a failed allocation (`MemoryError`) and incompatible modules (`RuntimeError`). It is
/// never `TypeError`, because consumers retry with fewer arguments after a `TypeError`.
///
/// ```no_run,standalone_crate
/// use dlpack_core::SharedBuffer;
/// use pyo3::PyResult;
///
/// fn allocate(len: usize) -> PyResult<SharedBuffer<f32>> {
///     Ok(SharedBuffer::zeroed(len)?)
/// }
/// ```
impl From<Error> for PyErr {
    #[inline]
    fn from(error: Error) -> Self {
        // PyO3 boxes the message, and aborts if there is no memory for the box.
        let room = Vec::<String>::new().try_reserve_exact(1);
        match (text(&error), room) {
            (Ok(words), Ok(())) => (exception(&error).new)(words),
            _ => PyMemoryError::new_err(()),
        }
    }
}

/// A Python exception class.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Creates an exception of this class, without calling Python.
    pub new: fn(String) -> PyErr,
    /// Returns the class object.
    pub class: fn(Python<'_>) -> *mut PyTypeObject,
}

/// Returns the exception class for an error.
#[inline]
#[must_use]
pub fn exception(error: &Error) -> Exception {
    fn exception_class<E: PyTypeInfo>() -> Exception {
        Exception {
            new: PyErr::new::<E, String>,
            class: E::type_object_raw,
        }
    }

    match error {
        Error::OutOfMemory { .. } => exception_class::<PyMemoryError>(),
        Error::BadStream { .. } => exception_class::<PyValueError>(),
        Error::NoLeaseTable { .. } => exception_class::<PyRuntimeError>(),
        Error::OutOfRange { .. } | Error::NoSuchAxis { .. } => exception_class::<PyIndexError>(),
        _ => exception_class::<PyBufferError>(),
    }
}
