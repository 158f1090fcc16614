//! What goes into a block beside the owner: from a description, or for memory that is new; and the lists in it.
#![expect(
    unsafe_code,
    reason = "reads values in a way that no safe function has"
)]

use alloc::boxed::Box;

use crate::layout::{Dims, dims::INLINE, extent};
use crate::{
    DataType, Descriptor, Device, LegacyPolicy, abi, describe::usual::Usual, request::Plan,
};
use crate::{loan::access::Access, memory::aligned::AlignedBytes};

/// What goes into the block beside the owner.
pub(crate) struct Contents {
    pub(super) data: *mut u8,
    pub(super) byte_offset: u64,
    pub(super) ndim: usize,
    pub(super) lists: Lists,
    pub(super) dtype: abi::DLDataType,
    pub(super) device: abi::DLDevice,
    pub(super) legacy: LegacyPolicy,
    pub(super) access: Access,
}

impl Contents {
    /// The tensor as it is described.
    #[inline]
    pub(super) fn of(descriptor: &Descriptor<'_>, plan: &Plan) -> Self {
        Self {
            data: descriptor.data,
            byte_offset: descriptor.byte_offset,
            ndim: descriptor.shape.len(),
            lists: Lists::new(&descriptor.shape, &descriptor.strides),
            dtype: descriptor.dtype.into(),
            device: plan.device.into(),
            legacy: descriptor.legacy,
            access: descriptor.access,
        }
    }

    /// The usual tensor, for a struct that nobody asks for its policies.
    #[inline(always)]
    pub(super) fn of_usual(usual: &Usual<'_>) -> Self {
        Self {
            data: usual.data,
            byte_offset: 0,
            ndim: usual.rank,
            lists: Lists::few(usual.shape, usual.strides),
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
        shape: &[i64],
        dtype: DataType,
        device: Device,
    ) -> Self {
        Self {
            data: if memory.is_empty() {
                core::ptr::null_mut()
            } else {
                memory.as_mut_ptr()
            },
            byte_offset: 0,
            ndim: shape.len(),
            lists: Lists::row_major(shape),
            dtype: dtype.into(),
            device: device.into(),
            legacy: LegacyPolicy::Copy,
            access: Access::Exclusive,
        }
    }
}

/// The extents and the strides of an export, at the addresses that its consumer gets.
pub(crate) struct Lists {
    shape: [i64; INLINE],
    strides: [i64; INLINE],
    /// Those of more axes, first the shape, then the strides; else empty.
    heap: Box<[i64]>,
}

impl Lists {
    #[inline]
    pub(crate) fn new(shape: &Dims, strides: &Dims) -> Self {
        let ((few, rest), (few_strides, _)) = (shape.parts(), strides.parts());
        Self {
            shape: one_by_one(few),
            strides: one_by_one(few_strides),
            heap: if rest.is_empty() {
                Box::default()
            } else {
                long(shape, strides)
            },
        }
    }

    /// Those of few axes.
    #[inline(always)]
    pub(crate) fn few(shape: [i64; INLINE], strides: [i64; INLINE]) -> Self {
        Self {
            shape,
            strides,
            heap: Box::default(),
        }
    }

    /// Those of items that lie one after another, the last axis fastest.
    #[inline]
    pub(crate) fn row_major(shape: &[i64]) -> Self {
        let mut lists = Self::few([0; INLINE], [0; INLINE]);
        let rank = shape.len();
        let (extents, strides) = if rank <= INLINE {
            (&mut lists.shape[..rank], &mut lists.strides[..rank])
        } else {
            lists.heap = long(shape, shape);
            lists.heap.split_at_mut(rank)
        };
        extents.copy_from_slice(shape);
        extent::fill_row_major(strides, shape, 1);
        lists
    }

    /// Where they are.
    #[inline]
    pub(crate) fn places(&mut self) -> [*mut i64; 2] {
        if self.heap.is_empty() {
            [self.shape.as_mut_ptr(), self.strides.as_mut_ptr()]
        } else {
            let (shape, strides) = self.heap.split_at_mut(self.heap.len() / 2);
            [shape.as_mut_ptr(), strides.as_mut_ptr()]
        }
    }
}

/// The same values, read one at a time. They were just written like that, and the wide loads that a plain
/// copy becomes would have to wait until all writes have reached the cache: half of what an export costs.
#[inline]
fn one_by_one(values: &[i64; INLINE]) -> [i64; INLINE] {
    // SAFETY: a reference is valid to read from.
    core::array::from_fn(|axis| unsafe { core::ptr::from_ref(&values[axis]).read_volatile() })
}

#[cold]
fn long(shape: &[i64], strides: &[i64]) -> Box<[i64]> {
    [shape, strides].concat().into_boxed_slice()
}
