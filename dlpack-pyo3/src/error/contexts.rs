//! Links an exception to one that was raised before it, so that a traceback shows both.

use core::iter::successors;

use pyo3::types::{PyBool, PyString};
use pyo3::{intern, prelude::*};

use crate::error::discard_error;

/// Makes `first` the cause of `error`, or of the last exception that `error` is linked to.
#[cold]
pub(crate) fn add_cause(py: Python<'_>, error: &PyErr, first: PyErr) {
    append_to_chain(error.value(py), first, intern!(py, "__cause__"));
}

/// Makes `first` the context of `error`, or of the last exception that `error` is linked to.
#[cold]
pub(crate) fn add_context(py: Python<'_>, error: &PyErr, first: PyErr) {
    append_to_chain(error.value(py), first, intern!(py, "__context__"));
}

/// Links the last exception that `error` is linked to with `first`, unless that would make a cycle.
fn append_to_chain<'py>(error: &Bound<'py, PyAny>, first: PyErr, link: &Bound<'py, PyString>) {
    let py = error.py();
    let first = first.into_value(py).into_bound(py).into_any();
    let end = end_of_chain(error).filter(|end| {
        // A link to a chain that contains this end would make a cycle.
        end_of_chain(&first).is_some() && !walk_chain(&first).any(|one| one.is(end))
    });
    let Some(end) = end else { return };
    // After `raise .. from None` a traceback shows no context.
    let link = if hides_context(&end) {
        intern!(py, "__cause__")
    } else {
        link
    };
    if let Err(error) = end.setattr(link, &first) {
        discard_error(py, error);
    }
}

/// An exception and those before it, at most so many: Python code can make a cycle of them, or raise one exception again and again,
/// which would then collect a link each time.
fn walk_chain<'py>(
    error: &Bound<'py, PyAny>,
) -> impl Iterator<Item = Bound<'py, PyAny>> + use<'py> {
    const MOST: usize = 10;

    successors(Some(error.clone()), find_previous).take(MOST)
}

/// The last of the [chain](walk_chain) of an exception; `None` if there are more than are followed.
fn end_of_chain<'py>(error: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    walk_chain(error).find(|one| find_previous(one).is_none())
}

/// The exception that a traceback shows before this one: its cause, or else its context.
fn find_previous<'py>(error: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let py = error.py();
    let cause = || read_attribute(error, intern!(py, "__cause__"));
    let context = || read_attribute(error, intern!(py, "__context__"));
    cause().or_else(|| {
        if hides_context(error) {
            None
        } else {
            context()
        }
    })
}

/// Whether a traceback leaves out the context of an exception.
fn hides_context(error: &Bound<'_, PyAny>) -> bool {
    let hides = read_attribute(error, intern!(error.py(), "__suppress_context__"));
    hides.is_some_and(|hides| hides.is(&*PyBool::new(error.py(), true)))
}

/// An attribute of an exception; `None` if it is `None`, or its lookup fails.
fn read_attribute<'py>(
    error: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    let found = error.getattr(name);
    let found = found
        .map_err(|failed| discard_error(error.py(), failed))
        .ok();
    found.filter(|found| !found.is_none())
}
