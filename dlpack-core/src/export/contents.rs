//! What goes into a block beside its owner: the fields of the struct, and shape and strides in as much room as they take.
#![expect(unsafe_code, reason = "writes behind the end of a struct")]

use alloc::boxed::Box;
use core::{mem::MaybeUninit, mem::take, slice};

use crate::describe::{descriptor::Descriptor, usual::Usual};
use crate::layout::{Dims, dims::INLINE, dims::MAX_RANK, extent};
use crate::loan::access::Access;
use crate::{DataType, Device, Error, LegacyPolicy, abi, error::joined};
use crate::{memory::aligned::AlignedBytes, request::Plan};

/// What goes into the block beside the owner.
pub(crate) struct Contents<'a> {
    pub(super) data: *mut u8,
    pub(super) byte_offset: u64,
    pub(super) ndim: usize,
    pub(super) lists: Lists<'a>,
    pub(super) dtype: abi::DLDataType,
    pub(super) device: abi::DLDevice,
    pub(super) legacy: LegacyPolicy,
    pub(super) access: Access,
}

impl<'a> Contents<'a> {
    /// The tensor as it is described.
    #[inline]
    pub(super) fn of(descriptor: &'a Descriptor<'_>, plan: &Plan) -> Result<Self, Error> {
        Ok(Self {
            data: descriptor.data,
            byte_offset: descriptor.byte_offset,
            ndim: descriptor.shape.len(),
            lists: Lists::new(&descriptor.shape, &descriptor.strides)?,
            dtype: descriptor.dtype.into(),
            device: plan.device.into(),
            legacy: descriptor.legacy,
            access: descriptor.access,
        })
    }

    /// How many bytes its items take.
    pub(super) fn bytes(&self) -> usize {
        let shape = match &self.lists {
            Lists::InRegisters(shape, _) | Lists::Few(shape, _) => &shape[..self.ndim],
            Lists::Long(both) => &both[..self.ndim],
        };
        let bits = usize::from(self.dtype.bits) * usize::from(self.dtype.lanes);
        let items = shape
            .iter()
            .map(|&items| usize::try_from(items).unwrap_or(0));
        items.fold(bits.div_ceil(8), usize::saturating_mul)
    }

    /// The usual tensor, for a struct that nobody asks for its policies.
    #[inline(always)]
    pub(super) fn of_usual(usual: &'a Usual<'_>) -> Self {
        Self {
            data: usual.data,
            byte_offset: 0,
            ndim: usual.rank,
            lists: Lists::InRegisters(&usual.shape, &usual.strides),
            dtype: usual.dtype.into(),
            device: usual.device.into(),
            legacy: LegacyPolicy::Copy,
            access: Access::Read,
        }
    }

    /// The tensor over new memory of the host that has room for its items, one after another.
    #[inline(always)]
    pub(super) fn over(
        memory: &mut AlignedBytes,
        rank: usize,
        dtype: DataType,
        device: Device,
        lists: Lists<'a>,
    ) -> Self {
        Self {
            data: if memory.is_empty() {
                core::ptr::null_mut()
            } else {
                memory.as_mut_ptr()
            },
            byte_offset: 0,
            ndim: rank,
            lists,
            dtype: dtype.into(),
            device: device.into(),
            legacy: LegacyPolicy::Copy,
            access: Access::Exclusive,
        }
    }
}

/// The extents and the strides of an export.
pub(crate) enum Lists<'a> {
    /// Those of few axes, which the compiler has in registers as long as nobody makes it read them from memory.
    InRegisters(&'a [i64; INLINE], &'a [i64; INLINE]),
    /// Those of few axes, in memory.
    Few(&'a [i64; INLINE], &'a [i64; INLINE]),
    /// Those of more axes, first the extents, then the strides.
    Long(Box<[i64]>),
}

impl<'a> Lists<'a> {
    #[inline]
    pub(crate) fn new(shape: &'a Dims, strides: &'a Dims) -> Result<Self, Error> {
        let ((few, rest), (few_strides, _)) = (shape.parts(), strides.parts());
        if rest.is_empty() {
            Ok(Self::Few(few, few_strides))
        } else {
            Self::boxed(shape, strides)
        }
    }

    /// Those of however many axes, in a box.
    #[cold]
    pub(super) fn boxed(shape: &[i64], strides: &[i64]) -> Result<Self, Error> {
        joined(shape, strides).map(|both| Self::Long(both.into_boxed_slice()))
    }

    /// Moves those of so many axes to where a consumer finds them: null only where there are none.
    ///
    /// # Safety
    ///
    /// `place` has room for as many axes as `room` says, at least one, and no lists on the heap that are still to be freed.
    // LAY-02, LAY-03
    #[inline(always)]
    pub(super) unsafe fn store(
        self,
        place: *mut i64,
        room: &mut Room,
        rank: usize,
    ) -> [*mut i64; 2] {
        if rank == 0 {
            return [core::ptr::null_mut(); 2];
        }
        let (few, in_registers) = match self {
            Self::InRegisters(shape, strides) => (shape.iter().zip(strides), true),
            Self::Few(shape, strides) => (shape.iter().zip(strides), false),
            Self::Long(both) => {
                room.0 |= Room::LONG;
                // SAFETY: there is room for one axis, which is as much as a pointer and a length.
                return unsafe { store_long(both, place) };
            }
        };
        assert!(rank <= room.axes(), "asked for when the block was made");
        let place = place.cast::<MaybeUninit<i64>>();
        // SAFETY: there is room for that many, by what was just checked, and nothing has to be there yet.
        let lists = unsafe { slice::from_raw_parts_mut(place, 2 * rank) };
        let (shape, strides) = lists.split_at_mut(rank);
        for (place, list) in shape.iter_mut().zip(strides.iter_mut()).zip(few) {
            // What is described lies in memory, one value after another was written there, and the wide loads that a plain
            // copy becomes would have to wait until all of that has reached the cache: half of what an export costs.
            let read = |value: &i64| if in_registers { *value } else { one(value) };
            place.0.write(read(list.0));
            place.1.write(read(list.1));
        }
        [shape.as_mut_ptr().cast(), strides.as_mut_ptr().cast()]
    }
}

