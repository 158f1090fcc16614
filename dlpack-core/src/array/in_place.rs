//! Writes the elements of an array: by cache lines where they are contiguous, else by blocks.
//!
//! A cache line is loaded into registers, changed and stored. The compiler does not look into the instructions that load and
//! store it (`memory/atomic.rs`), but it vectorizes what is between them, so this is about as quick as a loop over a slice.
//!
//! | elements | loaded, stored |
//! |---|---|
//! | contiguous, or in contiguous rows of a line or more | a line at a time; fewer at both ends |
//! | with other strides | by [`ItemOffsets::load_next`] and [`ItemOffsets::store_next`], a block at a time |
//!
//! The caller's function runs between a load and a store. If it panics, the elements of that line or block keep their old values.
#![expect(unsafe_code, reason = "writes elements of a checked tensor")]

use core::cmp::min;
use core::mem::MaybeUninit;
use core::slice;

use crate::element::{Plain, make_values};
use crate::memory::atomic::{self, LINE, LINE_ALIGNMENT};
use crate::tensor::items::{ItemBuffer, ItemOffsets};

/// New values for elements, a few at a time.
pub(super) trait Change<T> {
    /// Whether the new values depend on the old ones.
    const READS: bool;

    /// Writes each of `elements`. With `READS`, they have their old values before.
    fn write_values(&mut self, elements: &mut [MaybeUninit<T>]);
}

/// Replaces each element by the result of a function.
pub(super) struct Update<F>(pub(super) F);

impl<T: Copy, F: FnMut(T) -> T> Change<T> for Update<F> {
    const READS: bool = true;

    #[inline(always)]
    fn write_values(&mut self, elements: &mut [MaybeUninit<T>]) {
        for element in elements {
            // SAFETY: `READS`, so it has its old value.
            let value = unsafe { element.assume_init() };
            element.write((self.0)(value));
        }
    }
}

/// Writes what a function returns.
pub(super) struct Next<F>(pub(super) F);

impl<T: Copy, F: FnMut() -> T> Change<T> for Next<F> {
    const READS: bool = false;

    #[inline(always)]
    fn write_values(&mut self, elements: &mut [MaybeUninit<T>]) {
        for element in elements {
            element.write((self.0)());
        }
    }
}

/// A line of elements, if a whole number of them makes one.
#[repr(C, align(64))]
union Line<T: Copy> {
    one: [MaybeUninit<T>; 0],
    many: [MaybeUninit<u8>; LINE],
}

impl<T: Copy> Line<T> {
    /// How many elements a line has; 0 if lines would cut one.
    const ELEMENTS: usize = match size_of::<T>() {
        0 => 0,
        bytes if LINE % bytes == 0 && align_of::<T>() <= LINE => LINE / bytes,
        _ => 0,
    };
}

/// Changes contiguous elements, in their order.
///
/// # Safety
///
/// `place` is the address of `count` elements, which may be written as `memory/atomic.rs` does.
#[inline]
pub(super) unsafe fn change_run<T: Plain, C: Change<T>>(
    mut place: *mut u8,
    count: usize,
    change: &mut C,
) {
    let (mut lines, mut few) = (0, count);
    if Line::<T>::ELEMENTS > 0 {
        let front = place.addr().wrapping_neg() % LINE_ALIGNMENT;
        let (front, cut) = (front / size_of::<T>(), front % size_of::<T>());
        if cut == 0 && count >= front + Line::<T>::ELEMENTS {
            (lines, few) = ((count - front) / Line::<T>::ELEMENTS, front);
        }
    }
    let rest = count - few - lines * Line::<T>::ELEMENTS;
    // The few elements before the lines, or all there are; then those behind the lines.
    for (few, lines) in [(few, lines), (rest, 0)] {
        let mut done = 0;
        while done < few {
            let elements = min(ItemBuffer::<T>::CAPACITY, few - done);
            // SAFETY: some of the elements.
            unsafe { change_block(place, elements, change) };
            place = place.wrapping_add(elements * size_of::<T>());
            done += elements;
        }
        for _ in 0..lines {
            // SAFETY: as above, and `few` elements lead to a multiple of `LINE_ALIGNMENT`.
            unsafe { change_line(place, change) };
            place = place.wrapping_add(LINE);
        }
    }
}

