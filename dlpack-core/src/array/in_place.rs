//! Writes the elements of an array: by cache lines where they are contiguous, else by blocks.
//!
//! A cache line is loaded into registers, changed and stored. The compiler cannot optimise the instructions that load and store it
//! (`memory/atomic.rs`), but it vectorizes the code between them, so this is about as fast as a loop over a slice.
//!
//! | elements | loaded, stored |
//! |---|---|
//! | contiguous, or in contiguous rows of a line or more | a line at a time; fewer at both ends |
//! | with gaps between them, in long runs | one after another, each in registers |
//! | with other strides | by [`ItemOffsets::load_next`] and [`ItemOffsets::store_next`], a block at a time |
//!
//! The caller's function runs between a load and a store. If it panics, the elements of that line or block keep their old values.
#![expect(unsafe_code, reason = "writes elements of a checked tensor")]

use core::cmp::min;
use core::mem::MaybeUninit;
use core::slice;

use crate::element::{Plain, make_values};
use crate::memory::atomic::{self, LINE, LINE_ALIGNMENT};
use crate::tensor::item_offsets::ItemOffsets;
use crate::tensor::items::{ItemBuffer, load_item, store_item};

/// New values for elements, a few at a time.
pub(super) trait Change<T> {
    /// Whether the new values depend on the old ones.
    const READS: bool;

    /// Writes every element of `elements`. With `READS`, they have their old values when this is called.
    fn write_values(&mut self, elements: &mut [MaybeUninit<T>]);
}

/// Replaces each element by the result of a function.
pub(super) struct Update<F>(pub(super) F);

impl<T: Copy, F: FnMut(T) -> T> Change<T> for Update<F> {
    const READS: bool = true;

    #[inline(always)]
    fn write_values(&mut self, elements: &mut [MaybeUninit<T>]) {
        for element in elements {
            // SAFETY: `READS` is true, so the caller has initialised the element with its old value.
            let value = unsafe { element.assume_init() };
            element.write((self.0)(value));
        }
    }
}

/// Writes the results of a function.
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
    /// The number of elements in a line; 0 if a line would split one.
    const ELEMENTS: usize = match size_of::<T>() {
        0 => 0,
        bytes if LINE % bytes == 0 && align_of::<T>() <= LINE => LINE / bytes,
        _ => 0,
    };
}

/// Changes contiguous elements, in ascending order of their addresses.
///
/// # Safety
///
/// `place` is the address of `count` elements, which may be written by `memory/atomic.rs`.
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
    // First the elements before the lines, or all if there are no lines; then the elements after the lines.
    for (few, lines) in [(few, lines), (rest, 0)] {
        let mut done = 0;
        while done < few {
            let elements = min(ItemBuffer::<T>::CAPACITY, few - done);
            // SAFETY: `place` is the address of the next `elements` of the `count` elements of this function's contract.
            unsafe { change_block(place, elements, change) };
            place = place.wrapping_add(elements * size_of::<T>());
            done += elements;
        }
        for _ in 0..lines {
            // SAFETY: `place` is the address of the next line of elements, and a multiple of `LINE_ALIGNMENT` after `few` elements.
            unsafe { change_line(place, change) };
            place = place.wrapping_add(LINE);
        }
    }
}

/// Changes the elements of one cache line.
///
/// # Safety
///
/// The contract of [`change_run`], for the elements of a line; `place` is a multiple of [`LINE_ALIGNMENT`].
#[inline(always)]
unsafe fn change_line<T: Plain, C: Change<T>>(place: *mut u8, change: &mut C) {
    let mut line = MaybeUninit::<Line<T>>::uninit();
    let values = line.as_mut_ptr().cast::<T>();
    if C::READS {
        // SAFETY: by this function's contract a line of elements is readable at `place`; `line` is a local variable of that size.
        unsafe { atomic::load_line(place, values.cast()) };
        // SAFETY: `load_line` has written all elements of `line`.
        unsafe { make_values(values, Line::<T>::ELEMENTS) };
    }
    // SAFETY: `line` is a local variable, aligned for `T`, with space for this many elements.
    let elements = unsafe { slice::from_raw_parts_mut(values.cast(), Line::<T>::ELEMENTS) };
    change.write_values(elements);
    // SAFETY: by this function's contract the line at `place` is writable; `write_values` has initialised all elements of `line`.
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
        // SAFETY: by this function's contract `count` elements are readable at `place`; the local `block` has space for them.
        unsafe { atomic::load_bytes(place, values.cast(), bytes, align_of::<T>()) };
        // SAFETY: the load above has written `count` elements to `block`.
        unsafe { make_values(values, count) };
    }
    // SAFETY: `block` is a local variable, aligned for `T`, with space for `count` elements.
    change.write_values(unsafe { slice::from_raw_parts_mut(values.cast(), count) });
    // SAFETY: by this function's contract `count` elements are writable at `place`; `write_values` has initialised as many.
    unsafe { atomic::store_bytes(block.as_ptr().cast(), place, bytes, align_of::<T>()) };
}

