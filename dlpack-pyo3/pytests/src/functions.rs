//! Functions by which the tests import tensors.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use dlpack_pyo3::{DataType, Device, Error, Imported, Managed, Tensor, Version, from_dlpack};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::annotated::{Adopted, Points};

/// Tensors that Rust keeps, with or without Python.
static KEPT: Mutex<Vec<Managed>> = Mutex::new(Vec::new());

fn kept() -> std::sync::MutexGuard<'static, Vec<Managed>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether PyO3 has a text for an object's class. The result needs no Python memory.
#[pyfunction]
pub(crate) fn has_class_text(object: &Bound<'_, PyAny>) -> bool {
    !object.get_type().to_string().is_empty()
}

/// Imports `object` and returns it as a tensor over the same memory.
#[pyfunction]
pub(crate) fn take(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    from_dlpack(object).map(Tensor::new)
}

/// Imports an argument as `Tensor`, and returns it.
#[pyfunction]
pub(crate) fn first(tensor: Tensor) -> Tensor {
    tensor
}

/// The fields of an import, and its elements if the CPU can read them.
#[pyfunction]
pub(crate) fn look<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let managed = from_dlpack(object)?;
    let view = managed.view();
    let seen = PyDict::new(object.py());
    seen.set_item("shape", view.shape())?;
    seen.set_item("strides", view.strides())?;
    seen.set_item("dtype", view.dtype().to_string())?;
    seen.set_item("device", view.device().to_string())?;
    seen.set_item(
        "version",
        view.version().map(|version| (version.major, version.minor)),
    )?;
    seen.set_item("ptr", view.as_ptr().addr())?;
    seen.set_item("readonly", view.is_read_only())?;
    seen.set_item("copied", view.is_copied())?;
    seen.set_item("lent", view.as_slice::<f32>().is_ok())?;
    let bytes = view.to_vec::<u8>().ok();
    let bytes = bytes.map(|bytes| PyBytes::new(object.py(), &bytes));
    seen.set_item("bytes", bytes)?;
    let floats = view.to_vec::<f32>().ok();
    seen.set_item("floats", floats)?;
    Ok(seen)
}

/// An import that copies into a struct.
#[pyfunction]
pub(crate) fn take_points(points: Imported<Points>) -> Points {
    points.0
}

/// An import that keeps the memory.
#[pyfunction]
pub(crate) fn adopt(adopted: Imported<Adopted>) -> Adopted {
    adopted.0
}

/// The text of `inspect` for a producer.
#[pyfunction]
pub(crate) fn inspect(object: &Bound<'_, PyAny>) -> PyResult<String> {
    dlpack_pyo3::inspect(object)
}

/// The text of the error of a failed import, otherwise `None`.
#[pyfunction]
pub(crate) fn text(object: &Bound<'_, PyAny>) -> Option<String> {
    from_dlpack(object).err().map(|error| error.to_string())
}

/// An error of core that a user's own function raises.
#[pyfunction]
pub(crate) fn refuse() -> PyResult<()> {
    Err(Error::ReadOnly)?
}

/// Imports `object` and keeps it in Rust, even after the interpreter is gone.
#[pyfunction]
pub(crate) fn keep(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let managed = from_dlpack(object)?;
    let mut kept = kept();
    kept.push(managed);
    Ok(kept.len())
}

/// Releases everything that is kept, on this thread or on a new one, which is joined attached or detached.
#[pyfunction]
#[pyo3(signature = (*, thread=false, detached=true))]
pub(crate) fn let_go(py: Python<'_>, thread: bool, detached: bool) {
    let tensors = core::mem::take(&mut *kept());
    let release = move || {
        if thread {
            std::thread::spawn(move || drop(tensors))
                .join()
                .expect("a deleter does not unwind");
        } else {
            drop(tensors);
        }
    };
    if detached {
        py.detach(release);
    } else {
        release();
    }
}

/// Starts a thread that releases one tensor after another, without joining it.
#[pyfunction]
pub(crate) fn let_go_later(first: u64, pause: u64) {
    let tensors = core::mem::take(&mut *kept());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_micros(first));
        for tensor in tensors {
            drop(tensor);
            std::thread::sleep(Duration::from_micros(pause));
        }
    });
}

/// The exception for each kind of error.
#[pyfunction]
pub(crate) fn errors(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let cpu = Device::CPU;
    let found = [
        ("out of memory", Error::OutOfMemory { bytes: 7 }),
        (
            "bad stream",
            Error::BadStream {
                found: 0,
                device: Device::cuda(0),
            },
        ),
        ("cannot order", Error::CannotOrder { device: cpu }),
        (
            "too many wait",
            Error::TooManyWait {
                owners: 3,
                bytes: 12,
            },
        ),
        (
            "stream conflict",
            Error::StreamConflict {
                data: 0x10,
                given: 0x20,
            },
        ),
        (
            "no driver",
            Error::NoDriver {
                library: "libcuda",
                why: "none is there".to_owned(),
            },
        ),
        (
            "no entry point",
            Error::NoEntryPoint {
                library: "libcuda.so.1".to_owned(),
                symbol: "cuEventCreate",
            },
        ),
        (
            "driver failed",
            Error::DriverFailed {
                call: "cuEventCreate".to_owned(),
                code: 2,
                name: "CUDA_ERROR_OUT_OF_MEMORY".to_owned(),
            },
        ),
        ("capturing", Error::Capturing { what: "of a test" }),
        ("copy forbidden", Error::CopyForbidden { why: "of a test" }),
        ("legacy read-only", Error::LegacyReadOnly),
        (
            "unreachable device",
            Error::UnreachableDevice {
                data: cpu,
                requested: Device::cuda(0),
            },
        ),
        ("cannot copy", Error::CannotCopy { device: cpu }),
        (
            "unknown data type",
            Error::UnknownDataType {
                found: DataType::new(99, 8, 1),
            },
        ),
        (
            "unsupported major",
            Error::UnsupportedMajor {
                found: Version { major: 2, minor: 7 },
                supported: Version::CURRENT,
            },
        ),
        (
            "out of bounds",
            Error::OutOfBounds {
                first: 0,
                end: 8,
                len: 4,
            },
        ),
        ("read-only", Error::ReadOnly),
        ("may change", Error::MayChange),
        (
            "skipped",
            Error::Skipped {
                name: "Audio",
                variant: "Silence",
            },
        ),
        ("absent", Error::Absent { name: "mask" }),
    ];
    let exceptions = PyDict::new(py);
    for (name, error) in found {
        exceptions.set_item(name, PyErr::from(error).into_value(py))?;
    }
    Ok(exceptions)
}
