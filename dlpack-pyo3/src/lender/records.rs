//! Buffers of records: their format in the syntax of PEP 3118, as NumPy reads it.
//!
//! `T{=d:price:=I:size:=?:bid:3x}` is a struct of three fields with 3 bytes of padding. Sizes are those of the standard (`=`,
//! which NumPy wants behind the shape of an array), and padding is written down, also at the end of nested records, so
//! nothing depends on how a reader aligns.

use core::fmt::{self, Display};

use dlpack_core::binding::{Records, text};
use dlpack_core::element::{FieldKind, FieldLayout, RecordLayout};
use dlpack_core::{DataType, Device};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi::Py_ssize_t;
use pyo3::prelude::*;

use crate::error::{OrRaise, Raised, bail};
use crate::lender::{Place, Source, format_of, size};

impl<'py> Place<'py> {
    /// Room for a lender of these records, if a buffer can say what they are.
    pub(crate) fn of_records(
        py: Python<'py>,
        records: &Records<'_>,
        read_only: bool,
    ) -> Result<Self, Raised> {
        let layout = records.layout();
        if layout.fields().is_empty() || layout.size() == 0 {
            bail!(py, PyBufferError: "the records have no fields, so NumPy has no data type for them");
        }
        if let Some(field) = without_format(layout) {
            let (name, FieldKind::Number(dtype) | FieldKind::Other(dtype)) =
                (field.name(), field.kind())
            else {
                bail!(py, PyBufferError: "the fields of the records overlap");
            };
            bail!(py, PyBufferError: "the field `{name}` of the records has no data type in NumPy: it is made of {dtype}");
        }
        let itemsize: Py_ssize_t = size(layout.size());
        let len = i64::try_from(records.len()).unwrap_or(i64::MAX);
        let source = Source {
            dtype: DataType::U8,
            device: Device::CPU,
            shape: &[len],
            strides: &[1],
            data: records.as_ptr(),
            len: records.len() * layout.size(),
            read_only,
        };
        // With the zero byte of a string in C.
        let format = text(format_args!("{}\0", Format(layout))).or_raise(py)?;
        let place = Self::allocate(py, &source, format.as_ptr().cast(), itemsize)?;
        Ok(Self {
            format: Some(format),
            ..place
        })
    }
}

/// A field that has no format, or that overlaps the field in front of it, if there is one.
fn without_format(layout: &RecordLayout) -> Option<&'static FieldLayout> {
    let mut end = 0;
    layout.fields().iter().find_map(|field| {
        let overlaps = field.offset() < end;
        end = field.offset() + field.size();
        match field.kind() {
            _ if overlaps => Some(field),
            FieldKind::Number(dtype) => format_of(dtype).is_none().then_some(field),
            FieldKind::Record(record) => without_format(record),
            _ => Some(field),
        }
    })
}

/// The format of records whose fields all have one.
struct Format<'a>(&'a RecordLayout);

impl Display for Format<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("T{")?;
        let mut end = 0;
        for field in self.0.fields() {
            pad(f, field.offset() - end)?;
            if let [first, rest @ ..] = field.shape() {
                write!(f, "({first}")?;
                for extent in rest {
                    write!(f, ",{extent}")?;
                }
                f.write_str(")")?;
            }
            match field.kind() {
                FieldKind::Record(record) => Format(record).fmt(f)?,
                FieldKind::Number(dtype) => {
                    let (letters, _) = format_of(dtype).ok_or(fmt::Error)?;
                    write!(f, "={}", letters.to_str().map_err(|_| fmt::Error)?)?;
                }
                _ => return Err(fmt::Error),
            }
            write!(f, ":{}:", field.name())?;
            end = field.offset() + field.size();
        }
        pad(f, self.0.size() - end)?;
        f.write_str("}")
    }
}

fn pad(f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
    match bytes {
        0 => Ok(()),
        1 => f.write_str("x"),
        _ => write!(f, "{bytes}x"),
    }
}
