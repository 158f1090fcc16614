//! Tensors over memory that is made for them: copies, and zeros.
#![expect(unsafe_code, reason = "copies between raw addresses")]

use core::sync::atomic::AtomicBool;

use crate::export::block::{Unfinished, exactly};
use crate::export::dims_storage::Capacity;
use crate::layout::shape_strides::ShapeStrides;
use crate::layout::{Dims, extent::packed_bytes};
use crate::memory::{aligned::AlignedBytes, atomic};
use crate::request::{Plan, Subject, plan::plan_unasked};
use crate::{DataType, Descriptor, Device, Error, LegacyPolicy, Managed, TensorRef};
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

/// The memory of a copy that was made for one consumer.
///
/// Only [`over_copy`] makes one, so the deleter of a tensor that has it as its owner proves where the memory comes from.
struct CopiedBytes(#[expect(dead_code, reason = "owns the bytes")] AlignedBytes);

/// What only the drop of a copy reads.
static MARK: AtomicBool = AtomicBool::new(false);

impl Drop for CopiedBytes {
    /// Reads the mark, so that no other function has the code of a copy's deleter, nor then its address.
    fn drop(&mut self) {
        // SAFETY: a static, which nobody writes.
        unsafe { MARK.as_ptr().read_volatile() };
    }
}

/// Whether a tensor is a copy that this crate made for one consumer, and that was not [shared](Managed::shared) since: whoever
/// owns the tensor is then the only one who has its memory.
///
/// An import can prove no more than this: [`is_copied`](TensorRef::is_copied) alone is a statement of the producer. A copy
/// in the legacy struct, which has no flags, is not recognised.
///
/// ```
/// use dlpack_core::binding::is_own_copy;
/// use dlpack_core::{DLPack, ExportRequest, Managed};
///
/// let request = ExportRequest { copy: Some(true), ..ExportRequest::versioned() };
/// let pointer = vec![1_u8, 2].into_dlpack_with(&request)?.into_raw();
/// // SAFETY: `pointer` comes from `into_raw`, and nobody else has it.
/// let imported = unsafe { Managed::from_raw(pointer) }?;
/// assert!(is_own_copy(&imported));
/// assert!(!is_own_copy(&imported.shared()));
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[must_use]
pub fn is_own_copy(tensor: &Managed) -> bool {
    tensor.access == Access::Exclusive && is_copy_of_ours(tensor)
}

/// The same, whoever else has it by now.
#[inline(never)]
pub(super) fn is_copy_of_ours(tensor: &Managed) -> bool {
    // SAFETY: no other owner contains `CopiedBytes`, and its drop does what that of no other type does.
    let is_one = unsafe { exactly::<CopiedBytes>(tensor) }.is_some();
    is_one && tensor.view().is_copied()
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
    let lists = ShapeStrides::row_major(tensor.shape)?;
    let mut copy = Descriptor {
        legacy,
        ..Descriptor::over(memory.data_ptr(), lists, tensor.dtype, Access::Exclusive)
    };
    Ok(Unfinished::new(CopiedBytes(memory), Capacity::ANY)?.finish(&mut copy, plan))
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
    let shape = foreign::read_shape(prototype)?;
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
    let lists = ShapeStrides::row_major(&extents)?;
    let mut zeros = Descriptor::over(memory.data_ptr(), lists, dtype, Access::Shared);
    Ok(Unfinished::new(memory, Capacity::ANY)?.finish(&mut zeros, &plan))
}
