//! A short list of numbers, one for each axis. Up to six are stored inline, so that describing a tensor does not allocate.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::{Error, Order, layout::shape::HOLE};

/// The limit on the number of axes: that of NumPy, which has the lowest limit of all consumers.
// LAY-20
pub(crate) const MAX_RANK: usize = 64;

/// Up to this many axes are stored inline.
pub(crate) const INLINE: usize = 6;

/// The numbers of at most [`INLINE`] axes: plain values, which the compiler can keep in registers. Values after the last axis
/// are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InlineDims {
    pub(crate) values: [i64; INLINE],
    /// `usize::MAX` if the values are not inline.
    pub(crate) len: usize,
}

impl InlineDims {
    pub(crate) const UNKNOWN: Self = Self {
        values: [0; INLINE],
        len: usize::MAX,
    };

    /// The values, if they are inline.
    #[inline]
    pub(crate) fn get(&self) -> Option<&[i64]> {
        self.values.get(..self.len)
    }

    /// Whether a value is a placeholder (`_`).
    #[inline(always)]
    pub(crate) fn has_hole(&self) -> bool {
        let mut has_hole = false;
        for axis in 0..INLINE {
            has_hole |= axis < self.len && self.values[axis] == HOLE;
        }
        has_hole
    }

    /// Whether all values are equal, apart from placeholders in `others`.
    pub(crate) fn agrees_with(&self, others: Self) -> bool {
        let mut pairs = self.values.iter().zip(others.values);
        self.len == others.len && pairs.all(|(value, other)| other == HOLE || *value == other)
    }

    /// The list of one axis.
    #[inline(always)]
    pub(crate) fn single_axis(extent: i64) -> Self {
        let mut values = [0; INLINE];
        values[0] = extent;
        Self { values, len: 1 }
    }

    /// Replaces the one placeholder (`_`) so that the product is the number of elements of `element` bytes in `bytes`. `None` if
    /// there are several, or if a division leaves a remainder.
    #[inline(always)]
    pub(crate) fn fill_hole(mut self, bytes: usize, element: usize) -> Option<Self> {
        let mut hole = None;
        for axis in 0..INLINE {
            if axis < self.len && self.values[axis] == HOLE && hole.replace(axis).is_some() {
                return None;
            }
        }
        if let Some(hole) = hole {
            let mut others = 1_i64;
            for axis in 0..INLINE {
                if axis < self.len && axis != hole {
                    others = others.checked_mul(self.values[axis])?;
                }
            }
            let others = usize::try_from(others).ok()?;
            let elements = bytes.checked_div(element)?;
            if bytes % element != 0 || elements.checked_rem(others)? != 0 {
                return None;
            }
            self.values[hole] = i64::try_from(elements / others).ok()?;
        }
        Some(self)
    }

    /// The strides that pack these extents in this order, `unit` for the axis that varies fastest. `None` if an extent is not
    /// positive or the product exceeds `most`.
    #[inline(always)]
    pub(crate) fn packed_strides(
        &self,
        order: Order,
        unit: i64,
        most: usize,
    ) -> Option<[i64; INLINE]> {
        if self.len > INLINE {
            return None;
        }
        let mut strides = [0; INLINE];
        let mut items = 1_i64;
        for step in 0..INLINE {
            let axis = match order {
                Order::C => INLINE - 1 - step,
                Order::F => step,
            };
            if axis < self.len {
                strides[axis] = items.checked_mul(unit)?;
                if self.values[axis] < 0 {
                    return None;
                }
                items = items.checked_mul(self.values[axis])?;
            }
        }
        // The product is zero if an extent is. It is not negative, so the cast keeps its value.
        let items = usize::try_from(items as u64).ok()?;
        (1..=most).contains(&items).then_some(strides)
    }
}

/// The shape or the strides of a tensor, one `i64` for each axis.
///
/// It dereferences to a slice. [`Dims::extents`] and [`Dims::strides`] convert lists of other integers. If the allocation of a
/// long list fails, the list reads as empty, and describing a tensor with it returns [`Error::OutOfMemory`].
///
/// ```
/// use dlpack_core::layout::Dims;
///
/// let dims = Dims::extents(&[480_usize, 640, 3])?;
/// assert_eq!(dims[..], [480, 640, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct Dims {
    /// The values, unless they are on the heap. After a failed allocation the length is `usize::MAX`, and each value is the
    /// number of bytes.
    inline: InlineDims,
    /// All values, if there are or were more than [`INLINE`]; otherwise empty.
    heap: Vec<i64>,
}

