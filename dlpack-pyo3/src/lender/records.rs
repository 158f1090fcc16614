//! Buffers of records: their format in the syntax of PEP 3118, as NumPy parses it.
//!
//! `T{d:price:I:size:?:bid:}` is a struct of three fields, with as many bytes of padding as C adds. That is the format of NumPy's
//! own arrays, and the one that it parses fastest.
//!
//! Records that C would place in another way, and nested ones, name their padding, as in `T{=?:bid:3x=I:size:}`. With `=`, which
//! NumPy expects after the shape of an array, a consumer aligns nothing.

use core::fmt::{self, Display};

use dlpack_core::DataType;
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
        let is_native = has_c_layout(layout);
        let format = text(format_args!("{}\0", Format { layout, is_native })).or_raise(py)?;
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
            FieldKind::Number(dtype) => format_of(dtype, false).is_none().then_some(field),
            FieldKind::Record(record) => without_format(record),
            _ => Some(field),
        }
    })
}

/// Whether C would place the fields like this, so that the format needs no padding. Nested records have it nevertheless.
fn has_c_layout(layout: &RecordLayout) -> bool {
    let (mut end, mut alignment) = (0_usize, 1);
    for field in layout.fields() {
        let FieldKind::Number(dtype) = field.kind() else {
            return false;
        };
        let own = alignment_of(dtype);
        if field.offset() != end.next_multiple_of(own) {
            return false;
        }
        end = field.offset() + field.size();
        alignment = alignment.max(own);
    }
    layout.size() == end.next_multiple_of(alignment)
}

/// The alignment in C of an item that has a format.
fn alignment_of(dtype: DataType) -> usize {
    let parts = match dtype {
        DataType::C64 | DataType::C128 => 2,
        _ => 1,
    };
    match usize::from(dtype.bits()) / 8 / parts {
        // 4 on some systems of 32 bits.
        8 => align_of::<f64>(),
        bytes => bytes,
    }
}

/// The format of records, each field of which has one.
struct Format<'a> {
    layout: &'a RecordLayout,
    /// Whether the consumer finds the padding by the rules of C.
    is_native: bool,
}

impl Display for Format<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("T{")?;
        let mut end = 0;
        for field in self.layout.fields() {
            self.write_padding(f, field.offset() - end)?;
            if let [first, rest @ ..] = field.shape() {
                write!(f, "({first}")?;
                for extent in rest {
                    write!(f, ",{extent}")?;
                }
                f.write_str(")")?;
            }
            match field.kind() {
                FieldKind::Record(layout) => {
                    let is_native = false;
                    Format { layout, is_native }.fmt(f)?;
                }
                FieldKind::Number(dtype) => {
                    let (letters, _) = format_of(dtype, self.is_native).ok_or(fmt::Error)?;
                    f.write_str(if self.is_native { "" } else { "=" })?;
                    f.write_str(letters.to_str().map_err(|_| fmt::Error)?)?;
                }
                _ => return Err(fmt::Error),
            }
            write!(f, ":{}:", field.name())?;
            end = field.offset() + field.size();
        }
        self.write_padding(f, self.layout.size() - end)?;
        f.write_str("}")
    }
}

impl Format<'_> {
    fn write_padding(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        match bytes {
            0 => Ok(()),
            _ if self.is_native => Ok(()),
            1 => f.write_str("x"),
            _ => write!(f, "{bytes}x"),
        }
    }
}
