//! Iteration over the items of a tensor, in blocks where possible. Shared memory is read by atomic loads.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};

use crate::element::{Plain, make_values};
use crate::memory::atomic::{self, LINE_ALIGNMENT};
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
    /// The positions of items of type `S`, in units of its scalar.
    pub(crate) positions: ItemOffsets<'a>,
    pub(crate) data: *mut u8,
    pub(crate) shared: bool,
    pub(crate) lifetime: PhantomData<&'a [S]>,
}

impl<S: ArrayElement> Iterator for Items<'_, S> {
    type Item = S;

    #[inline]
    fn next(&mut self) -> Option<S> {
        let item = self.data.wrapping_offset(self.positions.next()?);
        // SAFETY: `positions` only returns items of the tensor, and these are values of `S`.
        Some(unsafe { S::Access::read_element(item.cast(), self.shared) })
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<S> {
        let item = self.data.wrapping_offset(self.positions.nth(n)?);
        // SAFETY: `positions` only returns items of the tensor, and these are values of `S`.
        Some(unsafe { S::Access::read_element(item.cast(), self.shared) })
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
            // Records are read field by field, so a block of copied bytes is of no use.
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
                    // SAFETY: `next_run` only returns items of the tensor, and these are values of `S`.
                    result = f(result, unsafe {
                        S::Access::read_element(start.wrapping_add(index), false)
                    });
                }
            }
            return result;
        }
        let mut block = MaybeUninit::<ItemBuffer<S>>::uninit();
        let items = block.as_mut_ptr().cast::<S>();
        while self.positions.remaining_items() > 0 {
            let (from, to, room) = (self.data, items.cast(), ItemBuffer::<S>::CAPACITY);
            // SAFETY: the block has capacity for `room` items of `scalars` units each, and `positions` counts from `data`.
            let count = unsafe { (self.positions).copy_next(from, scalars, to, room, self.shared) };
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

impl<S: Plain> Items<'_, S> {
    /// The number of items before the first aligned line, and the address of that line. `None` if the remaining items are not
    /// contiguous, or if a line would split one.
    #[inline]
    pub(super) fn find_lines(&self) -> Option<(usize, *const u8)> {
        let next = (self.data).wrapping_offset(self.positions.contiguous_rest::<S>()?);
        let front = next.addr().wrapping_neg() % LINE_ALIGNMENT;
        let bytes = size_of::<S>();
        (front % bytes == 0).then(|| (front / bytes, next.wrapping_add(front).cast_const()))
    }

    /// Skips items.
    pub(super) fn skip_items(&mut self, count: usize) {
        if let Some(last) = count.checked_sub(1) {
            self.positions.nth(last);
        }
    }

    /// Loads the next `count` items to the front of an array.
    #[inline(never)]
    pub(super) fn load_batch<const N: usize>(&mut self, count: usize) -> [MaybeUninit<S>; N] {
        let mut batch = [const { MaybeUninit::<S>::uninit() }; N];
        let to = batch.as_mut_ptr().cast::<S>();
        let scalars = size_of::<S>() / size_of::<S::Scalar>().max(1);
        let mut done = 0;
        while done < count {
            let (from, shared) = (self.data, self.shared);
            let (to, room) = (to.wrapping_add(done).cast(), count.min(N) - done);
            // SAFETY: each item of the tensor is `scalars` units of `positions`, and `to` has capacity for `room` items.
            let more = unsafe { (self.positions).copy_next(from, scalars, to, room, shared) };
            assert!(more > 0, "as many items as the positions count");
            done += more;
        }
        // SAFETY: the loop has written `count` items to `batch`.
        unsafe { make_values(to, count) };
        batch
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
    if !shared {
        // SAFETY: by this function's contract the item is readable, and it is not `shared`, so it is not written. The
        // address need not be aligned. A `Plain` value is only its bytes, so reading it does not move it out of the tensor.
        return unsafe { item.read_unaligned() };
    }
    let mut value = MaybeUninit::<S>::uninit();
    // SAFETY: by this function's contract the item is readable; Rust code writes to shared items only by atomics.
    unsafe {
        atomic::load(
            item.cast(),
            value.as_mut_ptr().cast(),
            size_of::<S>(),
            align_of::<S>(),
        )
    };
    // SAFETY: `load` has just written every byte of `value`, from an item of type `S`.
    unsafe { make_values(value.as_mut_ptr(), 1) };
    // SAFETY: `make_values` has made the bytes a value of `S`.
    unsafe { value.assume_init() }
}
