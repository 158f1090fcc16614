//! Copies strided elements into contiguous memory.
//!
//! A copy is planned in safe code and carried out by few unsafe moves. [`Route::new`] reduces shape and
//! strides to what matters: extents of 1 vanish, axes that continue each other merge, and the longest run
//! of bytes that is contiguous on both sides becomes the *item* that is moved at once. A contiguous array
//! is then a single item, a crop is a grid of rows, and an array of RGB pixels is a grid of 3-byte items.
//!
//! The axes that remain are nested loops in the order of the destination, which writes memory front to
//! back. One case needs more: when another axis is denser in the source than the innermost one, as in a
//! transposition, every read would touch a new cache line. Those two axes are walked in tiles small
//! enough that a line is still in the cache when its next item is wanted, and within a tile small squares
//! are transposed in registers.
//!
//! Addresses are computed with `wrapping_offset`, which is safe; only loads and stores are not. Only the
//! items themselves are read, never the gaps between them, which may belong to somebody else.
//!
//! `benches/copies.py` compares this with NumPy; the numbers chosen here come from there.

#![expect(unsafe_code, reason = "moves bytes between raw addresses")]

use core::marker::PhantomData;

use crate::memory::moves::{Alone, Axis, Bytes, Item, Reads, Shared, Unit, signed};

/// Copies a strided array to `dst`, in row-major order without gaps.
///
/// For column-major order pass shape and strides reversed. Where the array is `shared`, others may be writing it; numbers of
/// up to 8 bytes are not torn if all items are aligned for them, as `memory/atomic.rs` says.
///
/// # Safety
///
/// With `shape` and `strides` of the same length, no extent negative, strides in items of `itemsize`
/// bytes:
/// 1. `src` is the address of the item whose index is zero everywhere, and every item that an index
///    within `shape` addresses is readable, in one allocation with `src`; alignment does not matter;
/// 2. `dst` is writable for `itemsize` times the product of `shape` bytes, and none of these bytes
///    belongs to an item of the source;
/// 3. meanwhile nobody reads or writes the destination, nor writes to an item of the source; if that is `shared`, Rust code
///    writes there by `atomic::store` or atomic accesses, and others as they like.
///
/// The pointers are not used at all when an extent or `itemsize` is 0.
#[inline]
pub(crate) unsafe fn gather(
    src: *const u8,
    shape: &[i64],
    strides: &[i64],
    itemsize: usize,
    dst: *mut u8,
    shared: bool,
) {
    if shared {
        let alignment = common_alignment(src, itemsize);
        // SAFETY: the caller's promises.
        unsafe { gather_by(Shared(alignment), src, shape, strides, itemsize, dst) }
    } else {
        // SAFETY: as above.
        unsafe { gather_by(Alone, src, shape, strides, itemsize, dst) }
    }
}

/// The alignment of every item: the largest power of two that divides the first address and the distances of the others,
/// but no more than that of the largest word.
#[inline]
fn common_alignment(first: *const u8, itemsize: usize) -> usize {
    1 << (first.addr() | itemsize | 8).trailing_zeros()
}

/// # Safety
///
/// As [`gather`], of a source that may be read like this.
unsafe fn gather_by<R: Reads>(
    reads: R,
    src: *const u8,
    shape: &[i64],
    strides: &[i64],
    itemsize: usize,
    dst: *mut u8,
) {
    // Clearing room for every array there can be takes as long as a small copy.
    let (mut few, mut many);
    let axes: &mut [Axis] = if shape.len() <= FEW_AXES {
        few = [Axis::ONCE; FEW_AXES];
        &mut few
    } else {
        many = [Axis::ONCE; MAX_AXES];
        &mut many
    };
    if let Some(route) = Route::new(shape, strides, itemsize, axes) {
        // SAFETY: the route's loops reach the items of this array and, in row-major order, the first
        // `itemsize` times product of `shape` bytes of `dst`; the caller vouches for both.
        unsafe { route.run(reads, src, dst) }
    }
}

/// As many loops of two or more turns as can be nested over memory: each doubles the bytes, and an
/// allocation has fewer than 2^63.
const MAX_AXES: usize = 63;

/// As many as nearly all arrays have; at least the two that a route always has.
const FEW_AXES: usize = 8;

/// The loops of a copy, innermost first, around the move of one item.
#[derive(Debug)]
struct Route<'a> {
    /// The bytes of the largest piece that is contiguous on both sides.
    item: usize,
    axes: &'a mut [Axis],
    count: usize,
    /// The turns of the two innermost loops that make a tile, if tiles help.
    tile: Option<[usize; 2]>,
}

impl<'a> Route<'a> {
    /// The loops for a copy to row-major order, kept in `axes`, which run once each so far; none when there is
    /// nothing to copy.
    fn new(shape: &[i64], strides: &[i64], itemsize: usize, axes: &'a mut [Axis]) -> Option<Self> {
        assert_eq!(shape.len(), strides.len(), "one stride for each extent");
        if itemsize == 0 || shape.contains(&0) {
            return None;
        }
        let mut route = Self {
            item: itemsize,
            axes,
            count: 0,
            tile: None,
        };
        let mut dst = signed(itemsize);
        for (&extent, &stride) in shape.iter().zip(strides).rev() {
            if extent != 1 {
                // The item at index 1 is in the same allocation, so its distance is an isize.
                let src = isize::try_from(stride).expect("an item is within reach");
                let src = src * signed(itemsize);
                let extent = usize::try_from(extent).expect("an extent is not negative");
                route.push(Axis {
                    extent,
                    src,
                    dst,
                    turn: 0,
                });
                dst *= signed(extent);
            }
        }
        route.choose_tile();
        Some(route)
    }

