//! The block that an export is: header, lists and owner in one allocation; and the deleter that ends it.
#![expect(unsafe_code, reason = "hands memory to C, and takes it back")]

use alloc::alloc::{alloc, dealloc};
use alloc::{boxed::Box, vec::Vec};
use core::mem::{MaybeUninit, offset_of};
use core::ptr::{NonNull, addr_of_mut};
use core::{alloc::Layout, ffi::c_void};

use crate::describe::{descriptor::Descriptor, usual::Usual};
use crate::layout::{Dims, cut::Cut, dims::INLINE, dims::MAX_RANK, extent};
use crate::stream::{Queue, owner::StreamOwner};
use crate::tensor::{c_struct::Struct, managed::BlockTable, managed::Ours};
use crate::{DataType, Device, Error, LegacyPolicy, Managed, Version, abi, request::Plan};
use crate::{error::joined, loan::access::Access, memory::aligned::AlignedBytes};
use crate::{panics::contain_panic, version::Abi};

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
    pub(super) fn of(descriptor: &Descriptor<'_>, plan: &Plan) -> Result<Self, Error> {
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
    ) -> Result<Self, Error> {
        Ok(Self {
            data: if memory.is_empty() {
                core::ptr::null_mut()
            } else {
                memory.as_mut_ptr()
            },
            byte_offset: 0,
            ndim: shape.len(),
            lists: Lists::row_major(shape)?,
            dtype: dtype.into(),
            device: device.into(),
            legacy: LegacyPolicy::Copy,
            access: Access::Exclusive,
        })
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
    pub(crate) fn new(shape: &Dims, strides: &Dims) -> Result<Self, Error> {
        let ((few, rest), (few_strides, _)) = (shape.parts(), strides.parts());
        Ok(Self {
            shape: one_by_one(few),
            strides: one_by_one(few_strides),
            heap: if rest.is_empty() {
                Box::default()
            } else {
                long(shape, strides)?
            },
        })
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

    /// One axis after another, of which there are no more than [`MAX_RANK`].
    #[inline(always)]
    pub(crate) fn of(axes: impl ExactSizeIterator<Item = (i64, i64)>) -> Result<Self, Error> {
        let mut lists = Self::few([0; INLINE], [0; INLINE]);
        let rank = axes.len();
        let (shape, strides) = if rank <= INLINE {
            (&mut lists.shape[..rank], &mut lists.strides[..rank])
        } else {
            let room = &[0; MAX_RANK][..rank];
            lists.heap = long(room, room)?;
            lists.heap.split_at_mut(rank)
        };
        for ((extent, stride), axis) in shape.iter_mut().zip(strides).zip(axes) {
            (*extent, *stride) = axis;
        }
        Ok(lists)
    }

    /// Those of items that lie one after another, the last axis fastest.
    #[inline]
    pub(crate) fn row_major(shape: &[i64]) -> Result<Self, Error> {
        let mut lists = Self::few([0; INLINE], [0; INLINE]);
        let rank = shape.len();
        let (extents, strides) = if rank <= INLINE {
            (&mut lists.shape[..rank], &mut lists.strides[..rank])
        } else {
            lists.heap = long(shape, shape)?;
            lists.heap.split_at_mut(rank)
        };
        extents.copy_from_slice(shape);
        extent::fill_row_major(strides, shape, 1);
        Ok(lists)
    }

    /// Where those of so many axes are: null only where there are none (LAY-02, LAY-03).
    #[inline]
    fn places(&mut self, rank: usize) -> [*mut i64; 2] {
        if rank == 0 {
            [core::ptr::null_mut(); 2]
        } else if self.heap.is_empty() {
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
fn long(shape: &[i64], strides: &[i64]) -> Result<Box<[i64]>, Error> {
    joined(shape, strides).map(Vec::into_boxed_slice)
}

/// The C struct of either version; which one is fixed by the deleter in it.
#[repr(C)]
union Header {
    versioned: abi::DLManagedTensorVersioned,
    legacy: abi::DLManagedTensor,
}

/// One export: the struct that the consumer gets, its lists, and whatever keeps the memory.
#[repr(C)]
pub(crate) struct Block<O> {
    header: Header,
    lists: Lists,
    owner: O,
}

impl<O> Block<O> {
    /// The block that a struct's `manager_ctx` leads to, whole.
    ///
    /// # Safety
    ///
    /// `context` is that of a block of this type, which nobody uses afterwards.
    #[inline]
    pub(super) unsafe fn take(context: *mut c_void) -> Box<Self> {
        // SAFETY: allocated by the global allocator with the layout of `Block<O>`, and every part of it
        // was initialised in `fill`; the caller gives it up.
        unsafe { Box::from_raw(context.cast::<Self>()) }
    }

    /// What the tensor kept.
    #[inline]
    pub(super) fn into_owner(self) -> O {
        self.owner
    }
}

/// A block that has its owner but is no tensor yet: dropped, it drops the owner and nothing is lost.
pub(crate) struct Unfinished<O>(NonNull<Block<O>>);

// SAFETY: it is the one way to the owner, which is `Send`, and to a block that nobody else knows.
unsafe impl<O: Send> Send for Unfinished<O> {}

impl<O: Send + 'static> Unfinished<O> {
    /// Moves the owner to its final address. Without memory it is dropped.
    #[inline]
    pub(crate) fn new(owner: O) -> Result<Self, Error> {
        let bytes = size_of::<Block<O>>();
        Self::try_new(owner).map_err(|()| Error::OutOfMemory { bytes })
    }

    #[inline(always)]
    pub(crate) fn try_new(owner: O) -> Result<Self, ()> {
        let layout = Layout::new::<Block<O>>();
        // SAFETY: a block is never of size 0; it begins with a header.
        let block = unsafe { alloc(layout) }.cast::<Block<O>>();
        let Some(block) = NonNull::new(block) else {
            drop_aside(owner);
            return Err(());
        };
        // SAFETY: the place of the owner inside the block that was just allocated.
        let place = unsafe { addr_of_mut!((*block.as_ptr()).owner) };
        // SAFETY: it is aligned, not initialised yet, and only ours.
        unsafe { place.write(owner) };
        Ok(Self(block))
    }

    pub(crate) fn owner(&self) -> &O {
        // SAFETY: `new` initialised the owner.
        unsafe { &(*self.0.as_ptr()).owner }
    }

    pub(crate) fn owner_mut(&mut self) -> &mut O {
        // SAFETY: `new` initialised the owner, and `&mut self` is the only way to it.
        unsafe { &mut (*self.0.as_ptr()).owner }
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
        unsafe { &mut (*self.0.as_ptr()).owner }
    }

    /// Fills in the rest and lets go of the block: from here on its deleter owns it.
    #[inline]
    pub(crate) fn finish(self, tensor: Contents, plan: &Plan) -> Managed {
        self.finish_as(Self::PLAIN, tensor, plan)
    }

    const PLAIN: &'static BlockTable = &BlockTable {
        to_legacy: to_legacy::<O>,
        stream: |_| None,
    };

    #[inline]
    fn finish_as(self, block: &'static BlockTable, tensor: Contents, plan: &Plan) -> Managed {
        let (legacy, access) = (tensor.legacy, tensor.access);
        let header = self.fill(tensor, plan);
        let tensor = match plan.abi {
            Abi::Versioned => Struct::Versioned(header),
            // SAFETY: it is the header of this very block, which nobody else knows yet.
            Abi::Legacy => Struct::Legacy(unsafe { to_legacy::<O>(header) }),
        };
        let ours = Ours {
            block,
            legacy,
            sole: true,
        };
        Managed::ours(tensor, ours, access)
    }

    /// The same, in the struct of DLPack 1.0 and later and as a bare pointer.
    #[inline]
    pub(crate) fn fill(
        self,
        tensor: Contents,
        plan: &Plan,
    ) -> NonNull<abi::DLManagedTensorVersioned> {
        let whole = self.0;
        core::mem::forget(self);
        let block = whole.as_ptr();
        // SAFETY: the place of the lists inside the block that `new` allocated.
        let place = unsafe { addr_of_mut!((*block).lists) };
        // SAFETY: it is aligned, not initialised yet, and only ours.
        unsafe { place.write(tensor.lists) };
        // SAFETY: initialised right above, and only ours.
        let lists = unsafe { &mut *place };
        let [shape, strides] = lists.places(tensor.ndim);
        let managed = abi::DLManagedTensorVersioned {
            version: Version::CURRENT.into(),
            manager_ctx: block.cast::<c_void>(),
            deleter: Some(delete_versioned::<O>),
            flags: plan.flags,
            dl_tensor: abi::DLTensor {
                data: tensor.data.cast(),
                device: tensor.device,
                ndim: ndim(tensor.ndim),
                dtype: tensor.dtype,
                shape,
                strides,
                byte_offset: tensor.byte_offset,
            },
        };
        // A block begins with its header.
        let header = whole.cast::<abi::DLManagedTensorVersioned>();
        // SAFETY: it is aligned and only ours.
        unsafe { header.write(managed) };
        header
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
    let part = Descriptor::of_mut(tensor)?.cut(cut)?;
    let (data, byte_offset, rank) = (part.data, part.byte_offset, part.shape.len());
    let new = Lists::new(&part.shape, &part.strides)?;
    let (head, context) = tensor.block_mut();
    // SAFETY: the context of a block leads to it; by `repr(C)` the lists lie alike in front of whatever owner.
    let place = unsafe { addr_of_mut!((*context.cast::<Block<()>>()).lists) };
    // SAFETY: `fill` initialised them, and a `Managed` is the one way to a block.
    let lists = unsafe { &mut *place };
    *lists = new;
    [head.shape, head.strides] = lists.places(rank);
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
    let shared = || unsafe { exactly::<StreamOwner<O>>(tensor) }?.owner(device, stream);
    // SAFETY: as above.
    let moved = || unsafe { exactly::<StreamOwner<Unfinished<O>>>(tensor) }?.owner(device, stream);
    // SAFETY: as above.
    unsafe { exactly::<O>(tensor) }
        .or_else(shared)
        .or_else(|| moved().map(Unfinished::owner))
}

/// # Safety
///
/// As [`owner`], of this very type.
unsafe fn exactly<O>(tensor: &Managed) -> Option<&O> {
    let context = tensor.released_by(delete_versioned::<O>, delete_legacy::<O>)?;
    // SAFETY: a deleter of this address has the code that drops such an owner: by the caller's contract the block
    // is one of this type. It is there until the tensor is released, and nobody else uses its owner.
    Some(unsafe { &(*context.cast::<Block<O>>()).owner })
}

fn ndim(rank: usize) -> i32 {
    i32::try_from(rank).expect("at most 64 axes")
}

/// Drops what hardly ever has to be, out of the way.
#[cold]
#[inline(never)]
fn drop_aside<O>(_: O) {}

impl<O: Send + 'static> Unfinished<StreamOwner<O>> {
    const STREAMED: &'static BlockTable = &BlockTable {
        to_legacy: to_legacy::<StreamOwner<O>>,
        stream: stream::<O>,
    };

    /// As [`finish`](Unfinished::finish), for memory that is written on a stream.
    pub(crate) fn finish_streamed(self, tensor: Contents, plan: &Plan) -> Managed {
        self.finish_as(Self::STREAMED, tensor, plan)
    }
}

/// The stream that an owner's memory is written on.
///
/// # Safety
///
/// `context` is that of a block with such an owner.
unsafe fn stream<O: Send + 'static>(context: *mut c_void) -> Option<Queue> {
    let block = context.cast::<Block<StreamOwner<O>>>();
    // SAFETY: a block of this type, which lives since the caller knows it.
    let owner = unsafe { &(*block).owner };
    owner.link().queue()
}

