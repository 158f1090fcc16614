//! The elements of a [`Tensor`](crate::Tensor) as Python numbers, in nested lists.

use dlpack_core::TensorRef;
use dlpack_core::binding::{AnyNumber, Numbers, copy_numbers, only_number};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::{PyTypeInfo, prelude::*, types::PyInt};

use crate::error::{OrRaise, Raised, bail};
use crate::values;

/// All elements, in a nested list for each axis, and for the lanes of an element if it has several.
///
/// # Errors
///
/// `BufferError` for memory that the CPU cannot read, and for elements that share bytes.
pub(super) fn nested_list<'py>(
    py: Python<'py>,
    view: &TensorRef<'_>,
) -> Result<Bound<'py, PyAny>, Raised> {
    if view.shape() == [1] {
        // A list of one number is common, and the iterator over numbers takes longer than that.
        if let Some(number) = only_number(view).or_raise(py)? {
            return values::list_of_one(python_number(py, number)?).or_raise(py);
        }
    }
    let mut numbers = Numbers::NONE;
    copy_numbers(view, &mut numbers).or_raise(py)?;
    let (axes, lanes) = (view.shape(), [view.dtype().lanes().into()]);
    let lanes = if lanes == [1] { &[][..] } else { &lanes };
    list_of_axes(py, axes, lanes, &mut numbers)
}

/// The numbers of the axes in `axes`, followed by those in `more` (the lanes).
fn list_of_axes<'py>(
    py: Python<'py>,
    axes: &[i64],
    more: &[i64],
    numbers: &mut Numbers,
) -> Result<Bound<'py, PyAny>, Raised> {
    let Some((extent, axes)) = axes.split_first() else {
        return match more {
            [] => python_number(py, numbers.next().expect("one for each item")),
            _ => list_of_axes(py, more, &[], numbers),
        };
    };
    if axes.is_empty() && more.is_empty() {
        return innermost_list(py, usize::try_from(*extent).unwrap_or(0), numbers);
    }
    let list = values::new_list(py).or_raise(py)?;
    for _ in 0..*extent {
        list.append(list_of_axes(py, axes, more, numbers)?)
            .or_raise(py)?;
    }
    Ok(list.into_any())
}

/// A list of the next `len` numbers.
fn innermost_list<'py>(
    py: Python<'py>,
    len: usize,
    numbers: &mut Numbers,
) -> Result<Bound<'py, PyAny>, Raised> {
    if let Some(list) = values::list_of_numbers(py, len, numbers) {
        return list.ok_or(Raised);
    }
    let list = values::new_list(py).or_raise(py)?;
    for number in numbers.take(len) {
        list.append(python_number(py, number)?).or_raise(py)?;
    }
    Ok(list.into_any())
}

/// The only element of a tensor.
///
/// # Errors
///
/// An `E` if there are more elements or none; `BufferError` for memory that the CPU cannot read.
pub(super) fn only_element<'py, E: PyTypeInfo>(
    py: Python<'py>,
    view: &TensorRef<'_>,
) -> Result<Bound<'py, PyAny>, Raised> {
    if let Some(number) = only_number(view).or_raise(py)? {
        return python_number(py, number);
    }
    let items = (view.shape().iter()).fold(1, |items: i64, extent| items.saturating_mul(*extent));
    let found = items.saturating_mul(view.dtype().lanes().into());
    bail!(py, E: "expected a tensor of one element, found {found} elements; `tolist()` returns them all")
}

/// The only element, converted by the class `T`.
pub(super) fn only_element_as<'py, T: PyTypeInfo>(
    py: Python<'py>,
    view: &TensorRef<'_>,
) -> Result<Bound<'py, T>, Raised> {
    match only_element::<PyTypeError>(py, view)?.cast_into_exact() {
        Ok(number) => Ok(number),
        Err(error) => {
            let number = values::call_one(&T::type_object(py), error.into_inner()).or_raise(py)?;
            number.cast_into().map_err(PyErr::from).or_raise(py)
        }
    }
}

/// The only element as an index: an integer of a tensor without axes. Everything else is a `TypeError`.
pub(super) fn element_as_index<'py>(
    py: Python<'py>,
    view: &TensorRef<'_>,
) -> Result<Bound<'py, PyInt>, Raised> {
    // Exactly: a `bool` is an instance of `int`, but no index.
    match only_element::<PyTypeError>(py, view)?.cast_into_exact() {
        Ok(number) if view.shape().is_empty() => Ok(number),
        _ => bail!(py, PyTypeError: "only an integer tensor without axes is an index"),
    }
}

/// Whether the only element is true.
pub(super) fn only_element_is_true(py: Python<'_>, view: &TensorRef<'_>) -> Result<bool, Raised> {
    only_element::<PyValueError>(py, view)?
        .is_truthy()
        .or_raise(py)
}

fn python_number(py: Python<'_>, number: AnyNumber) -> Result<Bound<'_, PyAny>, Raised> {
    let number = match number {
        AnyNumber::Bool(is_true) => Ok(values::new_bool(py, is_true)),
        AnyNumber::Signed(number) => values::new_wide_int(py, number),
        AnyNumber::Unsigned(number) => values::new_wide_unsigned_int(py, number),
        AnyNumber::Float(number) => values::new_float(py, number),
        AnyNumber::Complex(real, imaginary) => values::new_complex(py, [real, imaginary]),
    };
    number.or_raise(py)
}