    /// Adds a loop around the others, or prolongs the outermost one when the new one only continues it.
    fn push(&mut self, axis: Axis) {
        match self.axes[..self.count].last_mut() {
            None if axis.src == signed(self.item) => self.item *= axis.extent,
            Some(outer) if axis.src == outer.src * signed(outer.extent) => {
                outer.extent *= axis.extent;
            }
            _ => {
                self.axes[self.count] = axis;
                self.count += 1;
            }
        }
    }

    /// If another loop is denser in the source than the innermost one, makes it the second and sizes a tile.
    fn choose_tile(&mut self) {
        let Some((inner, outer)) = self.axes[..self.count].split_first_mut() else {
            return;
        };
        let dense = (0..outer.len())
            .filter(|&i| outer[i].src != 0)
            .min_by_key(|&i| outer[i].src.unsigned_abs());
        let Some(dense) = dense else {
            return;
        };
        if outer[dense].src.unsigned_abs() >= inner.src.unsigned_abs() {
            return;
        }
        outer[..=dense].rotate_right(1);
        let second = outer[0].extent;

        // A tile is one cache line wide in the source, `rows` lines high. Lines that lie a multiple of
        // 4096 bytes apart compete for the same 8 or more ways of a cache of 64 sets.
        let sets = 4096 >> inner.src.trailing_zeros().clamp(6, 12);
        let width = (64 / self.item).max(8);
        let rows = (8 * sets).clamp(width, 128);
        // Where one side is short, the other may be longer.
        self.tile = Some(if second < width {
            [rows * width / second, width]
        } else if inner.extent < rows {
            [rows, rows * width / inner.extent]
        } else {
            [rows, width]
        });
    }

    /// Runs the loops.
    ///
    /// # Safety
    ///
    /// 1. Every item that the loops reach from `src` is readable, as `reads` does it.
    /// 2. Every item that they reach from `dst` is writable and has no byte in common with one of `src`.
    /// 3. Nobody touches the latter, nor writes to the former but where `reads` says so.
    unsafe fn run<R: Reads>(self, reads: R, src: *const u8, dst: *mut u8) {
        if self.count == 0 {
            // SAFETY: the caller's promises, of the one item that there is.
            return unsafe { reads.bytes(src, dst, self.item) };
        }
        macro_rules! by_size {
            ($($size:literal: $number:ty),+) => {
                match self.item {
                    // SAFETY: the caller's promises; the number has the size of the item.
                    $($size if reads.suits(align_of::<$number>()) => unsafe {
                        self.walk(&Unit::<$number, R>(PhantomData, reads), src, dst)
                    },)+
                    // SAFETY: the caller's promises; the item has this size.
                    size => unsafe { self.walk(&Bytes(size, reads), src, dst) },
                }
            };
        }
        by_size!(
            1: u8, 2: u16, 3: [u8; 3], 4: u32, 6: [u16; 3], 8: u64, 8: [u32; 2], 12: [u32; 3],
            16: [u64; 2], 24: [u64; 3], 32: [u64; 4]
        );
    }

    /// Runs the loops with one way to move an item.
    ///
    /// # Safety
    ///
    /// As for [`Route::run`]; and `item` moves `self.item` bytes.
    unsafe fn walk(self, item: &dyn Item, mut src: *const u8, mut dst: *mut u8) {
        let [inner, second, outer @ ..] = self.axes else {
            unreachable!("there is room for two axes and more");
        };
        let outer = &mut outer[..self.count.saturating_sub(2)];
        loop {
            if let Some([rows, width]) = self.tile {
                for i in (0..inner.extent).step_by(rows) {
                    for j in (0..second.extent).step_by(width) {
                        let (row, column) = (inner.part(i, rows), second.part(j, width));
                        let src = second.read(inner.read(src, i), j);
                        let dst = second.write(inner.write(dst, i), j);
                        // SAFETY: the caller's promises, of which this tile is a part.
                        unsafe { item.tile(row, column, src, dst) };
                    }
                }
            } else {
                // SAFETY: the caller's promises, of which these rows are a part.
                unsafe { item.rows(*inner, *second, src, dst) };
            }
            // On to the next turn of the outer loops, as an odometer does it.
            let mut level = 0;
            loop {
                let Some(axis) = outer.get_mut(level) else {
                    return;
                };
                axis.turn += 1;
                if axis.turn < axis.extent {
                    (src, dst) = (axis.read(src, 1), axis.write(dst, 1));
                    break;
                }
                let back = Axis {
                    src: -axis.src,
                    dst: -axis.dst,
                    ..*axis
                };
                let turns = axis.extent - 1;
                (src, dst) = (back.read(src, turns), back.write(dst, turns));
                axis.turn = 0;
                level += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
