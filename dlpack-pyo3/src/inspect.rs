//! [`inspect`]: a readable description of what a producer exports.
#![expect(unsafe_code, reason = "reads capsules without consuming them")]

use core::fmt::Write as _;

use dlpack_core::abi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_FLAG_BITMASK_IS_COPIED,
    DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, DLPACK_FLAG_BITMASK_READ_ONLY, DLTensor,
};
use dlpack_core::{DataType, Device, DeviceType, Version, binding::list_at};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::error::{DisplayTuple, concerns_object};
use crate::{exchange::lookup, export::capsule};

/// Describes what an object exports, as text: both kinds of capsule, field by field, and the exchange table.
///
/// No capsule is consumed, and no element is read. Exceptions of the producer become part of the text.
///
/// ```no_run,standalone_crate
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn explain(obj: &Bound<'_, PyAny>) -> PyResult<String> {
///     dlpack_pyo3::inspect(obj)
/// }
/// ```
///
/// # Errors
///
/// Only exceptions that Python raises while the text is written, and an interrupt, an exit or a `MemoryError` in a method of the
/// producer.
pub fn inspect(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = object.py();
    let mut text = format!("{}\n", object.get_type().fully_qualified_name()?);

    let pair = object.call_method0("__dlpack_device__");
    let device = match pair.and_then(|pair| pair.extract::<(i32, i32)>()) {
        Ok((kind, id)) => format!("({kind}, {id}): {}", Device::new(DeviceType(kind), id)),
        Err(error) => describe_exception(py, error)?,
    };
    write_line(&mut text, "__dlpack_device__()", &device);

    let keywords = PyDict::new(py);
    let Version { major, minor, .. } = Version::CURRENT;
    keywords.set_item("max_version", (major, minor))?;
    let versioned = object.call_method("__dlpack__", (), Some(&keywords));
    let call = format!("__dlpack__(max_version=({major}, {minor}))");
    write_result(py, &mut text, &call, versioned)?;
    let legacy = object.call_method0("__dlpack__");
    write_result(py, &mut text, "__dlpack__()", legacy)?;

    let table = match lookup::table_of_class(&object.get_type()) {
        None => "none".to_owned(),
        Some(table) => {
            let version = Version::from(table.api.header.version);
            let lend = table.api.dltensor_from_py_object_no_sync;
            let lends = lend.map_or("but does not lend", |_| "and lends");
            format!("version {version}, exports {lends}")
        }
    };
    write_line(&mut text, "exchange table", &table);
    Ok(text)
}

fn write_line(text: &mut String, name: &str, value: &str) {
    // Writing to a `String` does not fail.
    let _ = writeln!(text, "  {name:<20} {value}");
}

/// Describes an exception of the producer. An interrupt and exhausted memory are passed on.
fn describe_exception(py: Python<'_>, error: PyErr) -> PyResult<String> {
    if !concerns_object(py, &error) {
        return Err(error);
    }
    let class = text_of(&error.get_type(py))?;
    Ok(format!("raises {class}: {}", text_of(error.value(py))?))
}

/// The text of an object, or a replacement if its `__str__` raises an exception. An interrupt and exhausted memory are passed on.
fn text_of(object: &Bound<'_, PyAny>) -> PyResult<String> {
    match object.str() {
        Ok(text) => Ok(text.to_string_lossy().into_owned()),
        Err(failed) if concerns_object(object.py(), &failed) => Ok(format!(
            "<unprintable {} object>",
            object.get_type().name()?
        )),
        Err(failed) => Err(failed),
    }
}

fn write_result(
    py: Python<'_>,
    text: &mut String,
    call: &str,
    answer: PyResult<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let _ = writeln!(text, "  {call}");
    let described = answer
        .and_then(|object| capsule::expect_capsule(object, "__dlpack__"))
        .and_then(|capsule| write_capsule(text, &capsule));
    if let Err(error) = described {
        write_line(text, "", &describe_exception(py, error)?);
    }
    Ok(())
}

fn write_capsule(text: &mut String, capsule: &Bound<'_, PyCapsule>) -> PyResult<()> {
    let (tensor, name) = capsule::peek_tensor(capsule)?;
    write_line(text, "  capsule", &format!("{name:?}"));
    if name == capsule::LEGACY {
        // SAFETY: a capsule of this name contains a legacy tensor, and keeps it alive.
        let tensor = unsafe { tensor.cast::<DLManagedTensor>().as_ref() };
        write_fields(text, &tensor.dl_tensor, false, tensor.deleter.is_some());
        return Ok(());
    }
    let tensor = tensor.cast::<DLManagedTensorVersioned>();
    // SAFETY: a capsule of this name contains a versioned tensor; its first field is the version.
    let version = Version::from(unsafe { (*tensor.as_ptr()).version });
    write_line(text, "  version", &version.to_string());
    if version.major != Version::CURRENT.major {
        let why = "another major version: nothing else can be read";
        write_line(text, "  ", why);
        return Ok(());
    }
    // SAFETY: the struct has all fields in this major version, and the capsule keeps it alive.
    let tensor = unsafe { tensor.as_ref() };
    write_line(text, "  flags", &flag_names(tensor.flags));
    let padded = tensor.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0;
    write_fields(text, &tensor.dl_tensor, padded, tensor.deleter.is_some());
    Ok(())
}

fn flag_names(flags: u64) -> String {
    let known = [
        (DLPACK_FLAG_BITMASK_READ_ONLY, "read-only"),
        (DLPACK_FLAG_BITMASK_IS_COPIED, "copied"),
        (DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, "padded"),
    ];
    let set = known.iter().filter(|(flag, _)| flags & flag != 0);
    let mut names: Vec<&str> = set.map(|(_, name)| *name).collect();
    if known.iter().fold(flags, |rest, (flag, _)| rest & !flag) != 0 {
        names.push("and some that are not known");
    }
    if names.is_empty() {
        names.push("none");
    }
    names.join(", ")
}

fn write_fields(text: &mut String, tensor: &DLTensor, padded: bool, deleter: bool) {
    let dtype = DataType::new(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
    let dtype = if padded { dtype.padded() } else { dtype };
    write_line(text, "  dtype", &dtype.to_string());
    write_line(text, "  device", &Device::from(tensor.device).to_string());
    // SAFETY: each pointer is null or has `ndim` entries, which the capsule keeps alive.
    let list = |start| match unsafe { list_at(start, tensor.ndim) } {
        Ok(Some(list)) => DisplayTuple(list).to_string(),
        Ok(None) => "null".to_owned(),
        Err(error) => error.to_string(),
    };
    write_line(text, "  shape", &list(tensor.shape));
    write_line(text, "  strides", &list(tensor.strides));
    let address = tensor.data.addr();
    let aligned = if address == 0 {
        "null".to_owned()
    } else {
        let alignment = 1_u64 << address.trailing_zeros().min(12);
        format!("{address:#x}, a multiple of {alignment}")
    };
    write_line(text, "  data", &aligned);
    write_line(text, "  byte_offset", &tensor.byte_offset.to_string());
    write_line(text, "  deleter", if deleter { "there" } else { "null" });
}
