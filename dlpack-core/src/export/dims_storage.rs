//! Where an export block keeps shape and strides: behind the owner, or on the heap with a pointer there.
#![expect(unsafe_code, reason = "writes behind the end of a struct")]

use alloc::boxed::Box;
use core::{mem::MaybeUninit, slice};

use crate::layout::{dims::INLINE, shape_strides::ShapeStrides};

impl ShapeStrides {
    /// Moves shape and strides into a block and returns where the consumer finds them: null if there are no axes.
    ///
    /// # Safety
    ///
    /// `place` is writable for two `i64` per axis of `capacity`, which has at least one axis, and holds no pointer to a
    /// heap allocation that is still to be freed.
    // LAY-02, LAY-03
    #[inline(always)]
    pub(super) unsafe fn store(
        &mut self,
        place: *mut i64,
        capacity: &mut Capacity,
    ) -> [*mut i64; 2] {
        if let Some(both) = self.take_heap() {
            capacity.0 |= Capacity::ON_HEAP;
            // SAFETY: there is space for one axis by the caller's contract, and a wide pointer takes as much.
            return unsafe { store_pointer(both, place) };
        }
        let rank = self.rank();
        if rank == 0 {
            return [core::ptr::null_mut(); 2];
        }
        assert!(rank <= capacity.axes(), "the block was made for these axes");
        let place = place.cast::<MaybeUninit<i64>>();
        // SAFETY: the caller vouches for `capacity.axes()` axes, which are at least `rank`; the values may be uninitialised.
        let both = unsafe { slice::from_raw_parts_mut(place, 2 * rank) };
        let (shape, strides) = both.split_at_mut(rank);
        let [extents, steps] = self.inline();
        // One jump per axis, which the CPU predicts by itself. A copy of `rank` values would be a call.
        for axis in 0..INLINE {
            if axis == rank {
                break;
            }
            shape[axis].write(extents[axis]);
            strides[axis].write(steps[axis]);
        }
        [shape.as_mut_ptr().cast(), strides.as_mut_ptr().cast()]
    }
}

/// Leaves shape and strides on the heap and stores the pointer to them.
///
/// # Safety
///
/// `place` is writable for a wide pointer.
#[cold]
unsafe fn store_pointer(both: Box<[i64]>, place: *mut i64) -> [*mut i64; 2] {
    let rank = both.len() / 2;
    let both = Box::into_raw(both);
    // SAFETY: writable by the caller's contract, and an `i64` is aligned for a pointer (asserted below).
    unsafe { place.cast::<*mut [i64]>().write(both) };
    let shape = both.cast::<i64>();
    // SAFETY: the allocation holds `2 * rank` values.
    [shape, unsafe { shape.add(rank) }]
}

/// Frees shape and strides that [`ShapeStrides::store`] left on the heap.
///
/// # Safety
///
/// `place` holds the pointer that `store` wrote, and neither it nor the values are used afterwards.
#[cold]
pub(super) unsafe fn free_heap(place: *mut i64) {
    // SAFETY: the caller vouches for the pointer.
    let both = unsafe { place.cast::<*mut [i64]>().read() };
    // SAFETY: it is that of a box, which is not used afterwards.
    drop(unsafe { Box::from_raw(both) });
}

/// For how many axes a block has space, and whether that holds a pointer to the heap instead. It fits into the bits of the
/// block's address that alignment leaves free.
#[derive(Clone, Copy)]
pub(crate) struct Capacity(usize);

impl Capacity {
    /// The space holds a pointer to shape and strides on the heap, which takes as much as one axis.
    const ON_HEAP: usize = 8;
    /// The bits that a value takes.
    pub(super) const BITS: usize = 15;

    /// Enough for whatever is kept inline: for a block that is allocated before the tensor is described.
    pub(crate) const ANY: Self = Self(INLINE);

    /// For a tensor of so many axes.
    #[inline(always)]
    pub(crate) const fn of_rank(rank: usize) -> Self {
        Self(match rank {
            1..=INLINE => rank,
            _ => 1,
        })
    }

    /// How many axes fit.
    #[inline(always)]
    pub(super) const fn axes(self) -> usize {
        self.0 & !Self::ON_HEAP
    }

    pub(super) const fn is_on_heap(self) -> bool {
        self.0 & Self::ON_HEAP != 0
    }

    /// The same space without a pointer to the heap.
    pub(super) const fn without_heap(self) -> Self {
        Self(self.axes())
    }

    #[inline(always)]
    pub(super) const fn bits(self) -> usize {
        self.0
    }

    #[inline(always)]
    pub(super) const fn from_bits(bits: usize) -> Self {
        Self(bits & Self::BITS)
    }
}

const _: () = {
    assert!(INLINE < Capacity::ON_HEAP);
    // The pointer to the heap takes the space of one axis.
    assert!(size_of::<*mut [i64]>() <= 2 * size_of::<i64>());
    assert!(align_of::<*mut [i64]>() <= align_of::<i64>());
};
