//! A short list of extents or strides, kept inline up to six axes so that describing a tensor allocates nothing.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::{Error, Order, layout::shape::HOLE};

/// More axes than this are refused: numpy, the consumer with the lowest limit, stops here too.
// LAY-20
pub(crate) const MAX_RANK: usize = 64;

/// Of so many axes, nothing is on the heap.
pub(crate) const INLINE: usize = 6;

/// The extents or strides of at most [`INLINE`] axes: plain values, which the compiler can keep in registers. Behind the last
/// axis they are zero.
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

    /// Whether a value is left out (`_`).
    #[inline]
    pub(crate) fn has_hole(&self) -> bool {
        self.get().is_some_and(|values| values.contains(&HOLE))
    }

    /// Replaces each stride that is left out (`_`): packed against the axis to its right, `unit` for the last.
    #[inline]
    pub(crate) fn filled_strides(mut self, shape: &Self, unit: i64) -> Option<Self> {
        if self.len != shape.len {
            return None;
        }
        let mut packed = Some(unit);
        let strides = self.values.get_mut(..self.len)?.iter_mut();
        for (stride, &extent) in strides.zip(shape.get()?).rev() {
            if *stride == HOLE {
                *stride = packed?;
            }
            packed = stride.checked_mul(extent);
        }
        Some(self)
    }

    /// Whether other values are the same, apart from those that they leave out.
    pub(crate) fn agrees_with(&self, others: Self) -> bool {
        let mut pairs = self.values.iter().zip(others.values);
        self.len == others.len && pairs.all(|(value, other)| other == HOLE || *value == other)
    }

    /// The values that `map` gives for each. `None` if one is left out.
    #[inline]
    pub(crate) fn map(mut self, map: impl Fn(i64) -> Option<i64>) -> Option<Self> {
        for value in self.values.get_mut(..self.len)? {
            if *value == HOLE {
                return None;
            }
            *value = map(*value)?;
        }
        Some(self)
    }

    /// The strides that pack these extents, without those of other axes. `None` as for [`packed_strides`](Self::packed_strides).
    #[inline]
    pub(crate) fn packed(&self, order: Order, unit: i64) -> Option<Self> {
        let mut packed = Self {
            values: [0; INLINE],
            len: self.len,
        };
        let pack = |(stride, &extent): (&mut i64, &i64), next: i64| {
            *stride = next;
            next.checked_mul(extent)
        };
        let axes = packed.values.iter_mut().zip(self.get()?);
        match order {
            Order::C => axes.rev().try_fold(unit, |next, axis| pack(axis, next)),
            Order::F => axes
                .into_iter()
                .try_fold(unit, |next, axis| pack(axis, next)),
        }?;
        Some(packed)
    }

    /// `None` if they do not fit.
    #[inline]
    pub(crate) fn append(&mut self, values: &[i64]) -> Option<()> {
        for &value in values {
            *self.values.get_mut(self.len)? = value;
            self.len += 1;
        }
        Some(())
    }

    /// One axis.
    #[inline(always)]
    pub(crate) fn one(extent: i64) -> Self {
        let mut values = [0; INLINE];
        values[0] = extent;
        Self { values, len: 1 }
    }

    /// Replaces the one extent that is left out (`_`), so that the product is `elements`. `None` if there are several, or if the
    /// division leaves a remainder.
    #[inline(always)]
    pub(crate) fn filled(mut self, elements: usize) -> Option<Self> {
        let mut hole = None;
        let mut others = 1_i64;
        for axis in 0..INLINE {
            if axis < self.len {
                if self.values[axis] != HOLE {
                    others = others.checked_mul(self.values[axis])?;
                } else if hole.replace(axis).is_some() {
                    return None;
                }
            }
        }
        if let Some(axis) = hole {
            let others = usize::try_from(others).ok()?;
            if elements.checked_rem(others)? != 0 {
                return None;
            }
            self.values[axis] = i64::try_from(elements / others).ok()?;
        }
        Some(self)
    }

    /// The strides that pack these extents in this order, `unit` for the axis that moves fastest. `None` if an extent is not
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

/// The extents or the strides of a tensor, one `i64` an axis.
///
/// Reads as a slice. [`Dims::extents`] and [`Dims::strides`] make one from whatever integers a struct keeps. A long list
/// that there was no memory for reads as empty, and a tensor that is described with it is [`Error::OutOfMemory`].
///
/// ```
/// use dlpack_core::layout::Dims;
///
/// let dims = Dims::extents(&[480_usize, 640, 3])?;
/// assert_eq!(dims[..], [480, 640, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct Dims {
    /// Of a list that there was no memory for: unknown, and how many bytes that was.
    inline: InlineDims,
    /// All the values, where there are more than those; else empty.
    heap: Vec<i64>,
}

impl Dims {
    /// No axes: the shape of a single value.
    ///
    /// ```
    /// assert!(dlpack_core::layout::Dims::new().is_empty());
    /// ```
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self::from_inline([0; INLINE], 0)
    }

    /// These many of them.
    #[inline(always)]
    pub(crate) const fn from_inline(values: [i64; INLINE], len: usize) -> Self {
        Self {
            inline: InlineDims { values, len },
            heap: Vec::new(),
        }
    }

    /// The values, if they are kept inline.
    #[inline]
    pub(crate) fn inline(&self) -> InlineDims {
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
        } else if dims.has_room(len) {
            dims.heap.resize(len, 0);
        }
        dims
    }

    /// The list, unless there was no memory for it.
    #[inline(always)]
    pub(crate) fn whole(self) -> Result<Self, Error> {
        self.check().map(|()| self)
    }

    #[inline(always)]
    fn check(&self) -> Result<(), Error> {
        if self.inline.len <= INLINE {
            return Ok(());
        }
        let bytes = usize::try_from(self.inline.values[0]).unwrap_or(usize::MAX);
        Err(Error::OutOfMemory { bytes })
    }

    /// Whether there is memory for so many values more. Without it the list is lost.
    #[cold]
    fn has_room(&mut self, more: usize) -> bool {
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

    /// That there are no more axes than consumers take.
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
        self.check()
    }

    /// Takes out the number of an axis.
    pub(crate) fn remove(&mut self, axis: usize) -> Result<(), Error> {
        if self.heap.is_empty() {
            let behind = &mut self.inline.values[axis..self.inline.len];
            behind.copy_within(1.., 0);
            self.inline.len -= 1;
            return Ok(());
        }
        let mut less = Self::from(&self[..axis]).whole()?;
        less.append(&self[axis + 1..])?;
        *self = less;
        Ok(())
    }

    /// The others.
    pub(crate) fn without(&self, axis: usize) -> Result<Self, Error> {
        let mut less = self.clone().whole()?;
        less.remove(axis)?;
        Ok(less)
    }

    /// One number more, in front of that of an axis or behind the last.
    pub(crate) fn with(&self, axis: usize, value: i64) -> Result<Self, Error> {
        let mut more = Self::from(&self[..axis]).whole()?;
        more.append(&[value])?;
        more.append(&self[axis..])?;
        Ok(more)
    }

    #[cold]
    fn push_to_heap(&mut self, value: i64) {
        let lost = self.inline.len > INLINE;
        if !lost && self.has_room(2 * INLINE) {
            if self.heap.is_empty() {
                self.heap.extend_from_slice(&self.inline.values);
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
        // There are none where there was no memory.
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
}
