//! Calls a producer's `__dlpack_device__` and `__dlpack__`, with as many keywords as it accepts.

use core::array;

use dlpack_core::binding::text;
use dlpack_core::{Device, DeviceType, Version};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyWarning};
use pyo3::types::{PyBool, PyCapsule, PyString, PyTuple};
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::error::{add_context, discard_error, none_if_concerns_object};
use crate::{capi::call_method, export::capsule, values};

/// Returns the capsule of `__dlpack__`, and whether the producer accepted `device` and `copy`; `None` if it lacks one of the
/// methods.
///
/// Without `stream`, the consumer's stream is the default stream of the producer's device.
// ERR-08
pub(super) fn call_dlpack<'py>(
    object: &Bound<'py, PyAny>,
    device: Option<Device>,
    copy: Option<bool>,
    stream: Option<i64>,
) -> PyResult<Option<(Bound<'py, PyCapsule>, bool)>> {
    let py = object.py();
    let (dlpack, where_it_is) = (intern!(py, "__dlpack__"), intern!(py, "__dlpack_device__"));
    let stream = match device {
        _ if stream.is_some() => stream,
        // DEV-09: the producer waits before it copies to the CPU, so there is no consumer stream.
        Some(Device::CPU) if object.hasattr(where_it_is)? => None,
        _ => match call_method(object, where_it_is, [None; 4], None) {
            Err(error) => match unless_absent(object, where_it_is, error)? {
                None => return Ok(None),
                Some(error) => default_stream(py, Err(error), device)?,
            },
            found => default_stream(py, found, device)?,
        },
    };
    let pair = |device: Device| {
        let pair = [device.device_type.0, device.device_id].map(i64::from);
        values::new_int_tuple(py, pair).map(Bound::into_any)
    };
    let wishes = [
        Some(newest_version(py)?.clone().into_any()),
        stream
            .map(|stream| values::new_int(py, stream))
            .transpose()?,
        device.map(pair).transpose()?,
        copy.map(|copy| PyBool::new(py, copy).to_owned().into_any()),
    ];
    // Retried without `dl_device` and `copy`, then without `max_version` too, at last without any keyword.
    let ask_without = |less: u8| {
        let wanted = [less < 2, less < 3, less < 1, less < 1];
        let values = array::from_fn(|index| wishes[index].as_ref().filter(|_| wanted[index]));
        call_method(
            object,
            dlpack,
            values,
            keyword_tuple(py, values.map(|value| value.is_some()))?,
        )
    };
    let is_asked_more = device.is_some() || copy.is_some();
    let (mut answer, mut refused) = (ask_without(0), None);
    // A producer that cannot copy raises `BufferError` (CPY-10), and the copy is made here (CPY-12).
    let may_copy_here = copy == Some(true) && device.is_none();
    // A producer from before a keyword was introduced raises `TypeError` (NEG-14).
    let lacks_keyword = |error: &PyErr, less: u8| {
        error.is_instance_of::<PyTypeError>(py)
            || less == 1 && may_copy_here && error.is_instance_of::<PyBufferError>(py)
    };
    for (less, is_less) in [(1, is_asked_more), (2, stream.is_some()), (3, true)] {
        answer = match answer {
            Err(error) if is_less && lacks_keyword(&error, less) => {
                // The first error names what the caller requested.
                match refused {
                    None => refused = Some(error),
                    Some(_) => discard_error(py, error),
                }
                ask_without(less)
            }
            answer => answer,
        };
    }
    let in_full = refused.is_none();
    let answer = answer.and_then(|answer| capsule::expect_capsule(answer, "__dlpack__"));
    let is_legacy =
        |capsule: &Bound<'_, PyCapsule>| capsule.is_valid_checked(Some(capsule::LEGACY));
    let answer = match (answer, refused) {
        // NEG-15: no flag of a legacy tensor says whether it is a copy.
        (Ok(capsule), Some(error)) if copy == Some(false) && is_legacy(&capsule) => {
            return Err(error);
        }
        (Ok(capsule), Some(error)) => {
            discard_error(py, error);
            Ok(capsule)
        }
        (Err(last), Some(first)) => Err(refusal_error(py, first, last)),
        (answer, None) => answer,
    };
    match answer {
        Ok(capsule) => Ok(Some((capsule, in_full))),
        Err(error) => unless_absent(object, dlpack, error)?.map_or(Ok(None), Err),
    }
}

