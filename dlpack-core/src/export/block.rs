//! The export block: C struct, owner, shape and strides in one allocation; and the deleter that frees it.
//!
//! ```text
//! manager_ctx ─▶ [ C struct, 80 bytes | owner | shape | strides ]
//!        └ in its low bits the `Capacity`: how many axes fit, and whether shape and strides are on the heap instead
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
use crate::tensor::{c_struct::ManagedStruct, managed::BlockVtable, managed::ExportFacts};
use crate::{Error, Managed, Version, abi, panics::contain_panic, request::Plan, version::Abi};

/// The C struct of either version; which one is fixed by the deleter in it.
#[repr(C)]
union Header {
    versioned: abi::DLManagedTensorVersioned,
    legacy: abi::DLManagedTensor,
}

/// One export: the struct that the consumer gets, the owner of the memory, and shape and strides, whose number is not part of
/// the type.
#[repr(C, align(16))]
pub(crate) struct Block<O> {
    header: Header,
    owner: O,
    dims: [i64; 0],
}

/// A block and its capacity. C carries both as `manager_ctx`, the capacity in the low bits of the address.
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
        // SAFETY: the alignment of a type, and a size that is some bytes more than that of one.
        unsafe { Layout::from_size_align_unchecked(Self::DIMS + dims, align) }
    }

    /// Where shape and strides are, or the pointer to them.
    ///
    /// # Safety
    ///
    /// The context is that of a block that was not freed.
    #[inline(always)]
    unsafe fn dims(self) -> *mut i64 {
        // SAFETY: inside the block, which begins with everything else.
        unsafe { self.block.byte_add(Self::DIMS) }.cast()
    }

    /// Drops the owner where it lies, and frees the block even if that panics.
    ///
    /// # Safety
    ///
    /// `context` is that of a block with its owner, which nobody uses afterwards.
    #[inline(always)]
    unsafe fn release(context: *mut c_void) {
        let _free = Free::<O>(context, PhantomData);
        // SAFETY: the place of the owner inside the block.
        let owner = unsafe { addr_of_mut!((*Self::of(context).block).owner) };
        // SAFETY: it was initialised when the block was made, and this is the one drop.
        unsafe { owner.drop_in_place() };
    }
}

/// Frees a block, and shape and strides on the heap, but does not drop the owner. It reads the capacity last: kept across the
/// drop of the owner, that would cost a register.
struct Free<O>(*mut c_void, PhantomData<O>);

impl<O> Drop for Free<O> {
    #[inline(always)]
    fn drop(&mut self) {
        let context = Context::<O>::of(self.0);
        if context.capacity.is_on_heap() {
            // SAFETY: made only of a block that was not freed.
            let place = unsafe { context.dims() };
            // SAFETY: the capacity says that the pointer is there, and the block is freed below.
            unsafe { free_heap(place) };
        }
        // SAFETY: allocated with this layout, and nothing in it is used any more.
        unsafe { dealloc(context.block.cast(), context.layout()) };
    }
}

/// Frees the block that a struct's `manager_ctx` leads to, and gives its owner.
///
/// # Safety
///
/// `context` is that of a block with an owner of this type, which nobody uses afterwards.
#[inline]
pub(super) unsafe fn take<O>(context: *mut c_void) -> O {
    let _free = Free::<O>(context, PhantomData);
    // SAFETY: the place of the owner inside the block.
    let owner = unsafe { addr_of_mut!((*Context::<O>::of(context).block).owner) };
    // SAFETY: it was initialised when the block was made, and is moved out of it.
    unsafe { owner.read() }
}

/// A block that has its owner but is no tensor yet: dropped, it drops the owner and nothing is lost.
pub(crate) struct Unfinished<O>(Context<O>);

// SAFETY: it is the one way to the owner, which is `Send`, and to a block that nobody else knows.
unsafe impl<O: Send> Send for Unfinished<O> {}

