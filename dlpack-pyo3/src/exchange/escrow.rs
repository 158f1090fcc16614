//! A tensor between two owners: who has it after code of the user ran.

use dlpack_core::{Managed, binding::Offer};
use pyo3::prelude::*;

use crate::error::{OrRaise, Raised, contained};

/// How a class makes an object of a tensor.
pub(crate) type ToObject = for<'py> fn(Python<'py>, Managed) -> PyResult<Bound<'py, PyAny>>;

/// Makes an object of a tensor, by code of the user if there is any. The tensor belongs to those who have it then; after an
/// error to its caller, and to nobody else.
///
/// That code may have handed the tensor to anybody before it fails or panics. So a plain object is there before it runs, with
/// all the memory that it takes: an answer that takes the tensor away from nobody.
pub(super) fn hand_over<'py>(
    py: Python<'py>,
    offer: Offer,
    plain: ToObject,
    make: Option<ToObject>,
) -> Result<Bound<'py, PyAny>, Raised> {
    let take = || offer.take().or_raise(py);
    let plain = plain(py, take()?).or_raise(py)?;
    let object = match make {
        None => plain,
        Some(make) => match contained(py, || make(py, take()?).or_raise(py)) {
            Err(Raised) if offer.takers() > 1 => {
                // It cannot be raised beside a result.
                PyErr::fetch(py).write_unraisable(py, Some(&plain));
                plain
            }
            object => object?,
        },
    };
    offer.accept();
    Ok(object)
}
