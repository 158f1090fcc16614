//! The export block: the C struct, the owner, and shape and strides in one allocation, and the deleter that frees it.
//!
//! ```text
//! manager_ctx ─▶ [ C struct, 80 bytes | owner | shape | strides ]
//!        └ low bits hold the `Capacity`: how many axes fit, and whether shape and strides are on the heap instead
//! ```
#![expect(unsafe_code, reason = "hands memory to C, and takes it back")]

use alloc::alloc::{alloc, dealloc};
use core::ptr::{NonNull, addr_of_mut};
use core::{alloc::Layout, ffi::c_void, marker::PhantomData, mem::offset_of};

use crate::describe::descriptor::Descriptor;
use crate::export::dims_storage::{Capacity, free_heap};
use crate::layout::cut::Cut;
use crate::layout::shape_strides::ShapeStrides;
use crate::stream::{Queue, owner::StreamOwner};
use crate::tensor::{c_struct::Struct, managed::BlockTable, managed::Ours};
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
pub(crate) struct Block<O> {
    header: Header,
    owner: O,
    dims: [i64; 0],
}

/// A block and its capacity. C carries both as `manager_ctx`, with the capacity in the low bits of the address.
struct Context<O> {
    block: *mut Block<O>,
    capacity: Capacity,
}

impl<O> Clone for Context<O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Context<O> {}

impl<O> Context<O> {
    const DIMS: usize = offset_of!(Block<O>, dims);

    #[inline(always)]
    fn of(context: *mut c_void) -> Self {
        Self {
            block: context.map_addr(|address| address & !Capacity::BITS).cast(),
            capacity: Capacity::from_bits(context.addr()),
        }
    }

    #[inline(always)]
    fn raw(self) -> *mut c_void {
        let block = self.block.cast::<c_void>();
        block.map_addr(|address| address | self.capacity.bits())
    }

    #[inline(always)]
    fn layout(self) -> Layout {
        Self::layout_with(self.capacity)
    }

    #[inline(always)]
    fn layout_with(capacity: Capacity) -> Layout {
        let dims = 2 * size_of::<i64>() * capacity.axes();
        let align = align_of::<Block<O>>();
        // SAFETY: the alignment is that of a type, and the size exceeds a type's size by at most a few dozen bytes.
        unsafe { Layout::from_size_align_unchecked(Self::DIMS + dims, align) }
    }

    /// The address of shape and strides, or of the pointer to them if they are on the heap.
    ///
    /// # Safety
    ///
    /// The block is allocated and not freed.
    #[inline(always)]
    unsafe fn dims(self) -> *mut i64 {
        // SAFETY: the offset lies inside the block: `layout_with` adds the dims after `DIMS` bytes.
        unsafe { self.block.byte_add(Self::DIMS) }.cast()
    }

    /// Drops the owner in place and frees the block, even if the drop panics.
    ///
    /// # Safety
    ///
    /// `context` belongs to a block with an initialised owner, and no code uses the block afterwards.
    #[inline(always)]
    unsafe fn release(context: *mut c_void) {
        let _free = Free::<O>(context, PhantomData);
        // SAFETY: by this function's contract the block is allocated, so the address of its field is inside it.
        let owner = unsafe { addr_of_mut!((*Self::of(context).block).owner) };
        // SAFETY: `Unfinished::try_new` initialised the owner, and it is dropped only here.
        unsafe { owner.drop_in_place() };
    }
}

/// Frees a block, and shape and strides on the heap, without dropping the owner. The capacity is read last: a copy kept across
/// the drop of the owner would cost a register.
struct Free<O>(*mut c_void, PhantomData<O>);

impl<O> Drop for Free<O> {
    #[inline(always)]
    fn drop(&mut self) {
        let context = Context::<O>::of(self.0);
        if context.capacity.is_on_heap() {
            // SAFETY: `Free` is created only for a block that is still allocated.
            let place = unsafe { context.dims() };
            // SAFETY: `is_on_heap` says that a heap pointer is stored there, and the block that stores it is freed below.
            unsafe { free_heap(place) };
        }
        // SAFETY: the block was allocated with this layout, and its owner was dropped or moved out before.
        unsafe { dealloc(context.block.cast(), context.layout()) };
    }
}

