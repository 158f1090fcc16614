//! Structured data types of NumPy's: compared with the layout of a record, and written beside it where they differ.

use core::fmt::Write as _;

use dlpack_core::DataType;
use dlpack_core::element::{FieldKind, FieldLayout, RecordLayout};
use pyo3::types::{PyString, PyTuple};
use pyo3::{intern, prelude::*};

use crate::library::numpy::TYPES;

/// Whether the items of a data type are such records: the same names, offsets, types, shapes and size, in the byte order of
/// this machine.
///
/// # Errors
///
/// What NumPy raises.
pub(crate) fn is_record(dtype: &Bound<'_, PyAny>, layout: &RecordLayout) -> PyResult<bool> {
    let py = dtype.py();
    let Some(names) = names_of(dtype)? else {
        return Ok(false);
    };
    if names.len() != layout.fields().len() || itemsize_of(dtype)? != layout.size() {
        return Ok(false);
    }
    let fields = dtype.getattr(intern!(py, "fields"))?;
    for field in layout.fields() {
        // `fields` also has the titles of fields, and a title may be the name of another field of the record.
        if !names.contains(field.name())? || !is_field(&fields.get_item(field.name())?, field)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a data type and its offset, as `dtype.fields` has them, are those of a field.
fn is_field(found: &Bound<'_, PyAny>, field: &FieldLayout) -> PyResult<bool> {
    let (dtype, offset) = (found.get_item(0)?, found.get_item(1)?.extract::<usize>()?);
    let (base, shape) = base_of(dtype)?;
    if offset != field.offset() || shape != field.shape() {
        return Ok(false);
    }
    match field.kind() {
        FieldKind::Record(record) => is_record(&base, record),
        FieldKind::Number(number) => Ok(number_of(&base)? == Some(number)),
        _ => Ok(false),
    }
}

/// The names of fields, if the data type has fields.
fn names_of<'py>(dtype: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let names = dtype.getattr(intern!(dtype.py(), "names"))?;
    if names.is_none() {
        return Ok(None);
    }
    Ok(Some(names.cast_into::<PyTuple>()?))
}

fn itemsize_of(dtype: &Bound<'_, PyAny>) -> PyResult<usize> {
    dtype.getattr(intern!(dtype.py(), "itemsize"))?.extract()
}

/// The data type of the items of an array inside a record, and its shape; a data type that is no array is its own base.
fn base_of(mut dtype: Bound<'_, PyAny>) -> PyResult<(Bound<'_, PyAny>, Vec<i64>)> {
    let mut shape = Vec::new();
    loop {
        let inner = dtype.getattr(intern!(dtype.py(), "subdtype"))?;
        if inner.is_none() {
            return Ok((dtype, shape));
        }
        shape.extend(inner.get_item(1)?.extract::<Vec<i64>>()?);
        dtype = inner.get_item(0)?;
    }
}

/// The number that a data type of this machine's byte order is, if it is one of NumPy's own.
fn number_of(dtype: &Bound<'_, PyAny>) -> PyResult<Option<DataType>> {
    let py = dtype.py();
    if !dtype.getattr(intern!(py, "isnative"))?.is_truthy()? {
        return Ok(None);
    }
    let number: usize = dtype.getattr(intern!(py, "num"))?.extract()?;
    Ok(TYPES.get(number).copied().flatten())
}

/// One line of a layout: an offset from the start of the record, and what is there.
type Line = (usize, String);

/// A table of two layouts side by side, a line for each field, in the order of their offsets.
pub(crate) fn side_by_side(layout: &RecordLayout, dtype: &Bound<'_, PyAny>) -> PyResult<String> {
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    write_layout(layout, 0, "", &mut expected);
    write_dtype(dtype, 0, "", &mut found, 0)?;
    expected.push((layout.size(), "end".to_owned()));
    found.push((itemsize_of(dtype)?, "end".to_owned()));
    let mut offsets: Vec<_> = expected.iter().chain(&found).map(|line| line.0).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let heads = ["expected".to_owned(), "found".to_owned()];
    let mut rows = vec![("offset".to_owned(), heads)];
    for offset in offsets {
        let at = |lines: &[Line]| {
            let here = lines.iter().filter(|line| line.0 == offset);
            here.map(|line| line.1.clone()).collect::<Vec<_>>()
        };
        let (left, right) = (at(&expected), at(&found));
        for index in 0..left.len().max(right.len()) {
            let cell = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
            rows.push((offset.to_string(), [cell(&left), cell(&right)]));
        }
    }
    let width = rows.iter().map(|row| row.1[0].chars().count()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for (offset, [left, right]) in rows {
        let mark = if left == right || offset == "offset" {
            ""
        } else {
            " <"
        };
        // A string takes whatever is written to it.
        let _ = write!(text, "\n{offset:>8}  {left:<width$}  {right}{mark}");
    }
    Ok(text)
}

fn write_layout(layout: &RecordLayout, start: usize, prefix: &str, lines: &mut Vec<Line>) {
    for field in layout.fields() {
        let (offset, name) = (start + field.offset(), field.name());
        let shape = shape_text(field.shape());
        match field.kind() {
            FieldKind::Record(record) => {
                write_layout(record, offset, &format!("{prefix}{name}{shape}."), lines);
            }
            FieldKind::Number(dtype) | FieldKind::Other(dtype) => {
                lines.push((offset, format!("{prefix}{name}: {dtype}{shape}")));
            }
            _ => lines.push((offset, format!("{prefix}{name}"))),
        }
    }
}

fn write_dtype(
    dtype: &Bound<'_, PyAny>,
    start: usize,
    prefix: &str,
    lines: &mut Vec<Line>,
    depth: usize,
) -> PyResult<()> {
    /// Deeper than this is not shown.
    const DEEPEST: usize = 16;

    let py = dtype.py();
    let Some(names) = names_of(dtype)?.filter(|_| depth < DEEPEST) else {
        let (path, kind) = (prefix.trim_end_matches('.'), dtype.str()?);
        let between = if path.is_empty() { "" } else { ": " };
        lines.push((start, format!("{path}{between}{kind}")));
        return Ok(());
    };
    let fields = dtype.getattr(intern!(py, "fields"))?;
    for name in names {
        let field = fields.get_item(&name)?;
        let (base, shape) = base_of(field.get_item(0)?)?;
        let offset = start + field.get_item(1)?.extract::<usize>()?;
        let (name, shape) = (
            name.cast::<PyString>()?.to_string_lossy(),
            shape_text(&shape),
        );
        if names_of(&base)?.is_some() {
            let prefix = format!("{prefix}{name}{shape}.");
            write_dtype(&base, offset, &prefix, lines, depth + 1)?;
        } else {
            let kind = base.str()?;
            lines.push((offset, format!("{prefix}{name}: {kind}{shape}")));
        }
    }
    Ok(())
}

/// The shape of an array inside a record, as in `[2, 3]`; nothing for a single value.
fn shape_text(shape: &[i64]) -> String {
    if shape.is_empty() {
        String::new()
    } else {
        format!("{shape:?}")
    }
}
