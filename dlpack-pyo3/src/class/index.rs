//! Parses the index of `tensor[index]`: integers, slices, `...` and None, as in NumPy.

use core::{fmt::Display, iter::from_fn};

use dlpack_core::binding::{Pick, PickedView};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};
use pyo3::{PyTypeInfo, prelude::*};

use crate::error::{OrRaise, Raised, bail, fail, show_object};

/// Applies the index or slice of each axis to a view.
///
/// # Errors
///
/// `IndexError` if an index is out of bounds or there are too many indices; `TypeError` for anything else than basic indices,
/// such as a list; and errors of slices, as Python raises them.
pub(super) fn select_view(
    index: &Bound<'_, PyAny>,
    view: &mut PickedView<'_>,
) -> Result<(), Raised> {
    let py = index.py();
    let tuple = index.cast::<PyTuple>().ok();
    let items = || {
        let mut tuple = tuple.map(|items| items.iter_borrowed());
        let mut single = Some(index.as_borrowed());
        from_fn(move || match &mut tuple {
            Some(items) => items.next(),
            None => single.take(),
        })
    };
    let rank = view.shape().len();
    let is_rest = |item: &Bound<'_, PyAny>| PyEllipsis::is_exact_type_of(item);
    let is_index = |item: &Borrowed<'_, '_, PyAny>| !item.is_none() && !is_rest(item);
    let found = items().filter(is_index).count();
    let Some(rest) = rank.checked_sub(found) else {
        bail!(py, PyIndexError: "expected at most {rank} indices, one for each axis, found {found}");
    };
    let mut had_rest = false;
    for item in items() {
        if is_rest(&item) {
            if had_rest {
                bail!(py, PyIndexError: "`...` may appear only once in an index");
            }
            had_rest = true;
            view.keep(rest).or_raise(py)?;
            continue;
        }
        let pick = if item.is_none() {
            Pick::NewAxis
        } else {
            let (axis, extent) = view.next_axis().expect("as many as were counted");
            match item.cast::<PySlice>() {
                Ok(slice) => slice_of(&slice, extent)?,
                Err(_) => Pick::Index(index_of(&item, axis, extent)?),
            }
        };
        view.pick(&pick).or_raise(py)?;
    }
    Ok(())
}

fn as_size(extent: i64) -> usize {
    usize::try_from(extent).unwrap_or(usize::MAX)
}

/// The lowest index of a slice, the end of the range, and the step.
fn slice_of(slice: &Bound<'_, PySlice>, extent: i64) -> Result<Pick, Raised> {
    let indices = slice.indices(isize::try_from(extent).unwrap_or(isize::MAX));
    let indices = indices.or_raise(slice.py())?;
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
fn index_of(item: &Bound<'_, PyAny>, axis: usize, extent: i64) -> Result<usize, Raised> {
    let py = item.py();
    let out = |index: &dyn Display| fail!(py, PyIndexError: "index {index} is out of bounds for axis {axis} of size {extent}");
    let other = || {
        let class = item.get_type();
        fail!(py, PyTypeError:
            "expected an index of integers, slices, `...` and None, found {class}; numpy.from_dlpack(tensor) supports more")
    };
    // NumPy treats a `bool` as a mask.
    if item.is_instance_of::<PyBool>() {
        return Err(other());
    }
    let index = match item.extract::<i64>() {
        Ok(index) => index,
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            return Err(out(&show_object(item)?));
        }
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return Err(other()),
        Err(error) => return Err(error).or_raise(py),
    };
    let place = if index < 0 { index + extent } else { index };
    if place < 0 || place >= extent {
        return Err(out(&index));
    }
    Ok(as_size(place))
}
