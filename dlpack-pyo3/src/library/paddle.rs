//! PaddlePaddle: which tensors the exchange table of its class exports like `__dlpack__` does.
//!
//! The table checks nothing. It exports a tensor that requires grad, which the method refuses. It reads a sparse tensor, or one
//! without memory, as if it were dense, which crashes the process.

use pyo3::types::PyType;
use pyo3::{intern, prelude::*};

use crate::error::discard_error;
use crate::library::module_class;

/// Whether a class is `paddle.Tensor` itself.
pub(crate) fn is_tensor_class(class: &Bound<'_, PyType>) -> bool {
    let py = class.py();
    module_class(intern!(py, "paddle"), intern!(py, "Tensor"))
        .is_some_and(|tensor| tensor.is(class))
}

/// Whether the table exports this PaddlePaddle tensor like `__dlpack__` does. If that cannot be determined, the method is used.
pub(crate) fn may_use_table(tensor: &Bound<'_, PyAny>) -> bool {
    let py = tensor.py();
    let asked = || {
        Ok::<_, PyErr>(
            tensor
                .call_method0(intern!(py, "_is_initialized"))?
                .is_truthy()?
                && tensor.call_method0(intern!(py, "is_dense"))?.is_truthy()?
                && tensor.getattr(intern!(py, "stop_gradient"))?.is_truthy()?,
        )
    };
    asked().unwrap_or_else(|error| {
        discard_error(py, error);
        false
    })
}
