//! Arithmetic on shapes and strides: the number of items, which ones are reached, and whether two overlap. Exact.

use crate::{DataType, Error, Order, layout::dims::Dims};

/// An extent as a `usize`. The value fits, since memory holds that many elements. If another axis is empty it may not fit, but
/// is not used then.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value fits, or is not used, as documented"
)]
pub(crate) fn extent_to_usize(extent: i64) -> usize {
    extent as usize
}

/// A stride as an `isize`. The value fits, since the tensor lies in memory. The stride of an axis that is never stepped along
/// may not fit, but is not used.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the value fits, or is not used, as documented"
)]
pub(crate) fn stride_to_isize(stride: i64) -> isize {
    stride as isize
}

/// The number of items of a shape, or `None` if it exceeds an `i64`.
#[inline]
pub(crate) fn count_items(shape: &[i64]) -> Option<i64> {
    let mut items = 1_i64;
    let mut overflow = false;
    for &extent in shape {
        if extent == 0 {
            return Some(0);
        }
        match items.checked_mul(extent) {
            Some(product) => items = product,
            // A later extent of 0 still makes the tensor empty.
            None => overflow = true,
        }
    }
    (!overflow).then_some(items)
}

/// The bytes that the items of a shape occupy when contiguous; `None` if they exceed the address space.
// LAY-19
#[inline]
pub(crate) fn packed_bytes(shape: &[i64], dtype: DataType) -> Option<usize> {
    let bytes = bytes_of_items(count_items(shape)?, dtype.itemsize_bits(), 7)?;
    usize::try_from(isize::try_from(bytes).ok()?).ok()
}

/// The bytes of `items` items of `bits` bits plus `added` bits; `None` if the number exceeds an `i64`. With 7 added bits a
/// partial byte counts, with 0 it does not.
#[inline]
pub(crate) fn bytes_of_items(items: i64, bits: usize, added: usize) -> Option<i64> {
    let (bits, added) = (i64::try_from(bits).ok()?, i64::try_from(added).ok()?);
    if bits % 8 == 0 {
        return items.checked_mul(bits / 8)?.checked_add(added / 8);
    }
    let bits = i128::from(items) * i128::from(bits);
    i64::try_from((bits + i128::from(added)).div_euclid(8)).ok()
}

/// The distance in bytes to an item inside a tensor's memory; `None` if the item does not begin at a byte. It does not overflow,
/// since the tensor reaches the item.
#[inline]
pub(crate) fn bytes_to_item(item: isize, bits: usize) -> Option<i64> {
    if bits % 8 == 0 {
        return Some((item as i64).wrapping_mul((bits / 8) as i64));
    }
    let bits = (item as i64).wrapping_mul(bits as i64);
    (bits % 8 == 0).then_some(bits / 8)
}

/// The lowest and the highest item that a tensor reaches, relative to its first element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    pub(crate) min: i64,
    pub(crate) max: i64,
}

/// The items that a tensor without empty axes reaches, with strides of either sign; `None` if a distance exceeds an `i64`, and
/// so any memory.
// LAY-22
#[inline]
pub(crate) fn reached_items(shape: &[i64], strides: &[i64]) -> Option<Reach> {
    let (mut min, mut max) = (0_i64, 0_i64);
    for (&extent, &stride) in shape.iter().zip(strides) {
        let far = (extent - 1).checked_mul(stride)?;
        // Each bound only ever moves outwards, so an overflow on the way means an overflow of the result.
        if far < 0 {
            min = min.checked_add(far)?;
        } else {
            max = max.checked_add(far)?;
        }
    }
    Some(Reach { min, max })
}

/// The items that a tensor reaches, for an error message: distances that exceed the integer saturate.
pub(crate) fn reach_saturating(shape: &[i64], strides: &[i64]) -> (i128, i128) {
    let (mut min, mut max) = (0_i128, 0_i128);
    for (&extent, &stride) in shape.iter().zip(strides) {
        let far = i128::from(extent - 1).saturating_mul(i128::from(stride));
        if far < 0 {
            min = min.saturating_add(far);
        } else {
            max = max.saturating_add(far);
        }
    }
    (min, max)
}

