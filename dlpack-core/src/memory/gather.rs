//! Chooses the loops that copy strided elements into contiguous memory, and runs them.
//!
//! Safe code chooses the loops, and few unsafe moves carry the copy out. [`CopyLoops::new`] reduces shape and strides to what
//! matters: axes of extent 1 are dropped, axes that continue each other are merged, and the longest run of bytes that is contiguous
//! on both sides becomes the *item* that is moved at once. A contiguous array is then a single item, a crop is a grid of rows, and
//! an array of RGB pixels is a grid of 3-byte items.
//!
//! The remaining axes become nested loops in the order of the destination, so memory is written front to back. One case needs
//! more. If another axis is denser in the source than the innermost one, as in a transpose, every read would touch a new cache
//! line. These two axes are walked in tiles. A tile is so small that a line is still in the cache when its next item is read.
//! Within a tile, small squares are transposed in registers.
//!
//! Addresses are computed with `wrapping_offset`, which is safe; only loads and stores are unsafe. Only the items themselves are
//! read, never the gaps between them, which may belong to another owner.
//!
//! `benches/copies.py` compares this code with NumPy; the constants here come from that comparison.

#![expect(unsafe_code, reason = "moves bytes between raw addresses")]

use core::marker::PhantomData;
use core::ptr::copy_nonoverlapping;

use crate::memory::atomic::load_bytes;
use crate::memory::moves::{
    Axis, Bytes, Item, PlainReads, Reads, SharedReads, Unit, bytes_to_isize,
};

/// Copies a strided array to `dst`, in row-major order without gaps.
///
/// For column-major order, pass shape and strides reversed. If the array is `shared`, other threads may write it. Then numbers of
/// up to 8 bytes are not torn if all items are aligned for them, as `memory/atomic.rs` explains.
///
/// # Safety
///
/// `shape` and `strides` have the same length, no extent is negative, and strides are in items of `itemsize` bytes. Further:
/// 1. `src` is the address of the item with index 0 on every axis. Every item that an index within `shape` addresses is readable,
///    in one allocation with `src`. Alignment does not matter.
/// 2. `dst` is writable for `itemsize` times the product of `shape` bytes, and none of these bytes belongs to an item of the
///    source.
/// 3. Meanwhile no other code accesses the destination or writes an item of the source. If the source is `shared`, Rust code may
///    write it by `atomic::store_bytes` or atomic accesses, and other code by any means.
///
/// The pointers are not used if an extent or `itemsize` is 0.
#[inline]
pub(crate) unsafe fn gather_items(
    src: *const u8,
    shape: &[i64],
    strides: &[i64],
    itemsize: usize,
    dst: *mut u8,
    shared: bool,
) {
    // SAFETY: same contract as this function's.
    unsafe { gather_multiples::<1>(src, shape, strides, itemsize, dst, shared) }
}

/// A function with the arguments and the contract of [`gather_items`].
pub(crate) type GatherItems = unsafe fn(*const u8, &[i64], &[i64], usize, *mut u8, bool);

/// The copy of elements of this size, with the last axis of `shape` and `strides` covering each element. It is a function of its
/// own, because it links only the loops that move multiples of that size: a program that reads elements of few types needs few.
pub(crate) const fn gather_elements(size: usize) -> GatherItems {
    match size {
        0 => gather_items,
        _ if size % 8 == 0 => gather_multiples_of_8,
        _ if size % 4 == 0 => gather_multiples_of_4,
        _ if size % 2 == 0 => gather_multiples_of_2,
        _ => gather_items,
    }
}

macro_rules! multiples {
    ($($name:ident $size:literal)*) => {$(
        // Not generic, so that it is compiled in this crate, once.
        /// # Safety
        ///
        /// The contract of [`gather_items`].
        unsafe fn $name(
            src: *const u8,
            shape: &[i64],
            strides: &[i64],
            itemsize: usize,
            dst: *mut u8,
            shared: bool,
        ) {
            // SAFETY: same contract as this function's.
            unsafe { gather_multiples::<$size>(src, shape, strides, itemsize, dst, shared) }
        }
    )*};
}
multiples! { gather_multiples_of_2 2 gather_multiples_of_4 4 gather_multiples_of_8 8 }

