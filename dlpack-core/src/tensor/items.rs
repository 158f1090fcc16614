//! Iteration over the items of a tensor, in blocks where possible. Shared memory is read by atomic loads.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use alloc::vec::Vec;
use core::cmp::min;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};

use crate::DataType;
use crate::element::{Plain, make_values};
use crate::memory::atomic::{self, LINE, LINE_ALIGNMENT};
use crate::tensor::array_element::{ArrayElement, ElementAccess};
use crate::tensor::item_offsets::ItemOffsets;

/// An iterator over the items of a tensor, in C order of their indices.
///
/// Methods that consume all items, such as `sum`, `max`, `for_each` and `fold`, are about as fast as a loop over a slice.
/// A `for` loop takes a few more instructions for each item. On memory that is
/// [shared with writers](crate::soundness#who-may-write), these methods read up to 2 KB ahead of the current item.
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
    /// The offsets of the items from `data`, in bytes.
    pub(crate) offsets: ItemOffsets<'a>,
    pub(crate) data: *mut u8,
    pub(crate) shared: bool,
    pub(crate) lifetime: PhantomData<&'a [S]>,
}

impl<S: ArrayElement> Iterator for Items<'_, S> {
    type Item = S;

    #[inline]
    fn next(&mut self) -> Option<S> {
        let item = self.data.wrapping_offset(self.offsets.next()?);
        // SAFETY: `offsets` only returns items of the tensor, and these are values of `S`.
        Some(unsafe { S::Access::read_element(item.cast(), self.shared) })
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<S> {
        let item = self.data.wrapping_offset(self.offsets.nth(n)?);
        // SAFETY: `offsets` only returns items of the tensor, and these are values of `S`.
        Some(unsafe { S::Access::read_element(item.cast(), self.shared) })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.offsets.size_hint()
    }

    #[inline]
    fn count(self) -> usize {
        self.len()
    }

    // Inlined, so that a loop over a row of a few items costs no call.
    #[inline(always)]
    fn fold<B, F: FnMut(B, S) -> B>(self, init: B, f: F) -> B {
        self.fold_runs::<true, B>(init, f)
    }
}

impl<S: ArrayElement> Items<'_, S> {
    /// Folds the items. Without `BATCHES`, contiguous items are loaded by single lines, which stay in registers: that is faster if
    /// `f` has nothing to add up after each batch.
    #[inline(always)]
    pub(super) fn fold_runs<const BATCHES: bool, B>(
        mut self,
        init: B,
        mut f: impl FnMut(B, S) -> B,
    ) -> B {
        let is_plain = S::Access::RECORD.is_none() && Batch::<S>::ITEMS > 0;
        if !is_plain || !self.shared || !self.offsets.has_contiguous_runs(size_of::<S>()) {
            return self.fold_others(init, f);
        }
        let mut result = init;
        while let Some((start, len)) = self.offsets.next_run() {
            // SAFETY: `next_run` returned contiguous items of the tensor, and these are values of `S`.
            result = unsafe {
                let start = self.data.wrapping_offset(start);
                fold_run::<S, B, BATCHES>(start, len, result, &mut f)
            };
        }
        result
    }

    /// Folds records, memory without writers, and items that are not contiguous in long runs.
    fn fold_others<B>(mut self, init: B, mut f: impl FnMut(B, S) -> B) -> B {
        let mut result = init;
        if S::Access::RECORD.is_some() {
            // Records are read field by field, so a block of copied bytes is of no use.
            for item in self {
                result = f(result, item);
            }
            return result;
        }
        let scalars = size_of::<S>() / S::Access::UNIT.max(1);
        if !self.shared && self.offsets.are_contiguous(scalars) {
            while let Some((start, len)) = self.offsets.next_run() {
                let start = self.data.wrapping_offset(start).cast::<S>();
                for index in 0..len {
                    // SAFETY: `next_run` only returns items of the tensor, and these are values of `S`.
                    result = f(result, unsafe {
                        S::Access::read_element(start.wrapping_add(index), false)
                    });
                }
            }
            return result;
        }
        if let Some(step) = self.offsets.step_of_long_runs(size_of::<S>()) {
            while let Some((start, len)) = self.offsets.next_run() {
                let mut item = self.data.wrapping_offset(start);
                for _ in 0..len {
                    // SAFETY: `next_run` only returns items of the tensor, `step` bytes apart, and these are values of `S`.
                    result = f(result, unsafe {
                        S::Access::read_element(item.cast(), true)
                    });
                    item = item.wrapping_offset(step);
                }
            }
            return result;
        }
        let mut block = MaybeUninit::<ItemBuffer<S>>::uninit();
        let items = block.as_mut_ptr().cast::<S>();
        while self.offsets.remaining_items() > 0 {
            let (from, to, room) = (self.data, items.cast(), ItemBuffer::<S>::CAPACITY);
            // SAFETY: the block has capacity for `room` items of `scalars` units each, and `offsets` counts from `data`.
            let count = unsafe {
                (self.offsets).copy_next(
                    from,
                    scalars,
                    to,
                    room,
                    self.shared,
                    ItemOffsets::gather::<S>(),
                )
            };
            // SAFETY: `copy_next` has just written `count` items to the block.
            unsafe { S::Access::make_values(items, count) };
            for index in 0..count {
                // SAFETY: `copy_next` has written this item, and `make_values` has made it a value of `S`.
                result = f(result, unsafe { items.wrapping_add(index).read() });
            }
        }
        result
    }
}

