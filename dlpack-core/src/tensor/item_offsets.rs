//! The offsets of the items of a tensor, and copies of items between strided memory and a buffer.
#![expect(unsafe_code, reason = "reads and writes elements of a checked tensor")]

use core::mem::{align_of, size_of};

use crate::element::Plain;
use crate::layout::extent;
use crate::memory::atomic::{self, LINE};
use crate::memory::gather::{GatherItems, gather_elements};

/// The byte offsets of all items from the first item, in C order of their indices.
///
/// The items are iterated in runs of equal stride. A run covers as many of the last axes as can be merged into one; the
/// other axes lead from run to run.
#[derive(Clone, Debug)]
pub(crate) struct ItemOffsets<'a> {
    /// The offset of the next item, or the end of the last run if `left_in_run` is 0.
    at: isize,
    /// The number of items left in the current run, including the next one.
    left_in_run: usize,
    /// The stride within a run, in bytes.
    step: isize,
    runs: RunState<'a>,
}

/// The axes that lead from run to run, and the position on them.
#[derive(Clone, Copy, Debug)]
struct RunState<'a> {
    /// The number of items in all later runs.
    rest: usize,
    /// The number of items in a run.
    len: usize,
    /// The stride within a run, in units of `unit` bytes, as all strides here.
    step: i64,
    unit: usize,
    /// The number of runs before this one. `shape` and `strides` are those of the axes that lead from run to run.
    turns: i64,
    shape: &'a [i64],
    strides: &'a [i64],
}

impl<'a> ItemOffsets<'a> {
    /// The offsets of the items of a tensor with strides in units of `unit` bytes.
    #[inline]
    pub(crate) fn new(shape: &'a [i64], strides: &'a [i64], unit: usize) -> Self {
        let items = extent::count_items(shape).unwrap_or(0);
        let (mut axes, mut len, mut step) = (shape.len(), 1, 1);
        // If one axis is empty, the product of the other sizes may overflow.
        while let Some(axis) = axes.checked_sub(1).filter(|_| items > 0) {
            let extent = shape[axis];
            if len == 1 {
                step = strides[axis];
            } else if extent != 1 && i64::checked_mul(step, len) != Some(strides[axis]) {
                break;
            }
            len *= extent;
            axes = axis;
        }
        let (items, len) = (to_count(items), to_count(len));
        let left_in_run = len.min(items);
        Self {
            at: 0,
            left_in_run,
            step: to_bytes(step, unit),
            runs: RunState {
                rest: items - left_in_run,
                len,
                step,
                unit,
                turns: 0,
                shape: &shape[..axes],
                strides: &strides[..axes],
            },
        }
    }

    /// The offsets of the items of a tensor with one axis, as [`ItemOffsets::new`] finds them with loops.
    #[inline]
    pub(crate) fn of_one_axis(extent: i64, stride: i64, unit: usize) -> Self {
        let items = to_count(extent);
        Self {
            at: 0,
            left_in_run: items,
            step: to_bytes(stride, unit),
            runs: RunState {
                rest: 0,
                // Not 0, because counts of items are divided by it.
                len: items.max(1),
                step: stride,
                unit,
                turns: 0,
                shape: &[],
                strides: &[],
            },
        }
    }

    /// Whether the items of each run are contiguous, if an item has this many units.
    pub(super) fn are_contiguous(&self, units: usize) -> bool {
        self.runs.len == 1 || self.runs.step == to_axis_size(units)
    }

    #[inline]
    pub(crate) fn remaining_items(&self) -> usize {
        self.left_in_run + self.runs.rest
    }

    /// Returns the rest of the current run, or the next run: the offset of its first item, and the number of items.
    #[inline]
    pub(crate) fn next_run(&mut self) -> Option<(isize, usize)> {
        if self.left_in_run == 0 && !self.advance_runs(1) {
            return None;
        }
        let run = (self.at, self.left_in_run);
        self.skip_items(self.left_in_run);
        Some(run)
    }

    /// The stride of runs in bytes, if reading one item of `bytes` bytes after another is faster than copying blocks of them. That
    /// is so for long runs with gaps between their items. If the gaps are larger than a cache line, a block of several short runs
    /// reads each line fewer times.
    #[inline]
    pub(crate) fn step_of_long_runs(&self, bytes: usize) -> Option<isize> {
        let long = match self.step.unsigned_abs() {
            0..LINE => LONG_RUN,
            _ => BLOCK_RUN,
        };
        let is_long = self.runs.rest == 0 || self.runs.len >= long;
        let has_gaps = self.step != bytes as isize;
        (has_gaps && is_long && bytes <= LARGEST_WORDS).then_some(self.step)
    }