/// The strides that pack `shape` in this order, `unit` for the axis that varies fastest.
///
/// An extent of 0 counts as 1. A product that is too large saturates: only a tensor without elements can have one and still lie
/// inside its memory.
// LAY-18
#[inline]
pub(crate) fn packed_strides(order: Order, shape: &[i64], unit: i64) -> Result<Dims, Error> {
    let mut strides = Dims::zeroed(shape.len()).check_allocated()?;
    match order {
        Order::C => fill_row_major(&mut strides, shape, unit),
        Order::F => fill_packed(strides.iter_mut().zip(shape), unit),
    }
    Ok(strides)
}

/// Writes the row-major strides of `shape` into `strides`.
#[inline]
pub(crate) fn fill_row_major(strides: &mut [i64], shape: &[i64], unit: i64) {
    fill_packed(strides.iter_mut().zip(shape).rev(), unit);
}

#[inline]
fn fill_packed<'a>(axes: impl Iterator<Item = (&'a mut i64, &'a i64)>, mut stride: i64) {
    for (place, &extent) in axes {
        *place = stride;
        stride = stride.saturating_mul(extent.max(1));
    }
}

/// Whether the strides address the items at the same places as those of [`packed_strides`].
#[inline]
pub(crate) fn is_packed(order: Order, shape: &[i64], strides: &[i64], mut unit: i64) -> bool {
    let packed = |(&extent, &stride): (&i64, &i64)| {
        let same = extent == 1 || stride == unit;
        unit = unit.saturating_mul(extent);
        same
    };
    let mut axes = shape.iter().zip(strides);
    shape.contains(&0)
        || match order {
            Order::C => axes.rev().all(packed),
            Order::F => axes.all(packed),
        }
}

/// Whether two lists of strides address every item at the same place. The stride of an axis of size 1 does not matter.
pub(crate) fn address_same_items(shape: &[i64], strides: &[i64], others: &[i64]) -> bool {
    shape.contains(&0)
        || (shape.iter().zip(strides.iter().zip(others)))
            .all(|(&extent, (stride, other))| extent == 1 || stride == other)
}

/// Whether two indices may address the same item.
///
/// Never `false` if they do. It is also `true` for some unusual layouts with axes that interleave without overlap. Their
/// tensors are exported read-only.
pub(crate) fn may_overlap(shape: &[i64], strides: &[i64]) -> bool {
    // From the axis with the shortest stride on: each stride must exceed everything that the axes before it reach.
    steps_outwards(shape, strides, |stride, inner| stride > inner).is_none()
}

/// Whether a place between the lowest and the highest item may be addressed by no index.
///
/// Never `false` if there is one. It is also `true` for some unusual layouts with axes that interleave and fill every place.
pub(crate) fn may_leave_gaps(shape: &[i64], strides: &[i64]) -> bool {
    // Each stride must end inside what the axes before it reach, or directly after.
    let lands = |stride, inner: i64| stride <= inner.saturating_add(1);
    steps_outwards(shape, strides, lands).is_none()
}

/// The shape of the distinct items: the size of each axis with stride 0 is reduced to 1.
pub(crate) fn without_repeats(shape: &[i64], strides: &[i64]) -> Result<Dims, Error> {
    let mut once = Dims::from(shape).check_allocated()?;
    for (extent, &stride) in once.iter_mut().zip(strides) {
        if stride == 0 {
            *extent = 1.min(*extent);
        }
    }
    Ok(once)
}