/// Changes the elements of a line.
///
/// # Safety
///
/// The contract of [`change_run`], for the elements of a line; `place` is a multiple of [`LINE_ALIGNMENT`].
#[inline(always)]
unsafe fn change_line<T: Plain, C: Change<T>>(place: *mut u8, change: &mut C) {
    let mut line = MaybeUninit::<Line<T>>::uninit();
    let values = line.as_mut_ptr().cast::<T>();
    if C::READS {
        // SAFETY: the caller's elements; `line` has room for them, and is ours.
        unsafe { atomic::load_line(place, values.cast()) };
        // SAFETY: written right above.
        unsafe { make_values(values, Line::<T>::ELEMENTS) };
    }
    // SAFETY: `line` is a local variable with aligned space for so many elements.
    let elements = unsafe { slice::from_raw_parts_mut(values.cast(), Line::<T>::ELEMENTS) };
    change.write_values(elements);
    // SAFETY: the caller's elements, all of which `write_values` wrote to `line`.
    unsafe { atomic::store_line(line.as_ptr().cast(), place) };
}

/// Changes elements that fit into a block.
///
/// # Safety
///
/// The contract of [`change_run`]; `count` is at most [`ItemBuffer::CAPACITY`].
#[inline]
unsafe fn change_block<T: Plain, C: Change<T>>(place: *mut u8, count: usize, change: &mut C) {
    let mut block = MaybeUninit::<ItemBuffer<T>>::uninit();
    let values = block.as_mut_ptr().cast::<T>();
    let bytes = count * size_of::<T>();
    if C::READS {
        // SAFETY: the caller's elements; `block` has room for them, and is ours.
        unsafe { atomic::load(place, values.cast(), bytes, align_of::<T>()) };
        // SAFETY: written right above.
        unsafe { make_values(values, count) };
    }
    // SAFETY: `block` is a local variable with aligned space for so many elements.
    change.write_values(unsafe { slice::from_raw_parts_mut(values.cast(), count) });
    // SAFETY: the caller's elements, all of which `write_values` wrote to `block`.
    unsafe { atomic::store(block.as_ptr().cast(), place, bytes, align_of::<T>()) };
}

/// Changes elements at any positions, in their order.
///
/// # Safety
///
/// The elements lie at `positions` from `data`, and may be written as `memory/atomic.rs` does.
pub(super) unsafe fn change_strided<T: Plain, C: Change<T>>(
    data: *mut u8,
    mut positions: ItemOffsets<'_>,
    change: &mut C,
) {
    if positions.has_runs_of::<T>(LINE) {
        while let Some((start, count)) = positions.next_run() {
            // SAFETY: the caller's elements, contiguous.
            unsafe { change_run(data.wrapping_offset(start), count, change) };
        }
        return;
    }
    let mut block = MaybeUninit::<ItemBuffer<T>>::uninit();
    let values = block.as_mut_ptr().cast::<T>();
    while positions.remaining_items() > 0 {
        let mut places = positions.clone();
        let count = if C::READS {
            // SAFETY: the caller's elements; `block` has room for so many, and is ours.
            let count = unsafe { positions.load_next(data, values, ItemBuffer::<T>::CAPACITY) };
            // SAFETY: written right above.
            unsafe { make_values(values, count) };
            count
        } else {
            min(ItemBuffer::<T>::CAPACITY, positions.remaining_items())
        };
        // SAFETY: `block` is a local variable with aligned space for so many elements.
        change.write_values(unsafe { slice::from_raw_parts_mut(values.cast(), count) });
        // SAFETY: the caller's elements, all of which `write_values` wrote to `block`.
        unsafe { places.store_next(data, values, count) };
        if !C::READS {
            positions = places;
        }
    }
}

/// Copies the elements of one array to another, both at any positions.
///
/// # Safety
///
/// Elements of viewed tensors lie at `sources` from `from`, and at as many `places` from `to`; the latter may be written as
/// `memory/atomic.rs` does.
pub(super) unsafe fn copy_strided<T: Plain>(
    from: *mut u8,
    mut sources: ItemOffsets<'_>,
    to: *mut u8,
    mut places: ItemOffsets<'_>,
) {
    let mut block = MaybeUninit::<ItemBuffer<T>>::uninit();
    let values = block.as_mut_ptr().cast::<T>();
    while sources.remaining_items() > 0 {
        // SAFETY: the caller's elements; `block` has room for so many, and is ours.
        let count = unsafe { sources.load_next(from, values, ItemBuffer::<T>::CAPACITY) };
        // SAFETY: written right above.
        unsafe { make_values(values, count) };
        // SAFETY: the caller's elements, as many as were written to `block`.
        unsafe { places.store_next(to, values, count) };
    }
}