impl Dims {
    /// No axes: the shape of a scalar.
    ///
    /// ```
    /// assert!(dlpack_core::layout::Dims::new().is_empty());
    /// ```
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self::from_inline([0; INLINE], 0)
    }

    /// The first `len` of these values.
    #[inline(always)]
    pub(crate) const fn from_inline(values: [i64; INLINE], len: usize) -> Self {
        Self {
            inline: InlineDims { values, len },
            heap: Vec::new(),
        }
    }

    /// The values, if they are stored inline.
    #[inline]
    pub(crate) fn inline_dims(&self) -> InlineDims {
        if self.heap.is_empty() {
            self.inline
        } else {
            InlineDims::UNKNOWN
        }
    }

    #[inline]
    pub(crate) fn zeroed(len: usize) -> Self {
        let mut dims = Self::new();
        if len <= INLINE {
            dims.inline.len = len;
        } else if dims.reserve_more(len) {
            dims.heap.resize(len, 0);
        }
        dims
    }

    /// The list, or the error of a failed allocation.
    #[inline(always)]
    pub(crate) fn check_allocated(self) -> Result<Self, Error> {
        self.check_allocation().map(|()| self)
    }

    #[inline(always)]
    pub(crate) fn check_allocation(&self) -> Result<(), Error> {
        if self.inline.len <= INLINE {
            return Ok(());
        }
        let bytes = usize::try_from(self.inline.values[0]).unwrap_or(usize::MAX);
        Err(Error::OutOfMemory { bytes })
    }

    /// Reserves memory for `more` values. Returns whether that succeeded; otherwise the list is replaced by the error.
    #[cold]
    fn reserve_more(&mut self, more: usize) -> bool {
        let room = self.heap.try_reserve(more).is_ok();
        if !room {
            let bytes = i64::try_from(8 * (self.len() + more)).unwrap_or(i64::MAX);
            *self = Self::from_inline([bytes; INLINE], usize::MAX);
        }
        room
    }

    #[inline]
    pub(crate) fn push(&mut self, value: i64) {
        match self.inline.values.get_mut(self.inline.len) {
            Some(place) if self.heap.is_empty() => {
                *place = value;
                self.inline.len += 1;
            }
            _ => self.push_to_heap(value),
        }
    }

    /// Checks that the rank does not exceed the limit.
    #[inline]
    pub(crate) fn check_rank(&self) -> Result<(), Error> {
        let (found, most) = (self.len(), MAX_RANK);
        if found <= most {
            return Ok(());
        }
        Err(Error::TooManyAxes { found, most })
    }

    #[inline]
    pub(crate) fn append(&mut self, values: &[i64]) -> Result<(), Error> {
        values.iter().for_each(|&value| self.push(value));
        self.check_allocation()
    }

    /// Removes the number of an axis. A list on the heap stays there.
    pub(crate) fn remove_axis(&mut self, axis: usize) {
        self[axis..].rotate_left(1);
        if self.heap.pop().is_none() {
            self.inline.len -= 1;
            self.inline.values[self.inline.len] = 0;
        }
    }

    #[cold]
    fn push_to_heap(&mut self, value: i64) {
        let lost = self.inline.len > INLINE;
        if !lost && self.reserve_more(2 * INLINE) {
            if self.heap.is_empty() {
                self.heap.extend_from_slice(&self.inline.values);
                // What remains of a list on the heap that loses all axes.
                self.inline = Self::new().inline;
            }
            self.heap.push(value);
        }
    }
}

impl Clone for Dims {
    #[inline]
    fn clone(&self) -> Self {
        if self.heap.is_empty() {
            return Self::from_inline(self.inline.values, self.inline.len);
        }
        Self::from(&self.heap[..])
    }
}

impl Default for Dims {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Dims {
    type Target = [i64];

    #[inline]
    fn deref(&self) -> &[i64] {
        if self.heap.is_empty() {
            self.inline.values.get(..self.inline.len).unwrap_or(&[])
        } else {
            &self.heap
        }
    }
}

impl DerefMut for Dims {
    #[inline]
    fn deref_mut(&mut self) -> &mut [i64] {
        if self.heap.is_empty() {
            let values = self.inline.values.get_mut(..self.inline.len);
            values.unwrap_or_default()
        } else {
            &mut self.heap
        }
    }
}

impl AsRef<[i64]> for Dims {
    fn as_ref(&self) -> &[i64] {
        self
    }
}

impl From<&[i64]> for Dims {
    #[inline]
    fn from(values: &[i64]) -> Self {
        let mut dims = Self::zeroed(values.len());
        // After a failed allocation `dims` is empty, and nothing is copied.
        for (place, value) in dims.iter_mut().zip(values) {
            *place = *value;
        }
        dims
    }
}

impl<const N: usize> From<[i64; N]> for Dims {
    #[inline]
    fn from(values: [i64; N]) -> Self {
        if N > INLINE {
            return Self::from(&values[..]);
        }
        let mut inline = [0; INLINE];
        for (place, value) in inline.iter_mut().zip(values) {
            *place = value;
        }
        Self::from_inline(inline, N)
    }
}

impl PartialEq for Dims {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Dims {}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spills_to_the_heap_and_keeps_every_value() {
        let mut dims = Dims::new();
        for axis in 0..20 {
            dims.push(axis);
            assert_eq!(dims.len(), usize::try_from(axis).unwrap() + 1);
        }
        assert!(dims.iter().copied().eq(0..20));
        assert_eq!(Dims::from(&dims[..]), dims);
    }

    #[test]
    fn loses_every_axis_and_grows_again() {
        let mut dims = Dims::new();
        (0..9).for_each(|axis| dims.push(axis));
        for left in (0..9).rev() {
            dims.remove_axis(usize::try_from(left / 2).unwrap());
            assert_eq!(dims.len(), usize::try_from(left).unwrap());
            assert!(dims.is_sorted(), "{dims:?}");
        }
        let mut short = Dims::from([1, 2]);
        short.remove_axis(0);
        assert_eq!(short.inline_dims(), Dims::from([2]).inline_dims());
        assert_eq!(dims.inline_dims(), Dims::new().inline_dims());
        (0..9).for_each(|axis| dims.push(axis));
        assert!(dims.iter().copied().eq(0..9));
    }
}
