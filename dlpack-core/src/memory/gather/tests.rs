#![expect(unsafe_code, reason = "copies between raw addresses")]
use super::*;
use crate::memory::moves::transpose_bits;
use alloc::vec;
use alloc::vec::Vec;
use core::array::from_fn;

/// The item sizes that have code of their own, and the sizes around them.
const SIZES: [usize; 21] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 32, 33, 40,
];

/// A deterministic sequence of pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % sides
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.roll((high - low + 1).unsigned_abs())).expect("small")
    }
}

/// The offsets, in items, of the elements in row-major order.
fn offsets(shape: &[i64], strides: &[i64]) -> Vec<i64> {
    if shape.contains(&0) {
        return vec![];
    }
    let mut offsets = vec![0];
    for (&extent, &stride) in shape.iter().zip(strides) {
        let next = offsets
            .iter()
            .flat_map(|o| (0..extent).map(move |i| o + i * stride));
        offsets = next.collect();
    }
    offsets
}

/// Gathers from memory that ends with the last item, and compares the result with an item-by-item walk.
fn check(shape: &[i64], strides: &[i64], itemsize: usize) {
    let offsets = offsets(shape, strides);
    let first = offsets.iter().copied().min().unwrap_or(0);
    let last = offsets.iter().copied().max().unwrap_or(-1);
    // Every alignment is allowed, so arrays get different ones.
    let skip = (offsets.len() + itemsize) % 17;
    let at = |offset: i64| {
        skip + usize::try_from(offset - first).expect("not before the first") * itemsize
    };

    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let byte = |_| u8::try_from(dice.roll(256)).expect("a byte");
    let source: Vec<u8> = (0..at(last + 1)).map(byte).collect();
    let expected: Vec<u8> = offsets
        .iter()
        .flat_map(|&o| source[at(o)..at(o) + itemsize].iter().copied())
        .collect();

    const GUARD: usize = 64;
    let src = source
        .as_ptr()
        .wrapping_add(if offsets.is_empty() { 0 } else { at(0) });
    for shared in [false, true] {
        let mut found = vec![0xaa; expected.len() + 2 * GUARD];
        let dst = found.as_mut_ptr().wrapping_add(GUARD);
        // SAFETY:
        // 1. the source has every item from the first offset to the last;
        // 2. the destination is another allocation with space for one item for each offset;
        // 3. both are local to this test, so no other thread accesses them.
        unsafe { gather_items(src, shape, strides, itemsize, dst, shared) };
        let (before, rest) = found.split_at(GUARD);
        let (found, after) = rest.split_at(expected.len());
        let what = || {
            alloc::format!(
                "shape {shape:?}, strides {strides:?}, {itemsize} bytes, shared {shared}"
            )
        };
        assert!(found == expected, "wrong items: {}", what());
        let untouched = before.iter().chain(after).all(|&b| b == 0xaa);
        assert!(untouched, "wrote outside: {}", what());
    }
}

/// The row-major strides of a shape.
fn contiguous(shape: &[i64]) -> Vec<i64> {
    (0..shape.len())
        .map(|i| shape[i + 1..].iter().product())
        .collect()
}

#[test]
fn any_shape_and_strides_give_what_an_index_walk_gives() {
    let (rounds, most) = if cfg!(miri) { (15, 150) } else { (1500, 3000) };
    let mut dice = Dice(42);
    for _ in 0..rounds {
        let itemsize = SIZES[usize::try_from(dice.roll(21)).expect("small")];
        let ndim = dice.roll(7);
        let (mut shape, mut strides) = (vec![], vec![]);
        let mut room = most;
        for _ in 0..ndim {
            let extent = match dice.roll(12) {
                0 => 0,
                1..=3 => 1,
                4..=5 => dice.between(1, 40),
                _ => dice.between(2, 9),
            }
            .min(room);
            room /= extent.max(1);
            shape.push(extent);
            strides.push(match dice.roll(5) {
                0 => dice.between(-1, 1),
                1 => dice.between(-200, 200),
                _ => dice.between(-12, 12),
            });
        }
        check(&shape, &strides, itemsize);
    }
}

