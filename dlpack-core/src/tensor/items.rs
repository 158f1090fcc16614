//! The items of a tensor one by one, or a block of them at a time; atomically where others may write.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};

use crate::element::{Plain, make_values};
use crate::layout::extent;
use crate::memory::{atomic, gather::gather};
use crate::tensor::array_element::{Access, ArrayElement};

/// The items of a tensor, in row-major order of their indices.
///
/// What consumes them all, such as `sum`, `max`, `for_each` and `fold`, is as quick as a loop over a slice, or nearly so; a
/// `for` loop takes some instructions more for each item. Where [others may write](crate::soundness#who-may-write), the former
/// read up to 2 KB ahead of what they hand out.
///
/// ```
/// use dlpack_core::DLPack;
///
/// let managed = [[1_u8, 2], [3, 4]].into_dlpack()?;
/// assert_eq!(managed.view().iter::<u8>()?.len(), 4);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Items<'a, S> {
    /// Those of items of type `S`, in strides of its scalar.
    pub(crate) positions: Positions<'a>,
    pub(crate) data: *mut u8,
    pub(crate) shared: bool,
    pub(crate) lifetime: PhantomData<&'a [S]>,
}

impl<S: ArrayElement> Iterator for Items<'_, S> {
    type Item = S;

    #[inline]
    fn next(&mut self) -> Option<S> {
        let item = self.data.wrapping_offset(self.positions.next()?);
        // SAFETY: an item of the tensor, which is an `S` (`positions`).
        Some(unsafe { S::Access::read(item.cast(), self.shared) })
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<S> {
        let item = self.data.wrapping_offset(self.positions.nth(n)?);
        // SAFETY: as above.
        Some(unsafe { S::Access::read(item.cast(), self.shared) })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }

    #[inline]
    fn count(self) -> usize {
        self.len()
    }

    #[inline]
    fn fold<B, F: FnMut(B, S) -> B>(mut self, init: B, mut f: F) -> B {
        let mut result = init;
        if S::Access::RECORD.is_some() {
            // Field by field, straight from where they lie.
            for item in self {
                result = f(result, item);
            }
            return result;
        }
        let scalars = size_of::<S>() / S::Access::UNIT.max(1);
        if !self.shared && self.positions.are_contiguous(scalars) {
            while let Some((start, len)) = self.positions.next_run() {
                let start = self.data.wrapping_offset(start).cast::<S>();
                for index in 0..len {
                    // SAFETY: an item of the tensor, which is an `S` (`positions`).
                    let item = unsafe { S::Access::read(start.wrapping_add(index), false) };
                    result = f(result, item);
                }
            }
            return result;
        }
        let mut block = MaybeUninit::<Block<S>>::uninit();
        let items = block.as_mut_ptr().cast::<S>();
        while self.positions.left() > 0 {
            let (from, to, room) = (self.data, items.cast(), Block::<S>::ROOM);
            // SAFETY: there is room, for items which are `scalars` of those that the positions count; `data` is theirs.
            let count = unsafe { (self.positions).fill(from, scalars, to, room, self.shared) };
            // SAFETY: so many were just written, each with the bytes of an item.
            unsafe { S::Access::make_values(items, count) };
            for index in 0..count {
                // SAFETY: as above, and now they are values.
                result = f(result, unsafe { items.wrapping_add(index).read() });
            }
        }
        result
    }
}

impl<S: ArrayElement> ExactSizeIterator for Items<'_, S> {}
impl<S: ArrayElement> FusedIterator for Items<'_, S> {}

/// Room for the items that are read or written at a time, one at least: few enough to stay in the nearest cache, and so many
/// that what is done once a block does not count.
#[repr(C, align(64))]
pub(crate) union Block<T> {
    one: ManuallyDrop<MaybeUninit<T>>,
    many: [MaybeUninit<u8>; 2048],
}

impl<T> Block<T> {
    /// How many there is room for.
    pub(crate) const ROOM: usize = match size_of::<T>() {
        0 => usize::MAX,
        bytes => size_of::<Self>() / bytes,
    };
}