    /// Whether the items of each run are contiguous, and all runs are long.
    #[inline]
    pub(super) fn has_contiguous_runs(&self, bytes: usize) -> bool {
        self.step == bytes as isize && (self.runs.rest == 0 || self.runs.len >= LONG_RUN)
    }

    /// The stride within a run, in bytes.
    #[inline]
    pub(crate) fn step(&self) -> isize {
        self.step
    }

    /// The offset of the next item and the number of items that are left in its run, without skipping them.
    #[inline]
    pub(crate) fn peek_run(&mut self) -> Option<(isize, usize)> {
        (self.left_in_run > 0 || self.advance_runs(1)).then_some((self.at, self.left_in_run))
    }

    /// Skips items of the current run.
    #[inline(always)]
    pub(crate) fn skip_items(&mut self, items: usize) {
        self.at = (self.at).wrapping_add(self.step.wrapping_mul(items as isize));
        self.left_in_run -= items;
    }

    /// Advances from the end of a run by this many runs. Returns false if there is no such run.
    #[inline(always)]
    fn advance_runs(&mut self, runs: usize) -> bool {
        if self.runs.rest == 0 {
            // Without a call: an array with one run, such as a row, comes here after a few items.
            return false;
        }
        // A copy of the state lets the compiler keep the other fields in registers.
        let mut apart = self.runs;
        let start = apart.advance_runs(self.at, runs);
        self.runs = apart;
        let Some(start) = start else {
            return false;
        };
        (self.at, self.left_in_run) = (start, self.runs.len);
        true
    }

    /// Whether the items of each run are contiguous elements of `T`, at least `bytes` bytes of them.
    pub(crate) fn has_runs_of<T: Plain>(&self, bytes: usize) -> bool {
        let scalars = size_of::<T>() / size_of::<T::Scalar>().max(1);
        self.are_contiguous(scalars) && self.runs.len * size_of::<T>() >= bytes
    }

    /// The offset of the next element of `T`, and the number of contiguous elements from there on. `None` if no element is left,
    /// or if the run is not contiguous.
    #[inline]
    pub(crate) fn next_contiguous<T: Plain>(&mut self) -> Option<(isize, usize)> {
        let is_there = self.left_in_run > 0 || self.advance_runs(1);
        let is_contiguous = is_there && self.step == size_of::<T>() as isize;
        is_contiguous.then_some((self.at, self.left_in_run))
    }

    /// Copies the next elements: at least one if one is left, and at most `room`. Returns their number. Other code may write to
    /// the elements meanwhile.
    ///
    /// # Safety
    ///
    /// Elements of a viewed tensor lie at these offsets from `data`. `to` is valid for writes of `room` elements, and no other
    /// code accesses it.
    pub(crate) unsafe fn load_next<T: Plain>(
        &mut self,
        data: *mut u8,
        to: *mut T,
        room: usize,
    ) -> usize {
        let scalars = size_of::<T>() / size_of::<T::Scalar>().max(1);
        // SAFETY: same contract as this function's: readable elements and capacity for `room`. An element has `scalars` units.
        unsafe { self.copy_next(data, scalars, to.cast(), room, true, Self::gather::<T>()) }
    }

    /// Writes the next `count` elements. Other code may access them meanwhile.
    ///
    /// # Safety
    ///
    /// `count` elements of a viewed tensor lie at these offsets from `data`, and may be written by `memory/atomic.rs`. `values` has
    /// as many elements, which no code writes.
    pub(crate) unsafe fn store_next<T: Plain>(
        &mut self,
        data: *mut u8,
        values: *const T,
        count: usize,
    ) {
        let mut values = values.cast::<u8>();
        let mut left = count;
        while left > 0 && (self.left_in_run > 0 || self.advance_runs(1)) {
            let items = self.left_in_run.min(left);
            let place = data.wrapping_offset(self.at);
            if self.step == size_of::<T>() as isize {
                let bytes = items * size_of::<T>();
                // SAFETY: by this function's contract the elements are writable; they are contiguous on both sides.
                unsafe { atomic::store_bytes(values, place, bytes, align_of::<T>()) };
            } else {
                for index in 0..items {
                    let (from, far) = (index * size_of::<T>(), self.step * index as isize);
                    let (from, to) = (values.wrapping_add(from), place.wrapping_offset(far));
                    // SAFETY: by this function's contract the element at `to` is writable, and `from` is one of `values`.
                    unsafe { atomic::store_bytes(from, to, size_of::<T>(), align_of::<T>()) };
                }
            }
            values = values.wrapping_add(items * size_of::<T>());
            left -= items;
            self.skip_items(items);
        }
    }