/// Permutations, steps, reversals and crops of contiguous arrays: the common views.
#[test]
fn views_of_contiguous_arrays() {
    let (rounds, limits) = if cfg!(miri) {
        (15, [150, 12, 5, 4])
    } else {
        (1500, [2000, 60, 17, 9])
    };
    let mut dice = Dice(7);
    for _ in 0..rounds {
        let itemsize = SIZES[usize::try_from(dice.roll(21)).expect("small")];
        let ndim = 1 + dice.roll(4);
        let most = limits[usize::try_from(ndim - 1).expect("small")];
        let whole: Vec<i64> = (0..ndim).map(|_| dice.between(1, most)).collect();
        let mut axes: Vec<(i64, i64)> = whole.iter().copied().zip(contiguous(&whole)).collect();
        for (extent, stride) in &mut axes {
            match dice.roll(5) {
                0 => (*extent, *stride) = ((*extent + 1) / 2, *stride * 2),
                1 => *stride = -*stride,
                2 => *extent = dice.between(0, *extent),
                _ => {}
            }
        }
        for i in (1..axes.len()).rev() {
            axes.swap(i, usize::try_from(dice.roll(ndim)).expect("small").min(i));
        }
        let (shape, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
        check(&shape, &strides, itemsize);
    }
}

/// Sides just below, at and above those of squares and tiles, with positive and negative dense strides.
#[test]
fn transpositions_whose_sides_are_no_multiple_of_a_tile() {
    let sides: &[i64] = if cfg!(miri) {
        &[3, 8, 9]
    } else {
        &[
            1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 67, 127, 129, 131,
        ]
    };
    let sizes: &[usize] = if cfg!(miri) {
        &[1, 3, 16]
    } else {
        &[1, 2, 3, 4, 8, 16, 20]
    };
    for &itemsize in sizes {
        for &h in sides {
            for &w in sides {
                check(&[w, h], &[1, w], itemsize);
            }
            check(&[h, 70], &[-1, h], itemsize);
            check(&[70, h], &[1, -70], itemsize);
            check(&[70, h], &[2, 140], itemsize);
            check(&[h, 2, 5], &[1, 5 * h, h], itemsize);
        }
    }
}

/// Strides that are a large power of two make the tiles low; short sides make them wide.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn transpositions_with_tiles_of_other_shapes() {
    for itemsize in SIZES {
        check(&[70, 70], &[1, 4096], itemsize);
        check(&[70, 300], &[1, 256], itemsize);
        check(&[3, 1000], &[1, 3], itemsize);
        check(&[1001, 3], &[1, 1001], itemsize);
        check(&[2, 3, 5, 67], &[3, 1, 6 * 67, 6], itemsize);
        check(&[65, 3, 66], &[1, 65 * 66, 65], itemsize);
    }
}

#[test]
fn directed_cases() {
    let sizes: &[usize] = if cfg!(miri) {
        &[1, 3, 4, 8, 16]
    } else {
        &SIZES
    };
    for &itemsize in sizes {
        check(&[], &[], itemsize);
        check(&[0], &[1], itemsize);
        check(&[3, 0, 2], &[i64::MAX, i64::MIN, 1], itemsize);
        check(&[1, 1], &[i64::MAX, i64::MIN], itemsize);
        check(&[100], &[1], itemsize);
        check(&[100], &[-1], itemsize);
        check(&[100], &[2], itemsize);
        check(&[100], &[0], itemsize);
        check(&[10, 10], &[-10, -1], itemsize);
        check(&[10, 10], &[-10, 1], itemsize);
        check(&[10, 30], &[40, -1], itemsize);
        check(&[10, 30], &[0, 1], itemsize);
        check(&[10, 30], &[1, 0], itemsize);
        check(&[10, 30], &[1, 1], itemsize);
        check(&[2; 10], &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512], itemsize);
    }
}

#[test]
fn column_major_is_the_reverse() {
    // [[0, 1, 2], [3, 4, 5]], column by column.
    let source = [0_u8, 1, 2, 3, 4, 5];
    let mut found = [0_u8; 6];
    // SAFETY: both arrays are local to the test and have 6 items of one byte each.
    unsafe {
        gather_items(
            source.as_ptr(),
            &[3, 2],
            &[1, 3],
            1,
            found.as_mut_ptr(),
            false,
        )
    };
    assert_eq!(found, [0, 3, 1, 4, 2, 5]);
}

