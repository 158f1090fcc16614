//! Links an exception to one that was raised before it, so that a traceback shows both.

use core::iter::successors;

use pyo3::types::PyString;
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
    if let Some(Err(error)) = end.map(|end| end.setattr(link, &first)) {
        discard_error(py, error);
    }
}

/// An exception and those before it, at most so many: Python code can make a cycle of them.
fn walk_chain<'py>(
    error: &Bound<'py, PyAny>,
) -> impl Iterator<Item = Bound<'py, PyAny>> + use<'py> {
    const MOST: usize = 100;

    successors(Some(error.clone()), find_previous).take(MOST)
}

/// The last of the [chain](walk_chain) of an exception; `None` if there are more than are followed.
fn end_of_chain<'py>(error: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    walk_chain(error).find(|one| find_previous(one).is_none())
}

/// The cause of an exception, or else its context.
fn find_previous<'py>(error: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let py = error.py();
    let find = |link| {
        let found = error.getattr(link);
        let found = found.map_err(|failed| discard_error(py, failed)).ok();
        found.filter(|found| !found.is_none())
    };
    find(intern!(py, "__cause__")).or_else(|| find(intern!(py, "__context__")))
}