    /// The function by which [`ItemOffsets::copy_next`] copies items of type `T`.
    #[inline(always)]
    pub(super) const fn gather<T>() -> GatherItems {
        const { gather_elements(size_of::<T>()) }
    }

    /// Copies the next items to `to`, as many as there are and as fit into `room`. Returns their number.
    ///
    /// # Safety
    ///
    /// `gather` is the function of [`ItemOffsets::gather`] for the items.
    /// The items are at these offsets from `data`, with `units` units each. The CPU can read them; if they are `shared`,
    /// other code may write to them. `to` is valid for writes of `room` items, at least one, and no other code accesses it.
    pub(super) unsafe fn copy_next(
        &mut self,
        data: *mut u8,
        units: usize,
        to: *mut u8,
        room: usize,
        shared: bool,
        gather: GatherItems,
    ) -> usize {
        let unit = self.runs.unit;
        let mut done = 0;
        while done < room && (self.left_in_run > 0 || self.advance_runs(1)) {
            let (free, left_in_run) = (room - done, self.left_in_run);
            if left_in_run > free && done > 0 {
                // The remaining capacity is too small to be worth another copy.
                break;
            }
            let items = left_in_run.min(free);
            let from = data.wrapping_offset(self.at);
            let to = to.wrapping_add(done * units * unit);
            // Short runs along the axis that leads from one to the next are copied in one call.
            let runs = &mut self.runs;
            let (mut rows, mut leap) = (1, 0);
            let last = runs.shape.len().checked_sub(1);
            if let Some(last) = last.filter(|_| left_in_run == runs.len) {
                let turns = runs.shape[last] - runs.turns % runs.shape[last];
                rows = to_count(turns).min(free / left_in_run).max(1);
                runs.turns += to_axis_size(rows - 1);
                leap = runs.strides[last];
            }
            let step = runs.step;
            runs.rest -= (rows - 1) * runs.len;
            if rows == 1 && shared && self.are_contiguous(units) {
                let alignment = unit | from.addr();
                // SAFETY: these are contiguous items of the tensor, which are readable by this function's contract; `items`
                // is at most the free capacity of `to`.
                unsafe { atomic::load_bytes(from, to, items * units * unit, alignment) };
            } else {
                let shape = [rows, items, units].map(to_axis_size);
                // SAFETY:
                // 1. these are items of the tensor: each row starts one index further along the last axis of `runs`;
                // 2. `to` has capacity for them, and no other code accesses it, by this function's contract;
                // 3. the items have writers only if they are `shared`, and then Rust code writes to them by atomics.
                unsafe { gather(from, &shape, &[leap, step, 1], unit, to, shared) };
            }
            let far = to_bytes(leap.wrapping_mul(to_axis_size(rows - 1)), unit);
            self.at = self.at.wrapping_add(far);
            self.skip_items(items);
            done += rows * items;
        }
        done
    }
}

impl Iterator for ItemOffsets<'_> {
    type Item = isize;

    #[inline]
    fn next(&mut self) -> Option<isize> {
        if self.left_in_run == 0 && !self.advance_runs(1) {
            return None;
        }
        let at = self.at;
        self.skip_items(1);
        Some(at)
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<isize> {
        match n.checked_sub(self.left_in_run) {
            None => self.skip_items(n),
            Some(beyond) => {
                self.skip_items(self.left_in_run);
                if self.advance_runs((beyond / self.runs.len).saturating_add(1)) {
                    self.skip_items(beyond % self.runs.len);
                }
            }
        }
        self.next()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining_items(), Some(self.remaining_items()))
    }
}

impl RunState<'_> {
    /// Advances from the end of a run by this many runs, and returns the start of that run, or `None` if there is none.
    #[cold]
    fn advance_runs(&mut self, end: isize, runs: usize) -> Option<isize> {
        let items = runs.checked_mul(self.len);
        let Some(rest) = items.and_then(|items| self.rest.checked_sub(items)) else {
            self.rest = 0;
            return None;
        };
        self.rest = rest;
        // In units, relative to the end of the current run.
        let mut far = self
            .step
            .wrapping_mul(to_axis_size(self.len))
            .wrapping_neg();
        let (mut turns, mut carry) = (self.turns, to_axis_size(runs));
        self.turns += carry;
        for axis in (0..self.shape.len()).rev() {
            let extent = self.shape[axis];
            let old = turns % extent;
            turns /= extent;
            let mut new = old + carry;
            carry = 0;
            if new >= extent {
                (new, carry) = (new % extent, new / extent);
            }
            far = far.wrapping_add(self.strides[axis].wrapping_mul(new - old));
            if carry == 0 {
                break;
            }
        }
        Some(end.wrapping_add(to_bytes(far, self.unit)))
    }
}

