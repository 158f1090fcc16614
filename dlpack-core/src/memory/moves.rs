//! The inner loops of a copy of strided items, which `memory/gather.rs` chooses: rows, single items and transposed squares.
#![expect(unsafe_code, reason = "moves bytes between raw addresses")]

use core::mem::MaybeUninit;
use core::{array::from_fn, marker::PhantomData, ptr::copy_nonoverlapping};

use crate::memory::atomic;

/// One loop of a copy: the number of its iterations, and the bytes by which each iteration advances each side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) extent: usize,
    pub(super) src: isize,
    pub(super) dst: isize,
    /// The number of finished iterations; counted for the outer loops only.
    pub(super) turn: usize,
}

impl Axis {
    /// The loop of one iteration.
    pub(super) const ONCE: Self = Self {
        extent: 1,
        src: 0,
        dst: 0,
        turn: 0,
    };

    /// The loop from iteration `start` on, with at most `most` iterations.
    #[inline(always)]
    pub(super) fn take_turns(self, start: usize, most: usize) -> Self {
        Self {
            extent: most.min(self.extent - start),
            ..self
        }
    }

    /// The source address after `turns` iterations.
    #[inline(always)]
    pub(super) fn advance_src(self, src: *const u8, turns: usize) -> *const u8 {
        src.wrapping_offset(self.src.wrapping_mul(turns as isize))
    }

    /// The destination address after `turns` iterations.
    #[inline(always)]
    pub(super) fn advance_dst(self, dst: *mut u8, turns: usize) -> *mut u8 {
        dst.wrapping_offset(self.dst.wrapping_mul(turns as isize))
    }
}

/// Converts a number of bytes within an allocation to a signed distance.
pub(super) fn bytes_to_isize(bytes: usize) -> isize {
    isize::try_from(bytes).expect("an allocation is at most isize::MAX bytes")
}

/// How a copy reads its source.
pub(super) trait Reads: Copy {
    /// Whether one read may load several numbers of more than one byte as a single word. That could tear a number.
    const JOINS: bool;

    /// Whether [`Reads::read_number`] may read numbers of this alignment.
    fn suits_alignment(self, alignment: usize) -> bool;

    /// Reads a value from any address.
    ///
    /// # Safety
    ///
    /// `src` is readable for the size of `U`, a plain number or an array of them. Other threads write there only as `Self`
    /// allows.
    unsafe fn read_number<U>(self, src: *const u8) -> U;

    /// Copies bytes from any address.
    ///
    /// # Safety
    ///
    /// The contract of [`Reads::read_number`] for `bytes` bytes. `dst` is writable for as many bytes, none of which is read.
    unsafe fn read_bytes(self, src: *const u8, dst: *mut u8, bytes: usize);
}

/// Plain reads of a source that no other thread writes.
#[derive(Clone, Copy)]
pub(super) struct PlainReads;

impl Reads for PlainReads {
    const JOINS: bool = true;

