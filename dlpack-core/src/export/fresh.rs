//! Tensors over memory that is made for them: copies, and zeros.
#![expect(unsafe_code, reason = "copies between raw addresses")]

use crate::export::block::Unfinished;
use crate::export::contents::{Contents, NewLists, Room};
use crate::layout::{Dims, extent::packed_bytes};
use crate::memory::{aligned::AlignedBytes, atomic};
use crate::request::{Plan, Subject, plan::plan_unasked};
use crate::{DataType, Device, Error, LegacyPolicy, Managed, TensorRef};
use crate::{abi::DLTensor, loan::access::Access, tensor::foreign};

impl Managed {
    /// New memory of zeros in row-major order, 256-byte aligned, that all who get it may write.
    ///
    /// ```
    /// use dlpack_core::{DataType, Managed};
    ///
    /// let managed = Managed::zeroed(&[2, 3], DataType::F32)?;
    /// assert_eq!(managed.view().to_vec::<f32>()?, [0.0; 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A negative extent, more bytes than memory has, or no memory.
    pub fn zeroed(shape: &[i64], dtype: DataType) -> Result<Self, Error> {
        zeroed(shape, dtype)
    }
}

/// A copy that nobody else holds, in row-major order, 256-byte aligned.
// CPY-06, CPY-14
#[inline(always)]
pub(crate) fn copy_on_host(
    tensor: &TensorRef<'_>,
    legacy: LegacyPolicy,
    plan: &Plan,
) -> Result<Managed, Error> {
    let shape = tensor.shape;
    let bytes = packed_bytes(shape, tensor.dtype).ok_or_else(|| Error::too_large(shape))?;
    let mut memory = AlignedBytes::new(bytes).map_err(|bytes| Error::OutOfMemory { bytes })?;
    if bytes != 0 {
        let data = memory.as_mut_ptr();
        match tensor.dtype.itemsize() {
            Some(itemsize) => {
                // SAFETY: the tensor was checked: every item lies in memory that is lent for its lifetime, which
                // includes this call, and that the processor can read (`plan`). `memory` has room for every
                // item, and is new.
                unsafe { tensor.copy_items(itemsize, data) };
            }
            None if tensor.is_contiguous() => {
                // SAFETY: items that share bytes and follow one another from the start of a byte
                // are those bytes, `bytes` of them; both sides as above, whoever may be writing the first.
                unsafe { atomic::load(tensor.data, data, bytes, tensor.data.addr()) };
            }
            None => return Err(tensor.not_contiguous()),
        }
    }
    over_copy(memory, tensor, legacy, plan)
}

/// The tensor over a copy of its bytes, one item after another.
#[inline(always)]
pub(crate) fn over_copy(
    mut memory: AlignedBytes,
    tensor: &TensorRef<'_>,
    legacy: LegacyPolicy,
    plan: &Plan,
) -> Result<Managed, Error> {
    let (mut lists, rank) = (NewLists::row_major(tensor.shape)?, tensor.shape.len());
    let contents = Contents {
        legacy,
        ..Contents::over(&mut memory, rank, tensor.dtype, plan.device, lists.lend())
    };
    Ok(Unfinished::new(memory, Room::ANY)?.finish(contents, plan))
}

/// As [`Managed::zeroed`], of the shape and the type of another tensor: what the allocator of the exchange table gives.
///
/// # Errors
///
/// As [`Managed::zeroed`], and where the other tensor names another device or no shape.
///
/// # Safety
///
/// The shape of the prototype has `ndim` entries; nothing else of its pointers is read.
pub unsafe fn zeroed_like(prototype: &DLTensor) -> Result<Managed, Error> {
    let requested = Device::from(prototype.device);
    let data = Device::CPU;
    if requested != data {
        return Err(Error::UnreachableDevice { data, requested });
    }
    let shape = foreign::shape_of(prototype)?;
    zeroed(shape, DataType::from_abi(prototype.dtype, false))
}

/// New memory of zeros that all who get it may write.
fn zeroed(shape: &[i64], dtype: DataType) -> Result<Managed, Error> {
    if !dtype.is_known() {
        return Err(Error::UnknownDataType { found: dtype });
    }
    let extents = Dims::extents(shape)?;
    extents.check_rank()?;
    let bytes = packed_bytes(&extents, dtype).ok_or_else(|| Error::too_large(&extents))?;
    let mut memory = AlignedBytes::zeroed(bytes).map_err(|bytes| Error::OutOfMemory { bytes })?;
    let plan = plan_unasked(&Subject {
        device: Device::CPU,
        dtype,
        read_only: false,
        copied: false,
        legacy: LegacyPolicy::Copy,
    });
    let (mut lists, rank) = (NewLists::row_major(&extents)?, extents.len());
    let contents = Contents {
        access: Access::Shared,
        ..Contents::over(&mut memory, rank, dtype, plan.device, lists.lend())
    };
    Ok(Unfinished::new(memory, Room::ANY)?.finish(contents, &plan))
}
