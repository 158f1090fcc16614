//! The array libraries of Python: how one is found, and by what it makes an array of its own.
//!
//! | file | job |
//! |---|---|
//! | this one | what to say of one that is not installed |
//! | `function` | the `from_dlpack` of any library, by name |
//! | `numpy` | NumPy's C API: found once NumPy is there, and by it an array over any tensor |

pub(crate) mod function;
pub(crate) mod numpy;

use pyo3::{exceptions::PyModuleNotFoundError, prelude::*};

use crate::error::fail;

/// That a library is not installed, with what to do about it, if this is what the error of its import says; `why` it is wanted.
#[cold]
fn not_installed(py: Python<'_>, error: PyErr, library: &str, why: &str) -> PyErr {
    let missing = || error.value(py).getattr("name")?.extract::<String>();
    let is_missing = error.is_instance_of::<PyModuleNotFoundError>(py);
    if !is_missing || missing().is_ok_and(|name| name != library) {
        return error;
    }
    let told = fail!(py, PyModuleNotFoundError: "{why}, and `{library}` is not installed: `pip install {library}`");
    let told = told.fetch(py);
    told.set_cause(py, Some(error));
    told
}
