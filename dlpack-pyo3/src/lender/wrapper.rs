//! The wrapper that Python puts before the result of a method `__buffer__`.

use pyo3::types::{PyList, PyMemoryView};
use pyo3::{intern, prelude::*};

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
