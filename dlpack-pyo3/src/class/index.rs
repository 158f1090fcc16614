//! Parses the index of `tensor[index]`: integers, slices, `...` and None, as in NumPy.

use core::{fmt::Display, iter::once};

use dlpack_core::binding::{Pick, PickedView};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};
use pyo3::{PyTypeInfo, prelude::*};

use crate::error::{OrRaise, fail};

/// Applies the index or slice of each axis to a view.
///
/// # Errors
///
/// `IndexError` if an index is out of bounds or there are too many indices; `TypeError` for anything else than basic indices,
/// such as a list; and errors of slices, as Python raises them.
pub(super) fn select_view(index: &Bound<'_, PyAny>, view: &mut PickedView<'_>) -> PyResult<()> {
    match index.cast::<PyTuple>() {
        Ok(items) => select_by_items(index.py(), || items.iter_borrowed(), view),
        Err(_) => select_by_items(index.py(), || once(index.as_borrowed()), view),
    }
}

fn select_by_items<'a, 'py: 'a, I: Iterator<Item = Borrowed<'a, 'py, PyAny>>>(
    py: Python<'_>,
    items: impl Fn() -> I,
    view: &mut PickedView<'_>,
) -> PyResult<()> {
    let rank = view.shape().len();
    let is_rest = |item: &Bound<'_, PyAny>| PyEllipsis::is_exact_type_of(item);
    let is_index = |item: &Borrowed<'_, '_, PyAny>| !item.is_none() && !is_rest(item);
    let found = items().filter(is_index).count();
    let Some(rest) = rank.checked_sub(found) else {
        return Err(
            fail!(py, PyIndexError: "expected at most {rank} indices, one for each axis, found {found}").take_exception(py),
        );
    };
    let mut axes = view.shape().iter().copied().enumerate();
    let mut had_rest = false;
    for item in items() {
        if is_rest(&item) {
            if had_rest {
                return Err(
                    fail!(py, PyIndexError: "`...` may appear only once in an index")
                        .take_exception(py),
                );
            }
            had_rest = true;
            for (_, extent) in axes.by_ref().take(rest) {
                let whole = Pick::Slice(0..as_size(extent), 1);
                view.pick(&whole).or_fetch(py)?;
            }
            continue;
        }
        let pick = if item.is_none() {
            Pick::NewAxis
        } else {
            let (axis, extent) = axes.next().expect("as many as were counted");
            match item.cast::<PySlice>() {
                Ok(slice) => slice_of(&slice, extent)?,
                Err(_) => Pick::Index(index_of(&item, axis, extent)?),
            }
        };
        view.pick(&pick).or_fetch(py)?;
    }
    Ok(())
}

fn as_size(extent: i64) -> usize {
    usize::try_from(extent).unwrap_or(usize::MAX)
}

/// The lowest index of a slice, the end of the range, and the step.
fn slice_of(slice: &Bound<'_, PySlice>, extent: i64) -> PyResult<Pick> {
    let indices = slice.indices(isize::try_from(extent).unwrap_or(isize::MAX))?;
    let Some(steps) = indices.slicelength.checked_sub(1) else {
        return Ok(Pick::Slice(0..0, 1));
    };
    // `start` and `last` are indices of the axis.
    let last = indices.start + (steps as isize) * indices.step;
    let place = |index| usize::try_from(index).unwrap_or(usize::MAX);
    let (low, high) = (indices.start.min(last), indices.start.max(last));
    Ok(Pick::Slice(place(low)..place(high) + 1, indices.step))
}

/// An index; negative ones count from the end.
fn index_of(item: &Bound<'_, PyAny>, axis: usize, extent: i64) -> PyResult<usize> {
    let py = item.py();
    let out = |index: &dyn Display| {
        fail!(py, PyIndexError: "index {index} is out of bounds for axis {axis} of size {extent}")
            .take_exception(py)
    };
    let other = || {
        let class = item.get_type();
        fail!(py, PyTypeError:
            "expected an index of integers, slices, `...` and None, found {class}; numpy.from_dlpack(tensor) supports more").take_exception(py)
    };
    // NumPy treats a `bool` as a mask.
    if item.is_instance_of::<PyBool>() {
        return Err(other());
    }
    let index = match item.extract::<i64>() {
        Ok(index) => index,
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => return Err(out(item)),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return Err(other()),
        Err(error) => return Err(error),
    };
    let place = if index < 0 { index + extent } else { index };
    if place < 0 || place >= extent {
        return Err(out(&index));
    }
    Ok(as_size(place))
}