/// Copies as [`gather_items`] does. If all items that are moved at once have a multiple of `UNIT` bytes, each size has its loop;
/// other sizes share one, which is slower.
///
/// # Safety
///
/// The contract of [`gather_items`].
#[inline]
unsafe fn gather_multiples<const UNIT: usize>(
    src: *const u8,
    shape: &[i64],
    strides: &[i64],
    itemsize: usize,
    dst: *mut u8,
    shared: bool,
) {
    if let Some(items) = packed_items(shape, strides) {
        // SAFETY: same contract as this function's: all items are readable and follow each other.
        return unsafe { move_packed(src, items.wrapping_mul(itemsize), itemsize, dst, shared) };
    }
    if shared {
        let reads = SharedReads(common_alignment(src, itemsize));
        // SAFETY: same contract as this function's for a `shared` source, which `SharedReads` reads by `atomic`.
        unsafe { gather_with::<_, UNIT>(reads, src, shape, strides, itemsize, dst) }
    } else {
        // SAFETY: same contract as this function's; the source is not `shared`, so no other code writes it.
        unsafe { gather_with::<_, UNIT>(PlainReads, src, shape, strides, itemsize, dst) }
    }
}

/// The number of items, if they follow each other in row-major order.
#[inline]
fn packed_items(shape: &[i64], strides: &[i64]) -> Option<usize> {
    let mut items = 1_i64;
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        if extent != 1 && stride != items {
            return None;
        }
        items = items.wrapping_mul(extent);
    }
    usize::try_from(items).ok()
}

/// Copies items that follow each other: `bytes` bytes in all.
///
/// # Safety
///
/// The contract of [`gather_items`], for items that occupy the `bytes` bytes from `src` on.
#[inline]
unsafe fn move_packed(src: *const u8, bytes: usize, itemsize: usize, dst: *mut u8, shared: bool) {
    if bytes == 0 {
        return;
    }
    if shared {
        let alignment = common_alignment(src, itemsize);
        // SAFETY: same contract as this function's: `src` is readable and `dst` writable for `bytes` bytes.
        unsafe { load_bytes(src, dst, bytes, alignment) };
    } else {
        // SAFETY: same contract as this function's: the bytes of both sides are apart, and no other code writes them.
        unsafe { copy_nonoverlapping(src, dst, bytes) };
    }
}

/// The alignment of every item: the largest power of two that divides the first address and the distances of the other items, but
/// at most the size of the largest word.
#[inline]
fn common_alignment(first: *const u8, itemsize: usize) -> usize {
    1 << (first.addr() | itemsize | 8).trailing_zeros()
}

/// Copies a strided array as [`gather_items`] does, with reads by `reads`.
///
/// # Safety
///
/// The contract of [`gather_items`]. `reads` may read the source.
unsafe fn gather_with<R: Reads, const UNIT: usize>(
    reads: R,
    src: *const u8,
    shape: &[i64],
    strides: &[i64],
    itemsize: usize,
    dst: *mut u8,
) {
    // Initialising space for the maximum number of axes takes as long as a small copy.
    let (mut few, mut many);
    let axes: &mut [Axis] = if shape.len() <= FEW_AXES {
        few = [Axis::ONCE; FEW_AXES];
        &mut few
    } else {
        many = [Axis::ONCE; MAX_AXES];
        &mut many
    };
    if let Some(loops) = CopyLoops::new(shape, strides, itemsize, axes) {
        // SAFETY: the loops reach the items of this array, which are readable by contract, and in row-major order the first
        // `itemsize` times product of `shape` bytes of `dst`, which are writable by contract.
        unsafe { loops.run_loops::<_, UNIT>(reads, src, dst) }
    }
}

/// The maximum number of nested loops with two or more iterations: each doubles the number of bytes, and an allocation has fewer
/// than 2^63.
const MAX_AXES: usize = 63;

/// The number of loops that nearly all arrays need at most; at least the two that `move_all` needs.
const FEW_AXES: usize = 8;

/// The loops of a copy, innermost first, around the move of one item.
#[derive(Debug)]
struct CopyLoops<'a> {
    /// The number of bytes of the largest piece that is contiguous on both sides.
    item: usize,
    axes: &'a mut [Axis],
    count: usize,
    /// The iterations of the two innermost loops that make a tile, if tiles help.
    tile: Option<[usize; 2]>,
}

