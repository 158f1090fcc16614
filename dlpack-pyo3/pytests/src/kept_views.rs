//! Views of every kind that Rust makes of an object, keeps, and drops on any thread.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use dlpack_pyo3::view::{Contiguous, Convert, Promise};
use dlpack_pyo3::{OwnedSlice, View, ViewDyn, ViewMut, ViewMutDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// While a view with this promise lives, the tests do not write the array, nor read one that the view may write.
struct Undisturbed;
// SAFETY: the tests keep the promise above, and the code here does not access memory through the kept views.
#[expect(unsafe_code, reason = "as in a user's crate")]
unsafe impl Promise for Undisturbed {}

/// Views, and values made of them.
static KEPT: Mutex<Vec<Box<dyn Send>>> = Mutex::new(Vec::new());

fn kept() -> std::sync::MutexGuard<'static, Vec<Box<dyn Send>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kinds of views for `make_view` and `keep_view`.
const KINDS: [&str; 9] = [
    "View",
    "ViewDyn",
    "ViewMut",
    "ViewMutDyn",
    "View, promised",
    "ViewMut, promised",
    "View, Contiguous",
    "View, Convert",
    "View, promised, as a slice",
];

/// The names of the kinds.
#[pyfunction]
pub(crate) fn kinds_of_views() -> Vec<&'static str> {
    KINDS.to_vec()
}

fn slice_of(object: &Bound<'_, PyAny>) -> PyResult<OwnedSlice<f32>> {
    let view: View<f32, 1, Undisturbed> = object.extract()?;
    Ok(view.into_slice()?)
}

fn view_of(object: &Bound<'_, PyAny>, kind: &str) -> PyResult<Box<dyn Send>> {
    fn boxed<T: Send + 'static>(view: PyResult<T>) -> PyResult<Box<dyn Send>> {
        Ok(Box::new(view?))
    }
    match kind {
        "View" => boxed(object.extract::<View<f32, 1>>()),
        "ViewDyn" => boxed(object.extract::<ViewDyn<f32>>()),
        "ViewMut" => boxed(object.extract::<ViewMut<f32, 1>>()),
        "ViewMutDyn" => boxed(object.extract::<ViewMutDyn<f32>>()),
        "View, promised" => boxed(object.extract::<View<f32, 1, Undisturbed>>()),
        "ViewMut, promised" => boxed(object.extract::<ViewMut<f32, 1, Undisturbed>>()),
        "View, Contiguous" => boxed(object.extract::<View<f32, 1, Contiguous>>()),
        "View, Convert" => boxed(object.extract::<View<f32, 1, Convert>>()),
        "View, promised, as a slice" => boxed(slice_of(object)),
        _ => Err(PyValueError::new_err(format!("no kind of view `{kind}`"))),
    }
}

/// Makes a view of float32 and drops it at once. PyO3 allocates nothing for the arguments and the result.
#[pyfunction]
pub(crate) fn make_view(object: &Bound<'_, PyAny>, kind: &str) -> PyResult<()> {
    // Not boxed: the allocation of a `Box` must not fail.
    match kind {
        "View" => object.extract::<View<f32, 1>>().map(drop),
        "ViewDyn" => object.extract::<ViewDyn<f32>>().map(drop),
        "ViewMut" => object.extract::<ViewMut<f32, 1>>().map(drop),
        "ViewMutDyn" => object.extract::<ViewMutDyn<f32>>().map(drop),
        "View, promised" => object.extract::<View<f32, 1, Undisturbed>>().map(drop),
        "ViewMut, promised" => object.extract::<ViewMut<f32, 1, Undisturbed>>().map(drop),
        "View, Contiguous" => object.extract::<View<f32, 1, Contiguous>>().map(drop),
        "View, Convert" => object.extract::<View<f32, 1, Convert>>().map(drop),
        "View, promised, as a slice" => slice_of(object).map(drop),
        "to_vec" => Ok(object.extract::<ViewDyn<f32>>()?.to_vec().map(drop)?),
        _ => Err(PyValueError::new_err(format!("no kind of view `{kind}`"))),
    }
}

/// Makes a view of float32 and keeps it, even after the interpreter is gone. Returns the number of kept views.
#[pyfunction]
pub(crate) fn keep_view(object: &Bound<'_, PyAny>, kind: &str) -> PyResult<usize> {
    let view = view_of(object, kind)?;
    let mut kept = kept();
    kept.push(view);
    Ok(kept.len())
}

/// Drops all kept views, on this thread or on a new one, attached or detached.
#[pyfunction]
#[pyo3(signature = (*, thread=false, detached=true))]
pub(crate) fn release_views(py: Python<'_>, thread: bool, detached: bool) {
    let views = core::mem::take(&mut *kept());
    let release = move || {
        if thread {
            let releasing = std::thread::spawn(move || drop(views));
            releasing.join().expect("a deleter does not unwind");
        } else {
            drop(views);
        }
    };
    if detached {
        py.detach(release);
    } else {
        release();
    }
}

/// Starts a thread that drops one view after another, without joining it.
#[pyfunction]
pub(crate) fn release_views_later(first: u64, pause: u64) {
    let views = core::mem::take(&mut *kept());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_micros(first));
        for view in views {
            drop(view);
            std::thread::sleep(Duration::from_micros(pause));
        }
    });
}