/// Frees the block that `manager_ctx` points to and returns its owner.
///
/// # Safety
///
/// `context` belongs to a block with an owner of type `O`, and no code uses the block afterwards.
#[inline]
pub(super) unsafe fn take<O>(context: *mut c_void) -> O {
    let _free = Free::<O>(context, PhantomData);
    // SAFETY: by this function's contract the block is allocated, so the address of its field is inside it.
    let owner = unsafe { addr_of_mut!((*Context::<O>::of(context).block).owner) };
    // SAFETY: `Unfinished::try_new` initialised the owner; `_free` frees the block without dropping it again.
    unsafe { owner.read() }
}

/// A block with its owner but without a tensor yet. Dropping it drops the owner and frees the block.
pub(crate) struct Unfinished<O>(Context<O>);

// SAFETY: this value is the only handle to the block, and the owner in it is `Send`.
unsafe impl<O: Send> Send for Unfinished<O> {}

impl<O: Send + 'static> Unfinished<O> {
    /// Allocates a block and moves the owner to its final address. If the allocation fails, the owner is dropped.
    #[inline]
    pub(crate) fn new(owner: O, capacity: Capacity) -> Result<Self, Error> {
        let bytes = Context::<O>::layout_with(capacity).size();
        Self::try_new(owner, capacity).map_err(|()| Error::OutOfMemory { bytes })
    }

    #[inline(always)]
    pub(crate) fn try_new(owner: O, capacity: Capacity) -> Result<Self, ()> {
        // SAFETY: the layout's size is not 0, since a block begins with a header.
        let block = unsafe { alloc(Context::<O>::layout_with(capacity)) }.cast::<Block<O>>();
        if block.is_null() {
            drop_aside(owner);
            return Err(());
        }
        // SAFETY: the block was just allocated with space for the owner.
        let place = unsafe { addr_of_mut!((*block).owner) };
        // SAFETY: `place` is aligned by the block's layout, and no other code has a pointer to the new block.
        unsafe { place.write(owner) };
        Ok(Self(Context { block, capacity }))
    }

    /// Drops the block out of line, since callers hardly ever need to.
    #[cold]
    #[inline(never)]
    pub(crate) fn discard(self) {}

    /// Drops the block before the error is returned: if the drop panicked while the error was being returned, the error would
    /// leak.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail(self, error: Error) -> Error {
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
        // SAFETY: `try_new` initialised the owner; by this function's contract the reference is not used for too long.
        unsafe { &mut (*self.0.block).owner }
    }

    /// Writes the tensor's fields into the block and returns the tensor. From now on its deleter owns the block.
    #[inline(always)]
    pub(crate) fn finish(self, tensor: &mut Descriptor<'_>, plan: &Plan) -> Managed {
        self.finish_as(Self::PLAIN, tensor, plan)
    }

    const PLAIN: &'static BlockTable = &BlockTable {
        dims: Context::<O>::DIMS,
        to_legacy: to_legacy::<O>,
        stream: |_| None,
    };

    #[inline(always)]
    fn finish_as(
        self,
        block: &'static BlockTable,
        tensor: &mut Descriptor<'_>,
        plan: &Plan,
    ) -> Managed {
        let (legacy, access) = (tensor.legacy, tensor.access);
        let header = self.fill(tensor, plan);
        let tensor = match plan.abi {
            Abi::Versioned => Struct::Versioned(header),
            // SAFETY: `fill` returned the header of this block, with an owner of type `O`, and no other code has it yet.
            Abi::Legacy => Struct::Legacy(unsafe { to_legacy::<O>(header) }),
        };
        let ours = Ours {
            block,
            legacy,
            sole: true,
        };
        Managed::ours(tensor, ours, access)
    }

    /// Writes the struct of DLPack 1.0 and later into the block and returns a pointer to it, without the [`Managed`] that
    /// [`finish`](Self::finish) builds.
    #[inline(always)]
    pub(crate) fn fill(
        self,
        tensor: &mut Descriptor<'_>,
        plan: &Plan,
    ) -> NonNull<abi::DLManagedTensorVersioned> {
        let mut context = self.0;
        core::mem::forget(self);
        // SAFETY: `try_new` allocated the block, and it was not freed.
        let place = unsafe { context.dims() };
        // SAFETY: the block was allocated with this capacity, and nothing has been stored in it yet.
        let [shape, strides] = unsafe { tensor.dims.store(place, &mut context.capacity) };
        let managed = abi::DLManagedTensorVersioned {
            version: Version::CURRENT.into(),
            manager_ctx: context.raw(),
            deleter: Some(delete_versioned::<O>),
            flags: plan.flags,
            dl_tensor: abi::DLTensor {
                data: tensor.data.cast(),
                device: plan.device.into(),
                ndim: ndim(tensor.rank()),
                dtype: tensor.dtype.into(),
                shape,
                strides,
                byte_offset: tensor.byte_offset,
            },
        };
        // The header is at offset 0 of the block, as asserted below.
        let header = context.block.cast::<abi::DLManagedTensorVersioned>();
        // SAFETY: the block is aligned for its header, and no other code has a pointer to it.
        unsafe { header.write(managed) };
        // SAFETY: `try_new` returned an error if the block was null.
        unsafe { NonNull::new_unchecked(header) }
    }
}

