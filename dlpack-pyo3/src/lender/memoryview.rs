//! Finds the lender behind a memoryview, so that an import of the memoryview keeps our memory alive, not a chain of objects.

use dlpack_core::Managed;
use dlpack_core::binding::keep_by_root_of;
use pyo3::types::{PyList, PyMemoryView};
use pyo3::{intern, prelude::*};

use crate::lender::tensor_of_lender;

/// Implements [`keep_by_root`](super::keep_by_root), once there are lenders.
pub(super) fn find_and_keep_root(
    tensor: Managed,
    view: &Bound<'_, PyMemoryView>,
) -> PyResult<Managed> {
    let mut lender = exporter_of(view)?;
    // The buffer of a pickle is backed by another memoryview. Real chains of them are shorter than this limit.
    for _ in 0..8 {
        let Ok(view) = lender.cast_exact::<PyMemoryView>() else {
            break;
        };
        lender = exporter_of(view)?;
    }
    Ok(match tensor_of_lender(&lender) {
        // Checks that the lender's memory contains the tensor's items.
        Some(keeper) => keep_by_root_of(tensor, keeper),
        None => tensor,
    })
}

/// The object that provides the memory of a memoryview.
fn exporter_of<'py>(view: &Bound<'py, PyMemoryView>) -> PyResult<Bound<'py, PyAny>> {
    let exporter = view.getattr(intern!(view.py(), "obj"))?;
    Ok(behind_wrapper(&exporter)?.unwrap_or(exporter))
}

/// The result of a method `__buffer__`, if `exporter` is the wrapper that Python 3.12 and later put before it; `None` for other
/// objects.
///
/// The wrapper shows the result only to the garbage collector. Its class is recognized by the name, which another class may
/// have too; then the result may be an object that does not have the memory.
pub(crate) fn behind_wrapper<'py>(
    exporter: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = exporter.py();
    if exporter.get_type().name()? != "_buffer_wrapper" {
        return Ok(None);
    }
    let collector = py.import(intern!(py, "gc"))?;
    let seen = collector.call_method1(intern!(py, "get_referents"), (exporter,))?;
    let mut seen = seen.cast::<PyList>()?.iter();
    Ok(seen.find(Bound::is_exact_instance_of::<PyMemoryView>))
}
