//! Six numbers or fewer, inline: the short list that the others are made of.

pub(crate) const INLINE: usize = 6;

/// The extents or strides of few axes.
#[derive(Clone, Copy, Debug)]
pub struct Few {
    pub(crate) values: [i64; INLINE],
    /// More than there are values, where they are not known.
    pub(crate) len: usize,
}

impl Few {
    pub(crate) const UNKNOWN: Self = Self {
        values: [0; INLINE],
        len: usize::MAX,
    };

    /// One axis.
    #[inline(always)]
    pub(crate) fn one(extent: i64) -> Self {
        let mut values = [0; INLINE];
        values[0] = extent;
        Self { values, len: 1 }
    }

    /// The strides that pack such axes in row-major order, if none of them is empty, and they make at most
    /// `most` items.
    #[inline(always)]
    pub(crate) fn packed_strides(&self, most: usize) -> Option<[i64; INLINE]> {
        if self.len > INLINE {
            return None;
        }
        let mut strides = [0; INLINE];
        let mut items = 1_i64;
        for axis in (0..INLINE).rev() {
            if axis < self.len {
                strides[axis] = items;
                if self.values[axis] <= 0 {
                    return None;
                }
                items = items.checked_mul(self.values[axis])?;
            }
        }
        // A product of positive numbers.
        (usize::try_from(items as u64).ok()? <= most).then_some(strides)
    }
}
