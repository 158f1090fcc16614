//! The export block: the C struct, the owner, and shape and strides in one allocation, and the deleter that frees it.
//!
//! ```text
//! manager_ctx ─▶ [ C struct, 80 bytes | table | owner | shape | strides ]
//!        │                               └ `BlockVtable`: what depends on the type of the owner
//!        └ low bits hold the `Capacity`: how many axes fit, and whether shape and strides are on the heap instead
//! ```
//!
//! All exports have the same deleter, which identifies them.
#![expect(unsafe_code, reason = "hands memory to C, and takes it back")]

use alloc::alloc::{alloc, dealloc};
use core::ptr::{NonNull, addr_of_mut};
use core::{alloc::Layout, any::TypeId, ffi::c_void, marker::PhantomData, mem::offset_of};

use crate::describe::descriptor::Descriptor;
use crate::export::dims_storage::{Capacity, free_heap};
use crate::layout::shape_strides::ShapeStrides;
use crate::stream::{Queue, owner::StreamOwner};
use crate::tensor::c_struct::ManagedStruct;
use crate::tensor::managed_facts::BlockVtable;
use crate::{Error, Managed, Version, abi, panics::contain_panic, request::Plan, version::Abi};

/// The C struct of either DLPack version. The deleter inside it tells which one.
#[repr(C)]
union Header {
    versioned: abi::DLManagedTensorVersioned,
    legacy: abi::DLManagedTensor,
}

/// One export: the struct for the consumer, the owner of the memory, then shape and strides. The number of axes is not part of
/// the type, so `dims` only marks where they begin.
#[repr(C, align(16))]
pub(crate) struct ExportBlock<O> {
    header: Header,
    vtable: &'static BlockVtable,
    owner: O,
    dims: [i64; 0],
}

/// A block and its capacity. C carries both as `manager_ctx`, with the capacity in the low bits of the address.
struct ManagerContext<O> {
    block: *mut ExportBlock<O>,
    capacity: Capacity,
}

impl<O> Clone for ManagerContext<O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for ManagerContext<O> {}

impl<O> ManagerContext<O> {
    const DIMS: usize = offset_of!(ExportBlock<O>, dims);

    #[inline(always)]
    fn from_raw(context: *mut c_void) -> Self {
        Self {
            block: context.map_addr(|address| address & !Capacity::BITS).cast(),
            capacity: Capacity::from_bits(context.addr()),
        }
    }

    #[inline(always)]
    fn to_raw(self) -> *mut c_void {
        let block = self.block.cast::<c_void>();
        block.map_addr(|address| address | self.capacity.to_bits())
    }

    #[inline(always)]
    fn block_layout(self) -> Layout {
        Self::layout_for(self.capacity)
    }

    #[inline(always)]
    fn layout_for(capacity: Capacity) -> Layout {
        let dims = 2 * size_of::<i64>() * capacity.max_axes();
        let align = align_of::<ExportBlock<O>>();
        // SAFETY: the alignment is that of a type, and the size exceeds a type's size by at most a few dozen bytes.
        unsafe { Layout::from_size_align_unchecked(Self::DIMS + dims, align) }
    }

    /// The address of shape and strides, or of the pointer to them if they are on the heap.
    ///
    /// # Safety
    ///
    /// The block is allocated and not freed.
    #[inline(always)]
    unsafe fn dims_address(self) -> *mut i64 {
        // SAFETY: the offset lies inside the block: `layout_for` adds the dims after `DIMS` bytes.
        unsafe { self.block.byte_add(Self::DIMS) }.cast()
    }

    /// Drops the owner in place and frees the block, even if the drop panics.
    ///
    /// # Safety
    ///
    /// `context` belongs to a block with an initialised owner, and no code uses the block afterwards.
    #[inline(always)]
    unsafe fn drop_and_free(context: *mut c_void) {
        let _free = FreeBlockOnDrop::<O>(context, PhantomData);
        // SAFETY: by this function's contract the block is allocated, so the address of its field is inside it.
        let owner = unsafe { addr_of_mut!((*Self::from_raw(context).block).owner) };
        // SAFETY: `UnfinishedExport::try_new` initialised the owner, and it is dropped only here.
        unsafe { owner.drop_in_place() };
    }
}

