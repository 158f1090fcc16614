//! A short list of extents or strides, kept inline up to six axes so that describing a tensor allocates nothing.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::error::Error;
use crate::shape::{Shape, Strides};

/// More axes than this are refused: numpy, the consumer with the lowest limit, stops here too (LAY-20).
pub(crate) const MAX_RANK: usize = 64;

const INLINE: usize = 6;

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
pub struct Dims(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, values: [i64; INLINE] },
    Heap(Vec<i64>),
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
        Self(Repr::Inline {
            len: 0,
            values: [0; INLINE],
        })
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
        let mut dims = Self::new();
        shape.read_extents(&mut dims)?;
        Ok(dims)
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
        let mut dims = Self::new();
        strides.read_strides(&mut dims)?;
        Ok(dims)
    }

    pub(crate) fn zeroed(len: usize) -> Self {
        if len <= INLINE {
            Self(Repr::Inline {
                len: narrow(len),
                values: [0; INLINE],
            })
        } else {
            Self(Repr::Heap(alloc::vec![0; len]))
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: i64) {
        match &mut self.0 {
            Repr::Inline { len, values } if usize::from(*len) < INLINE => {
                values[usize::from(*len)] = value;
                *len += 1;
            }
            Repr::Inline { values, .. } => {
                let mut heap = Vec::with_capacity(2 * INLINE);
                heap.extend_from_slice(values);
                heap.push(value);
                self.0 = Repr::Heap(heap);
            }
            Repr::Heap(heap) => heap.push(value),
        }
    }
}

/// `len` is at most `INLINE` wherever this is called.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most INLINE, which is 6"
)]
fn narrow(len: usize) -> u8 {
    debug_assert!(len <= INLINE);
    len as u8
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
        match &self.0 {
            Repr::Inline { len, values } => &values[..usize::from(*len)],
            Repr::Heap(heap) => heap,
        }
    }
}

impl DerefMut for Dims {
    #[inline]
    fn deref_mut(&mut self) -> &mut [i64] {
        match &mut self.0 {
            Repr::Inline { len, values } => &mut values[..usize::from(*len)],
            Repr::Heap(heap) => heap,
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
        Self::from(&values[..])
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