/// Reads an item, atomically if others may be writing it.
///
/// # Safety
///
/// `item` is the address of an item of a tensor that is viewed, which is an `S`; `shared` is what its
/// view says.
#[inline(always)]
pub(crate) unsafe fn read<S: Plain>(item: *const S, shared: bool) -> S {
    if !shared {
        // SAFETY: whoever made the tensor knows its items to be readable, and nobody writes them.
        // Any address will do. A `Plain` value is no more than its bytes, so reading it does not
        // take it away from there.
        return unsafe { item.read_unaligned() };
    }
    let mut value = MaybeUninit::<S>::uninit();
    // SAFETY: as above, but that others may write; Rust code does so atomically.
    unsafe {
        atomic::load(
            item.cast(),
            value.as_mut_ptr().cast(),
            size_of::<S>(),
            align_of::<S>(),
        )
    };
    // SAFETY: every byte was just written with those of an item.
    unsafe { make_values(value.as_mut_ptr(), 1) };
    // SAFETY: now it is a value.
    unsafe { value.assume_init() }
}

/// The distances in bytes of all items from the first one, in row-major order of their indices.
///
/// They come as runs of items that lie at equal distances: as many axes from the last one on as continue each other. The other
/// axes lead from run to run.
#[derive(Clone, Debug)]
pub(crate) struct Positions<'a> {
    /// That of the next item, if `here` is not 0; else what would follow the last one of its run.
    at: isize,
    /// How many items of its run are left, that one included.
    here: usize,
    /// From one item of a run to the next, in bytes.
    pitch: isize,
    runs: Runs<'a>,
}

/// What leads from run to run.
#[derive(Clone, Copy, Debug)]
struct Runs<'a> {
    /// The items in all runs behind this one.
    rest: usize,
    /// The items of a run.
    len: usize,
    /// From one item of a run to the next, in units of so many bytes, as all strides are.
    step: i64,
    unit: usize,
    /// How many runs came before this one, and the axes that lead from run to run.
    turns: i64,
    shape: &'a [i64],
    strides: &'a [i64],
}

impl<'a> Positions<'a> {
    /// Those of a tensor with strides in units of so many bytes.
    pub(crate) fn new(shape: &'a [i64], strides: &'a [i64], unit: usize) -> Self {
        let items = extent::count(shape).unwrap_or(0);
        let (mut axes, mut len, mut step) = (shape.len(), 1, 1);
        // Without items, the extents mean nothing.
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
        let (items, len) = (size(items), size(len));
        let here = len.min(items);
        Self {
            at: 0,
            here,
            pitch: distance(step, unit),
            runs: Runs {
                rest: items - here,
                len,
                step,
                unit,
                turns: 0,
                shape: &shape[..axes],
                strides: &strides[..axes],
            },
        }
    }

    /// Whether the items of each run, of so many units, lie one after another.
    fn are_contiguous(&self, units: usize) -> bool {
        self.runs.len == 1 || self.runs.step == extent_of(units)
    }

    #[inline]
    fn left(&self) -> usize {
        self.here + self.runs.rest
    }

    /// What is left of a run: where it goes on, and how many there are.
    fn next_run(&mut self) -> Option<(isize, usize)> {
        if self.here == 0 && !self.turn(1) {
            return None;
        }
        let run = (self.at, self.here);
        self.pass(self.here);
        Some(run)
    }

    /// Passes over items of this run.
    #[inline(always)]
    fn pass(&mut self, items: usize) {
        self.at = (self.at).wrapping_add(self.pitch.wrapping_mul(items as isize));
        self.here -= items;
    }

    /// From the end of a run to the start of another, so many runs further on, if there is one.
    #[inline(always)]
    fn turn(&mut self, runs: usize) -> bool {
        // Apart, so that the compiler can keep all else in registers.
        let mut apart = self.runs;
        let start = apart.turn(self.at, runs);
        self.runs = apart;
        let Some(start) = start else {
            return false;
        };
        (self.at, self.here) = (start, self.runs.len);
        true
    }

