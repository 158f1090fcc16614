//! NumPy arrays that NumPy does not export: of which data type, and with which strides.

use dlpack_core::binding::text;
use pyo3::types::PyTuple;
use pyo3::{intern, prelude::*};

use crate::error::OrRaise;
use crate::library::numpy::is_array_or_derived;

/// The data type of a NumPy array, if NumPy exports no such type: objects, strings, times, records, `longdouble`, and another byte
/// order.
#[cold]
pub(crate) fn unsupported_dtype<'py>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if !is_array_or_derived(object) {
        return Ok(None);
    }
    let dtype = object.getattr(intern!(py, "dtype"))?;
    let kind = dtype.getattr(intern!(py, "kind"))?;
    let character = dtype.getattr(intern!(py, "char"))?;
    let is_refused =
        intern!(py, "OSUVTMm").contains(kind)? || intern!(py, "gG").contains(character)?;
    let is_native = dtype.getattr(intern!(py, "isnative"))?.is_truthy()?;
    Ok((!is_native || is_refused).then_some(dtype))
}

/// What NumPy does not export of an array with strides that are no multiple of its item size, such as a column of packed records:
/// DLPack counts strides in items. `None` for other objects. Continues the sentence "found ..".
#[cold]
pub(crate) fn fractional_strides(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = object.py();
    if !is_array_or_derived(object) {
        return Ok(None);
    }
    let itemsize: i64 = object.getattr(intern!(py, "itemsize"))?.extract()?;
    // Not extracted to a `Vec`, for which PyO3 would abort if there is no memory.
    let strides = object.getattr(intern!(py, "strides"))?;
    let Ok(strides) = strides.cast_into::<PyTuple>() else {
        return Ok(None);
    };
    let mut is_fractional = false;
    for stride in &strides {
        is_fractional |= stride.extract::<i64>()?.checked_rem(itemsize).unwrap_or(0) != 0;
    }
    if !is_fractional {
        return Ok(None);
    }
    text(format_args!(
        "one with byte strides {strides}, which are no multiple of its item size {itemsize}; pass numpy.ascontiguousarray(x)"
    ))
    .or_fetch(py)
    .map(Some)
}