/// Frees a block, and shape and strides on the heap, without dropping the owner. The capacity is read last: a copy kept across
/// the drop of the owner would cost a register.
struct FreeBlockOnDrop<O>(*mut c_void, PhantomData<O>);

impl<O> Drop for FreeBlockOnDrop<O> {
    #[inline(always)]
    fn drop(&mut self) {
        let context = ManagerContext::<O>::from_raw(self.0);
        if context.capacity.is_on_heap() {
            // SAFETY: `FreeBlockOnDrop` is created only for a block that is still allocated.
            let place = unsafe { context.dims_address() };
            // SAFETY: `is_on_heap` says that a heap pointer is stored there, and the block that stores it is freed below.
            unsafe { free_heap(place) };
        }
        // SAFETY: the block was allocated with this layout, and its owner was dropped or moved out before.
        unsafe { dealloc(context.block.cast(), context.block_layout()) };
    }
}

/// Frees the block that `manager_ctx` points to and returns its owner.
///
/// # Safety
///
/// `context` belongs to a block with an owner of type `O`, and no code uses the block afterwards.
#[inline]
pub(super) unsafe fn take_owner<O>(context: *mut c_void) -> O {
    let _free = FreeBlockOnDrop::<O>(context, PhantomData);
    // SAFETY: by this function's contract the block is allocated, so the address of its field is inside it.
    let owner = unsafe { addr_of_mut!((*ManagerContext::<O>::from_raw(context).block).owner) };
    // SAFETY: `UnfinishedExport::try_new` initialised the owner; `_free` frees the block without dropping it again.
    unsafe { owner.read() }
}

/// A block with its owner but without a tensor yet. Dropping it drops the owner and frees the block.
pub(crate) struct UnfinishedExport<O>(ManagerContext<O>);

// SAFETY: this value is the only handle to the block, and the owner in it is `Send`.
unsafe impl<O: Send> Send for UnfinishedExport<O> {}

