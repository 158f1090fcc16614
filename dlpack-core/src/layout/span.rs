//! The bytes that a strided array occupies, and whether two arrays may share one. Arithmetic on addresses only.

use crate::layout::extent::extent_to_usize;

/// The memory that the elements of an array occupy.
///
/// It is `repr(C)`, since the extension modules of one Python process pass spans to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Span {
    /// The lowest address of an element.
    pub start: usize,
    /// The address after the highest element; at most `start` if there are no elements.
    pub end: usize,
    /// The distance of each element from `start` is a multiple of this many bytes; 0 for a single element.
    pub step: usize,
    /// The size of one element in bytes.
    pub width: usize,
}

impl Span {
    /// The span of an array with its first element at `data`. Each element occupies `width` bytes. Strides count units of
    /// `unit` bytes.
    ///
    /// All elements must lie in memory: overflow is not checked again.
    #[inline]
    #[must_use]
    pub fn new(data: usize, shape: &[i64], strides: &[i64], unit: usize, width: usize) -> Self {
        let mut span = Self {
            start: data,
            end: data.wrapping_add(width),
            step: 0,
            width,
        };
        // From the last axis on: if its stride is 1, no greatest common divisor has to be computed.
        for (&extent, &stride) in shape.iter().zip(strides).rev() {
            if extent == 0 {
                span.end = span.start;
                return span;
            }
            if extent == 1 {
                continue;
            }
            let bytes = extent_to_usize(stride.wrapping_abs()).wrapping_mul(unit);
            let far = extent_to_usize(extent - 1).wrapping_mul(bytes);
            if stride < 0 {
                span.start = span.start.wrapping_sub(far);
            } else {
                span.end = span.end.wrapping_add(far);
            }
            if span.step != unit {
                span.step = greatest_common_divisor(span.step, bytes);
            }
        }
        span
    }

    /// Whether the two arrays may have a byte in common; never `false` if they do.
    ///
    /// Two columns of a matrix, or two channels of an image, have none: each steps over the elements of the other. The result
    /// is also `true` for some arrays that interleave in another way without sharing a byte.
    #[must_use]
    pub fn may_share_bytes(&self, other: &Self) -> bool {
        let is_empty = self.start >= self.end || other.start >= other.end;
        if is_empty || self.start >= other.end || other.start >= self.end {
            return false;
        }
        let step = greatest_common_divisor(self.step, other.step);
        if step == 0 {
            return true;
        }
        // Modulo `step`, all elements of one array lie at the same offset. `behind` is the distance from this array's offset up
        // to the other's; if `other` starts lower and both offsets are equal, it is `step`.
        let behind = if other.start >= self.start {
            (other.start - self.start) % step
        } else {
            step - (self.start - other.start) % step
        };
        behind < self.width || step - behind < other.width
    }
}

#[inline]
pub(crate) fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    if a == 0 {
        return b;
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    /// A small random number generator with a fixed seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 33) % end
        }

        fn between(&mut self, range: core::ops::Range<i64>) -> i64 {
            let extents = u64::try_from(range.end - range.start).unwrap();
            range.start + i64::try_from(self.below(extents)).unwrap()
        }
    }

    struct Layout {
        data: usize,
        shape: Vec<i64>,
        strides: Vec<i64>,
        unit: usize,
        width: usize,
    }

    impl Layout {
        fn random(random: &mut Random) -> Self {
            let rank = random.below(4);
            let axis = |range: core::ops::Range<i64>, random: &mut Random| {
                (0..rank).map(|_| random.between(range.clone())).collect()
            };
            let unit = 1 << random.below(4);
            Self {
                data: 4000 + usize::try_from(random.below(96)).unwrap(),
                shape: axis(0..5, random),
                strides: axis(-7..8, random),
                unit,
                width: unit * (1 + usize::try_from(random.below(3)).unwrap()),
            }
        }

        fn span(&self) -> Span {
            Span::new(self.data, &self.shape, &self.strides, self.unit, self.width)
        }

        /// The set of all bytes that the elements occupy.
        fn bytes(&self) -> BTreeSet<usize> {
            let mut elements = Vec::from([i64::try_from(self.data).unwrap()]);
            for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
                let unit = i64::try_from(self.unit).unwrap();
                let along = |first: &i64| {
                    let first = *first;
                    (0..extent).map(move |index| first + index * stride * unit)
                };
                elements = elements.iter().flat_map(along).collect();
            }
            elements
                .into_iter()
                .map(|element| usize::try_from(element).unwrap())
                .flat_map(|element| element..element + self.width)
                .collect()
        }
    }

    /// Compares with the sets of bytes, for random layouts with two widths.
    #[test]
    fn a_shared_byte_is_never_missed() {
        let mut random = Random(1);
        let (mut shared, mut apart) = (0, 0);
        for _ in 0..15_000 {
            let (a, b) = (Layout::random(&mut random), Layout::random(&mut random));
            let (x, y) = (a.span(), b.span());
            let bytes = a.bytes();
            assert_eq!(bytes.first().copied().unwrap_or(x.start), x.start);
            assert_eq!(bytes.last().map_or(x.start, |last| last + 1), x.end);
            let shares = !bytes.is_disjoint(&b.bytes());
            assert!(x.may_share_bytes(&y) || !shares, "{x:?} {y:?}");
            assert!(!x.may_share_bytes(&y) || !bytes.is_empty(), "{x:?} {y:?}");
            assert_eq!(x.may_share_bytes(&y), y.may_share_bytes(&x), "{x:?} {y:?}");
            shared += i32::from(shares);
            apart += i32::from(!x.may_share_bytes(&y));
        }
        assert!(shared > 1000 && apart > 1000, "{shared} {apart}");
    }

    /// For two arrays of one axis with the same stride the answer is exact: no pair without a common byte is rejected.
    #[test]
    fn two_columns_are_told_apart_exactly() {
        let mut random = Random(2);
        let mut shared = 0;
        for _ in 0..15_000 {
            let stride = random.between(1..24);
            let mut column = || {
                let sign = random.between(0..2) * 2 - 1;
                Layout {
                    data: 4000 + usize::try_from(random.below(48)).unwrap(),
                    // The strides of axes of size 1 do not matter.
                    shape: Vec::from([1, random.between(2..6), 1]),
                    strides: Vec::from([7, stride * sign, 5]),
                    unit: 1,
                    width: 1 + usize::try_from(random.below(stride.unsigned_abs())).unwrap(),
                }
            };
            let (a, b) = (column(), column());
            let shares = !a.bytes().is_disjoint(&b.bytes());
            let (a, b) = (a.span(), b.span());
            assert_eq!(a.may_share_bytes(&b), shares, "{a:?} {b:?}");
            shared += i32::from(shares);
        }
        assert!((2_500..12_500).contains(&shared), "{shared}");
    }

    #[test]
    fn channels_of_an_image_are_apart() {
        // RGBA, 2 x 3: the three colour channels, and the alpha channel after them.
        let strides = [12, 4];
        let colors = Span::new(1000, &[2, 3], &strides, 1, 3);
        let alpha = Span::new(1003, &[2, 3], &strides, 1, 1);
        let blue = Span::new(1002, &[2, 3], &strides, 1, 1);
        assert!(!colors.may_share_bytes(&alpha) && !alpha.may_share_bytes(&colors));
        assert!(colors.may_share_bytes(&blue) && blue.may_share_bytes(&colors));
    }
}