impl<O: Send + 'static> Unfinished<O> {
    /// Moves the owner to its final address. Without memory it is dropped.
    #[inline]
    pub(crate) fn new(owner: O, capacity: Capacity) -> Result<Self, Error> {
        let bytes = Context::<O>::layout_with(capacity).size();
        Self::try_new(owner, capacity).map_err(|()| Error::OutOfMemory { bytes })
    }

    #[inline(always)]
    pub(crate) fn try_new(owner: O, capacity: Capacity) -> Result<Self, ()> {
        // SAFETY: a block is never of size 0; it begins with a header.
        let block = unsafe { alloc(Context::<O>::layout_with(capacity)) }.cast::<Block<O>>();
        if block.is_null() {
            drop_aside(owner);
            return Err(());
        }
        // SAFETY: the place of the owner inside the block that was just allocated.
        let place = unsafe { addr_of_mut!((*block).owner) };
        // SAFETY: it is aligned, not initialised yet, and only ours.
        unsafe { place.write(owner) };
        Ok(Self(Context { block, capacity }))
    }

    /// Drops it, out of line: hardly any block is.
    #[cold]
    #[inline(never)]
    pub(crate) fn discard(self) {}

    /// Drops it before the error is returned: a value that is returned while that panics is lost.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail(self, error: Error) -> Error {
        drop(self);
        error
    }

    pub(crate) fn owner(&self) -> &O {
        // SAFETY: `new` initialised the owner.
        unsafe { &(*self.0.block).owner }
    }

    pub(crate) fn owner_mut(&mut self) -> &mut O {
        // SAFETY: `new` initialised the owner, and `&mut self` is the only way to it.
        unsafe { &mut (*self.0.block).owner }
    }

    /// The owner, for as long as the caller keeps it: its address is final, whatever the block becomes.
    ///
    /// # Safety
    ///
    /// The result, and what borrows from it, is not read or written any more once the block or the tensor that is
    /// made of it is dropped or handed on, nor while another method gives the owner.
    #[inline]
    pub(crate) unsafe fn owner_in_place<'a>(&mut self) -> &'a mut O {
        // SAFETY: `new` initialised the owner; the caller vouches for the rest.
        unsafe { &mut (*self.0.block).owner }
    }

    /// Fills in the rest and lets go of the block: from here on its deleter owns it.
    #[inline(always)]
    pub(crate) fn finish(self, tensor: &mut Descriptor<'_>, plan: &Plan) -> Managed {
        self.finish_as(Self::PLAIN, tensor, plan)
    }

    const PLAIN: &'static BlockVtable = &BlockVtable {
        dims: Context::<O>::DIMS,
        to_legacy: to_legacy::<O>,
        stream: |_| None,
    };

    #[inline(always)]
    fn finish_as(
        self,
        block: &'static BlockVtable,
        tensor: &mut Descriptor<'_>,
        plan: &Plan,
    ) -> Managed {
        let (legacy, access) = (tensor.legacy, tensor.access);
        let header = self.fill(tensor, plan);
        let tensor = match plan.abi {
            Abi::Versioned => ManagedStruct::Versioned(header),
            // SAFETY: it is the header of this very block, which nobody else knows yet.
            Abi::Legacy => ManagedStruct::Legacy(unsafe { to_legacy::<O>(header) }),
        };
        let ours = ExportFacts {
            block,
            legacy,
            is_unique: true,
        };
        Managed::from_export(tensor, ours, access)
    }

    /// The same, in the struct of DLPack 1.0 and later and as a bare pointer.
    #[inline(always)]
    pub(crate) fn fill(
        self,
        tensor: &mut Descriptor<'_>,
        plan: &Plan,
    ) -> NonNull<abi::DLManagedTensorVersioned> {
        let mut context = self.0;
        core::mem::forget(self);
        // SAFETY: `new` allocated the block.
        let place = unsafe { context.dims() };
        // SAFETY: the block was allocated with this capacity, and nothing was stored in it yet.
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
        // A block begins with its header.
        let header = context.block.cast::<abi::DLManagedTensorVersioned>();
        // SAFETY: it is aligned and only ours.
        unsafe { header.write(managed) };
        // SAFETY: `new` allocated the block.
        unsafe { NonNull::new_unchecked(header) }
    }
}

/// Makes of a tensor in a block of ours the part of it that is described, where it stands.
///
/// # Panics
///
/// If it is no tensor of ours.
pub(super) fn narrow(
    tensor: &mut Managed,
    cut: impl FnOnce(&mut Cut) -> Result<(), Error>,
) -> Result<(), Error> {
    let (_, context, dims) = tensor.block_mut();
    // The type of the owner is not known, and what is used here does not depend on it.
    let mut block = Context::<()>::of(*context);
    let mut part = Descriptor::of_mut(tensor)?;
    part.cut(cut)?;
    let (data, byte_offset, rank) = (part.data, part.byte_offset, part.rank());
    let mut new = if rank <= block.capacity.axes() {
        part.dims
    } else {
        ShapeStrides::on_heap(part.shape(), part.strides())?
    };
    // SAFETY: inside the block, by the table that belongs to it.
    let place = unsafe { block.block.byte_add(dims) }.cast::<i64>();
    if block.capacity.is_on_heap() {
        block.capacity = block.capacity.without_heap();
        // SAFETY: the capacity said that the pointer is there; the tensor gets another shape and strides below.
        unsafe { free_heap(place) };
    }
    let (head, context, _) = tensor.block_mut();
    // SAFETY: the place of shape and strides in this block, which only its `Managed` reaches.
    let places = unsafe { new.store(place, &mut block.capacity) };
    [head.shape, head.strides] = places;
    *context = block.raw();
    head.ndim = ndim(rank);
    (head.data, head.byte_offset) = (data.cast(), byte_offset);
    Ok(())
}