impl<O: Send + 'static> UnfinishedExport<O> {
    /// Allocates a block and moves the owner to its final address. If the allocation fails, the owner is dropped.
    #[inline]
    pub(crate) fn new(owner: O, capacity: Capacity) -> Result<Self, Error> {
        let bytes = ManagerContext::<O>::layout_for(capacity).size();
        match Self::try_new(owner, capacity) {
            Some(block) => Ok(block),
            // By `ok_or`, each export would build the error.
            None => Err(Error::OutOfMemory { bytes }),
        }
    }

    /// Does as [`new`](Self::new) does, and returns `None` if the allocation fails.
    #[inline(always)]
    pub(crate) fn try_new(owner: O, capacity: Capacity) -> Option<Self> {
        // SAFETY: the layout's size is not 0, since a block begins with a header.
        let block =
            unsafe { alloc(ManagerContext::<O>::layout_for(capacity)) }.cast::<ExportBlock<O>>();
        if block.is_null() {
            drop_out_of_line(owner);
            return None;
        }
        // SAFETY: the block was just allocated with space for the owner.
        let place = unsafe { addr_of_mut!((*block).owner) };
        // SAFETY: `place` is aligned by the block's layout, and no other code has a pointer to the new block.
        unsafe { place.write(owner) };
        Some(Self(ManagerContext { block, capacity }))
    }

    /// Drops the block before the error is returned: if the drop panicked while the error was being returned, the error would
    /// leak.
    #[cold]
    #[inline(never)]
    pub(crate) fn drop_and_return(self, error: Error) -> Error {
        drop(self);
        error
    }

    pub(crate) fn owner(&self) -> &O {
        // SAFETY: `try_new` initialised the owner.
        unsafe { &(*self.0.block).owner }
    }

    pub(crate) fn owner_mut(&mut self) -> &mut O {
        // SAFETY: `try_new` initialised the owner, and `&mut self` makes the access exclusive.
        unsafe { &mut (*self.0.block).owner }
    }

    /// The owner, with a lifetime that the caller chooses. Its address stays the same when the block becomes a tensor.
    ///
    /// # Safety
    ///
    /// The result, and anything borrowed from it, is not used after the block, or the tensor made from it, is dropped or given
    /// to other code, nor while the result of another method borrows the owner.
    #[inline]
    pub(crate) unsafe fn owner_in_place<'a>(&mut self) -> &'a mut O {
        // SAFETY: `try_new` initialised the owner. By this function's contract the reference is not used after the owner is
        // gone, nor beside another one.
        unsafe { &mut (*self.0.block).owner }
    }

    /// Writes the tensor's fields into the block and returns the tensor. From now on its deleter owns the block.
    #[inline(always)]
    pub(crate) fn into_tensor(self, tensor: &mut Descriptor<'_>, plan: &Plan) -> Managed {
        self.into_tensor_with(Self::VTABLE, tensor, plan)
    }

    const VTABLE: &'static BlockVtable = &Self::build_vtable(|_| None);

    const fn build_vtable(stream: unsafe fn(*mut c_void) -> Option<Queue>) -> BlockVtable {
        BlockVtable {
            dims: ManagerContext::<O>::DIMS,
            release: release_block::<O>,
            owner_type: TypeId::of::<O>,
            stream,
        }
    }

    #[inline(always)]
    fn into_tensor_with(
        self,
        vtable: &'static BlockVtable,
        tensor: &mut Descriptor<'_>,
        plan: &Plan,
    ) -> Managed {
        let (legacy, access) = (tensor.legacy, tensor.access);
        let header = self.into_versioned_with(vtable, tensor, plan);
        let tensor = match plan.abi {
            Abi::Versioned => ManagedStruct::Versioned(header),
            // SAFETY: `into_versioned_with` returned the header of this block, and no other code has it yet.
            Abi::Legacy => ManagedStruct::Legacy(unsafe { convert_to_legacy(header) }),
        };
        Managed::from_export(tensor, vtable, legacy, access)
    }

    /// Writes the struct of DLPack 1.0 and later into the block and returns a pointer to it, without the [`Managed`] that
    /// [`into_tensor`](Self::into_tensor) builds.
    #[inline(always)]
    pub(crate) fn into_versioned(
        self,
        tensor: &mut Descriptor<'_>,
        plan: &Plan,
    ) -> NonNull<abi::DLManagedTensorVersioned> {
        self.into_versioned_with(Self::VTABLE, tensor, plan)
    }

    #[inline(always)]
    fn into_versioned_with(
        self,
        vtable: &'static BlockVtable,
        tensor: &mut Descriptor<'_>,
        plan: &Plan,
    ) -> NonNull<abi::DLManagedTensorVersioned> {
        let mut context = self.0;
        core::mem::forget(self);
        // SAFETY: `try_new` allocated the block, and it was not freed.
        let place = unsafe { context.dims_address() };
        // SAFETY: the block was allocated with this capacity, and nothing has been stored in it yet.
        let [shape, strides] = unsafe { tensor.dims.store_in_block(place, &mut context.capacity) };
        let managed = abi::DLManagedTensorVersioned {
            version: Version::CURRENT.into(),
            manager_ctx: context.to_raw(),
            deleter: Some(delete_versioned),
            flags: plan.flags,
            dl_tensor: abi::DLTensor {
                data: tensor.data.cast(),
                device: plan.device.into(),
                ndim: ndim_from_rank(tensor.rank()),
                dtype: tensor.dtype.into(),
                shape,
                strides,
                byte_offset: tensor.byte_offset,
            },
        };
        // SAFETY: the block is allocated, so the address of its field is inside it.
        let place = unsafe { addr_of_mut!((*context.block).vtable) };
        // SAFETY: the block is aligned for the table's address, and no other code has a pointer to it.
        unsafe { place.write(vtable) };
        // The header is at offset 0 of the block, as asserted below.
        let header = context.block.cast::<abi::DLManagedTensorVersioned>();
        // SAFETY: the block is aligned for its header, and no other code has a pointer to it.
        unsafe { header.write(managed) };
        // SAFETY: `try_new` returned an error if the block was null.
        unsafe { NonNull::new_unchecked(header) }
    }
}

