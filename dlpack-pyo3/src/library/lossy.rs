//! Rejects arrays that DLPack cannot describe: an import would give other values than the library shows, or change values that
//! the library tracks.

use core::fmt;

use dlpack_core::DataType;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::types::PyType;
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::library::{cached_class, numpy, torch};
use crate::{capi::is_instance, error::fail};

const EXPECTED: &str = "expected an array that DLPack can describe";

/// What an import of an array would lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// PyTorch's conjugate bit.
    Conjugate,
    /// PyTorch's negative bit.
    Negative,
    /// PyTorch's autograd history.
    Gradient,
    /// The mask of a NumPy masked array.
    Mask,
}

impl Loss {
    /// What an import of an object by `__dlpack__` or its buffer would lose.
    ///
    /// # Errors
    ///
    /// Those of [`torch::find_loss`].
    pub(crate) fn of_object(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let numpy = numpy::known_api(object.py());
        // No class derives from both: their instances have different layouts.
        match numpy.map(|numpy| is_instance(object, numpy.class.bind(object.py()))) {
            Some(true) => Ok(is_masked(object).then_some(Self::Mask)),
            None if is_masked(object) => Ok(Some(Self::Mask)),
            _ if torch::is_torch_tensor(object) => torch::find_loss(object, None),
            _ => Ok(None),
        }
    }
}

/// The error for an argument, to which PyO3 adds the argument's name.
#[cold]
pub(crate) fn argument_error(py: Python<'_>, found: &dyn fmt::Display) -> PyErr {
    fail!(py, PyTypeError: "{EXPECTED}, found {found}").take_exception(py)
}

/// Continues the sentence "found ..": "a masked array, whose mask would be lost; pass ..".
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conjugate => {
                "a torch tensor with the conjugate bit, whose memory holds other numbers; pass x.resolve_conj()"
            }
            Self::Negative => {
                "a torch tensor with the negative bit, whose memory holds other numbers; pass x.resolve_neg()"
            }
            Self::Gradient => {
                "a torch tensor that requires grad, which autograd could not follow; pass x.detach()"
            }
            Self::Mask => "a masked array, whose mask would be lost; pass x.filled(..)",
        })
    }
}

/// Raises `BufferError` if an import of the object by `__dlpack__` or its buffer would lose something.
pub(crate) fn refuse_lossy(object: &Bound<'_, PyAny>) -> PyResult<()> {
    refuse_loss(object.py(), Loss::of_object(object)?)
}

/// Raises `BufferError` for a masked array. For an object without `__dlpack__`, which cannot be a PyTorch tensor.
pub(crate) fn refuse_masked(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let may_be = numpy::known_api(object.py())
        .is_none_or(|numpy| is_instance(object, numpy.class.bind(object.py())));
    let loss = (may_be && is_masked(object)).then_some(Loss::Mask);
    refuse_loss(object.py(), loss)
}

/// Raises `BufferError` if the export of a PyTorch tensor with this data type lost something.
pub(crate) fn refuse_torch(tensor: &Bound<'_, PyAny>, dtype: DataType) -> PyResult<()> {
    refuse_loss(tensor.py(), torch::find_loss(tensor, Some(dtype))?)
}

fn refuse_loss(py: Python<'_>, loss: Option<Loss>) -> PyResult<()> {
    let refuse =
        |loss| Err(fail!(py, PyBufferError: "{EXPECTED}, found {loss}").take_exception(py));
    loss.map_or(Ok(()), refuse)
}

/// Whether an object is a NumPy masked array. `MaskedArray` inherits `__dlpack__`, `__array__` and the buffer of `ndarray`,
/// which ignore the mask.
fn is_masked(object: &Bound<'_, PyAny>) -> bool {
    static MASKED: PyOnceLock<Py<PyType>> = PyOnceLock::new();

    let py = object.py();
    // If `numpy.ma` is not imported, no masked array exists.
    let (module, name) = (intern!(py, "numpy.ma"), intern!(py, "MaskedArray"));
    cached_class(&MASKED, module, name).is_some_and(|class| is_instance(object, class))
}
