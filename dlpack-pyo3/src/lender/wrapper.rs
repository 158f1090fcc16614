//! The wrapper that Python puts before the result of a method `__buffer__`.

use pyo3::types::{PyList, PyMemoryView};
use pyo3::{intern, prelude::*};

/// The wrapper that Python 3.12 and later put between the buffer of a method `__buffer__` and the result of the method.
pub(crate) struct Wrapper<'py> {
    /// The result of the method.
    pub(crate) view: Bound<'py, PyAny>,
    /// The object that has the method.
    pub(crate) object: Option<Bound<'py, PyAny>>,
}

impl<'py> Wrapper<'py> {
    /// What a wrapper contains; `None` for other objects.
    ///
    /// The wrapper shows its contents only to the garbage collector. Its class is recognized by the name, which another class may
    /// have too; then the view may be an object that does not have the memory.
    pub(crate) fn of(exporter: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let py = exporter.py();
        if exporter.get_type().name()? != "_buffer_wrapper" {
            return Ok(None);
        }
        let collector = py.import(intern!(py, "gc"))?;
        let seen = collector.call_method1(intern!(py, "get_referents"), (exporter,))?;
        let seen = seen.cast::<PyList>()?;
        let is_view = Bound::is_exact_instance_of::<PyMemoryView>;
        // Not collected into a list, since an allocation in Rust may fail.
        let view = seen.iter().find(is_view);
        let object = seen.iter().find(|it| !is_view(it));
        Ok(view.map(|view| Self { view, object }))
    }
}