/// Visits the axes from the shortest stride on. Returns how far they reach together, or `None` if `fits` rejects an axis's
/// stride against what the axes before it reach.
fn steps_outwards(shape: &[i64], strides: &[i64], fits: impl Fn(i64, i64) -> bool) -> Option<i64> {
    let axes = || {
        let walked = shape.iter().zip(strides).enumerate();
        let walked = walked.filter(|(_, (extent, _))| **extent > 1);
        walked.map(|(axis, (&extent, stride))| {
            (stride.checked_abs().unwrap_or(i64::MAX), axis, extent)
        })
    };
    let (mut inner, mut last) = (0_i64, None);
    // A search for the next axis in each round: for few axes that is faster than sorting, and needs no list.
    while let Some(next) = axes().filter(|axis| Some(*axis) > last).min() {
        let (stride, _, extent) = next;
        if !fits(stride, inner) {
            return None;
        }
        inner = inner.saturating_add(stride.saturating_mul(extent - 1));
        last = Some(next);
    }
    Some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_items_and_knows_when_it_cannot() {
        for (shape, items) in [
            (&[][..], Some(1)),
            (&[0], Some(0)),
            (&[2, 3], Some(6)),
            (&[i64::MAX, 2], None),
            (&[i64::MAX, 2, 0], Some(0)),
            (&[0, i64::MAX, 2], Some(0)),
            (&[1 << 32, 1 << 32, 16, 4], None),
        ] {
            assert_eq!(count_items(shape), items, "{shape:?}");
        }
    }

    /// Own faults 13: reading every item of a tensor with stride-0 axes is reduced to reading each distinct item.
    #[test]
    fn repeats_are_left_out() {
        for (shape, strides, items) in [
            (&[1 << 36][..], &[0][..], 1),
            (&[1 << 36, 4, 1 << 20], &[0, 2, 0], 4),
            (&[3, 0, 2], &[0, 0, 1], 0),
            (&[3, 2], &[2, 1], 6),
            (&[], &[], 1),
        ] {
            let once = without_repeats(shape, strides).unwrap();
            assert_eq!(count_items(&once), Some(items), "{shape:?} {strides:?}");
            let reached = |shape| (items > 0).then(|| reached_items(shape, strides)).flatten();
            assert_eq!(reached(shape), reached(&once));
        }
    }

    /// Both bounds, with strides of either sign.
    // LAY-22
    #[test]
    fn reaches_both_ways() {
        for (shape, strides, reached) in [
            (&[][..], &[][..], Some((0, 0))),
            (&[3], &[2], Some((0, 4))),
            (&[3], &[-2], Some((-4, 0))),
            (&[3, 2], &[-2, 5], Some((-4, 5))),
            (&[1, 1], &[i64::MIN, i64::MAX], Some((0, 0))),
            (&[i64::MAX], &[2], None),
            (&[2, 2], &[i64::MAX, 1], None),
        ] {
            let expected = reached.map(|(min, max)| Reach { min, max });
            assert_eq!(
                reached_items(shape, strides),
                expected,
                "{shape:?} {strides:?}"
            );
        }
    }

    /// Extents of 0 count as 1, and an overflow is permitted if the tensor has no elements.
    // LAY-18
    #[test]
    fn compact_strides() {
        for (shape, expected) in [
            (&[2_i64, 3, 4][..], &[12_i64, 4, 1][..]),
            (&[3, 0, 2], &[2, 2, 1]),
            (&[0, i64::MAX, 2], &[i64::MAX, 2, 1]),
        ] {
            let strides = packed_strides(Order::C, shape, 1).unwrap();
            assert_eq!(strides[..], *expected, "{shape:?}");
        }
        assert_eq!(
            packed_strides(Order::F, &[2, 3, 4], 1).unwrap()[..],
            [1, 2, 6]
        );
    }

    #[test]
    fn overlap_and_gaps_are_never_missed() {
        // Compares each small layout with the set of places that it reaches.
        for a in 0..4 {
            for b in 0..4 {
                for s in -6..7 {
                    for t in -6..7 {
                        let mut places = alloc::collections::BTreeSet::new();
                        let mut all_different = true;
                        for i in 0..a {
                            for j in 0..b {
                                all_different &= places.insert(i * s + j * t);
                            }
                        }
                        let says = may_overlap(&[a, b], &[s, t]);
                        assert!(says || all_different, "{a}x{b} {s},{t}");
                        let filled = match (places.first(), places.last()) {
                            (Some(first), Some(last)) => last - first + 1,
                            _ => 0,
                        };
                        let all_reached = i64::try_from(places.len()).unwrap() == filled;
                        let says = may_leave_gaps(&[a, b], &[s, t]);
                        assert!(says || all_reached, "{a}x{b} {s},{t}");
                    }
                }
            }
        }
        for packed in [[3, 1], [-3, 1], [1, 4], [0, 1], [2, 1]] {
            assert!(!may_leave_gaps(&[4, 3], &packed), "{packed:?}");
        }
        assert!(may_leave_gaps(&[4, 3], &[4, 1]));
        assert!(!may_overlap(&[4, 3], &[3, 1]));
        assert!(!may_overlap(&[3, 4], &[1, 3]));
        assert!(may_overlap(&[4, 3], &[0, 1]));
        assert!(may_overlap(&[3, 3], &[1, 1]));
    }
}