/// Turns a tensor that lies in an export block into a view of itself, or into items of another data type, without a new block.
///
/// # Panics
///
/// If this crate did not export the tensor.
pub(super) fn change_in_place(
    tensor: &mut Managed,
    change: impl FnOnce(&mut Descriptor<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (_, context, dims) = tensor.block_mut();
    // The owner's type is not known here. No part of `ManagerContext` that is used below depends on it.
    let mut block = ManagerContext::<()>::from_raw(*context);
    let mut view = Descriptor::of_tensor_mut(tensor)?;
    change(&mut view)?;
    let (data, byte_offset, rank) = (view.data, view.byte_offset, view.rank());
    let dtype = view.dtype;
    let mut new = if rank <= block.capacity.max_axes() {
        view.dims
    } else {
        ShapeStrides::on_heap(view.shape(), view.strides())?
    };
    // SAFETY: `dims` comes from the block's own table, so the offset lies inside the block.
    let place = unsafe { block.block.byte_add(dims) }.cast::<i64>();
    if block.capacity.is_on_heap() {
        block.capacity = block.capacity.without_heap();
        // SAFETY: `is_on_heap` said that a heap pointer is stored there. The tensor gets a new shape and new strides below.
        unsafe { free_heap(place) };
    }
    let (head, context, _) = tensor.block_mut();
    // SAFETY: `place` is this block's storage for `capacity.max_axes()` axes, which only its `Managed` reaches. A heap pointer
    // that was stored there has been freed.
    let places = unsafe { new.store_in_block(place, &mut block.capacity) };
    [head.shape, head.strides] = places;
    *context = block.to_raw();
    (head.ndim, head.dtype) = (ndim_from_rank(rank), dtype.into());
    (head.data, head.byte_offset) = (data.cast(), byte_offset);
    Ok(())
}

/// The owner in a block.
///
/// # Safety
///
/// `context` belongs to a block with an owner of type `O`, which lives for `'a` and is not borrowed exclusively meanwhile.
pub(super) unsafe fn owner_at<'a, O>(context: *mut c_void) -> &'a O {
    // SAFETY: by this function's contract the block lives, and its owner is an `O` that no other code changes.
    unsafe { &(*ManagerContext::<O>::from_raw(context).block).owner }
}

#[inline(always)]
fn ndim_from_rank(rank: usize) -> i32 {
    i32::try_from(rank).expect("at most 64 axes")
}

/// Drops an owner or a block out of line, since that is hardly ever needed: an allocation failed, or an owner has other memory.
#[cold]
#[inline(never)]
pub(super) fn drop_out_of_line<T>(_: T) {}

impl<O: Send + 'static> UnfinishedExport<StreamOwner<O>> {
    const STREAMED: &'static BlockVtable = &Self::build_vtable(stream_of_owner::<O>);

    /// Like [`into_tensor`](UnfinishedExport::into_tensor), for an owner that is bound to the stream that writes the memory.
    pub(crate) fn into_streamed_tensor(self, tensor: &mut Descriptor<'_>, plan: &Plan) -> Managed {
        self.into_tensor_with(Self::STREAMED, tensor, plan)
    }
}

/// The stream on which the owner's memory is written.
///
/// # Safety
///
/// `context` belongs to a live block with a `StreamOwner<O>` as its owner.
unsafe fn stream_of_owner<O: Send + 'static>(context: *mut c_void) -> Option<Queue> {
    let block = ManagerContext::<StreamOwner<O>>::from_raw(context).block;
    // SAFETY: by this function's contract the block is live and has this type.
    let owner = unsafe { &(*block).owner };
    owner.stream_state().queue()
}

impl<O> Drop for UnfinishedExport<O> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `try_new` initialised the block, and this value is the only handle to it.
        unsafe { drop_block::<O>(self.0.to_raw()) };
    }
}

