//! PyTorch's tensor class, detected once PyTorch is imported, and tensor states that DLPack cannot describe.
//!
//! A tensor with the conjugate or negative bit shows other values than its memory holds. The exchange table ignores both bits,
//! and `Tensor.__dlpack__` ignores the second. A tensor that requires grad is part of an autograd graph, which does not see
//! reads and writes by other libraries: the method refuses such a tensor, the table does not.

use dlpack_core::{DataType, abi};
use pyo3::types::PyType;
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::capi::{class_attribute, is_instance};
use crate::library::{imported_module, lossy::Loss, module_class};

/// The attributes of PyTorch that this crate uses.
struct Torch {
    tensor: Py<PyType>,
    is_conj: Py<PyAny>,
    is_neg: Py<PyAny>,
    /// The values of the class attribute `__torch_function__` with which PyTorch's methods do what they do for `Tensor` itself: its
    /// own, and the one that disables overrides.
    usual_functions: [Option<Py<PyAny>>; 2],
}

/// PyTorch's attributes, if it has been imported.
fn cached_attributes(py: Python<'_>) -> Option<&'static Torch> {
    static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

    TORCH.get(py).or_else(|| {
        let torch = look_up_attributes(py)?;
        Some(TORCH.get_or_init(py, || torch))
    })
}

#[cold]
fn look_up_attributes(py: Python<'_>) -> Option<Torch> {
    // Another module named `torch`, or one that is still being imported, has no such class.
    let tensor = module_class(intern!(py, "torch"), intern!(py, "Tensor"))?;
    let method = |name| tensor.getattr_opt(name).ok()?.map(Bound::unbind);
    let own = method(intern!(py, "__torch_function__"));
    let disabled = || {
        let internals = imported_module(py, intern!(py, "torch._C"))?;
        let name = intern!(py, "_disabled_torch_function_impl");
        internals.getattr_opt(name).ok()?.map(Bound::unbind)
    };
    Some(Torch {
        usual_functions: [
            own.map(|own| function_of(own.into_bound(py)).unbind()),
            disabled(),
        ],
        is_conj: method(intern!(py, "is_conj"))?,
        is_neg: method(intern!(py, "is_neg"))?,
        tensor: tensor.unbind(),
    })
}

/// `torch.Tensor`, if PyTorch has been imported.
pub(crate) fn tensor_class(py: Python<'_>) -> Option<&'static Py<PyType>> {
    Some(&cached_attributes(py)?.tensor)
}

/// Whether a class is `torch.Tensor` itself.
pub(crate) fn is_tensor_class(class: &Bound<'_, PyAny>) -> bool {
    cached_attributes(class.py()).is_some_and(|torch| torch.tensor.is(class))
}

/// Whether a subclass of `torch.Tensor` inherits its `__dlpack__` as it is. A class can override that method by
/// `__torch_function__`.
pub(crate) fn inherits_method(object: &Bound<'_, PyAny>) -> bool {
    let (py, class) = (object.py(), object.get_type());
    let Some(torch) = cached_attributes(py) else {
        return true;
    };
    let overriding = || class_attribute(&class, intern!(py, "__torch_function__")).map(function_of);
    let is_usual = |found: Bound<'_, PyAny>| {
        let mut usual = torch.usual_functions.iter().flatten();
        usual.any(|one| one.is(&found))
    };
    torch.tensor.is(&class) || overriding().is_none_or(is_usual)
}

/// The function of a bound method; any other object itself.
fn function_of(method: Bound<'_, PyAny>) -> Bound<'_, PyAny> {
    let function = method.getattr_opt(intern!(method.py(), "__func__"));
    function.ok().flatten().unwrap_or(method)
}

/// Whether an object is a PyTorch tensor, and its class does not override `__dlpack__`.
pub(crate) fn is_torch_tensor(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let Some(torch) = cached_attributes(py) else {
        return false;
    };
    let (tensor, class) = (torch.tensor.bind(py), object.get_type());
    let method = intern!(py, "__dlpack__");
    is_instance(object, tensor)
        && class_attribute(tensor, method)
            .zip(class_attribute(&class, method))
            .is_some_and(|(own, found)| own.is(&found))
}

/// What an import of a PyTorch tensor would lose. With the exported data type, fewer states need to be checked.
///
/// # Errors
///
/// Any exception of a subclass with `__torch_function__`, which PyTorch calls.
pub(crate) fn find_loss(
    tensor: &Bound<'_, PyAny>,
    dtype: Option<DataType>,
) -> PyResult<Option<Loss>> {
    let py = tensor.py();
    let Some(torch) = cached_attributes(py) else {
        return Ok(None);
    };
    let says = |method: &Py<PyAny>| method.bind(py).call1((tensor,))?.is_truthy();
    let code = dtype.map(DataType::code);
    // A tensor of any type may have the negative bit: a private function of PyTorch sets it.
    if says(&torch.is_neg)? {
        return Ok(Some(Loss::Negative));
    }
    // An override may export another tensor. If it does not, PyTorch itself refuses the other states.
    if !inherits_method(tensor) {
        return Ok(None);
    }
    if code.is_none_or(|code| code == abi::kDLComplex) && says(&torch.is_conj)? {
        return Ok(Some(Loss::Conjugate));
    }
    // Autograd supports floating-point and complex types only.
    let is_whole = |code| matches!(code, abi::kDLInt | abi::kDLUInt | abi::kDLBool);
    if !code.is_some_and(is_whole) && tensor.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
        return Ok(Some(Loss::Gradient));
    }
    Ok(None)
}