impl<'a> CopyLoops<'a> {
    /// Chooses the loops for a copy to row-major order, and stores them in `axes`, which are all [`Axis::ONCE`] before. Returns
    /// `None` if there is nothing to copy.
    fn new(shape: &[i64], strides: &[i64], itemsize: usize, axes: &'a mut [Axis]) -> Option<Self> {
        assert_eq!(shape.len(), strides.len(), "one stride for each extent");
        if itemsize == 0 || shape.contains(&0) {
            return None;
        }
        let mut loops = Self {
            item: itemsize,
            axes,
            count: 0,
            tile: None,
        };
        let mut dst = bytes_to_isize(itemsize);
        for (&extent, &stride) in shape.iter().zip(strides).rev() {
            if extent != 1 {
                // The item at index 1 is in the same allocation, so its distance is an isize.
                let src = isize::try_from(stride).expect("an item is within reach");
                let src = src * bytes_to_isize(itemsize);
                let extent = usize::try_from(extent).expect("an extent is not negative");
                loops.push(Axis {
                    extent,
                    src,
                    dst,
                    turn: 0,
                });
                dst *= bytes_to_isize(extent);
            }
        }
        loops.choose_tile();
        Some(loops)
    }

    /// Adds a loop around the others, or extends the outermost one if the new one only continues it.
    fn push(&mut self, axis: Axis) {
        match self.axes[..self.count].last_mut() {
            None if axis.src == bytes_to_isize(self.item) => self.item *= axis.extent,
            Some(outer) if axis.src == outer.src * bytes_to_isize(outer.extent) => {
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
        // If one side is short, the other may be longer.
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
    /// 1. Every item that the loops reach from `src` is readable by `reads`.
    /// 2. Every item that the loops reach from `dst` is writable and shares no byte with an item of the source.
    /// 3. Meanwhile no other code accesses the destination, and other code writes the source only as `reads` allows.
    unsafe fn run_loops<R: Reads, const UNIT: usize>(self, reads: R, src: *const u8, dst: *mut u8) {
        if self.count == 0 {
            // SAFETY: same contract as this function's, for its single item.
            return unsafe { reads.read_bytes(src, dst, self.item) };
        }
        macro_rules! by_size {
            ($($size:literal: $number:ty),+) => {
                match self.item {
                    // SAFETY: same contract as this function's; the number has the size of the item.
                    $($size if $size % UNIT == 0 && reads.suits_alignment(align_of::<$number>()) => unsafe {
                        self.move_all(&Unit::<$number, R>(PhantomData, reads), src, dst)
                    },)+
                    // SAFETY: same contract as this function's; `Bytes` moves items of this size.
                    size => unsafe { self.move_all(&Bytes(size, reads), src, dst) },
                }
            };
        }
        by_size!(
            1: u8, 2: u16, 3: [u8; 3], 4: u32, 6: [u16; 3], 8: u64, 8: [u32; 2], 12: [u32; 3],
            16: [u64; 2], 24: [u64; 3], 32: [u64; 4]
        );
    }

    /// Runs the loops, and calls `item` for the two innermost ones.
    ///
    /// # Safety
    ///
    /// The contract of [`CopyLoops::run_loops`]. `item` moves `self.item` bytes.
    unsafe fn move_all(self, item: &dyn Item, mut src: *const u8, mut dst: *mut u8) {
        let [inner, second, outer @ ..] = self.axes else {
            unreachable!("there is room for two axes and more");
        };
        let outer = &mut outer[..self.count.saturating_sub(2)];
        loop {
            if let Some([rows, width]) = self.tile {
                for i in (0..inner.extent).step_by(rows) {
                    for j in (0..second.extent).step_by(width) {
                        let (row, column) =
                            (inner.take_turns(i, rows), second.take_turns(j, width));
                        let src = second.advance_src(inner.advance_src(src, i), j);
                        let dst = second.advance_dst(inner.advance_dst(dst, i), j);
                        // SAFETY: the tile is a part of the loops, and this function's contract covers all their items.
                        unsafe { item.move_tile(row, column, src, dst) };
                    }
                }
            } else {
                // SAFETY: these rows are a part of the loops, and this function's contract covers all their items.
                unsafe { item.move_rows(*inner, *second, src, dst) };
            }
            // Advances the outer loops to their next iteration, like an odometer.
            let mut level = 0;
            loop {
                let Some(axis) = outer.get_mut(level) else {
                    return;
                };
                axis.turn += 1;
                if axis.turn < axis.extent {
                    (src, dst) = (axis.advance_src(src, 1), axis.advance_dst(dst, 1));
                    break;
                }
                let back = Axis {
                    src: -axis.src,
                    dst: -axis.dst,
                    ..*axis
                };
                let turns = axis.extent - 1;
                (src, dst) = (back.advance_src(src, turns), back.advance_dst(dst, turns));
                axis.turn = 0;
                level += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