impl<O> Drop for Unfinished<O> {
    fn drop(&mut self) {
        /// Frees the block even if the owner's `Drop` panics.
        struct Free<O>(NonNull<Block<O>>);
        impl<O> Drop for Free<O> {
            fn drop(&mut self) {
                // SAFETY: allocated in `new` with this layout, and nothing in it is alive any more.
                unsafe { dealloc(self.0.as_ptr().cast(), Layout::new::<Block<O>>()) };
            }
        }
        let free = Free(self.0);
        // SAFETY: the place of the owner inside the block.
        let owner = unsafe { addr_of_mut!((*free.0.as_ptr()).owner) };
        // SAFETY: `new` initialised it, and this is the one drop.
        unsafe { owner.drop_in_place() };
    }
}

/// The deleter of a versioned export.
unsafe extern "C" fn delete_versioned<O>(tensor: *mut abi::DLManagedTensorVersioned) {
    // SAFETY: a consumer passes the struct that it was given.
    let context = unsafe { (*tensor).manager_ctx };
    // SAFETY: it is that of our block, and a consumer calls the deleter once.
    unsafe { release::<O>(context) };
}

/// The deleter of a legacy export.
unsafe extern "C" fn delete_legacy<O>(tensor: *mut abi::DLManagedTensor) {
    // SAFETY: a consumer passes the struct that it was given.
    let context = unsafe { (*tensor).manager_ctx };
    // SAFETY: it is that of our block, and a consumer calls the deleter once.
    unsafe { release::<O>(context) };
}

/// Drops the owner and frees the block. Found through `manager_ctx`, since a consumer may have
/// overwritten the lists (CAP-11). A panic of the owner ends here: unwinding into C would abort (ABI-10).
///
/// # Safety
///
/// `context` is that of a block of this type, which nobody uses afterwards.
#[inline]
unsafe fn release<O>(context: *mut c_void) {
    // SAFETY: the caller gives the block up.
    let block = unsafe { Block::<O>::take(context) };
    contain_panic(move || drop(block));
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
    let header = versioned.manager_ctx.cast::<abi::DLManagedTensor>();
    // SAFETY: the header is a union with room and alignment for both structs.
    unsafe { header.write(legacy) };
    NonNull::new(header).expect("inside a block")
}

const _: () = assert!(offset_of!(Block<MaybeUninit<u8>>, header) == 0);