/// The error for a producer that refused the keywords, and failed without them too.
///
/// The first error is either about a keyword that the producer does not know, or the reason why it exports nothing. The last
/// one is never about a keyword, so it is raised, and the first is the last of its contexts. A warning says only that the retry is
/// deprecated.
#[cold]
fn refusal_error(py: Python<'_>, first: PyErr, last: PyErr) -> PyErr {
    if last.is_instance_of::<PyWarning>(py) || text(&first) == text(&last) {
        discard_error(py, last);
        return first;
    }
    add_context(py, &last, first);
    last
}

/// Returns the error, or `None` if it means that the object has no such method.
#[cold]
fn unless_absent(
    object: &Bound<'_, PyAny>,
    method: &Bound<'_, PyString>,
    error: PyErr,
) -> PyResult<Option<PyErr>> {
    let py = object.py();
    if !error.is_instance_of::<PyAttributeError>(py) {
        return Ok(Some(error));
    }
    match object.hasattr(method) {
        Ok(true) => Ok(Some(error)),
        has => {
            discard_error(py, error);
            has.map(|_| None)
        }
    }
}

/// `(major, minor)` of the newest version that this crate supports.
fn newest_version(py: Python<'_>) -> PyResult<&Bound<'_, PyTuple>> {
    static PAIR: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();

    let Version { major, minor, .. } = Version::CURRENT;
    let pair = || Ok::<_, PyErr>((major, minor).into_pyobject(py)?.unbind());
    values::get_or_make(&PAIR, py, pair).map(|pair| pair.bind(py))
}

/// The names of the keywords that are passed; `None` if there are none.
fn keyword_tuple(py: Python<'_>, there: [bool; 4]) -> PyResult<Option<&Bound<'_, PyTuple>>> {
    const ALL: [&str; 4] = ["max_version", "stream", "dl_device", "copy"];
    static TUPLES: [PyOnceLock<Py<PyTuple>>; 16] = [const { PyOnceLock::new() }; 16];

    let which = there
        .iter()
        .rfold(0, |bits, &is_there| 2 * bits + usize::from(is_there));
    if which == 0 {
        return Ok(None);
    }
    let tuple = || {
        let some = ALL.iter().zip(there).filter(|(_, is_there)| *is_there);
        let some: Vec<_> = some.map(|(name, _)| PyString::intern(py, name)).collect();
        Ok::<_, PyErr>(PyTuple::new(py, some)?.unbind())
    };
    let names = values::get_or_make(&TUPLES[which], py, tuple)?;
    Ok(Some(names.bind(py)))
}

/// The default stream of a producer's device, by its number in the protocol. The core uses the same stream for tensors without
/// a stream of their own.
///
/// `None` for memory that the CPU can read, as in other consumers, and if the data is requested on another device.
// STC-10, STC-11, STR-07, STC-15
fn default_stream(
    py: Python<'_>,
    device: PyResult<Bound<'_, PyAny>>,
    wanted: Option<Device>,
) -> PyResult<Option<i64>> {
    let device = match device {
        Ok(pair) => none_if_concerns_object(py, pair.extract::<(i32, i32)>().map(Some))?,
        // DEV-11: the object has no device; `__dlpack__` will raise an error too.
        Err(error) if error.is_instance_of::<PyBufferError>(py) => {
            discard_error(py, error);
            None
        }
        Err(error) => return Err(error),
    };
    let kind = device.map(|(kind, _)| DeviceType(kind));
    Ok(match kind {
        Some(kind) if wanted.is_some_and(|wanted| wanted.device_type != kind) => None,
        Some(DeviceType::CUDA) => Some(1),
        Some(DeviceType::ROCM) => Some(0),
        _ => None,
    })
}