/// The owner of a tensor, if that is in a block of ours with an owner of this type.
///
/// On a device there is a link around the owner, by which it is freed behind the consumer's work. One who exports it again
/// has a link of his own: that does as well if it leads to the stream that `described` is written on, and to none further.
///
/// # Safety
///
/// No owner of another type contains an `O`, and only the drop of an `O` does what that does.
pub(super) unsafe fn owner<'a, O: Send + 'static>(
    tensor: &'a Managed,
    described: &Descriptor<'_>,
) -> Option<&'a O> {
    let Descriptor { device, stream, .. } = *described;
    // SAFETY: passed on to the caller.
    let plain = unsafe { exactly::<O>(tensor) };
    if plain.is_some() || device.device_type.stream_api().is_none() {
        return plain;
    }
    // SAFETY: passed on to the caller.
    let shared = || unsafe { exactly::<StreamOwner<O>>(tensor) }?.owner(device, stream);
    // SAFETY: as above.
    let moved = || unsafe { exactly::<StreamOwner<Unfinished<O>>>(tensor) }?.owner(device, stream);
    shared().or_else(|| moved().map(Unfinished::owner))
}

/// # Safety
///
/// As [`owner`], of this very type.
pub(super) unsafe fn exactly<O>(tensor: &Managed) -> Option<&O> {
    let context = tensor.released_by(delete_versioned::<O>, delete_legacy::<O>)?;
    // SAFETY: a deleter of this address has the code that drops such an owner: by the caller's contract the block
    // is one of this type. It is there until the tensor is released, and nobody else uses its owner.
    Some(unsafe { &(*Context::<O>::of(context).block).owner })
}

#[inline(always)]
fn ndim(rank: usize) -> i32 {
    i32::try_from(rank).expect("at most 64 axes")
}

/// Drops what hardly ever has to be, out of the way.
#[cold]
#[inline(never)]
fn drop_aside<O>(_: O) {}

impl<O: Send + 'static> Unfinished<StreamOwner<O>> {
    const STREAMED: &'static BlockVtable = &BlockVtable {
        dims: Context::<StreamOwner<O>>::DIMS,
        to_legacy: to_legacy::<StreamOwner<O>>,
        stream: stream::<O>,
    };

    /// As [`finish`](Unfinished::finish), for memory that is written on a stream.
    pub(crate) fn finish_streamed(self, tensor: &mut Descriptor<'_>, plan: &Plan) -> Managed {
        self.finish_as(Self::STREAMED, tensor, plan)
    }
}

/// The stream that an owner's memory is written on.
///
/// # Safety
///
/// `context` is that of a block with such an owner.
unsafe fn stream<O: Send + 'static>(context: *mut c_void) -> Option<Queue> {
    let block = Context::<StreamOwner<O>>::of(context).block;
    // SAFETY: a block of this type, which lives since the caller knows it.
    let owner = unsafe { &(*block).owner };
    owner.link().queue()
}

impl<O> Drop for Unfinished<O> {
    fn drop(&mut self) {
        // SAFETY: `new` made it, and nobody else knows it.
        unsafe { Context::<O>::release(self.0.raw()) };
    }
}

/// The deleter of a versioned export.
unsafe extern "C" fn delete_versioned<O>(tensor: *mut abi::DLManagedTensorVersioned) {
    // SAFETY: a consumer passes the struct that it was given.
    let context = unsafe { (*tensor).manager_ctx };
    // SAFETY: it is that of our block, and a consumer calls the deleter once.
    unsafe { release::<O, true>(context) };
}

/// The deleter of a legacy export.
unsafe extern "C" fn delete_legacy<O>(tensor: *mut abi::DLManagedTensor) {
    // SAFETY: a consumer passes the struct that it was given.
    let context = unsafe { (*tensor).manager_ctx };
    // SAFETY: it is that of our block, and a consumer calls the deleter once.
    unsafe { release::<O, false>(context) };
}

/// Drops the owner and frees the block. Found through `manager_ctx`, since a consumer may have
/// overwritten the lists. A panic of the owner ends here: unwinding into C would abort.
///
/// What only one deleter calls is compiled into it.
///
/// # Safety
///
/// `context` is that of a block of this type, which nobody uses afterwards.
// CAP-11, ABI-10
#[inline]
unsafe fn release<O, const VERSIONED: bool>(context: *mut c_void) {
    // SAFETY: the caller gives the block up.
    contain_panic(move || unsafe { Context::<O>::release(context) });
}

/// Replaces the header of a block by the legacy one.
///
/// # Safety
///
/// `tensor` is the header of a block with an owner of this type, which nobody else uses.
unsafe fn to_legacy<O>(
    tensor: NonNull<abi::DLManagedTensorVersioned>,
) -> NonNull<abi::DLManagedTensor> {
    // SAFETY: the caller passes a valid header.
    let versioned = unsafe { tensor.read() };
    let legacy = abi::DLManagedTensor {
        dl_tensor: versioned.dl_tensor,
        manager_ctx: versioned.manager_ctx,
        deleter: Some(delete_legacy::<O>),
    };
    // The block's own address has provenance over all of it; the header stands at its start.
    let header = Context::<O>::of(versioned.manager_ctx)
        .block
        .cast::<abi::DLManagedTensor>();
    // SAFETY: the header is a union with room and alignment for both structs.
    unsafe { header.write(legacy) };
    NonNull::new(header).expect("inside a block")
}

const _: () = {
    assert!(offset_of!(Block<()>, header) == 0);
    assert!(Capacity::BITS < align_of::<Block<()>>());
};
