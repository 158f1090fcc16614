//! The moves that a planned copy is made of.
#![expect(unsafe_code, reason = "moves bytes between raw addresses")]

use core::mem::MaybeUninit;
use core::{array::from_fn, marker::PhantomData, ptr::copy_nonoverlapping};

use crate::memory::atomic;

/// One loop of a copy: how often, and how many bytes each side moves on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) extent: usize,
    pub(super) src: isize,
    pub(super) dst: isize,
    /// The turns that are over; counted for the outer loops only.
    pub(super) turn: usize,
}

impl Axis {
    /// The loop that runs once.
    pub(super) const ONCE: Self = Self {
        extent: 1,
        src: 0,
        dst: 0,
        turn: 0,
    };

    /// The turns from `start` on, `most` of them or as many as there are.
    #[inline(always)]
    pub(super) fn part(self, start: usize, most: usize) -> Self {
        Self {
            extent: most.min(self.extent - start),
            ..self
        }
    }

    /// The address on the source's side after `turns` turns.
    #[inline(always)]
    pub(super) fn read(self, src: *const u8, turns: usize) -> *const u8 {
        src.wrapping_offset(self.src.wrapping_mul(turns as isize))
    }

    /// The address on the destination's side after `turns` turns.
    #[inline(always)]
    pub(super) fn write(self, dst: *mut u8, turns: usize) -> *mut u8 {
        dst.wrapping_offset(self.dst.wrapping_mul(turns as isize))
    }
}

/// A number of bytes within an allocation, as a distance.
pub(super) fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).expect("an allocation is at most isize::MAX bytes")
}

/// How a copy reads its source.
pub(super) trait Reads: Copy {
    /// Whether a word may be read that holds several numbers of more than a byte.
    const JOINS: bool;

    /// Whether numbers of this alignment may be read by [`Reads::number`].
    fn suits(self, alignment: usize) -> bool;

    /// Reads a value from any address.
    ///
    /// # Safety
    ///
    /// `src` is readable for the size of `U`, a plain number or an array of them; who may write there meanwhile is known
    /// from `Self`.
    unsafe fn number<U>(self, src: *const u8) -> U;

    /// Copies bytes.
    ///
    /// # Safety
    ///
    /// As [`Reads::number`], for so many bytes; `dst` is writable for as many others.
    unsafe fn bytes(self, src: *const u8, dst: *mut u8, bytes: usize);
}

/// Nobody writes to the source.
#[derive(Clone, Copy)]
pub(super) struct Alone;

impl Reads for Alone {
    const JOINS: bool = true;