/// Folds contiguous items of shared memory: whole batches, then whole lines; before the first aligned line and after the last one
/// by few items at a time.
///
/// # Safety
///
/// `start` is the address of `len` items of type `S` of a viewed tensor, which the CPU can read. `Batch::<S>::ITEMS` is not 0.
#[inline(always)]
unsafe fn fold_run<S: ArrayElement, B, const BATCHES: bool>(
    start: *const u8,
    len: usize,
    init: B,
    f: &mut impl FnMut(B, S) -> B,
) -> B {
    let (mut result, mut next, mut left) = (init, start, len);
    let front = next.addr().wrapping_neg() % LINE_ALIGNMENT;
    let mut few = match front % size_of::<S>() {
        0 => min(front / size_of::<S>(), len),
        // No line begins at an item.
        _ => len,
    };
    loop {
        // SAFETY: `few` items are left at `next`.
        result = unsafe { fold_few(next, few, result, f) };
        next = next.wrapping_add(few * size_of::<S>());
        left -= few;
        if left == 0 {
            return result;
        }
        while BATCHES && left >= Batch::<S>::ITEMS {
            // SAFETY: `next` is aligned for lines after the first few items, and a batch of items is left there.
            result = unsafe { fold_lines::<S, B, BATCH>(next, result, f) };
            next = next.wrapping_add(BATCH);
            left -= Batch::<S>::ITEMS;
        }
        while left >= LINE / size_of::<S>() {
            // SAFETY: `next` is aligned for lines after the first few items, and a line of items is left there.
            result = unsafe { fold_lines::<S, B, LINE>(next, result, f) };
            next = next.wrapping_add(LINE);
            left -= LINE / size_of::<S>();
        }
        few = left;
    }
}

/// Folds the items of whole cache lines: `BYTES` bytes, at most [`BATCH`]. The compiler knows their number and unrolls or vectorizes
/// the loop.
///
/// # Safety
///
/// The contract of [`fold_run`] for the items in `BYTES` bytes; `start` is a multiple of [`LINE_ALIGNMENT`].
#[inline(always)]
unsafe fn fold_lines<S: ArrayElement, B, const BYTES: usize>(
    start: *const u8,
    init: B,
    f: &mut impl FnMut(B, S) -> B,
) -> B {
    let mut result = init;
    let mut batch = MaybeUninit::<Batch<S>>::uninit();
    let items = batch.as_mut_ptr().cast::<S>();
    let count = BYTES / size_of::<S>();
    for line in (0..BYTES).step_by(LINE) {
        let to = items.cast::<u8>().wrapping_add(line);
        // SAFETY: by this function's contract the line at `start + line` is readable and aligned; `batch` has space for `BYTES`.
        unsafe { atomic::load_line(start.wrapping_add(line), to) };
    }
    // SAFETY: the loop has written `count` items of the batch.
    unsafe { S::Access::make_values(items, count) };
    for index in 0..count {
        // SAFETY: `count` items of the batch are initialised values of `S`.
        result = f(result, unsafe { items.wrapping_add(index).read() });
    }
    result
}

/// Folds fewer contiguous items than a batch has. Items of four bytes or more are read one after another, each into a register;
/// smaller ones by words that have several.
///
/// # Safety
///
/// The contract of [`fold_run`] for `count` items.
#[inline(always)]
unsafe fn fold_few<S: ArrayElement, B>(
    start: *const u8,
    count: usize,
    init: B,
    f: &mut impl FnMut(B, S) -> B,
) -> B {
    let (mut result, mut next, mut left) = (init, start, count);
    if size_of::<S>() >= 4 {
        for _ in 0..count {
            // SAFETY: by this function's contract `next` is the address of one of `count` items.
            result = f(result, unsafe {
                S::Access::read_element(next.cast(), true)
            });
            next = next.wrapping_add(size_of::<S>());
        }
        return result;
    }
    let mut batch = MaybeUninit::<Batch<S>>::uninit();
    let items = batch.as_mut_ptr().cast::<S>();
    while left > 0 {
        let count = min(Batch::<S>::ITEMS, left);
        // SAFETY: `count` items are left at `next`, and the batch has capacity for them.
        unsafe { S::Access::load_elements(next, items, count) };
        for index in 0..count {
            // SAFETY: `load_elements` has written `count` values of `S`.
            result = f(result, unsafe { items.wrapping_add(index).read() });
        }
        next = next.wrapping_add(count * size_of::<S>());
        left -= count;
    }
    result
}

/// The number of bytes that [`fold_run`] loads at a time.
const BATCH: usize = 8 * LINE;

/// Space for the items of a few cache lines.
#[repr(C, align(64))]
union Batch<T> {
    one: [ManuallyDrop<MaybeUninit<T>>; 0],
    many: [MaybeUninit<u8>; BATCH],
}