/// The value, read by itself.
#[inline(always)]
fn one(value: &i64) -> i64 {
    // SAFETY: a reference is valid to read from.
    unsafe { core::ptr::from_ref(value).read_volatile() }
}

/// # Safety
///
/// There is room for a box of a list at `place`.
#[cold]
unsafe fn store_long(lists: Box<[i64]>, place: *mut i64) -> [*mut i64; 2] {
    let rank = lists.len() / 2;
    let lists = Box::into_raw(lists);
    // SAFETY: passed on to the caller; a place for numbers of 64 bits is aligned for a pointer.
    unsafe { place.cast::<*mut [i64]>().write(lists) };
    let shape = lists.cast::<i64>();
    // SAFETY: the second half of the list.
    [shape, unsafe { shape.add(rank) }]
}

/// Lists that were just computed.
pub(crate) struct NewLists {
    shape: [i64; INLINE],
    strides: [i64; INLINE],
    heap: Box<[i64]>,
}

impl NewLists {
    /// Room for those of so many axes, of which there are no more than [`MAX_RANK`]; and they themselves.
    #[inline(always)]
    fn fill(rank: usize, fill: impl FnOnce(&mut [i64], &mut [i64])) -> Result<Self, Error> {
        let mut lists = Self {
            shape: [0; INLINE],
            strides: [0; INLINE],
            heap: Box::default(),
        };
        if rank <= INLINE {
            fill(&mut lists.shape[..rank], &mut lists.strides[..rank]);
        } else {
            let room = &[0; MAX_RANK][..rank];
            lists.heap = joined(room, room)?.into_boxed_slice();
            let (shape, strides) = lists.heap.split_at_mut(rank);
            fill(shape, strides);
        }
        Ok(lists)
    }

    /// One axis after another.
    #[inline(always)]
    pub(crate) fn of(axes: impl ExactSizeIterator<Item = (i64, i64)>) -> Result<Self, Error> {
        Self::fill(axes.len(), |shape, strides| {
            for ((extent, stride), axis) in shape.iter_mut().zip(strides).zip(axes) {
                (*extent, *stride) = axis;
            }
        })
    }

    /// Those of items that lie one after another, the last axis fastest.
    #[inline]
    pub(crate) fn row_major(shape: &[i64]) -> Result<Self, Error> {
        Self::fill(shape.len(), |extents, strides| {
            extents.copy_from_slice(shape);
            extent::fill_row_major(strides, shape, 1);
        })
    }

    #[inline(always)]
    pub(crate) fn lend(&mut self) -> Lists<'_> {
        if self.heap.is_empty() {
            Lists::Few(&self.shape, &self.strides)
        } else {
            Lists::Long(take(&mut self.heap))
        }
    }
}

/// # Safety
///
/// `store_long` put lists at `place`, which nobody uses afterwards.
#[cold]
pub(super) unsafe fn free_long(place: *mut i64) {
    // SAFETY: put there.
    let lists = unsafe { place.cast::<*mut [i64]>().read() };
    // SAFETY: that of a box, and its one release.
    drop(unsafe { Box::from_raw(lists) });
}

/// For how many axes there is room in a block, and what lies there: the bits of an address that alignment leaves free.
#[derive(Clone, Copy)]
pub(crate) struct Room(usize);

impl Room {
    /// Instead of the lists a pointer to longer ones lies there, which takes as much as one axis.
    const LONG: usize = 8;
    /// The bits that it takes.
    pub(super) const BITS: usize = 15;

    /// For lists of which nothing is known yet.
    pub(crate) const ANY: Self = Self(INLINE);

    /// For those of so many axes.
    #[inline(always)]
    pub(crate) const fn of(rank: usize) -> Self {
        Self(match rank {
            1..=INLINE => rank,
            _ => 1,
        })
    }

    /// For how many there is.
    #[inline(always)]
    pub(super) const fn axes(self) -> usize {
        self.0 & !Self::LONG
    }

    pub(super) const fn is_long(self) -> bool {
        self.0 & Self::LONG != 0
    }

    /// For lists that lie in it.
    pub(super) const fn without_long(self) -> Self {
        Self(self.axes())
    }

    #[inline(always)]
    pub(super) const fn bits(self) -> usize {
        self.0
    }

    #[inline(always)]
    pub(super) const fn of_bits(bits: usize) -> Self {
        Self(bits & Self::BITS)
    }
}

const _: () = {
    assert!(INLINE < Room::LONG);
    // The pointer to longer lists lies where one axis does.
    assert!(size_of::<*mut [i64]>() <= 2 * size_of::<i64>());
    assert!(align_of::<*mut [i64]>() <= align_of::<i64>());
};