    #[inline(always)]
    fn suits(self, _: usize) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn number<U>(self, src: *const u8) -> U {
        // SAFETY: the caller's promises; any bytes are a `U`, and this read needs no alignment.
        unsafe { src.cast::<U>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn bytes(self, src: *const u8, dst: *mut u8, bytes: usize) {
        // SAFETY: the caller's promises; bytes need no alignment.
        unsafe { copy_nonoverlapping(src, dst, bytes) }
    }
}

/// Others may write to the source, all of whose items lie at multiples of this power of two. What does is not torn.
#[derive(Clone, Copy)]
pub(super) struct Shared(pub(super) usize);

impl Reads for Shared {
    const JOINS: bool = false;

    #[inline(always)]
    fn suits(self, alignment: usize) -> bool {
        self.0 == 1 || self.0 >= alignment
    }

    #[inline(always)]
    unsafe fn number<U>(self, src: *const u8) -> U {
        let mut value = MaybeUninit::<U>::uninit();
        let (dst, bytes) = (value.as_mut_ptr().cast(), size_of::<U>());
        // SAFETY: the caller's promises; Rust code that writes there does so like this. `value` is ours.
        unsafe { atomic::load(src, dst, bytes, align_of::<U>()) };
        // SAFETY: every byte was written, and any bytes are a `U`.
        unsafe { value.assume_init() }
    }

    #[inline(never)]
    unsafe fn bytes(self, src: *const u8, dst: *mut u8, bytes: usize) {
        // SAFETY: as above.
        unsafe { atomic::load(src, dst, bytes, self.0) }
    }
}

/// How to move many items of one kind.
pub(super) trait Item {
    /// Moves the items of two loops, row by row.
    ///
    /// # Safety
    ///
    /// 1. The item of each turn of both is readable, in the way of [`Reads`] that `Self` has.
    /// 2. That of the destination is writable and has no byte in common with one of the source; these have no gaps along
    ///    `inner`.
    unsafe fn rows(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8);

    /// Moves the items of two loops, in any order.
    ///
    /// # Safety
    ///
    /// As for [`Item::rows`].
    unsafe fn tile(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller's promises.
        unsafe { self.rows(inner, second, src, dst) }
    }
}

/// An item of any size.
#[derive(Clone, Copy)]
pub(super) struct Bytes<R>(pub(super) usize, pub(super) R);

impl<R: Reads> Item for Bytes<R> {
    unsafe fn rows(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        let Self(bytes, reads) = *self;
        for j in 0..second.extent {
            let (src, dst) = (second.read(src, j), second.write(dst, j));
            for i in 0..inner.extent {
                // SAFETY: the caller's promises for this item.
                unsafe { reads.bytes(inner.read(src, i), inner.write(dst, i), bytes) };
            }
        }
    }
}

/// An item of the size of `T`, a plain number or an array of them: any bytes are one of its values.
#[derive(Clone, Copy)]
pub(super) struct Unit<T, R>(pub(super) PhantomData<T>, pub(super) R);

impl<T: Copy, R: Reads> Unit<T, R> {
    const SIZE: usize = size_of::<T>();

    /// Whether several items fill registers.
    const FILLS_WORDS: bool = matches!(Self::SIZE, 1 | 2 | 4 | 8);

    /// The side of the squares that [`Unit::square`] transposes, 0 where rows of single loads are no
    /// slower.
    pub(super) const SIDE: usize = match Self::SIZE {
        1 => 8,
        2 if R::JOINS => 4,
        8 => 2,
        _ => 0,
    };

    /// Writes a value to any address.
    ///
    /// # Safety
    ///
    /// `dst` is writable for the size of `U`.
    #[inline(always)]
    unsafe fn store<U>(value: U, dst: *mut u8) {
        // SAFETY: the caller's promise; this write needs no alignment.
        unsafe { dst.cast::<U>().write_unaligned(value) }
    }

    /// Moves one item.
    ///
    /// # Safety
    ///
    /// As for [`Item::rows`], of this one.
    #[inline(always)]
    unsafe fn one(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller's promise.
        let item: T = unsafe { self.1.number(src) };
        // SAFETY: the caller's promise.
        unsafe { Self::store(item, dst) }
    }

    /// Moves the items of one loop.
    ///
    /// # Safety
    ///
    /// As for [`Item::rows`], of this one row.
    #[inline(always)]
    unsafe fn row(&self, axis: Axis, src: *const u8, dst: *mut u8) {
        // A large item fills a register: nothing is gained by joining several.
        if axis.extent < 8 || Self::SIZE >= 16 {
            for i in 0..axis.extent {
                // SAFETY: the caller's promises for this turn.
                unsafe { self.one(axis.read(src, i), axis.write(dst, i)) };
            }
        } else {
            // SAFETY: the caller's promises.
            unsafe { self.long_row(axis, src, dst) }
        }
    }

    /// Moves the items of a loop `N` at a time; `read` gets the address of the first and returns them all.
    ///
    /// # Safety
    ///
    /// As for [`Unit::row`].
    #[inline(always)]
    unsafe fn chunks<const N: usize>(
        &self,
        axis: Axis,
        src: *const u8,
        dst: *mut u8,
        read: impl Fn(*const u8) -> [T; N],
    ) {
        let whole = axis.extent - axis.extent % N;
        for i in (0..whole).step_by(N) {
            let items = read(axis.read(src, i));
            // SAFETY: the `N` items from this turn on are writable and, there, without gaps.
            unsafe { Self::store(items, axis.write(dst, i)) };
        }
        for i in whole..axis.extent {
            // SAFETY: the caller's promises for this turn.
            unsafe { self.one(axis.read(src, i), axis.write(dst, i)) };
        }
    }

    /// [`Unit::row`] for 8 items and more.
    ///
    /// Never inlined: inside of some callers' loops the stores of a chunk are not merged.
    ///
    /// # Safety
    ///
    /// As for [`Unit::row`].
    #[inline(never)]
    unsafe fn long_row(&self, axis: Axis, src: *const u8, dst: *mut u8) {
        if Self::FILLS_WORDS && axis.src == -signed(Self::SIZE) {
            let reversed = |src| {
                // SAFETY: 16 items of the row, of which the one at `src` is the last in memory.
                let mut items: [T; 16] = unsafe { self.1.number(axis.read(src, 15)) };
                items.reverse();
                items
            };
            // SAFETY: the caller's promises.
            unsafe { self.chunks(axis, src, dst, reversed) }
        } else if axis.src == 0 && Self::SIZE == 1 {
            // SAFETY: the caller's promise.
            let byte = unsafe { self.1.number(src) };
            // SAFETY: the items of the row are bytes, without gaps.
            unsafe { dst.write_bytes(byte, axis.extent) }
        } else if Self::FILLS_WORDS && axis.src == 0 {
            // SAFETY: the caller's promise.
            let item: T = unsafe { self.1.number(src) };
            // SAFETY: the caller's promises.
            unsafe { self.chunks(axis, src, dst, |_| [item; 16]) }
        } else {
            let each = |src| {
                from_fn(|i| {
                    // SAFETY: one of the 8 items from here on, which `chunks` has found to be in the row.
                    unsafe { self.1.number(axis.read(src, i)) }
                })
            };
            // SAFETY: the caller's promises.
            unsafe { self.chunks::<8>(axis, src, dst, each) }
        }
    }

    /// [`Item::rows`] column by column, from turn `first` of `inner` on.
    ///
    /// # Safety
    ///
    /// As for [`Item::rows`].
    #[inline(always)]
    unsafe fn columns(
        &self,
        inner: Axis,
        first: usize,
        second: Axis,
        src: *const u8,
        dst: *mut u8,
    ) {
        for i in first..inner.extent {
            let (src, dst) = (inner.read(src, i), inner.write(dst, i));
            for j in 0..second.extent {
                // SAFETY: the caller's promises for this item.
                unsafe { self.one(second.read(src, j), second.write(dst, j)) };
            }
        }
    }

    /// Moves a square of [`Unit::SIDE`] turns of both loops, through registers.
    ///
    /// # Safety
    ///
    /// As for [`Item::tile`]; and the source has no gaps along `second`.
    #[inline(always)]
    unsafe fn square(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        match Self::SIDE {
            // SAFETY: the caller's promises; 8 items fill a `u64`.
            8 => unsafe { self.square_of_words::<8>(inner, second, src, dst) },
            // SAFETY: the caller's promises; 4 items fill a `u64`.
            4 => unsafe { self.square_of_words::<4>(inner, second, src, dst) },
            _ => {
                // SAFETY: two items of the source, without gaps along `second`.
                let [a, b]: [T; 2] = unsafe { self.1.number(src) };
                // SAFETY: as before, at the next turn of `inner`.
                let [c, d]: [T; 2] = unsafe { self.1.number(inner.read(src, 1)) };
                // SAFETY: two items of the destination, without gaps along `inner`.
                unsafe { Self::store([a, c], dst) };
                // SAFETY: as before, at the next turn of `second`.
                unsafe { Self::store([b, d], second.write(dst, 1)) };
            }
        }
    }

    /// [`Unit::square`] where `SIDE` items fill a `u64`.
    ///
    /// # Safety
    ///
    /// As for [`Unit::square`].
    #[inline(always)]
    unsafe fn square_of_words<const SIDE: usize>(
        &self,
        inner: Axis,
        second: Axis,
        src: *const u8,
        dst: *mut u8,
    ) {
        let words = from_fn(|i| {
            // SAFETY: `SIDE` items of the source, without gaps along `second`.
            u64::from_le(unsafe { self.1.number(inner.read(src, i)) })
        });
        for (j, word) in transposed::<SIDE>(words).into_iter().enumerate() {
            // SAFETY: `SIDE` items of the destination, without gaps along `inner`.
            unsafe { Self::store(word.to_le(), second.write(dst, j)) };
        }
    }
}

/// Transposes a square of items, `SIDE` of them in each word, the first in the lowest bits.
///
/// Swaps the upper right with the lower left quarter, then the same within each quarter, and so on.
#[inline(always)]
pub(super) fn transposed<const SIDE: usize>(mut words: [u64; SIDE]) -> [u64; SIDE] {
    let mut half = SIDE / 2;
    while half > 0 {
        let bits = half * 64 / SIDE;
        // The lower half of each group of `2 * bits` bits: ones, with a gap of as many zeros.
        let low = u64::MAX / ((1 << bits) + 1);
        // The compiler unrolls this loop; one over a filter it does not, and then the words are not kept in registers.
        for i in 0..SIDE {
            if i & half == 0 {
                let (upper, lower) = (words[i], words[i + half]);
                words[i] = (upper & low) | ((lower & low) << bits);
                words[i + half] = ((upper >> bits) & low) | (lower & !low);
            }
        }
        half /= 2;
    }
    words
}

impl<T: Copy, R: Reads> Item for Unit<T, R> {
    unsafe fn rows(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        for j in 0..second.extent {
            // SAFETY: the caller's promises for this turn.
            unsafe { self.row(inner, second.read(src, j), second.write(dst, j)) };
        }
    }

    unsafe fn tile(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        // As much of the tile as squares cover ..
        let (mut columns, mut rows) = (0, 0);
        if Self::SIDE > 0 && second.src == signed(Self::SIZE) && inner.extent >= Self::SIDE {
            columns = inner.extent - inner.extent % Self::SIDE;
            rows = second.extent - second.extent % Self::SIDE;
            for j in (0..rows).step_by(Self::SIDE) {
                for i in (0..columns).step_by(Self::SIDE) {
                    let src = second.read(inner.read(src, i), j);
                    let dst = second.write(inner.write(dst, i), j);
                    // SAFETY: the caller's promises for this square; the stride is that of no gaps.
                    unsafe { self.square(inner, second, src, dst) };
                }
            }
        }
        // .. then what is left of the rows that they cover in part: but a few items, so column by column ..
        let part = second.part(0, rows);
        // SAFETY: the caller's promises for the rest of these rows.
        unsafe { self.columns(inner, columns, part, src, dst) };
        // .. and the other rows; if these are but a few bytes, then likewise.
        let part = second.part(rows, usize::MAX);
        let (src, dst) = (second.read(src, rows), second.write(dst, rows));
        if inner.extent < 8 && Self::SIZE < 16 {
            // SAFETY: the caller's promises for these rows.
            unsafe { self.columns(inner, 0, part, src, dst) };
        } else {
            // SAFETY: as above.
            unsafe { self.rows(inner, part, src, dst) };
        }
    }
}