/// Changes one element.
///
/// # Safety
///
/// The contract of [`change_run`], for one element.
#[inline(always)]
unsafe fn change_element<T: Plain, C: Change<T>>(place: *mut u8, change: &mut C) {
    let mut element = MaybeUninit::<T>::uninit();
    if C::READS {
        // SAFETY: by this function's contract the element is readable at `place`; `element` is a local variable.
        unsafe { load_item(place, element.as_mut_ptr()) };
    }
    change.write_values(slice::from_mut(&mut element));
    // SAFETY: `write_values` has initialised `element`.
    let element = unsafe { element.assume_init() };
    // SAFETY: by this function's contract the element is writable at `place`.
    unsafe { store_item(place, &element) };
}

/// Changes elements with any strides, in the order of `offsets`.
///
/// # Safety
///
/// Elements lie at `offsets` from `data`, and may be written by `memory/atomic.rs`.
pub(super) unsafe fn change_strided<T: Plain, C: Change<T>>(
    data: *mut u8,
    mut offsets: ItemOffsets<'_>,
    change: &mut C,
) {
    if offsets.has_runs_of::<T>(LINE) {
        while let Some((start, count)) = offsets.next_run() {
            // SAFETY: a run of the elements of this function's contract; `has_runs_of` found runs contiguous.
            unsafe { change_run(data.wrapping_offset(start), count, change) };
        }
        return;
    }
    if let Some(step) = offsets.step_of_long_runs(size_of::<T>()) {
        while let Some((start, count)) = offsets.next_run() {
            let mut place = data.wrapping_offset(start);
            for _ in 0..count {
                // SAFETY: `next_run` only returns elements of this function's contract, `step` bytes apart.
                unsafe { change_element(place, change) };
                place = place.wrapping_offset(step);
            }
        }
        return;
    }
    let mut block = MaybeUninit::<ItemBuffer<T>>::uninit();
    let values = block.as_mut_ptr().cast::<T>();
    while offsets.remaining_items() > 0 {
        let mut places = offsets.clone();
        let count = if C::READS {
            // SAFETY: by this function's contract the elements are readable; `block` is a local variable with space for `CAPACITY`.
            let count = unsafe { offsets.load_next(data, values, ItemBuffer::<T>::CAPACITY) };
            // SAFETY: `load_next` has written `count` elements to `block`.
            unsafe { make_values(values, count) };
            count
        } else {
            min(ItemBuffer::<T>::CAPACITY, offsets.remaining_items())
        };
        // SAFETY: `block` is a local variable, aligned for `T`, with space for `count` elements.
        change.write_values(unsafe { slice::from_raw_parts_mut(values.cast(), count) });
        // SAFETY: by this function's contract `count` elements are writable at `places`; `write_values` has initialised as many.
        unsafe { places.store_next(data, values, count) };
        if !C::READS {
            offsets = places;
        }
    }
}

/// Copies elements between two arrays with any strides.
///
/// # Safety
///
/// Elements of viewed tensors lie at the offsets `sources` from `from`, and at as many offsets `places` from `to`. Those of `to`
/// may be written by `memory/atomic.rs`.
pub(super) unsafe fn copy_strided<T: Plain>(
    from: *mut u8,
    mut sources: ItemOffsets<'_>,
    to: *mut u8,
    mut places: ItemOffsets<'_>,
) {
    let mut block = MaybeUninit::<ItemBuffer<T>>::uninit();
    let values = block.as_mut_ptr().cast::<T>();
    while sources.remaining_items() > 0 {
        // SAFETY: by this function's contract the elements are readable; `block` is a local variable with space for `CAPACITY`.
        let count = unsafe { sources.load_next(from, values, ItemBuffer::<T>::CAPACITY) };
        // SAFETY: `load_next` has written `count` elements to `block`.
        unsafe { make_values(values, count) };
        // SAFETY: by this function's contract as many elements are writable; `block` has `count` initialised elements.
        unsafe { places.store_next(to, values, count) };
    }
}
