//! Makes host copies for a consumer, and tensors of zeros. `memory/gather.rs` moves the items of a copy, unless items share bytes.
#![expect(unsafe_code, reason = "copies between raw addresses")]

use crate::export::block::UnfinishedExport;
use crate::export::{dims_storage::Capacity, recognize::Block};
use crate::layout::shape_strides::ShapeStrides;
use crate::layout::{Dims, extent::packed_bytes};
use crate::memory::{aligned::AlignedBytes, atomic};
use crate::request::{Plan, plan::plan_without_request};
use crate::{DataType, Descriptor, Device, Error, LegacyPolicy, Managed, TensorRef};
use crate::{abi::DLTensor, loan::access::Access, tensor::foreign};

impl Managed {
    /// Allocates a tensor of zeros: row-major, 256-byte aligned, and writable by every consumer that shares it.
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
    /// A negative extent, a size beyond the address space, [`Error::UnknownDataType`], [`Error::TooManyAxes`], or a failed
    /// allocation.
    pub fn zeroed(shape: &[i64], dtype: DataType) -> Result<Self, Error> {
        alloc_zeroed(shape, dtype)
    }
}

/// The memory of a copy that was made for one consumer. Only [`export_copied_bytes`] creates it.
struct CopiedBytes(#[expect(dead_code, reason = "owns the bytes")] AlignedBytes);

/// Whether a tensor is a copy that this crate made for one consumer, and that was not [shared](Managed::shared) since. The
/// tensor is then the only user of its memory.
///
/// An import cannot prove more: [`is_copied`](TensorRef::is_copied) by itself is only the producer's claim. A copy in the
/// struct from before DLPack 1.0, which has no flags, is not recognised.
///
/// ```
/// use dlpack_core::binding::is_own_copy;
/// use dlpack_core::{DLPack, ExportRequest, Managed};
///
/// let request = ExportRequest { copy: Some(true), ..ExportRequest::versioned() };
/// let pointer = vec![1_u8, 2].into_dlpack_with(&request)?.into_raw();
/// // SAFETY: `pointer` comes from `into_raw`, and is used only here.
/// let imported = unsafe { Managed::from_raw(pointer) }?;
/// assert!(is_own_copy(&imported));
/// assert!(!is_own_copy(&imported.shared()));
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[must_use]
pub fn is_own_copy(tensor: &Managed) -> bool {
    tensor.access() == Access::Exclusive && is_copy_by_this_crate(tensor)
}

/// Whether a tensor is a copy that this crate made for one consumer, even if it has been shared since; see [`is_own_copy`].
#[inline(never)]
pub(super) fn is_copy_by_this_crate(tensor: &Managed) -> bool {
    let owner = Block::of(tensor).and_then(|block| block.owner::<CopiedBytes>());
    owner.is_some() && tensor.view().is_copied()
}

/// Copies a tensor that the host can read into new memory: row-major, 256-byte aligned, used by the result alone. Items that share
/// bytes are copied only if they are contiguous.
///
/// # Safety
///
/// The CPU can read the memory of the tensor.
// CPY-06, CPY-10, CPY-14
#[inline(always)]
pub(crate) unsafe fn copy_on_host(
    tensor: &TensorRef<'_>,
    legacy: LegacyPolicy,
    plan: &Plan,
) -> Result<Managed, Error> {
    let shape = tensor.shape;
    let bytes = packed_bytes(shape, tensor.dtype).ok_or_else(|| Error::too_large(shape))?;
    let memory = AlignedBytes::for_copy_of(tensor.data, bytes);
    let mut memory = memory.map_err(|bytes| Error::OutOfMemory { bytes })?;
    if bytes != 0 {
        let data = memory.as_mut_ptr();
        match tensor.dtype.itemsize() {
            Some(itemsize) => {
                // SAFETY: the tensor was checked: every item lies in memory that is borrowed for a lifetime that includes this
                // call, and the CPU can read it by this function's contract. `memory` is new and has space for every item.
                unsafe { tensor.copy_items(itemsize, data) };
            }
            None if tensor.is_contiguous() => {
                // SAFETY: items that share bytes are contiguous here, so they occupy whole bytes, `bytes` of them. They lie in
                // memory that is borrowed for this call, and `data` is new memory of that size. `load_bytes` allows other threads
                // to write the source.
                unsafe { atomic::load_bytes(tensor.data, data, bytes, tensor.data.addr()) };
            }
            None => {
                return Err(Error::packed_strides(tensor.dtype, shape, tensor.strides));
            }
        }
    }
    export_copied_bytes(memory, tensor, legacy, plan)
}

/// Exports the contiguous bytes of a copy as a row-major tensor with the shape and data type of the original.
#[inline(always)]
pub(crate) fn export_copied_bytes(
    mut memory: AlignedBytes,
    tensor: &TensorRef<'_>,
    legacy: LegacyPolicy,
    plan: &Plan,
) -> Result<Managed, Error> {
    let lists = ShapeStrides::row_major(tensor.shape)?;
    let mut copy = Descriptor {
        legacy,
        ..Descriptor::for_host_memory(memory.data_ptr(), lists, tensor.dtype, Access::Exclusive)
    };
    Ok(UnfinishedExport::new(CopiedBytes(memory), Capacity::ANY)?.into_tensor(&mut copy, plan))
}

/// Allocates zeros with the shape and data type of another tensor: the allocator of the DLPack exchange API table.
///
/// # Errors
///
/// Those of [`Managed::zeroed`], [`Error::CannotAllocate`] if the prototype is on another device, and an error if it has no
/// shape.
///
/// # Safety
///
/// The shape of the prototype has `ndim` entries. Its other pointers are not read.
pub unsafe fn zeroed_like(prototype: &DLTensor) -> Result<Managed, Error> {
    let device = Device::from(prototype.device);
    if device != Device::CPU {
        return Err(Error::CannotAllocate { device });
    }
    // SAFETY: by this function's contract the shape has `ndim` entries.
    let shape = unsafe { foreign::read_shape(prototype) }?;
    alloc_zeroed(shape, DataType::from_abi(prototype.dtype, false))
}

/// Allocates a tensor of zeros that every consumer may write.
fn alloc_zeroed(shape: &[i64], dtype: DataType) -> Result<Managed, Error> {
    if !dtype.is_known() {
        return Err(Error::UnknownDataType { found: dtype });
    }
    let extents = Dims::extents(shape)?;
    extents.check_rank()?;
    let bytes = packed_bytes(&extents, dtype).ok_or_else(|| Error::too_large(&extents))?;
    let mut memory = AlignedBytes::zeroed(bytes).map_err(|bytes| Error::OutOfMemory { bytes })?;
    let lists = ShapeStrides::row_major(&extents)?;
    let mut zeros = Descriptor::for_host_memory(memory.data_ptr(), lists, dtype, Access::Shared);
    let plan = plan_without_request(&zeros.subject());
    Ok(UnfinishedExport::new(memory, Capacity::ANY)?.into_tensor(&mut zeros, &plan))
}
