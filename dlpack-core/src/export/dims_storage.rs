//! Where an export block stores shape and strides: after the owner, or on the heap with a pointer after the owner.
#![expect(unsafe_code, reason = "writes behind the end of a struct")]

use alloc::boxed::Box;
use core::{mem::MaybeUninit, slice};

use crate::layout::{dims::INLINE, shape_strides::ShapeStrides};

impl ShapeStrides {
    /// Moves shape and strides into a block. Returns the pointers to both for the consumer, which are null if there are no axes.
    ///
    /// # Safety
    ///
    /// `place` is writable for two `i64` for each axis of `capacity`, which has at least one axis. It does not hold a pointer
    /// to a heap allocation that must still be freed.
    // LAY-02, LAY-03
    #[inline(always)]
    pub(super) unsafe fn store_in_block(
        &mut self,
        place: *mut i64,
        capacity: &mut Capacity,
    ) -> [*mut i64; 2] {
        if let Some(both) = self.take_heap() {
            capacity.0 |= Capacity::ON_HEAP;
            // SAFETY: `place` has space for one axis by this function's contract, and a wide pointer takes as much (asserted
            // below).
            return unsafe { store_pointer(both, place) };
        }
        let rank = self.rank();
        if rank == 0 {
            return [core::ptr::null_mut(); 2];
        }
        assert!(
            rank <= capacity.max_axes(),
            "the block was made for these axes"
        );
        let place = place.cast::<MaybeUninit<i64>>();
        // SAFETY: `place` is writable for `capacity.max_axes()` axes, and `rank` is at most that; `MaybeUninit` permits
        // uninitialised values.
        let both = unsafe { slice::from_raw_parts_mut(place, 2 * rank) };
        let (shape, strides) = both.split_at_mut(rank);
        let [extents, steps] = self.inline_arrays();
        // One branch for each axis, which the CPU predicts well. A copy of `rank` values would be a call to `memcpy`.
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

/// Leaks shape and strides on the heap and stores the pointer to them in `place`.
///
/// # Safety
///
/// `place` is writable for a wide pointer.
#[cold]
unsafe fn store_pointer(both: Box<[i64]>, place: *mut i64) -> [*mut i64; 2] {
    let rank = both.len() / 2;
    let both = Box::into_raw(both);
    // SAFETY: `place` is writable by this function's contract, and the alignment of an `i64` suffices for a pointer (asserted
    // below).
    unsafe { place.cast::<*mut [i64]>().write(both) };
    let shape = both.cast::<i64>();
    // SAFETY: the allocation holds `2 * rank` values.
    [shape, unsafe { shape.add(rank) }]
}

/// Frees shape and strides that [`ShapeStrides::store_in_block`] put on the heap.
///
/// # Safety
///
/// `place` holds the pointer that `store_in_block` wrote. Neither the pointer nor the values are used afterwards.
#[cold]
pub(super) unsafe fn free_heap(place: *mut i64) {
    // SAFETY: by this function's contract `place` holds the pointer that `store_in_block` wrote.
    let both = unsafe { place.cast::<*mut [i64]>().read() };
    // SAFETY: `store_pointer` got the pointer from `Box::into_raw`, and it is not used afterwards.
    drop(unsafe { Box::from_raw(both) });
}

/// The number of axes for which a block has space, and whether that space holds a pointer to the heap instead. It fits into the
/// low bits that alignment leaves free in the block's address.
#[derive(Clone, Copy)]
pub(crate) struct Capacity(usize);

impl Capacity {
    /// The flag for a pointer to shape and strides on the heap. The pointer takes the space of one axis.
    const ON_HEAP: usize = 8;
    /// The mask of all bits that a value may use.
    pub(super) const BITS: usize = 15;

    /// Space for every rank that is stored inline: for a block that is allocated before the tensor is described.
    pub(crate) const ANY: Self = Self(INLINE);

    /// The capacity for a tensor of this rank.
    #[inline(always)]
    pub(crate) const fn of_rank(rank: usize) -> Self {
        Self(match rank {
            1..=INLINE => rank,
            _ => 1,
        })
    }

    /// The number of axes that fit.
    #[inline(always)]
    pub(super) const fn max_axes(self) -> usize {
        self.0 & !Self::ON_HEAP
    }

    pub(super) const fn is_on_heap(self) -> bool {
        self.0 & Self::ON_HEAP != 0
    }

    /// The capacity of the same space after its heap pointer was removed.
    pub(super) const fn without_heap(self) -> Self {
        Self(self.max_axes())
    }

    #[inline(always)]
    pub(super) const fn to_bits(self) -> usize {
        self.0
    }

    #[inline(always)]
    pub(super) const fn from_bits(bits: usize) -> Self {
        Self(bits & Self::BITS)
    }
}

const _: () = {
    assert!(INLINE < Capacity::ON_HEAP);
    // The heap pointer takes the space of one axis.
    assert!(size_of::<*mut [i64]>() <= 2 * size_of::<i64>());
    assert!(align_of::<*mut [i64]>() <= align_of::<i64>());
};
