//! JAX: its array class. The buffer of an array gives the same memory as `__dlpack__`, a function in Python, in a fifth of the time.

use pyo3::types::PyType;
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::library::cached_class;

/// Whether an object is an array of JAX, and not of a class that derives from it.
///
/// In a version of JAX that has the class in another module, this is `false`.
pub(crate) fn is_jax_array(object: &Bound<'_, PyAny>) -> bool {
    static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

    let py = object.py();
    let (module, name) = (intern!(py, "jaxlib._jax"), intern!(py, "ArrayImpl"));
    cached_class(&ARRAY, module, name).is_some_and(|class| class.is(object.get_type()))
}

/// Raises JAX's error for an array that was deleted or donated. `__dlpack_device__`, which is called first otherwise, would raise one that
/// does not say so.
pub(crate) fn refuse_deleted(array: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = array.py();
    let Some(is_deleted) = array.getattr_opt(intern!(py, "is_deleted"))? else {
        return Ok(());
    };
    if is_deleted.call0()?.is_truthy()? {
        array.call_method0(intern!(py, "__dlpack__"))?;
    }
    Ok(())
}