    /// Copies the next items to where nobody else writes, as many as there are and as there is room for; returns how many.
    ///
    /// # Safety
    ///
    /// The items lie at these positions from `data`, so many units each; the processor can read them, and others may write
    /// them if they are `shared`. `room` of them, one at least, may be written to `to`.
    unsafe fn fill(
        &mut self,
        data: *mut u8,
        units: usize,
        to: *mut u8,
        room: usize,
        shared: bool,
    ) -> usize {
        let unit = self.runs.unit;
        let mut done = 0;
        while done < room && (self.here > 0 || self.turn(1)) {
            let (free, here) = (room - done, self.here);
            if here > free && done > 0 {
                // The rest of the room is not worth another copy.
                break;
            }
            let items = here.min(free);
            let from = data.wrapping_offset(self.at);
            let to = to.wrapping_add(done * units * unit);
            // Short runs along the axis that leads from one to the next are copied together.
            let runs = &mut self.runs;
            let (mut rows, mut leap) = (1, 0);
            let last = runs.shape.len().checked_sub(1);
            if let Some(last) = last.filter(|_| here == runs.len) {
                let turns = runs.shape[last] - runs.turns % runs.shape[last];
                rows = size(turns).min(free / here).max(1);
                runs.turns += extent_of(rows - 1);
                leap = runs.strides[last];
            }
            let step = runs.step;
            runs.rest -= (rows - 1) * runs.len;
            if rows == 1 && shared && self.are_contiguous(units) {
                let alignment = unit | from.addr();
                // SAFETY: as below.
                unsafe { atomic::load(from, to, items * units * unit, alignment) };
            } else {
                let shape = [rows, items, units].map(extent_of);
                // SAFETY:
                // 1. these are items of the tensor, in rows each of which begins a turn of the last axis further on;
                // 2. there is room for them, and nobody else has it;
                // 3. nobody writes to the items but if they are shared, and then as the caller says.
                unsafe { gather(from, &shape, &[leap, step, 1], unit, to, shared) };
            }
            let far = distance(leap.wrapping_mul(extent_of(rows - 1)), unit);
            self.at = self.at.wrapping_add(far);
            self.pass(items);
            done += rows * items;
        }
        done
    }
}

impl Iterator for Positions<'_> {
    type Item = isize;

    #[inline]
    fn next(&mut self) -> Option<isize> {
        if self.here == 0 && !self.turn(1) {
            return None;
        }
        let at = self.at;
        self.pass(1);
        Some(at)
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<isize> {
        match n.checked_sub(self.here) {
            None => self.pass(n),
            Some(beyond) => {
                self.pass(self.here);
                if self.turn((beyond / self.runs.len).saturating_add(1)) {
                    self.pass(beyond % self.runs.len);
                }
            }
        }
        self.next()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left(), Some(self.left()))
    }
}

impl Runs<'_> {
    /// From the end of a run to the start of another, so many runs further on, if there is one; else nothing is left.
    #[cold]
    fn turn(&mut self, end: isize, runs: usize) -> Option<isize> {
        let items = runs.checked_mul(self.len);
        let Some(rest) = items.and_then(|items| self.rest.checked_sub(items)) else {
            self.rest = 0;
            return None;
        };
        self.rest = rest;
        // In units, from the end of this run.
        let mut far = self.step.wrapping_mul(extent_of(self.len)).wrapping_neg();
        let (mut turns, mut carry) = (self.turns, extent_of(runs));
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
        Some(end.wrapping_add(distance(far, self.unit)))
    }
}

/// A number of items, none of them negative.
fn size(items: i64) -> usize {
    usize::try_from(items).unwrap_or(0)
}

/// The same as an extent.
fn extent_of(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}

/// So many units in bytes; none if that leads nowhere.
fn distance(units: i64, unit: usize) -> isize {
    let units = isize::try_from(units).unwrap_or(0);
    units.wrapping_mul(unit as isize)
}
