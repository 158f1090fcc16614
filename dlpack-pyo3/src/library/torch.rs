//! PyTorch: its class of tensors, found once PyTorch is there, and the states of a tensor that DLPack cannot say.
//!
//! A tensor with the conjugate or the negative bit shows other numbers than its memory holds. Its exchange table does not
//! look at these bits, `Tensor.__dlpack__` only at the first. A tensor that requires grad belongs to a graph that learns
//! nothing of reads and writes by others: the method refuses it, the table does not.

use dlpack_core::{DataType, abi};
use pyo3::types::PyType;
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::hidden::class_attribute;
use crate::library::{is_of, lossy::Loss, module_class};

/// What is needed of PyTorch.
struct Torch {
    tensor: Py<PyType>,
    is_conj: Py<PyAny>,
    is_neg: Py<PyAny>,
}

/// PyTorch, once it was found.
fn found(py: Python<'_>) -> Option<&'static Torch> {
    static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

    TORCH.get(py).or_else(|| {
        let torch = find(py)?;
        Some(TORCH.get_or_init(py, || torch))
    })
}

#[cold]
fn find(py: Python<'_>) -> Option<Torch> {
    // Another module of this name, or one that is being imported, has no such class.
    let tensor = module_class(intern!(py, "torch"), intern!(py, "Tensor"))?;
    let method = |name| tensor.getattr_opt(name).ok()?.map(Bound::unbind);
    Some(Torch {
        is_conj: method(intern!(py, "is_conj"))?,
        is_neg: method(intern!(py, "is_neg"))?,
        tensor: tensor.unbind(),
    })
}

/// Whether a class is `torch.Tensor` itself.
pub(crate) fn is_tensor_class(class: &Bound<'_, PyAny>) -> bool {
    found(class.py()).is_some_and(|torch| torch.tensor.is(class))
}

/// Whether an object is a tensor of PyTorch, of which no subclass overrides `__dlpack__`.
pub(crate) fn is_tensor(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let Some(torch) = found(py) else {
        return false;
    };
    let (tensor, class) = (torch.tensor.bind(py), object.get_type());
    let method = intern!(py, "__dlpack__");
    is_of(object, tensor)
        && class_attribute(tensor, method)
            .zip(class_attribute(&class, method))
            .is_some_and(|(own, found)| own.is(&found))
}

/// What an import of a tensor of PyTorch would lose; the data type, where it is known, spares questions.
///
/// # Errors
///
/// What a subclass raises that PyTorch asks: one with `__torch_function__`.
pub(crate) fn loss(tensor: &Bound<'_, PyAny>, dtype: Option<DataType>) -> PyResult<Option<Loss>> {
    let py = tensor.py();
    let Some(torch) = found(py) else {
        return Ok(None);
    };
    let says = |method: &Py<PyAny>| method.bind(py).call1((tensor,))?.is_truthy();
    let code = dtype.map(DataType::code);
    // Any type may have the negative bit, by a private function of PyTorch.
    if says(&torch.is_neg)? {
        return Ok(Some(Loss::Negative));
    }
    if code.is_none_or(|code| code == abi::kDLComplex) && says(&torch.is_conj)? {
        return Ok(Some(Loss::Conjugate));
    }
    // PyTorch differentiates by numbers with a fraction only.
    let is_whole = |code| matches!(code, abi::kDLInt | abi::kDLUInt | abi::kDLBool);
    if !code.is_some_and(is_whole) && tensor.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
        return Ok(Some(Loss::Gradient));
    }
    Ok(None)
}
