//! Arithmetic over extents and strides: how many items, which ones are reached, whether two share a place. Pure and exact.

use crate::{DataType, Error, Order, layout::dims::Dims};

/// An extent. Memory holds that many elements, or another axis has none and this number means nothing.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as above"
)]
pub(crate) fn size(extent: i64) -> usize {
    extent as usize
}

/// A stride, of which the same holds.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "as above")]
pub(crate) fn distance(stride: i64) -> isize {
    stride as isize
}

/// The items of a tensor of this shape, or `None` where no `i64` holds their number.
#[inline]
pub(crate) fn count(shape: &[i64]) -> Option<i64> {
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

/// The bytes of so many items one after another, `None` where that is more than memory has.
// LAY-19
#[inline]
pub(crate) fn packed_bytes(shape: &[i64], dtype: DataType) -> Option<usize> {
    let bytes = bytes(count(shape)?, dtype.itemsize_bits(), 7)?;
    usize::try_from(isize::try_from(bytes).ok()?).ok()
}

/// The bytes of so many items of so many bits and of some bits more, `None` where no `i64` holds their number. A byte of
/// which some are part is counted if 7 are added, and not if none are.
#[inline]
pub(crate) fn bytes(items: i64, bits: usize, added: usize) -> Option<i64> {
    let (bits, added) = (i64::try_from(bits).ok()?, i64::try_from(added).ok()?);
    if bits % 8 == 0 {
        return items.checked_mul(bits / 8)?.checked_add(added / 8);
    }
    let bits = i128::from(items) * i128::from(bits);
    i64::try_from((bits + i128::from(added)).div_euclid(8)).ok()
}

/// The first and the last item that a tensor reaches, counted from its first element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    pub(crate) min: i64,
    pub(crate) max: i64,
}

/// What a tensor without empty axes reaches, over signed strides; `None` where that is
/// further than an `i64` counts, and so further than any memory.
// LAY-22
#[inline]
pub(crate) fn reach(shape: &[i64], strides: &[i64]) -> Option<Reach> {
    let (mut min, mut max) = (0_i64, 0_i64);
    for (&extent, &stride) in shape.iter().zip(strides) {
        let far = (extent - 1).checked_mul(stride)?;
        // Each side only ever grows, so an overflow in between is one in the end.
        if far < 0 {
            min = min.checked_add(far)?;
        } else {
            max = max.checked_add(far)?;
        }
    }
    Some(Reach { min, max })
}

/// The same for an error message, where numbers beyond an `i64` are cut off rather than refused.
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

/// The strides of `shape` packed in this order, `unit` for the axis that moves fastest.
///
/// An extent of 0 counts as 1. Too large a product saturates: only a tensor without
/// elements can have one and stay in its buffer.
// LAY-18
#[inline]
pub(crate) fn packed(order: Order, shape: &[i64], unit: i64) -> Result<Dims, Error> {
    let mut strides = Dims::zeroed(shape.len()).whole()?;
    match order {
        Order::C => fill_row_major(&mut strides, shape, unit),
        Order::F => fill(strides.iter_mut().zip(shape), unit),
    }
    Ok(strides)
}

/// Writes those in row-major order where they shall be, one for each extent.
#[inline]
pub(crate) fn fill_row_major(strides: &mut [i64], shape: &[i64], unit: i64) {
    fill(strides.iter_mut().zip(shape).rev(), unit);
}

#[inline]
fn fill<'a>(axes: impl Iterator<Item = (&'a mut i64, &'a i64)>, mut stride: i64) {
    for (place, &extent) in axes {
        *place = stride;
        stride = stride.saturating_mul(extent.max(1));
    }
}

/// Whether these strides lead to the same places as those that are [`packed`].
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

/// Whether two sets of strides lead to the same places: that of an axis which is not walked does not matter.
pub(crate) fn same_places(shape: &[i64], strides: &[i64], others: &[i64]) -> bool {
    shape.contains(&0)
        || (shape.iter().zip(strides.iter().zip(others)))
            .all(|(&extent, (stride, other))| extent == 1 || stride == other)
}

/// Whether two indices may mean the same item.
///
/// Never `false` where they do. Some exotic layouts whose axes interleave without meeting are
/// called overlapping too; that costs them the right to be written, nothing else.
pub(crate) fn may_overlap(shape: &[i64], strides: &[i64]) -> bool {
    // From the nearest axis outwards: each step must leap over all that the nearer axes reach.
    steps_outwards(shape, strides, |stride, inner| stride > inner).is_none()
}

/// Whether there are places, between the first and the last that is reached, that no index means.
///
/// Never `false` where there are. Some exotic layouts whose axes interleave to fill every place are said to leave gaps
/// too.
pub(crate) fn may_leave_gaps(shape: &[i64], strides: &[i64]) -> bool {
    // Each step must land on what the nearer axes reach, or right behind.
    let lands = |stride, inner: i64| stride <= inner.saturating_add(1);
    steps_outwards(shape, strides, lands).is_none()
}

/// A shape that reaches the same items, each only once where an axis stands still.
pub(crate) fn without_repeats(shape: &[i64], strides: &[i64]) -> Result<Dims, Error> {
    let mut once = Dims::from(shape).whole()?;
    for (extent, &stride) in once.iter_mut().zip(strides) {
        if stride == 0 {
            *extent = 1.min(*extent);
        }
    }
    Ok(once)
}

/// How far the axes reach together, if `fits` says of each, from the nearest outwards, that its stride goes with what the
/// nearer ones reach.
fn steps_outwards(shape: &[i64], strides: &[i64], fits: impl Fn(i64, i64) -> bool) -> Option<i64> {
    let axes = || {
        let walked = shape.iter().zip(strides).enumerate();
        let walked = walked.filter(|(_, (extent, _))| **extent > 1);
        walked.map(|(axis, (&extent, stride))| {
            (stride.checked_abs().unwrap_or(i64::MAX), axis, extent)
        })
    };
    let (mut inner, mut last) = (0_i64, None);
    // The next one further out, each time: few axes are found sooner so than sorted, and no list is needed.
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
            assert_eq!(count(shape), items, "{shape:?}");
        }
    }

    /// Own faults 13: a look at every item of a tensor that repeats a few is a look at those few.
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
            assert_eq!(count(&once), Some(items), "{shape:?} {strides:?}");
            let reached = |shape| (items > 0).then(|| reach(shape, strides)).flatten();
            assert_eq!(reached(shape), reached(&once));
        }
    }

    /// Both ends over signed strides.
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
            assert_eq!(reach(shape, strides), expected, "{shape:?} {strides:?}");
        }
    }

    /// As if extents of 0 were 1, and no overflow where nothing is stored.
    // LAY-18
    #[test]
    fn compact_strides() {
        for (shape, expected) in [
            (&[2_i64, 3, 4][..], &[12_i64, 4, 1][..]),
            (&[3, 0, 2], &[2, 2, 1]),
            (&[0, i64::MAX, 2], &[i64::MAX, 2, 1]),
        ] {
            let strides = packed(Order::C, shape, 1).unwrap();
            assert_eq!(strides[..], *expected, "{shape:?}");
        }
        assert_eq!(packed(Order::F, &[2, 3, 4], 1).unwrap()[..], [1, 2, 6]);
    }

    #[test]
    fn overlap_and_gaps_are_never_missed() {
        // Every small layout against the set of places that it reaches.
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
