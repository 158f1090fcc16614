//! The axes that an element adds to the shape of its tensor.

/// The message of the panic if the number of items in an element overflows `usize`.
pub(crate) const TOO_MANY_ITEMS: &str = "the number of items in an element overflows";

/// Multiplies two sizes. Unlike `*`, it also finds an overflow in a release build.
const fn multiply_sizes(left: i64, right: i64) -> i64 {
    left.checked_mul(right).expect(TOO_MANY_ITEMS)
}

/// The axes that an element adds after those of the tensor, with strides in items.
///
/// A `[f32; 3]` adds one axis of size 3, an `f32` none.
///
/// ```
/// use dlpack_core::Element;
///
/// assert_eq!(<[[f32; 3]; 2]>::TRAILING.extents(), [2, 3]);
/// assert!(f32::TRAILING.extents().is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    extents: [i64; Axes::MAX],
    strides: [i64; Axes::MAX],
    len: usize,
}

impl Axes {
    const MAX: usize = 8;

    /// No axes: the element is one item.
    pub const NONE: Self = Self {
        extents: [0; Self::MAX],
        strides: [0; Self::MAX],
        len: 0,
    };

    /// The axes of an array of `extent` elements with the axes `inner`.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_array(extent: usize, inner: Self) -> Self {
        assert!(
            inner.len < Self::MAX,
            "an element has at most 8 axes of its own"
        );
        let mut axes = Self::NONE;
        let mut axis = 0;
        let mut items = 1;
        while axis < inner.len {
            axes.extents[axis + 1] = inner.extents[axis];
            axes.strides[axis + 1] = inner.strides[axis];
            items = multiply_sizes(items, inner.extents[axis]);
            axis += 1;
        }
        axes.extents[0] = axis_size_to_i64(extent);
        axes.strides[0] = items;
        // The number of all items must not overflow, either.
        multiply_sizes(items, axes.extents[0]);
        axes.len = inner.len + 1;
        axes
    }

    /// The axes of a column-major matrix of elements with the axes `inner`.
    #[cfg(any(feature = "glam", feature = "nalgebra", test))]
    pub(crate) const fn of_columns(rows: usize, columns: usize, inner: Self) -> Self {
        let mut axes = Self::of_array(rows, Self::of_array(columns, inner));
        axes.strides[0] = axis_size_to_i64(inner.count_items());
        axes.strides[1] = axis_size_to_i64(inner.count_items() * rows);
        axes
    }

    /// The axes of a struct: if all fields have the same axes, these and one before them; otherwise a single axis of all items.
    ///
    /// # Panics
    ///
    /// If fields with different axes include one that is not in C order. An import would read the items of the single axis in
    /// C order.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_fields(fields: &[Self]) -> Self {
        assert!(!fields.is_empty(), "an element has at least one field");
        let mut items = 0_usize;
        let (mut alike, mut row_major) = (true, true);
        let mut field = 0;
        while field < fields.len() {
            let more = items.checked_add(fields[field].count_items());
            items = more.expect(TOO_MANY_ITEMS);
            alike = alike && fields[field].has_same_axes(&fields[0]);
            row_major = row_major && fields[field].is_row_major();
            field += 1;
        }
        if alike {
            return Self::of_array(fields.len(), fields[0]);
        }
        assert!(
            row_major,
            "a column-major matrix cannot be a field beside fields with other axes: use rows, such as `[[f32; 4]; 4]`"
        );
        Self::of_array(items, Self::NONE)
    }

    const fn has_same_axes(&self, other: &Self) -> bool {
        let mut axis = 0;
        while axis < self.len {
            let extent = self.extents[axis];
            // The stride of an axis with one index does not matter.
            let same_steps = extent == 1 || self.strides[axis] == other.strides[axis];
            if extent != other.extents[axis] || !same_steps {
                return false;
            }
            axis += 1;
        }
        self.len == other.len
    }

    /// The number of items in an element.
    pub(crate) const fn count_items(&self) -> usize {
        let mut items = 1;
        let mut axis = 0;
        while axis < self.len {
            // `of_array` found that the product does not overflow. Exports would check it again.
            items *= self.extents[axis];
            axis += 1;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a product of extents that were `usize`"
        )]
        let items = items as usize;
        items
    }

    /// Whether the items are contiguous in C order.
    pub(crate) const fn is_row_major(&self) -> bool {
        let (mut axis, mut step) = (self.len, 1);
        while axis > 0 {
            axis -= 1;
            if self.extents[axis] != 1 && self.strides[axis] != step {
                return false;
            }
            step *= self.extents[axis];
        }
        true
    }

    /// The size of each axis, outermost first.
    ///
    /// ```
    /// assert!(dlpack_core::element::Axes::NONE.extents().is_empty());
    /// ```
    #[must_use]
    #[inline]
    pub fn extents(&self) -> &[i64] {
        &self.extents[..self.len]
    }

    /// The strides in items, outermost first.
    ///
    /// ```
    /// use dlpack_core::Element;
    ///
    /// assert_eq!(<[[u8; 3]; 2]>::TRAILING.strides(), [3, 1]);
    /// ```
    #[must_use]
    #[inline]
    pub fn strides(&self) -> &[i64] {
        &self.strides[..self.len]
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

#[expect(
    clippy::cast_possible_wrap,
    reason = "checked by the assertion in front of it"
)]
const fn axis_size_to_i64(extent: usize) -> i64 {
    assert!(
        extent as u64 <= i64::MAX as u64,
        "an extent does not fit an i64"
    );
    extent as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;

    /// The message is ours: without overflow checks, as in a release build, `*` and `+` would wrap.
    #[test]
    #[should_panic = "the number of items in an element overflows"]
    fn the_product_of_sizes_does_not_overflow() {
        let _ = Axes::of_array(7, Axes::of_array(0x6DB6_DB6D_B6DB_6DB7, Axes::NONE));
    }

    #[test]
    #[should_panic = "the number of items in an element overflows"]
    fn the_sum_of_sizes_does_not_overflow() {
        let half = Axes::of_array(isize::MAX as usize, Axes::NONE);
        let _ = Axes::of_fields(&[half, half, Axes::of_array(3, Axes::NONE)]);
    }

    #[test]
    fn arrays_are_row_major() {
        let axes = <[[[u8; 4]; 3]; 2]>::TRAILING;
        assert_eq!(axes.extents(), [2, 3, 4]);
        assert_eq!(axes.strides(), [12, 4, 1]);
        assert_eq!(axes.count_items(), 24);
    }

    #[test]
    fn matrices_by_column() {
        let axes = Axes::of_columns(3, 2, Axes::of_array(5, Axes::NONE));
        assert_eq!(axes.extents(), [3, 2, 5]);
        assert_eq!(axes.strides(), [5, 15, 1]);
        assert_eq!(axes.count_items(), 30);
    }

    #[test]
    fn axes_are_row_major_if_each_stride_packs_the_axes_after_it() {
        let scalar = Axes::NONE;
        assert!(scalar.is_row_major());
        assert!(Axes::of_array(2, Axes::of_array(3, Axes::of_array(4, scalar))).is_row_major());
        assert!(!Axes::of_columns(3, 2, scalar).is_row_major());
        assert!(!Axes::of_columns(3, 2, Axes::of_array(5, scalar)).is_row_major());
        assert!(!Axes::of_array(2, Axes::of_columns(3, 2, scalar)).is_row_major());
        // The stride of an axis with one index does not matter.
        assert!(Axes::of_columns(3, 1, scalar).is_row_major());
        assert!(Axes::of_columns(1, 3, scalar).is_row_major());
    }

    #[test]
    fn lists_of_eight_axes_are_compared_to_their_ends() {
        let eight = <[[[[[[[[u8; 2]; 3]; 4]; 5]; 6]; 7]; 8]; 9]>::TRAILING;
        assert!(eight.has_same_axes(&eight));
        let other = <[[[[[[[[u8; 1]; 3]; 4]; 5]; 6]; 7]; 8]; 9]>::TRAILING;
        assert!(!eight.has_same_axes(&other));
    }

    #[test]
    fn fields_of_different_rank_become_one_axis() {
        let mixed = Axes::of_fields(&[<[f32; 3]>::TRAILING, f32::TRAILING]);
        assert_eq!(mixed.extents(), [4]);
        let alike = Axes::of_fields(&[<[f32; 3]>::TRAILING, <[f32; 3]>::TRAILING]);
        assert_eq!(alike.extents(), [2, 3]);
    }

    #[test]
    fn column_major_fields_keep_their_axes() {
        let matrix = Axes::of_columns(3, 2, Axes::NONE);
        let alike = Axes::of_fields(&[matrix, matrix]);
        assert_eq!(alike.extents(), [2, 3, 2]);
        assert_eq!(alike.strides(), [6, 1, 3]);
        // The stride of an axis with one index does not matter.
        let row = Axes::of_columns(1, 3, Axes::NONE);
        let alike = Axes::of_fields(&[row, <[[f32; 3]; 1]>::TRAILING]);
        assert_eq!(alike.extents(), [2, 1, 3]);
    }

    #[test]
    #[should_panic(expected = "a column-major matrix cannot be a field")]
    fn a_column_major_field_is_not_exported_by_the_strides_of_another() {
        let _ = Axes::of_fields(&[
            <[[f32; 2]; 2]>::TRAILING,
            Axes::of_columns(2, 2, Axes::NONE),
        ]);
    }

    #[test]
    #[should_panic(expected = "a column-major matrix cannot be a field")]
    fn a_column_major_field_is_not_flattened() {
        let _ = Axes::of_fields(&[Axes::of_columns(4, 4, Axes::NONE), <[f32; 4]>::TRAILING]);
    }
}