/// Turns a tensor that lies in an export block into a view of itself, without a new allocation.
///
/// # Panics
///
/// If this crate did not export the tensor.
pub(super) fn narrow(
    tensor: &mut Managed,
    cut: impl FnOnce(&mut Cut) -> Result<(), Error>,
) -> Result<(), Error> {
    let (_, context, dims) = tensor.block_mut();
    // The owner's type is not known here. No part of `Context` that is used below depends on it.
    let mut block = Context::<()>::of(*context);
    let mut part = Descriptor::of_mut(tensor)?;
    part.cut(cut)?;
    let (data, byte_offset, rank) = (part.data, part.byte_offset, part.rank());
    let mut new = if rank <= block.capacity.axes() {
        part.dims
    } else {
        ShapeStrides::on_heap(part.shape(), part.strides())?
    };
    // SAFETY: `dims` comes from the block's own table, so the offset lies inside the block.
    let place = unsafe { block.block.byte_add(dims) }.cast::<i64>();
    if block.capacity.is_on_heap() {
        block.capacity = block.capacity.without_heap();
        // SAFETY: `is_on_heap` said that a heap pointer is stored there. The tensor gets a new shape and new strides below.
        unsafe { free_heap(place) };
    }
    let (head, context, _) = tensor.block_mut();
    // SAFETY: `place` is this block's storage for `capacity.axes()` axes, which only its `Managed` reaches. A heap pointer that
    // was stored there has been freed.
    let places = unsafe { new.store(place, &mut block.capacity) };
    [head.shape, head.strides] = places;
    *context = block.raw();
    head.ndim = ndim(rank);
    (head.data, head.byte_offset) = (data.cast(), byte_offset);
    Ok(())
}

/// The owner of a tensor, if the tensor lies in an export block of this crate with an owner of type `O`.
///
/// For device memory the owner is wrapped in a [`StreamOwner`], which frees it after the consumer's work. A re-export has a
/// stream binding of its own, so it may skip the wrapper, provided that the wrapper is bound to the stream that `described` is
/// written on and to no other.
///
/// # Safety
///
/// No owner of another type contains an `O`, and no other type's drop compiles to the code of `O`'s drop.
pub(super) unsafe fn owner<'a, O: Send + 'static>(
    tensor: &'a Managed,
    described: &Descriptor<'_>,
) -> Option<&'a O> {
    let Descriptor { device, stream, .. } = *described;
    // SAFETY: same contract as this function's.
    let plain = unsafe { exactly::<O>(tensor) };
    if plain.is_some() || device.device_type.api().is_none() {
        return plain;
    }
    // SAFETY: same contract as this function's: an owner that contains an `O` is a wrapper of this crate.
    let shared = || unsafe { exactly::<StreamOwner<O>>(tensor) }?.owner(device, stream);
    // SAFETY: same contract as this function's: an owner that contains an `O` is a wrapper of this crate.
    let moved = || unsafe { exactly::<StreamOwner<Unfinished<O>>>(tensor) }?.owner(device, stream);
    shared().or_else(|| moved().map(Unfinished::owner))
}

/// The owner of a tensor, if it is exactly of type `O` and not wrapped in a [`StreamOwner`].
///
/// # Safety
///
/// No owner of another type contains an `O`, and no other type's drop compiles to the code of `O`'s drop.
pub(super) unsafe fn exactly<O>(tensor: &Managed) -> Option<&O> {
    let context = tensor.released_by(delete_versioned::<O>, delete_legacy::<O>)?;
    // SAFETY: two deleters have the same address only if they have the same code. By this function's contract no other owner
    // type's deleter has this code, so the block's owner is an `O`. The block lives until the tensor is released, and no other
    // code uses its owner.
    Some(unsafe { &(*Context::<O>::of(context).block).owner })
}

