//! The layout of a record: name, offset and type of each field. Constants; no memory is read by them.

use core::mem::size_of;

use crate::DataType;
use crate::element::{Axes, Element};

/// The layout of a record in memory; what `#[derive(Record)]` writes down.
///
/// ```
/// use dlpack_core::element::FieldKind;
/// use dlpack_core::{DataType, Record};
///
/// #[derive(Record)]
/// #[repr(C)]
/// struct Trade { price: f64, size: u32, venue: [u8; 2] }
///
/// let (layout, venue) = (Trade::LAYOUT, Trade::LAYOUT.fields()[2]);
/// assert_eq!(layout.size(), 16);
/// assert_eq!((venue.name(), venue.offset(), venue.size()), ("venue", 12, 2));
/// assert_eq!((venue.kind(), venue.shape()), (FieldKind::Number(DataType::U8), &[2][..]));
/// ```
///
/// Its numbers describe a struct to other languages. No memory is read or written by them without a check against the
/// size of the struct, so a wrong layout gives wrong values and nothing worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    size: usize,
    fields: &'static [FieldLayout],
}

/// One field of a [`RecordLayout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    name: &'static str,
    offset: usize,
    size: usize,
    kind: FieldKind,
    axes: Axes,
}

/// The type of a field, or of the elements of a field that is an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A number, or a `bool`.
    Number(DataType),
    /// Another record.
    Record(&'static RecordLayout),
    /// An element of which no array of numbers in row-major order can be made: a column-major matrix, or numbers that share
    /// bytes.
    Other(DataType),
}

/// What is known of the type of a field.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct FieldType {
    kind: FieldKind,
    axes: Axes,
}

impl FieldType {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        kind: FieldKind::Other(DataType::U8),
        axes: Axes::NONE,
    };

    /// An element.
    #[must_use]
    pub const fn of_element<F: Element>() -> Self {
        let (dtype, axes) = (F::DTYPE, F::TRAILING);
        let in_bytes = dtype.itemsize_bits() * axes.count_items() == size_of::<F>() * 8
            && dtype.itemsize_bits() % 8 == 0;
        let kind = if in_bytes && axes.is_row_major() {
            FieldKind::Number(dtype)
        } else {
            FieldKind::Other(dtype)
        };
        Self { kind, axes }
    }

    /// A record, or an array of it with these axes.
    #[must_use]
    pub const fn of_record((record, axes): (&'static RecordLayout, Axes)) -> Self {
        let kind = FieldKind::Record(record);
        Self { kind, axes }
    }
}

impl RecordLayout {
    /// The layout of a struct with these fields.
    #[doc(hidden)]
    #[must_use]
    pub const fn of<R>(fields: &'static [FieldLayout]) -> Self {
        let size = size_of::<R>();
        let mut field = 0;
        while field < fields.len() {
            let FieldLayout {
                offset, size: own, ..
            } = fields[field];
            assert!(
                offset <= size && own <= size - offset,
                "a field reaches outside its record"
            );
            field += 1;
        }
        Self { size, fields }
    }

    /// A layout that is known at run time: the bytes of a record, and its fields, none of which reaches outside.
    #[doc(hidden)]
    #[must_use]
    pub fn at_run_time(size: usize, fields: &'static [FieldLayout]) -> Option<Self> {
        let ends = |field: &FieldLayout| field.offset.checked_add(field.size);
        let mut ends = fields.iter().map(ends);
        let is_inside = ends.all(|end| end.is_some_and(|end| end <= size));
        is_inside.then_some(Self { size, fields })
    }

    /// The bytes of a record, with its padding.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The fields, in the order in which they are written.
    #[must_use]
    pub const fn fields(&self) -> &'static [FieldLayout] {
        self.fields
    }
}

impl FieldLayout {
    /// A field of type `F`.
    #[doc(hidden)]
    #[must_use]
    pub const fn new<F>(name: &'static str, offset: usize, of: FieldType) -> Self {
        let (size, FieldType { kind, axes }) = (size_of::<F>(), of);
        if let FieldKind::Record(record) = kind {
            assert!(
                record.size * axes.count_items() == size,
                "the layout of a nested record is that of another type"
            );
        }
        Self {
            name,
            offset,
            size,
            kind,
            axes,
        }
    }

    /// A field that is known at run time: of one number or record, or an array of them.
    #[doc(hidden)]
    #[must_use]
    pub fn at_run_time(
        name: &'static str,
        offset: usize,
        kind: FieldKind,
        shape: &[usize],
    ) -> Option<Self> {
        let one = match kind {
            FieldKind::Number(dtype) => dtype.itemsize()?,
            FieldKind::Record(record) => record.size,
            FieldKind::Other(_) => return None,
        };
        if shape.len() > 8 {
            return None;
        }
        let axes = shape.iter().rev();
        let axes = axes.fold(Axes::NONE, |inner, &extent| Axes::of_array(extent, inner));
        let size = shape
            .iter()
            .try_fold(one, |size, &extent| size.checked_mul(extent))?;
        Some(Self {
            name,
            offset,
            size,
            kind,
            axes,
        })
    }

    /// The name, without `r#`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The bytes in front of the field.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes of the field.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The type of the field, or of its elements.
    #[must_use]
    pub const fn kind(&self) -> FieldKind {
        self.kind
    }

    /// The shape of a field that is an array; empty for a single value.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.axes.extents()
    }
}
