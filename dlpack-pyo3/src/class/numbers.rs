//! The elements of a [`Tensor`](crate::Tensor) as Python numbers, in nested lists.

use dlpack_core::binding::{AnyNumber, Numbers, copy_numbers};
use dlpack_core::{Managed, TensorRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::{PyTypeInfo, prelude::*, types::PyInt};

use crate::error::fail;
use crate::{keepalive::attached, values};

/// All elements, in a nested list for each axis, and for the lanes of an element if it has several.
///
/// # Errors
///
/// `BufferError` for memory that the CPU cannot read, and for elements that share bytes.
pub(super) fn nested_list<'py>(py: Python<'py>, tensor: &Managed) -> PyResult<Bound<'py, PyAny>> {
    let view = tensor.view();
    let mut numbers = read_numbers(py, tensor, &view)?;
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
) -> PyResult<Bound<'py, PyAny>> {
    let Some((extent, axes)) = axes.split_first() else {
        return match more {
            [] => python_number(py, numbers.next().expect("one for each item")),
            _ => list_of_axes(py, more, &[], numbers),
        };
    };
    if axes.is_empty() && more.is_empty() {
        return innermost_list(py, usize::try_from(*extent).unwrap_or(0), numbers);
    }
    let list = values::new_list(py)?;
    for _ in 0..*extent {
        list.append(list_of_axes(py, axes, more, numbers)?)?;
    }
    Ok(list.into_any())
}

/// A list of the next `len` numbers.
fn innermost_list<'py>(
    py: Python<'py>,
    len: usize,
    numbers: &mut Numbers,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(list) = values::list_of_numbers(py, len, numbers) {
        return list;
    }
    let list = values::new_list(py)?;
    for number in numbers.take(len) {
        list.append(python_number(py, number)?)?;
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
    tensor: &Managed,
) -> PyResult<Bound<'py, PyAny>> {
    let view = tensor.view();
    let shape = view.shape().iter();
    let items: i64 = shape.fold(1, |items, extent| items.saturating_mul(*extent));
    match items.saturating_mul(view.dtype().lanes().into()) {
        1 => python_number(
            py,
            read_numbers(py, tensor, &view)?.next().expect("it has one"),
        ),
        found => Err(fail!(py, E:
            "expected a tensor of one element, found {found} elements; `tolist()` returns them all")
        .take_exception(py)),
    }
}

/// The only element as an index: an integer of a tensor without axes. Everything else is a `TypeError`.
pub(super) fn element_as_index<'py>(
    py: Python<'py>,
    tensor: &Managed,
) -> PyResult<Bound<'py, PyInt>> {
    match only_element::<PyTypeError>(py, tensor)?.cast_into() {
        Ok(number) if tensor.view().shape().is_empty() => Ok(number),
        _ => Err(
            fail!(py, PyTypeError: "only an integer tensor without axes is an index")
                .take_exception(py),
        ),
    }
}

/// Whether the only element is true.
pub(super) fn only_element_is_true(py: Python<'_>, tensor: &Managed) -> PyResult<bool> {
    only_element::<PyValueError>(py, tensor)?.is_truthy()
}

fn read_numbers(py: Python<'_>, tensor: &Managed, view: &TensorRef<'_>) -> PyResult<Numbers> {
    attached::wait_until_readable(py, tensor)?;
    Ok(copy_numbers(view)?)
}

fn python_number(py: Python<'_>, number: AnyNumber) -> PyResult<Bound<'_, PyAny>> {
    match number {
        AnyNumber::Bool(is_true) => Ok(values::new_bool(py, is_true)),
        AnyNumber::Signed(number) => values::new_wide_int(py, number),
        AnyNumber::Unsigned(number) => values::new_wide_unsigned_int(py, number),
        AnyNumber::Float(number) => values::new_float(py, number),
        AnyNumber::Complex(real, imaginary) => values::new_complex(py, [real, imaginary]),
    }
}