impl<T> Batch<T> {
    /// The number of items; 0 if a line would split one.
    const ITEMS: usize = match size_of::<T>() {
        0 => 0,
        bytes if LINE % bytes == 0 && align_of::<T>() <= LINE => BATCH / bytes,
        _ => 0,
    };
}

impl<S: Plain> Items<'_, S> {
    /// Copies all items to a vector.
    pub(super) fn copy_to_vec(mut self) -> Vec<S> {
        let len = self.len();
        let mut items = Vec::<S>::with_capacity(len);
        let scalars = size_of::<S>() / size_of::<S::Scalar>().max(1);
        let mut done = 0;
        while done < len {
            let (from, shared) = (self.data, self.shared);
            let to = items.as_mut_ptr().wrapping_add(done).cast();
            // SAFETY: each item of the tensor is `scalars` units of `offsets`, and `to` has capacity for the rest of `len`.
            let more = unsafe {
                (self.offsets).copy_next(
                    from,
                    scalars,
                    to,
                    len - done,
                    shared,
                    ItemOffsets::gather::<S>(),
                )
            };
            assert!(more > 0, "as many items as the offsets count");
            done += more;
        }
        // SAFETY: the loop has written the bytes of `len` items to the vector, which no other code accesses.
        unsafe { make_values(items.as_mut_ptr(), len) };
        // SAFETY: `make_values` has made `len` values of `S`.
        unsafe { items.set_len(len) };
        items
    }
}

impl<S: ArrayElement> ExactSizeIterator for Items<'_, S> {}
impl<S: ArrayElement> FusedIterator for Items<'_, S> {}

/// A buffer for the items that are read or written at a time, at least one. It is small enough for the L1 cache, and large
/// enough that the overhead of a block is negligible.
#[repr(C, align(64))]
pub(crate) union ItemBuffer<T> {
    one: ManuallyDrop<MaybeUninit<T>>,
    many: [MaybeUninit<u8>; 2048],
}

impl<T> ItemBuffer<T> {
    /// The capacity in items.
    pub(crate) const CAPACITY: usize = match size_of::<T>() {
        0 => usize::MAX,
        bytes => size_of::<Self>() / bytes,
    };
}

/// Reads one item, by atomic loads if the memory is shared with writers.
///
/// # Safety
///
/// `item` is the address of an item of type `S` of a viewed tensor, and `shared` is the field of that view.
#[inline(always)]
pub(crate) unsafe fn read_item<S: Plain>(item: *const S, shared: bool) -> S {
    if !shared && S::ANY_BITS {
        // SAFETY: by this function's contract the item is readable, and it is not `shared`, so it is not written. The
        // address need not be aligned. A `Plain` value is only its bytes, and any bytes are a value, because `S` has `ANY_BITS`.
        return unsafe { item.read_unaligned() };
    }
    let mut value = MaybeUninit::<S>::uninit();
    // SAFETY: by this function's contract the item is readable; Rust code writes to shared items only by atomics.
    unsafe { load_item(item.cast(), value.as_mut_ptr()) };
    // SAFETY: `load_item` has just written a value.
    unsafe { value.assume_init() }
}

/// Whether values of `S` are single floats, which are read and written in vector registers.
#[inline(always)]
fn is_float<S: Plain>() -> bool {
    let is_scalar = size_of::<S>() * 8 == usize::from(S::DTYPE.bits());
    is_scalar && (S::DTYPE == DataType::F32 || S::DTYPE == DataType::F64)
}

/// Copies one item from memory that other code may write.
///
/// # Safety
///
/// `item` is the address of an item of type `S` of a viewed tensor. `to` is valid for a write of one, and no other code accesses it.
#[inline(always)]
pub(crate) unsafe fn load_item<S: Plain>(item: *const u8, to: *mut S) {
    let bytes = size_of::<S>();
    // SAFETY: by this function's contract the item is readable and `to` writable; Rust code writes to shared items only by atomics.
    if !is_float::<S>() || !unsafe { atomic::load_float(item, to.cast(), bytes) } {
        // SAFETY: by this function's contract the item is readable and `to` writable, as above.
        unsafe { atomic::load_bytes(item, to.cast(), bytes, align_of::<S>()) };
    }
    // SAFETY: the bytes of `to` have just been written, from an item of type `S`.
    unsafe { make_values(to, 1) };
}

/// Writes one item to memory that other code may access.
///
/// # Safety
///
/// `item` is the address of an item of type `S` of a viewed tensor, which may be written by `memory/atomic.rs`.
#[inline(always)]
pub(crate) unsafe fn store_item<S: Plain>(item: *mut u8, value: &S) {
    let (from, bytes) = ((&raw const *value).cast(), size_of::<S>());
    // SAFETY: by this function's contract the item is writable; `from` is the address of a value of the same size.
    if !is_float::<S>() || !unsafe { atomic::store_float(from, item, bytes) } {
        // SAFETY: by this function's contract the item is writable, as above.
        unsafe { atomic::store_bytes(from, item, bytes, align_of::<S>()) };
    }
}
