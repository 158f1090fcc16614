//! Buffers of records: their format in the syntax of PEP 3118, as NumPy parses it.
//!
//! `T{=d:price:=I:size:=?:bid:3x}` is a struct of three fields with 3 bytes of padding. Sizes are the standard ones (`=`, which
//! NumPy expects after the shape of an array). Padding is explicit, also at the end of nested records, so that the format does
//! not depend on a consumer's rules of alignment.

use core::fmt::{self, Display};

use dlpack_core::binding::{Records, text};
use dlpack_core::element::{FieldKind, FieldLayout, RecordLayout};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::capi::PyBuffer;
use crate::error::{OrRaise, Raised, bail};
use crate::lender::{LentBuffer, UnfilledLender, format_of, to_ssize};

impl<'py> UnfilledLender<'py> {
    /// Allocates a lender for these records, if a buffer can describe them.
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
        let len = i64::try_from(records.len()).unwrap_or(i64::MAX);
        // With the terminating zero byte of a C string.
        let format = text(format_args!("{}\0", Format(layout))).or_raise(py)?;
        let lent = LentBuffer {
            buffer: PyBuffer {
                buf: records.as_ptr().cast_mut().cast(),
                len: to_ssize(records.len() * layout.size()),
                itemsize: to_ssize(layout.size()),
                readonly: read_only.into(),
                format: format.as_ptr().cast_mut().cast(),
                ..PyBuffer::EMPTY
            },
            format: Some(format),
        };
        Self::allocate(py, &[len], &[1], lent)
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

/// The format of records, each field of which has one.
struct Format<'a>(&'a RecordLayout);

impl Display for Format<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("T{")?;
        let mut end = 0;
        for field in self.0.fields() {
            write_padding(f, field.offset() - end)?;
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
        write_padding(f, self.0.size() - end)?;
        f.write_str("}")
    }
}

fn write_padding(f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
    match bytes {
        0 => Ok(()),
        1 => f.write_str("x"),
        _ => write!(f, "{bytes}x"),
    }
}
