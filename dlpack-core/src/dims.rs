//! A short list of extents or strides, kept inline up to six axes so that describing a tensor allocates nothing.
#![expect(
    unsafe_code,
    reason = "reads values in a way that no safe function has"
)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::error::Error;
use crate::packed_tensor::Few;
use crate::shape::{Shape, Strides};

/// More axes than this are refused: numpy, the consumer with the lowest limit, stops here too (LAY-20).
pub const MAX_RANK: usize = 64;

pub(crate) const INLINE: usize = 6;

/// The extents or the strides of a tensor, one `i64` an axis.
///
/// Reads as a slice. [`Dims::extents`] and [`Dims::strides`] make one from whatever integers a struct keeps.
///
/// ```
/// use dlpack_core::Dims;
///
/// let dims = Dims::extents(&[480_usize, 640, 3])?;
/// assert_eq!(dims[..], [480, 640, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Dims {
    inline: [i64; INLINE],
    /// How many of them are used.
    len: usize,
    /// All the values, where there are more than those; else empty.
    heap: Vec<i64>,
}

impl Dims {
    /// No axes: the shape of a single value.
    ///
    /// ```
    /// assert!(dlpack_core::Dims::new().is_empty());
    /// ```
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self::inline([0; INLINE], 0)
    }

    #[inline]
    const fn inline(inline: [i64; INLINE], len: usize) -> Self {
        Self {
            inline,
            len,
            heap: Vec::new(),
        }
    }

    /// The extents that any list of integers names: arrays, `Vec`, slices and tuples.
    ///
    /// ```
    /// use dlpack_core::Dims;
    ///
    /// assert_eq!(Dims::extents(&(2_u32, 3_u64))?[..], [2, 3]);
    /// assert!(Dims::extents(&[-1]).is_err());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A negative extent, or one that no `i64` holds.
    #[inline]
    pub fn extents<S: Shape + ?Sized>(shape: &S) -> Result<Self, Error> {
        shape.to_extents()
    }

    /// The strides that any list of integers names.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Dims::strides(&[-3_isize, 1])?[..], [-3, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A stride that no `i64` holds.
    #[inline]
    pub fn strides<S: Strides + ?Sized>(strides: &S) -> Result<Self, Error> {
        strides.to_strides()
    }

    /// These extents and the strides that pack them in row-major order, if they are kept inline, none is
    /// zero or negative, and they make at most `most` items.
    #[inline(always)]
    pub(crate) fn packed(&self, most: usize) -> Option<(Self, Self)> {
        let strides = self.few().packed(most)?;
        let list = |values| Self::inline(values, self.len);
        Some((list(self.inline), list(strides)))
    }

    /// The values, if they are kept inline.
    #[inline]
    pub(crate) fn few(&self) -> Few {
        if self.heap.is_empty() {
            Few {
                values: self.inline,
                len: self.len,
            }
        } else {
            Few::UNKNOWN
        }
    }

    pub(crate) fn zeroed(len: usize) -> Self {
        if len <= INLINE {
            Self::inline([0; INLINE], len)
        } else {
            Self {
                inline: [0; INLINE],
                len: 0,
                heap: alloc::vec![0; len],
            }
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: i64) {
        match self.inline.get_mut(self.len) {
            Some(place) if self.heap.is_empty() => {
                *place = value;
                self.len += 1;
            }
            _ => self.push_to_heap(value),
        }
    }

    #[cold]
    fn push_to_heap(&mut self, value: i64) {
        if self.heap.is_empty() {
            self.heap.reserve(2 * INLINE);
            self.heap.extend_from_slice(&self.inline);
        }
        self.heap.push(value);
    }
}

/// The extents and the strides of an export, at the addresses that its consumer gets.
pub(crate) struct Lists {
    shape: [i64; INLINE],
    strides: [i64; INLINE],
    /// Those of more axes, first the shape, then the strides; else empty.
    heap: Box<[i64]>,
}

impl Lists {
    #[inline]
    pub(crate) fn new(shape: &Dims, strides: &Dims) -> Self {
        Self {
            shape: one_by_one(&shape.inline),
            strides: one_by_one(&strides.inline),
            heap: if shape.heap.is_empty() {
                Box::default()
            } else {
                long(shape, strides)
            },
        }
    }

    /// Those of few axes.
    #[inline(always)]
    pub(crate) fn few(shape: [i64; INLINE], strides: [i64; INLINE]) -> Self {
        Self {
            shape,
            strides,
            heap: Box::default(),
        }
    }

    /// Where they are.
    #[inline]
    pub(crate) fn places(&mut self) -> [*mut i64; 2] {
        if self.heap.is_empty() {
            [self.shape.as_mut_ptr(), self.strides.as_mut_ptr()]
        } else {
            let (shape, strides) = self.heap.split_at_mut(self.heap.len() / 2);
            [shape.as_mut_ptr(), strides.as_mut_ptr()]
        }
    }
}

/// The same values, read one at a time. They were just written like that, and the wide loads that a plain
/// copy becomes would have to wait until all writes have reached the cache: half of what an export costs.
#[inline]
fn one_by_one(values: &[i64; INLINE]) -> [i64; INLINE] {
    // SAFETY: a reference is valid to read from.
    core::array::from_fn(|axis| unsafe { core::ptr::from_ref(&values[axis]).read_volatile() })
}

#[cold]
fn long(shape: &[i64], strides: &[i64]) -> Box<[i64]> {
    [shape, strides].concat().into_boxed_slice()
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
            &self.inline[..self.len]
        } else {
            &self.heap
        }
    }
}

impl DerefMut for Dims {
    #[inline]
    fn deref_mut(&mut self) -> &mut [i64] {
        if self.heap.is_empty() {
            &mut self.inline[..self.len]
        } else {
            &mut self.heap
        }
    }
}

impl From<&[i64]> for Dims {
    #[inline]
    fn from(values: &[i64]) -> Self {
        let mut dims = Self::zeroed(values.len());
        dims.copy_from_slice(values);
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
        Self::inline(inline, N)
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