#[test]
fn copies_take_as_few_loops_as_possible() {
    let facts = |shape: &[i64], strides: &[i64], itemsize| {
        let axes = &mut [Axis::ONCE; MAX_AXES];
        let loops = CopyLoops::new(shape, strides, itemsize, axes).expect("something to copy");
        (loops.item, loops.count, loops.tile.is_some())
    };
    // Contiguous, whatever strides the axes of extent 1 have.
    assert_eq!(facts(&[4, 5, 6], &[30, 6, 1], 4), (480, 0, false));
    assert_eq!(facts(&[4, 1, 6], &[6, -99, 1], 4), (96, 0, false));
    assert_eq!(facts(&[1; 100], &[7; 100], 4), (4, 0, false));
    // Reversed on all axes, the array is one axis; reversed on the first axis, it is whole rows.
    assert_eq!(facts(&[4, 5], &[-5, -1], 4), (4, 1, false));
    assert_eq!(facts(&[4, 5], &[-5, 1], 4), (20, 1, false));
    // A crop, a step, pixels.
    assert_eq!(facts(&[4, 5], &[9, 1], 4), (20, 1, false));
    assert_eq!(facts(&[4, 5], &[10, 2], 4), (4, 1, false));
    assert_eq!(facts(&[4, 5, 3], &[30, 6, 1], 1), (3, 1, false));
    // A transpose has tiles, unless the innermost axis is the dense one.
    assert_eq!(facts(&[4, 5], &[1, 4], 4), (4, 2, true));
    assert_eq!(facts(&[4, 5, 6], &[6, 24, 1], 4), (24, 2, true));
    assert_eq!(facts(&[4, 5, 6], &[100, 6, -1], 4), (4, 3, false));
    assert_eq!(facts(&[4, 5], &[0, 2], 4), (4, 2, false));
    // The dense axis comes second, and the others keep the order of the destination.
    let axes = &mut [Axis::ONCE; MAX_AXES];
    let loops =
        CopyLoops::new(&[3, 4, 5, 6], &[1, 10, 1000, 100], 1, axes).expect("something to copy");
    let extents: Vec<usize> = loops.axes[..loops.count].iter().map(|a| a.extent).collect();
    assert_eq!(extents, [6, 3, 5, 4]);
    assert!(CopyLoops::new(&[4, 0], &[1, 1], 4, &mut [Axis::ONCE; 2]).is_none());
    assert!(CopyLoops::new(&[4], &[1], 0, &mut [Axis::ONCE; 2]).is_none());
}

#[test]
fn squares_are_transposed() {
    assert_eq!(
        transpose_bits([0x0000_0001_0000_0000, 0x0000_0003_0000_0002]),
        [0x0000_0002_0000_0000, 0x0000_0003_0000_0001]
    );
    let square: [u64; 8] = from_fn(|i| u64::from_le_bytes(from_fn(|j| byte(8 * i + j))));
    let expected: [u64; 8] = from_fn(|i| u64::from_le_bytes(from_fn(|j| byte(8 * j + i))));
    assert_eq!(transpose_bits(square), expected);
    assert_eq!(transpose_bits(expected), square);
}

fn byte(number: usize) -> u8 {
    u8::try_from(number).expect("a byte")
}

/// A tile has 128 cache lines: fewer if they would compete, more if the other side is short.
#[test]
fn tiles_fit_the_cache() {
    let tile = |extents: [i64; 2], stride| {
        let axes = &mut [Axis::ONCE; MAX_AXES];
        CopyLoops::new(&extents, &[1, stride], 4, axes).and_then(|loops| loops.tile)
    };
    assert_eq!(tile([1000, 1000], 1001), Some([128, 16]));
    assert_eq!(tile([1000, 1000], 256), Some([32, 16]));
    assert_eq!(tile([1000, 1000], 1024), Some([16, 16]));
    assert_eq!(tile([5, 1000], 1001), Some([409, 16]));
    assert_eq!(tile([1000, 20], 1001), Some([128, 102]));
    assert_eq!(tile([16, 20], 1001), Some([128, 102]));
}

/// Squares have eight bytes a line, unless single loads are no slower.
#[test]
fn squares_have_lines_of_eight_bytes() {
    fn sides<R: Reads>() -> [usize; 4] {
        [
            Unit::<u8, R>::SIDE,
            Unit::<u16, R>::SIDE,
            Unit::<u32, R>::SIDE,
            Unit::<u64, R>::SIDE,
        ]
    }
    assert_eq!(sides::<PlainReads>(), [8, 4, 0, 2]);
    // A read of a word of several numbers may tear one of them, unless the numbers are bytes.
    assert_eq!(sides::<SharedReads>(), [8, 0, 0, 2]);
}

/// Words that other threads write are read at aligned addresses only, so both the address and the item size matter.
#[test]
fn items_are_as_aligned_as_their_addresses() {
    let words = [0_u64; 2];
    let start = words.as_ptr().cast::<u8>();
    for (offset, itemsize, expected) in [
        (0, 8, 8),
        (0, 16, 8),
        (0, 4, 4),
        (0, 12, 4),
        (0, 3, 1),
        (1, 8, 1),
        (2, 8, 2),
        (4, 8, 4),
        (4, 16, 4),
        (6, 4, 2),
        (8, 8, 8),
    ] {
        let found = common_alignment(start.wrapping_add(offset), itemsize);
        assert_eq!(
            found, expected,
            "offset {offset}, items of {itemsize} bytes"
        );
    }
}
