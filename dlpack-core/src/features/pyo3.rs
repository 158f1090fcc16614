//! The exception for each error, so that `?` makes one of it in functions of PyO3.

use alloc::{string::String, vec::Vec};

use pyo3::exceptions::{PyBufferError, PyIndexError, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, PyTypeInfo, Python, ffi::PyTypeObject};

use crate::{Error, error::text};

/// The exception that a consumer expects: `BufferError`, except for a value that makes no sense (`ValueError`), an index
/// out of range (`IndexError`), for no memory (`MemoryError`) and for modules that cannot work together (`RuntimeError`); never
/// `TypeError`, upon which consumers ask again for less.
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
        // PyO3 boxes it, and cannot say that there is no memory for that.
        let room = Vec::<String>::new().try_reserve_exact(1);
        match (text(&error), room) {
            (Ok(words), Ok(())) => (exception(&error).new)(words),
            _ => PyMemoryError::new_err(()),
        }
    }
}

/// A class of exceptions.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Makes one, without Python.
    pub new: fn(String) -> PyErr,
    /// The class in Python.
    pub class: fn(Python<'_>) -> *mut PyTypeObject,
}

/// The class of the exception for an error.
#[inline]
#[must_use]
pub fn exception(error: &Error) -> Exception {
    fn of<E: PyTypeInfo>() -> Exception {
        Exception {
            new: PyErr::new::<E, String>,
            class: E::type_object_raw,
        }
    }

    match error {
        Error::OutOfMemory { .. } => of::<PyMemoryError>(),
        Error::BadStream { .. } => of::<PyValueError>(),
        Error::NoLeaseTable { .. } => of::<PyRuntimeError>(),
        Error::OutOfRange { .. } | Error::NoSuchAxis { .. } => of::<PyIndexError>(),
        _ => of::<PyBufferError>(),
    }
}