/// Drops an export that does not become a tensor. Given the address in a register, it does not need the caller's variable, which
/// can then stay in a register too.
///
/// # Safety
///
/// The contract of [`ManagerContext::drop_and_free`].
#[cold]
#[inline(never)]
unsafe fn drop_block<O>(context: *mut c_void) {
    // SAFETY: same contract as this function's.
    unsafe { ManagerContext::<O>::drop_and_free(context) };
}

/// The table of a block.
///
/// # Safety
///
/// `context` belongs to a block that became a tensor and is not freed.
#[inline]
pub(super) unsafe fn vtable_of(context: *mut c_void) -> &'static BlockVtable {
    // The position of the table does not depend on the type of the owner.
    let block = ManagerContext::<()>::from_raw(context).block;
    // SAFETY: by this function's contract the block is allocated, and `into_versioned_with` wrote its table.
    unsafe { (*block).vtable }
}

/// The deleter of all versioned exports. Never inlined, so that it has one address.
#[inline(never)]
pub(super) unsafe extern "C" fn delete_versioned(tensor: *mut abi::DLManagedTensorVersioned) {
    // SAFETY: a consumer calls the deleter with the struct that it received.
    let context = unsafe { (*tensor).manager_ctx };
    // SAFETY: `into_versioned_with` set this deleter, `manager_ctx` and the table of the block together.
    let vtable = unsafe { vtable_of(context) };
    // SAFETY: the table is that of the block, and a consumer calls the deleter once.
    unsafe { (vtable.release)(context) };
}

/// The deleter of all legacy exports. Never inlined, so that it has one address.
#[inline(never)]
pub(super) unsafe extern "C" fn delete_legacy(tensor: *mut abi::DLManagedTensor) {
    // SAFETY: a consumer calls the deleter with the struct that it received.
    let context = unsafe { (*tensor).manager_ctx };
    // SAFETY: `convert_to_legacy` set this deleter in a block that has a table.
    let vtable = unsafe { vtable_of(context) };
    // SAFETY: the table is that of the block, and a consumer calls the deleter once.
    unsafe { (vtable.release)(context) };
}

/// Drops the owner and frees the block. The block is found through `manager_ctx`, since a consumer may have overwritten the
/// pointers to shape and strides. A panic of the owner's drop is caught here: unwinding into C would abort.
///
/// # Safety
///
/// `context` belongs to a block with an owner of type `O`, and no code uses the block afterwards.
// CAP-11, ABI-10
unsafe extern "C" fn release_block<O>(context: *mut c_void) {
    // SAFETY: same contract as this function's.
    contain_panic(move || unsafe { ManagerContext::<O>::drop_and_free(context) });
}

/// Replaces the header of a block by the struct from before DLPack 1.0.
///
/// # Safety
///
/// `tensor` is the header of a block, and no other code uses it.
unsafe fn convert_to_legacy(
    tensor: NonNull<abi::DLManagedTensorVersioned>,
) -> NonNull<abi::DLManagedTensor> {
    // SAFETY: by this function's contract `tensor` points to a valid header.
    let versioned = unsafe { tensor.read() };
    let legacy = abi::DLManagedTensor {
        dl_tensor: versioned.dl_tensor,
        manager_ctx: versioned.manager_ctx,
        deleter: Some(delete_legacy),
    };
    // `manager_ctx` has provenance over the whole block; `tensor` might only have it over the header.
    let header = ManagerContext::<()>::from_raw(versioned.manager_ctx)
        .block
        .cast::<abi::DLManagedTensor>();
    // SAFETY: the header is a union of both structs, so it is large enough and aligned for either.
    unsafe { header.write(legacy) };
    NonNull::new(header).expect("inside a block")
}

impl Managed {
    /// Converts an export of this crate to the legacy struct, in place. A foreign tensor is returned unchanged.
    pub(crate) fn into_legacy_in_place(self) -> Self {
        // SAFETY: the struct of an export of this crate is the header of a block, and `convert_struct` has the only tensor in it.
        self.convert_struct(|tensor| unsafe { convert_to_legacy(tensor) })
    }
}

const _: () = {
    assert!(offset_of!(ExportBlock<()>, header) == 0);
    assert!(Capacity::BITS < align_of::<ExportBlock<()>>());
};