/// The number of items of a run that is so long that the step to the next run does not matter.
const LONG_RUN: usize = 16;

/// The number of items of a run that is so long that a block has no more than one or two such runs.
const BLOCK_RUN: usize = 256;

/// The size of the largest items that are read one by one: two words.
const LARGEST_WORDS: usize = 16;

/// Converts a number of items, which is never negative.
fn to_count(items: i64) -> usize {
    usize::try_from(items).unwrap_or(0)
}

/// Converts a number of items to the type of sizes and strides.
fn to_axis_size(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}

/// Converts a distance from units to bytes; 0 if it does not fit, in which case it is not used.
fn to_bytes(units: i64, unit: usize) -> isize {
    let units = isize::try_from(units).unwrap_or(0);
    units.wrapping_mul(unit as isize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offsets of numbers of four bytes.
    fn numbers<'a>(shape: &'a [i64], strides: &'a [i64]) -> ItemOffsets<'a> {
        ItemOffsets::new(shape, strides, 4)
    }

    #[test]
    fn contiguous_items_are_one_run() {
        let mut offsets = numbers(&[2, 3], &[3, 1]);
        assert_eq!(offsets.next_contiguous::<u32>(), Some((0, 6)));
        assert!(offsets.are_contiguous(1) && !offsets.are_contiguous(2));
        assert!(offsets.has_contiguous_runs(4) && !offsets.has_contiguous_runs(8));
        assert!(offsets.has_runs_of::<u32>(24) && !offsets.has_runs_of::<u32>(25));
        assert_eq!(offsets.step_of_long_runs(4), None, "no gaps");
        offsets.next();
        offsets.next();
        assert_eq!(offsets.next_contiguous::<u32>(), Some((8, 4)));
    }

    #[test]
    fn one_axis_has_the_offsets_that_any_shape_has() {
        for extent in [0, 1, 2, 17] {
            for stride in [-3, 0, 1, 2] {
                let short = || ItemOffsets::of_one_axis(extent, stride, 4);
                let (shape, strides) = ([extent], [stride]);
                let long = || numbers(&shape, &strides);
                assert!(short().eq(long()), "{extent} {stride}");
                for skip in [0, 1, 16, 17, usize::MAX] {
                    assert_eq!(short().nth(skip), long().nth(skip), "{extent} {stride}");
                }
                assert_eq!(short().are_contiguous(1), long().are_contiguous(1));
                assert_eq!(short().next_run(), long().next_run());
                assert_eq!(short().remaining_items(), long().remaining_items());
            }
        }
    }

    #[test]
    fn rows_with_gaps_are_runs() {
        let mut offsets = numbers(&[2, 3], &[5, 1]);
        assert!(offsets.has_runs_of::<u32>(12) && !offsets.has_runs_of::<u32>(13));
        assert!(!offsets.has_contiguous_runs(4), "the runs are short");
        assert_eq!(offsets.next_run(), Some((0, 3)));
        assert_eq!(offsets.next_contiguous::<u32>(), Some((20, 3)));
        assert_eq!(offsets.next_run(), Some((20, 3)));
        assert_eq!(offsets.next_contiguous::<u32>(), None);
        assert!(numbers(&[2, 16], &[20, 1]).has_contiguous_runs(4));
        assert!(!numbers(&[2, 15], &[20, 1]).has_contiguous_runs(4));
    }

    #[test]
    fn elements_of_several_numbers_are_contiguous_by_their_own_size() {
        let offsets = numbers(&[4], &[2]);
        assert!(offsets.are_contiguous(2) && offsets.has_runs_of::<[u32; 2]>(32));
        assert!(!offsets.are_contiguous(1) && !offsets.has_runs_of::<u32>(4));
        assert!(
            numbers(&[1], &[7]).are_contiguous(1),
            "one item has no step"
        );
    }

    #[test]
    fn long_runs_with_gaps_are_read_item_by_item() {
        let step = |shape, strides| numbers(shape, strides).step_of_long_runs(4);
        // A single run is long, however few items it has.
        assert_eq!(step(&[4], &[2]), Some(8));
        assert_eq!(step(&[4], &[-2]), Some(-8));
        // Gaps that are smaller than a cache line.
        assert_eq!(step(&[2, 16], &[100, 2]), Some(8));
        assert_eq!(step(&[2, 15], &[100, 2]), None);
        // Each item is on a cache line of its own.
        assert_eq!(step(&[2, 256], &[100_000, 16]), Some(64));
        assert_eq!(step(&[2, 255], &[100_000, 16]), None);
        let of_size = |size| ItemOffsets::new(&[4], &[2], size).step_of_long_runs(size);
        assert_eq!((of_size(16), of_size(24)), (Some(32), None));
    }
}
