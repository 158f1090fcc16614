//! The layout of a record: name, offset and type of each field. It only describes; it reads no memory.

use core::mem::size_of;

use crate::DataType;
use crate::element::{Axes, Element, axes::TOO_MANY_ITEMS};

/// The memory layout of a record. `#[derive(Record)]` declares it.
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
/// The numbers describe a struct to other languages. Code that reads or writes memory by them checks them against the size of
/// the struct first, so a wrong layout gives wrong values, but is not unsound.
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
    /// An element that is not an array of numbers in row-major order: a column-major matrix, or numbers that share bytes.
    Other(DataType),
}

/// The known facts about the type of a field.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct FieldType {
    kind: FieldKind,
    axes: Axes,
}

impl FieldType {
    /// The type of a field about which nothing is known.
    pub const UNKNOWN: Self = Self {
        kind: FieldKind::Other(DataType::U8),
        axes: Axes::NONE,
    };

    /// The type of a field that is an element.
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

    /// The type of a field that is a record, or an array of records with these axes.
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

    /// A layout that is known only at run time, from the size of a record and its fields. `None` if a field reaches outside the
    /// record.
    #[doc(hidden)]
    #[must_use]
    pub fn at_run_time(size: usize, fields: &'static [FieldLayout]) -> Option<Self> {
        let ends = |field: &FieldLayout| field.offset.checked_add(field.size);
        let mut ends = fields.iter().map(ends);
        let is_inside = ends.all(|end| end.is_some_and(|end| end <= size));
        is_inside.then_some(Self { size, fields })
    }

    /// The size of a record in bytes, with its padding.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The fields, in the order of their declaration.
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
            let bytes = record.size.checked_mul(axes.count_items());
            assert!(
                bytes.expect(TOO_MANY_ITEMS) == size,
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

    /// A field that is known only at run time: a number, a record, or an array of either.
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
        // The limits of `Axes::of_array`, which panics: eight axes, and strides that do not overflow, even if an axis is empty.
        let multiply =
            |items: isize, &extent: &usize| items.checked_mul(extent.max(1).try_into().ok()?);
        shape.iter().try_fold(1, multiply)?;
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

    /// The offset of the field from the start of the record, in bytes.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The size of the field in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The type of the field, or of its elements if it is an array.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The compiler evaluates these functions in constants; here they run.
    #[test]
    fn a_field_of_an_element_is_a_number_with_the_axes_of_the_element() {
        for (of, dtype, axes) in [
            (FieldType::of_element::<f64>(), DataType::F64, f64::TRAILING),
            (FieldType::of_element::<bool>(), DataType::BOOL, Axes::NONE),
            (
                FieldType::of_element::<[[u16; 3]; 2]>(),
                DataType::U16,
                <[[u16; 3]; 2]>::TRAILING,
            ),
        ] {
            assert_eq!((of.kind, of.axes), (FieldKind::Number(dtype), axes));
        }
    }

    #[cfg(feature = "nalgebra")]
    #[test]
    fn a_column_major_matrix_is_not_an_array_of_numbers() {
        let of = FieldType::of_element::<::nalgebra::Matrix2x3<f32>>();
        assert_eq!(of.kind, FieldKind::Other(DataType::F32));
    }

    const NUMBER: FieldKind = FieldKind::Number(DataType::F32);

    static XYZ: [FieldLayout; 1] = [FieldLayout::new::<[f32; 3]>(
        "xyz",
        4,
        FieldType::of_element::<[f32; 3]>(),
    )];

    #[test]
    fn a_layout_at_run_time_has_its_fields_inside_the_record() {
        let field = FieldLayout::at_run_time("xyz", 4, NUMBER, &[3]).unwrap();
        assert_eq!(
            (field.offset(), field.size(), field.shape()),
            (4, 12, &[3][..])
        );
        assert_eq!(field, XYZ[0]);
        let layout = RecordLayout::at_run_time(16, &XYZ).unwrap();
        assert_eq!((layout.size(), layout.fields()), (16, &XYZ[..]));
        assert_eq!(RecordLayout::at_run_time(15, &XYZ), None);
        assert_eq!(RecordLayout::of::<[u32; 4]>(&XYZ), layout);
    }

    #[test]
    #[should_panic(expected = "a field reaches outside its record")]
    fn a_field_outside_its_record_is_refused() {
        let _ = RecordLayout::of::<[u32; 3]>(&XYZ);
    }

    #[test]
    fn a_field_at_run_time_has_at_most_eight_axes_of_numbers() {
        let field = |kind, shape: &[usize]| FieldLayout::at_run_time("f", 0, kind, shape);
        assert_eq!(field(NUMBER, &[1; 8]).unwrap().shape().len(), 8);
        assert_eq!(field(NUMBER, &[1; 9]), None);
        assert_eq!(field(NUMBER, &[isize::MAX as usize, 2]), None);
        assert_eq!(field(NUMBER, &[0, usize::MAX]), None);
        assert_eq!(field(NUMBER, &[0, isize::MAX as usize, 2]), None);
        assert_eq!(field(FieldKind::Number(DataType::F4_E2M1FN), &[2]), None);
        assert_eq!(field(FieldKind::Other(DataType::F32), &[2]), None);
    }
}
