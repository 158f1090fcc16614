//! Arrays that are not imported because DLPack cannot say what they are: an import would give other numbers than their
//! library shows, or change numbers of which the library keeps account.

use core::fmt;

use dlpack_core::DataType;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::types::PyType;
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::error::fail;
use crate::library::{is_of, module_class, numpy, torch};

const EXPECTED: &str = "expected an array that DLPack can describe";

/// What an import would lose of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// PyTorch's conjugate bit.
    Conjugate,
    /// PyTorch's negative bit.
    Negative,
    /// Autograd of PyTorch.
    Gradient,
    /// The mask of a masked array of NumPy.
    Mask,
}

impl Loss {
    /// What an import of an object by its `__dlpack__` or its buffer would lose.
    ///
    /// # Errors
    ///
    /// As [`torch::loss`].
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let numpy = numpy::found(object.py());
        // No class derives from both: each lays its objects out in its own way.
        match numpy.map(|numpy| is_of(object, numpy.class.bind(object.py()))) {
            Some(true) => Ok(is_masked(object).then_some(Self::Mask)),
            None if is_masked(object) => Ok(Some(Self::Mask)),
            _ if torch::is_tensor(object) => torch::loss(object, None),
            _ => Ok(None),
        }
    }

    /// What is raised for an argument, to which PyO3 adds its name.
    #[cold]
    pub(crate) fn refuse_argument(self, py: Python<'_>) -> PyErr {
        fail!(py, PyTypeError: "{EXPECTED}, found {self}").fetch(py)
    }
}

/// As in "found a masked array, ..; pass ..".
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

/// Refuses an object of which an import by its `__dlpack__` or its buffer would lose something.
pub(crate) fn refuse(object: &Bound<'_, PyAny>) -> PyResult<()> {
    refuse_loss(object.py(), Loss::of(object)?)
}

/// The same of an object that has no `__dlpack__`, so it is no tensor of PyTorch.
pub(crate) fn refuse_masked(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let may_be =
        numpy::found(object.py()).is_none_or(|numpy| is_of(object, numpy.class.bind(object.py())));
    let loss = (may_be && is_masked(object)).then_some(Loss::Mask);
    refuse_loss(object.py(), loss)
}

/// Refuses a tensor of PyTorch that was exported with this data type, if that lost something.
pub(crate) fn refuse_torch(tensor: &Bound<'_, PyAny>, dtype: DataType) -> PyResult<()> {
    refuse_loss(tensor.py(), torch::loss(tensor, Some(dtype))?)
}

fn refuse_loss(py: Python<'_>, loss: Option<Loss>) -> PyResult<()> {
    let refuse = |loss| Err(fail!(py, PyBufferError: "{EXPECTED}, found {loss}").fetch(py));
    loss.map_or(Ok(()), refuse)
}

/// Whether an object is a masked array of NumPy. `MaskedArray` inherits `__dlpack__`, `__array__` and the buffer of the array
/// that it is without its mask.
fn is_masked(object: &Bound<'_, PyAny>) -> bool {
    static MASKED: PyOnceLock<Py<PyType>> = PyOnceLock::new();

    let py = object.py();
    let class = MASKED.get(py).or_else(|| {
        // Where nobody imported it, there is no such array.
        let class = module_class(intern!(py, "numpy.ma"), intern!(py, "MaskedArray"))?;
        Some(MASKED.get_or_init(py, || class.unbind()))
    });
    class.is_some_and(|class| is_of(object, class.bind(py)))
}
