//! What goes into a block beside the owner: from a description, or for memory that is new.

use crate::abi;
use crate::describe::descriptor::Descriptor;
use crate::describe::usual::Usual;
use crate::device::Device;
use crate::dtype::DataType;
use crate::export::lists::Lists;
use crate::loan::access::Access;
use crate::memory::aligned::AlignedBytes;
use crate::request::LegacyPolicy;
use crate::request::plan::Plan;

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