#[inline(always)]
fn ndim(rank: usize) -> i32 {
    i32::try_from(rank).expect("at most 64 axes")
}

/// Drops the owner out of line, since allocation hardly ever fails.
#[cold]
#[inline(never)]
fn drop_aside<O>(_: O) {}

impl<O: Send + 'static> Unfinished<StreamOwner<O>> {
    const STREAMED: &'static BlockTable = &BlockTable {
        dims: Context::<StreamOwner<O>>::DIMS,
        to_legacy: to_legacy::<StreamOwner<O>>,
        stream: stream::<O>,
    };

    /// Like [`finish`](Unfinished::finish), for an owner that is bound to the stream that writes the memory.
    pub(crate) fn finish_streamed(self, tensor: &mut Descriptor<'_>, plan: &Plan) -> Managed {
        self.finish_as(Self::STREAMED, tensor, plan)
    }
}

/// The stream on which the owner's memory is written.
///
/// # Safety
///
/// `context` belongs to a live block with a `StreamOwner<O>` as its owner.
unsafe fn stream<O: Send + 'static>(context: *mut c_void) -> Option<Queue> {
    let block = Context::<StreamOwner<O>>::of(context).block;
    // SAFETY: by this function's contract the block is live and has this type.
    let owner = unsafe { &(*block).owner };
    owner.link().queue()
}

impl<O> Drop for Unfinished<O> {
    fn drop(&mut self) {
        // SAFETY: `try_new` initialised the block, and this value is the only handle to it.
        unsafe { Context::<O>::release(self.0.raw()) };
    }
}

/// The deleter of a versioned export.
unsafe extern "C" fn delete_versioned<O>(tensor: *mut abi::DLManagedTensorVersioned) {
    // SAFETY: a consumer calls the deleter with the struct that it received.
    let context = unsafe { (*tensor).manager_ctx };
    // SAFETY: `fill` set this deleter together with this block as `manager_ctx`, and a consumer calls it once.
    unsafe { release::<O, true>(context) };
}

/// The deleter of a legacy export.
unsafe extern "C" fn delete_legacy<O>(tensor: *mut abi::DLManagedTensor) {
    // SAFETY: a consumer calls the deleter with the struct that it received.
    let context = unsafe { (*tensor).manager_ctx };
    // SAFETY: `to_legacy` set this deleter in a block of this type, and a consumer calls it once.
    unsafe { release::<O, false>(context) };
}

/// Drops the owner and frees the block. The block is found through `manager_ctx`, since a consumer may have overwritten the
/// pointers to shape and strides. A panic of the owner's drop is caught here: unwinding into C would abort.
///
/// `VERSIONED` makes one instance for each deleter, so that the compiler inlines each into its only caller.
///
/// # Safety
///
/// `context` belongs to a block with an owner of type `O`, and no code uses the block afterwards.
// CAP-11, ABI-10
#[inline]
unsafe fn release<O, const VERSIONED: bool>(context: *mut c_void) {
    // SAFETY: same contract as this function's.
    contain_panic(move || unsafe { Context::<O>::release(context) });
}

/// Replaces the header of a block by the struct from before DLPack 1.0.
///
/// # Safety
///
/// `tensor` is the header of a block with an owner of type `O`, and no other code uses it.
unsafe fn to_legacy<O>(
    tensor: NonNull<abi::DLManagedTensorVersioned>,
) -> NonNull<abi::DLManagedTensor> {
    // SAFETY: by this function's contract `tensor` points to a valid header.
    let versioned = unsafe { tensor.read() };
    let legacy = abi::DLManagedTensor {
        dl_tensor: versioned.dl_tensor,
        manager_ctx: versioned.manager_ctx,
        deleter: Some(delete_legacy::<O>),
    };
    // `manager_ctx` has provenance over the whole block; `tensor` might only have it over the header.
    let header = Context::<O>::of(versioned.manager_ctx)
        .block
        .cast::<abi::DLManagedTensor>();
    // SAFETY: the header is a union of both structs, so it is large enough and aligned for either.
    unsafe { header.write(legacy) };
    NonNull::new(header).expect("inside a block")
}

const _: () = {
    assert!(offset_of!(Block<()>, header) == 0);
    assert!(Capacity::BITS < align_of::<Block<()>>());
};