    #[inline(always)]
    fn suits_alignment(self, _: usize) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn read_number<U>(self, src: *const u8) -> U {
        // SAFETY: `src` is readable for a `U` by this function's contract. Any bytes are a `U`, and the read needs no alignment.
        unsafe { src.cast::<U>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn read_bytes(self, src: *const u8, dst: *mut u8, bytes: usize) {
        // SAFETY: by this function's contract both sides are valid for `bytes` bytes and do not overlap. Bytes need no alignment.
        unsafe { copy_nonoverlapping(src, dst, bytes) }
    }
}

/// Reads of a source that other threads may write. The field is a power of two that divides the address of every item. Numbers
/// with that alignment are not torn.
#[derive(Clone, Copy)]
pub(super) struct SharedReads(pub(super) usize);

impl Reads for SharedReads {
    const JOINS: bool = false;

    #[inline(always)]
    fn suits_alignment(self, alignment: usize) -> bool {
        self.0 == 1 || self.0 >= alignment
    }

    #[inline(always)]
    unsafe fn read_number<U>(self, src: *const u8) -> U {
        let mut value = MaybeUninit::<U>::uninit();
        let (dst, bytes) = (value.as_mut_ptr().cast(), size_of::<U>());
        // SAFETY: by this function's contract `src` is readable, and Rust code writes it only by `atomic`. `value` is local.
        unsafe { atomic::load_bytes(src, dst, bytes, align_of::<U>()) };
        // SAFETY: `load_bytes` wrote every byte, and any bytes are a `U`.
        unsafe { value.assume_init() }
    }

    #[inline(never)]
    unsafe fn read_bytes(self, src: *const u8, dst: *mut u8, bytes: usize) {
        // SAFETY: by this function's contract `src` is readable, `dst` is writable, and Rust code writes `src` only by `atomic`.
        unsafe { atomic::load_bytes(src, dst, bytes, self.0) }
    }
}

/// Moves many items of one kind.
pub(super) trait Item {
    /// Moves the items of two nested loops, row by row.
    ///
    /// # Safety
    ///
    /// 1. The item of each iteration of both loops is readable by the [`Reads`] of `Self`.
    /// 2. The item of the destination is writable and shares no byte with an item of the source. The items of the destination
    ///    have no gaps along `inner`.
    unsafe fn move_rows(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8);

    /// Moves the items of two nested loops, in any order.
    ///
    /// # Safety
    ///
    /// The contract of [`Item::move_rows`].
    unsafe fn move_tile(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        // SAFETY: same contract as this function's: the items of both loops are readable and writable.
        unsafe { self.move_rows(inner, second, src, dst) }
    }
}

/// An item of any size, which is given in bytes.
#[derive(Clone, Copy)]
pub(super) struct Bytes<R>(pub(super) usize, pub(super) R);

impl<R: Reads> Item for Bytes<R> {
    unsafe fn move_rows(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        let Self(bytes, reads) = *self;
        for j in 0..second.extent {
            let (src, dst) = (second.advance_src(src, j), second.advance_dst(dst, j));
            for i in 0..inner.extent {
                // SAFETY: by this function's contract the item of each iteration is readable and writable.
                unsafe {
                    reads.read_bytes(inner.advance_src(src, i), inner.advance_dst(dst, i), bytes)
                };
            }
        }
    }
}

/// An item of the size of `T`, which is a plain number or an array of them: any bytes are a valid `T`.
#[derive(Clone, Copy)]
pub(super) struct Unit<T, R>(pub(super) PhantomData<T>, pub(super) R);

impl<T: Copy, R: Reads> Unit<T, R> {
    const SIZE: usize = size_of::<T>();

    /// Whether several items fill whole registers.
    const FILLS_WORDS: bool = matches!(Self::SIZE, 1 | 2 | 4 | 8);

    /// The side of the squares that [`Unit::transpose_square`] transposes; 0 if rows of single loads are no slower.
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
    unsafe fn write_value<U>(value: U, dst: *mut u8) {
        // SAFETY: `dst` is writable for a `U` by this function's contract, and the write needs no alignment.
        unsafe { dst.cast::<U>().write_unaligned(value) }
    }

    /// Moves one item.
    ///
    /// # Safety
    ///
    /// The contract of [`Item::move_rows`] for this item.
    #[inline(always)]
    unsafe fn move_item(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: the item at `src` is readable by this function's contract.
        let item: T = unsafe { self.1.read_number(src) };
        // SAFETY: the item at `dst` is writable by this function's contract.
        unsafe { Self::write_value(item, dst) }
    }

    /// Moves the items of one loop.
    ///
    /// # Safety
    ///
    /// The contract of [`Item::move_rows`] for this row.
    #[inline(always)]
    unsafe fn move_row(&self, axis: Axis, src: *const u8, dst: *mut u8) {
        // A large item fills a register by itself, so joining several gains nothing.
        if axis.extent < 8 || Self::SIZE >= 16 {
            for i in 0..axis.extent {
                // SAFETY: by this function's contract the item of each iteration is readable and writable.
                unsafe { self.move_item(axis.advance_src(src, i), axis.advance_dst(dst, i)) };
            }
        } else {
            // SAFETY: same contract as this function's: the items of the row are readable and writable.
            unsafe { self.move_long_row(axis, src, dst) }
        }
    }

    /// Moves the items of a loop `N` at a time. `read` gets the address of the first and returns all `N`.
    ///
    /// # Safety
    ///
    /// The contract of [`Unit::move_row`].
    #[inline(always)]
    unsafe fn move_chunks<const N: usize>(
        &self,
        axis: Axis,
        src: *const u8,
        dst: *mut u8,
        read: impl Fn(*const u8) -> [T; N],
    ) {
        let whole = axis.extent - axis.extent % N;
        for i in (0..whole).step_by(N) {
            let items = read(axis.advance_src(src, i));
            // SAFETY: by this function's contract the `N` items from this iteration on are writable and have no gaps.
            unsafe { Self::write_value(items, axis.advance_dst(dst, i)) };
        }
        for i in whole..axis.extent {
            // SAFETY: by this function's contract the item of each iteration is readable and writable.
            unsafe { self.move_item(axis.advance_src(src, i), axis.advance_dst(dst, i)) };
        }
    }

    /// Moves a row of 8 items or more, for [`Unit::move_row`].
    ///
    /// Never inlined: inside the loops of some callers, the compiler does not merge the stores of a chunk.
    ///
    /// # Safety
    ///
    /// The contract of [`Unit::move_row`].
    #[inline(never)]
    unsafe fn move_long_row(&self, axis: Axis, src: *const u8, dst: *mut u8) {
        if Self::FILLS_WORDS && axis.src == -bytes_to_isize(Self::SIZE) {
            let reversed = |src| {
                // SAFETY: these are 16 items of the row, and the one at `src` is the last in memory.
                let mut items: [T; 16] = unsafe { self.1.read_number(axis.advance_src(src, 15)) };
                items.reverse();
                items
            };
            // SAFETY: same contract as this function's; `reversed` reads only items of the row.
            unsafe { self.move_chunks(axis, src, dst, reversed) }
        } else if axis.src == 0 && Self::SIZE == 1 {
            // SAFETY: the item at `src` is readable by this function's contract.
            let byte = unsafe { self.1.read_number(src) };
            // SAFETY: by this function's contract the items of the row are writable. They are bytes without gaps.
            unsafe { dst.write_bytes(byte, axis.extent) }
        } else if Self::FILLS_WORDS && axis.src == 0 {
            // SAFETY: the item at `src` is readable by this function's contract.
            let item: T = unsafe { self.1.read_number(src) };
            // SAFETY: same contract as this function's: the items of the row are readable and writable.
            unsafe { self.move_chunks(axis, src, dst, |_| [item; 16]) }
        } else {
            let each = |src| {
                from_fn(|i| {
                    // SAFETY: `move_chunks` passes the address of the first of 8 items of the row, and this is one of them.
                    unsafe { self.1.read_number(axis.advance_src(src, i)) }
                })
            };
            // SAFETY: same contract as this function's; `each` reads only items of the row.
            unsafe { self.move_chunks::<8>(axis, src, dst, each) }
        }
    }

    /// Moves the items of [`Item::move_rows`] column by column, from iteration `first` of `inner` on.
    ///
    /// # Safety
    ///
    /// The contract of [`Item::move_rows`].
    #[inline(always)]
    unsafe fn move_columns(
        &self,
        inner: Axis,
        first: usize,
        second: Axis,
        src: *const u8,
        dst: *mut u8,
    ) {
        for i in first..inner.extent {
            let (src, dst) = (inner.advance_src(src, i), inner.advance_dst(dst, i));
            for j in 0..second.extent {
                // SAFETY: by this function's contract the item of each iteration is readable and writable.
                unsafe { self.move_item(second.advance_src(src, j), second.advance_dst(dst, j)) };
            }
        }
    }

    /// Moves a square of [`Unit::SIDE`] iterations of both loops, and transposes it in registers.
    ///
    /// # Safety
    ///
    /// The contract of [`Item::move_tile`]. The source has no gaps along `second`.
    #[inline(always)]
    unsafe fn transpose_square(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        match Self::SIDE {
            // SAFETY: same contract as this function's; 8 items fill a `u64`.
            8 => unsafe { self.transpose_words::<8>(inner, second, src, dst) },
            // SAFETY: same contract as this function's; 4 items fill a `u64`.
            4 => unsafe { self.transpose_words::<4>(inner, second, src, dst) },
            _ => {
                // SAFETY: two items of the source are readable here by contract, without gaps along `second`.
                let [a, b]: [T; 2] = unsafe { self.1.read_number(src) };
                // SAFETY: two items of the source are readable at the next iteration of `inner`, without gaps along `second`.
                let [c, d]: [T; 2] = unsafe { self.1.read_number(inner.advance_src(src, 1)) };
                // SAFETY: two items of the destination are writable here by contract, without gaps along `inner`.
                unsafe { Self::write_value([a, c], dst) };
                // SAFETY: two items of the destination are writable by contract at the next iteration of `second`.
                unsafe { Self::write_value([b, d], second.advance_dst(dst, 1)) };
            }
        }
    }

    /// Moves the square of [`Unit::transpose_square`] if `SIDE` items fill a `u64`.
    ///
    /// # Safety
    ///
    /// The contract of [`Unit::transpose_square`].
    #[inline(always)]
    unsafe fn transpose_words<const SIDE: usize>(
        &self,
        inner: Axis,
        second: Axis,
        src: *const u8,
        dst: *mut u8,
    ) {
        let words = from_fn(|i| {
            // SAFETY: `SIDE` items of the source are readable by contract, without gaps along `second`.
            u64::from_le(unsafe { self.1.read_number(inner.advance_src(src, i)) })
        });
        for (j, word) in transpose_bits::<SIDE>(words).into_iter().enumerate() {
            // SAFETY: `SIDE` items of the destination are writable by contract, without gaps along `inner`.
            unsafe { Self::write_value(word.to_le(), second.advance_dst(dst, j)) };
        }
    }
}

/// Transposes a square of items. Each word holds `SIDE` items, the first in the lowest bits.
///
/// Swaps the upper right quarter with the lower left one, then does this within each quarter, and so on.
#[inline(always)]
pub(super) fn transpose_bits<const SIDE: usize>(mut words: [u64; SIDE]) -> [u64; SIDE] {
    let mut half = SIDE / 2;
    while half > 0 {
        let bits = half * 64 / SIDE;
        // Ones in the lower half of each group of `2 * bits` bits, and zeros in the upper half.
        let low = u64::MAX / ((1 << bits) + 1);
        // The compiler unrolls this loop. It would not unroll a loop over a filter, nor keep the words in registers then.
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
    unsafe fn move_rows(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        for j in 0..second.extent {
            // SAFETY: by this function's contract the items of each row are readable and writable.
            unsafe {
                self.move_row(
                    inner,
                    second.advance_src(src, j),
                    second.advance_dst(dst, j),
                )
            };
        }
    }

    unsafe fn move_tile(&self, inner: Axis, second: Axis, src: *const u8, dst: *mut u8) {
        // First the part of the tile that squares cover.
        let (mut columns, mut rows) = (0, 0);
        if Self::SIDE > 0 && second.src == bytes_to_isize(Self::SIZE) && inner.extent >= Self::SIDE
        {
            columns = inner.extent - inner.extent % Self::SIDE;
            rows = second.extent - second.extent % Self::SIDE;
            for j in (0..rows).step_by(Self::SIDE) {
                for i in (0..columns).step_by(Self::SIDE) {
                    let src = second.advance_src(inner.advance_src(src, i), j);
                    let dst = second.advance_dst(inner.advance_dst(dst, i), j);
                    // SAFETY: the square is a part of the tile. `second.src` is the size of an item, so the source has no gaps.
                    unsafe { self.transpose_square(inner, second, src, dst) };
                }
            }
        }
        // Then the rest of the rows that squares cover in part: only a few items, so column by column.
        let part = second.take_turns(0, rows);
        // SAFETY: same contract as this function's, for the columns that squares do not cover.
        unsafe { self.move_columns(inner, columns, part, src, dst) };
        // Then the other rows, also column by column if they have only a few bytes.
        let part = second.take_turns(rows, usize::MAX);
        let (src, dst) = (second.advance_src(src, rows), second.advance_dst(dst, rows));
        if inner.extent < 8 && Self::SIZE < 16 {
            // SAFETY: same contract as this function's, for the rows that squares do not cover.
            unsafe { self.move_columns(inner, 0, part, src, dst) };
        } else {
            // SAFETY: same contract as this function's, for the rows that squares do not cover.
            unsafe { self.move_rows(inner, part, src, dst) };
        }
    }
}
