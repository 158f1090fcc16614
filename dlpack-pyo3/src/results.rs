//! Results of functions: an array of a library, over any tensor.

use dlpack_core::DLPack;
use pyo3::prelude::*;

use crate::{error::OrRaise, library};

/// A result that Python gets as an array of NumPy's, over the memory of the value that it keeps. Nothing is copied.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::Numpy;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn ramp(len: u16) -> Numpy<Vec<f32>> {
///     Numpy((0..len).map(f32::from).collect())
/// }
/// ```
///
/// Any [`DLPack`] value will do: a `Vec`, an `ndarray::Array`, a struct with the derive, a [`Managed`](crate::Managed). The
/// array may be written where nobody else has the memory, and where others may write it too. Numbers that NumPy does not
/// have, such as `bf16`, are those of `ml_dtypes`.
///
/// What makes no array raises: a value that describes itself wrongly (`BufferError`), memory of a GPU (`TypeError`), and
/// NumPy where it is not installed (`ImportError`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Numpy<T>(pub T);

impl<'py, T: DLPack + 'static> IntoPyObject<'py> for Numpy<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let tensor = self.0.into_dlpack().or_fetch(py)?;
        library::numpy::array(py, tensor)
    }
}
