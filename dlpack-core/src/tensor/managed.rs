//! [`Managed`]: the owner of an exported tensor, from this crate or foreign. It calls the deleter once.
#![expect(unsafe_code, reason = "owns tensors behind pointers of C")]

mod take;

pub use take::{take_legacy, take_own, take_versioned};

use core::mem::{ManuallyDrop, replace};
use core::{ffi::c_void, fmt, marker::PhantomData, ptr::NonNull, slice};

use crate::memory::nested::{release_in_hook, release_nested};
use crate::tensor::c_struct::{ManagedStruct, PackedStruct, StructFields};
use crate::tensor::managed_facts::{BlockVtable, ManagedFacts};
use crate::tensor::{foreign, view::TensorRef};
use crate::{DataType, Device, Error, LegacyPolicy, abi};
use crate::{element::Plain, loan::access::Access};
use crate::{stream::Queue, version::Abi};

/// An exported tensor together with its memory, in the versioned or the legacy struct.
///
/// Dropping it calls the deleter, on the thread that drops it.
///
/// ```
/// use dlpack_core::{DLPack, Managed};
///
/// let exported: Managed = vec![1.0_f32, 2.0].into_dlpack()?;
/// // Through a C interface as a raw pointer.
/// let pointer = exported.into_raw();
/// // SAFETY: `pointer` comes from `into_raw`, and this is its only use.
/// let imported = unsafe { Managed::from_raw(pointer) }?;
/// assert_eq!(imported.view().as_slice::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct Managed {
    tensor: PackedStruct,
    facts: ManagedFacts,
}

// SAFETY: DLPack lets a consumer use and release a tensor on any thread. Owners of our exports are `Send`.
unsafe impl Send for Managed {}
// SAFETY: shared references to a `Managed` only read its struct.
unsafe impl Sync for Managed {}

static_assertions::assert_impl_all!(Managed: Send, Sync);

/// Returns the device of a tensor. Unlike [`view`](Managed::view), it reads no other field.
///
/// ```
/// use dlpack_core::{DLPack, Device, binding::device_of};
///
/// assert_eq!(device_of(&[1_u8, 2].into_dlpack()?), Device::CPU);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[inline]
#[must_use]
pub fn device_of(tensor: &Managed) -> Device {
    Device::from(tensor.tensor.fields().tensor.device)
}

impl Managed {
    /// Marks the memory as shared with writers: its elements are then read and written by atomic loads and stores, and never
    /// borrowed as a slice.
    ///
    /// Use this to import a tensor from a language that cannot guarantee that the producer does not write to an exported
    /// tensor. Use it also before giving away a tensor that several owners may write. A read-only tensor stays read-only.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Error, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: `pointer` comes from `into_raw`, and this is its only use.
    /// let managed = unsafe { Managed::from_raw(pointer) }?.shared();
    /// assert_eq!(managed.view().to_vec::<u8>()?, [1, 2]);
    /// assert_eq!(managed.view().as_slice::<u8>(), Err(Error::MayChange));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn shared(mut self) -> Self {
        if self.access() == Access::Exclusive {
            self.facts.set_access(Access::Shared);
        }
        self
    }

    /// Wraps a tensor that this crate has just exported.
    #[inline(always)]
    pub(crate) fn from_export(
        tensor: ManagedStruct,
        block: &'static BlockVtable,
        legacy: LegacyPolicy,
        access: Access,
    ) -> Self {
        Self::new(tensor, ManagedFacts::of_export(block, legacy, access))
    }

    #[inline(always)]
    fn new(tensor: ManagedStruct, facts: ManagedFacts) -> Self {
        let tensor = PackedStruct::new(tensor);
        Self { tensor, facts }
    }

    /// Which code may write the memory. By the contract of `from_raw` a foreign tensor is exclusive, unless `shared` was called.
    #[inline]
    pub(crate) fn access(&self) -> Access {
        self.facts.access()
    }

    /// Converts the struct of an export of this crate to the legacy one, in place. A foreign tensor is returned unchanged.
    pub(crate) fn convert_struct(
        self,
        convert: impl FnOnce(NonNull<abi::DLManagedTensorVersioned>) -> NonNull<abi::DLManagedTensor>,
    ) -> Self {
        match self.tensor.get() {
            ManagedStruct::Versioned(tensor) if self.is_own_export() => {
                let facts = self.into_facts();
                Self::new(ManagedStruct::Legacy(convert(tensor)), facts)
            }
            _ => self,
        }
    }

    /// Changes the flags of the struct, if it is the versioned one.
    #[inline]
    pub(crate) fn with_flags(self, change: impl FnOnce(u64) -> u64) -> Self {
        if let ManagedStruct::Versioned(tensor) = self.tensor.get() {
            // SAFETY: `self` is the only owner of this valid struct.
            let flags = unsafe { &mut (*tensor.as_ptr()).flags };
            *flags = change(*flags);
        }
        self
    }

    /// Whether the struct can be passed on: it has a deleter, and its shape and strides are those of this tensor. Imports accept a tensor
    /// without strides or without a deleter, but exports always have both.
    // LAY-02, CAP-08
    pub(crate) fn is_complete(&self) -> bool {
        self.tensor.fields().deleter.is_some() && self.facts.own_lists().is_none()
    }

    /// Whether the tensor is read-only or padded, for which the legacy struct has no flags.
    pub(crate) fn needs_flags(&self) -> bool {
        self.is_read_only() || self.view().dtype().is_padded()
    }

    /// Whether the tensor is read-only, as a legacy tensor always is.
    pub(crate) fn is_read_only(&self) -> bool {
        let StructFields { flags, version, .. } = self.tensor.fields();
        flags & abi::DLPACK_FLAG_BITMASK_READ_ONLY != 0 || version.is_none()
    }

    /// Returns a view of the tensor: its shape, strides, dtype, device and elements.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert_eq!(vec![1_u8, 2].into_dlpack()?.view().shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn view(&self) -> TensorRef<'_> {
        self.view_inlined()
    }

    /// Returns the [`view`](Self::view), and is inlined into the caller.
    #[inline(always)]
    pub(crate) fn view_inlined(&self) -> TensorRef<'_> {
        let fields = self.tensor.fields();
        let (tensor, flags, version) = (fields.tensor, fields.flags, fields.version);
        let (shape, strides) = match self.facts.own_lists() {
            Some(lists) => lists,
            None => {
                let [shape, strides] = [tensor.shape, tensor.strides].map(|list| {
                    // SAFETY: `check_tensor` found the list aligned, or this crate made it. It is null or has `ndim` entries, which do
                    // not change while the tensor lives, by the contract of `from_raw`.
                    unsafe { foreign::read_list(list, tensor.ndim) }
                });
                (shape, strides)
            }
        };
        let device = Device::from(tensor.device);
        let flag = |mask| flags & mask != 0;
        let mut view = TensorRef {
            data: tensor.data.cast(),
            byte_offset: tensor.byte_offset,
            shape,
            strides,
            dtype: DataType::from_abi(
                tensor.dtype,
                flag(abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED),
            ),
            device,
            read_only: self.is_read_only(),
            shared: self.access().is_shared() && device.device_type.is_host_readable(),
            copied: flag(abi::DLPACK_FLAG_BITMASK_IS_COPIED),
            version,
            lifetime: PhantomData,
        };
        if device.device_type.is_addressable() && !view.data.is_null() {
            let offset = usize::try_from(tensor.byte_offset).unwrap_or(usize::MAX);
            view.data = view.data.wrapping_add(offset);
            view.byte_offset = 0;
        }
        view
    }

    /// Whether an export through a shared reference is read-only. Memory that any consumer may write can also be written by a
    /// consumer of such an export. `view` is that of this tensor.
    #[inline]
    pub(crate) fn is_read_only_through_shared(&self, view: &TensorRef<'_>) -> bool {
        view.is_read_only() || self.access() != Access::Shared
    }

    /// Sets or clears the flag `IS_COPIED` of an export of this crate.
    #[inline]
    pub(crate) fn marked_copied(self, copied: bool) -> Self {
        const FLAG: u64 = abi::DLPACK_FLAG_BITMASK_IS_COPIED;
        self.with_flags(|flags| if copied { flags | FLAG } else { flags & !FLAG })
    }

    /// Whether only this tensor reads and writes the memory.
    pub(crate) fn is_unique(&self) -> bool {
        self.facts.is_unique()
    }

    /// Adds the facts of the underlying tensor to an export over it: whether that is unshared, and whether it is a copy.
    pub(crate) fn with_base_facts(mut self, is_unique: bool, copied: bool) -> Self {
        if !is_unique {
            self.facts.unmark_unique();
        }
        if copied {
            self.marked_copied(true)
        } else {
            self
        }
    }

    /// The tensor in an export block of this crate, its context, and the offset of shape and strides in the block.
    ///
    /// # Panics
    ///
    /// If the tensor is foreign.
    pub(crate) fn block_mut(&mut self) -> (&mut abi::DLTensor, &mut *mut c_void, usize) {
        let block = self.facts.block();
        let block = block.expect("a foreign tensor is never changed");
        let (head, context) = self.tensor.dl_tensor_and_context_mut();
        (head, context, block.dims)
    }

    /// The `manager_ctx` of the tensor, if its deleter is one of these.
    #[inline]
    pub(crate) fn released_by(
        &self,
        versioned: unsafe extern "C" fn(*mut abi::DLManagedTensorVersioned),
        legacy: unsafe extern "C" fn(*mut abi::DLManagedTensor),
    ) -> Option<*mut c_void> {
        let fields = self.tensor.fields();
        let ours = match fields.version {
            Some(_) => versioned as *const (),
            None => legacy as *const (),
        };
        (fields.deleter == Some(ours)).then_some(fields.context)
    }

    /// Borrows the elements as a mutable slice.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let mut managed = vec![1_u8, 2].into_dlpack()?;
    /// managed.as_mut_slice::<u8>()?[0] = 9;
    /// assert_eq!(managed.view().as_slice::<u8>()?, [9, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`TensorRef::as_slice`], and [`Error::ReadOnly`].
    pub fn as_mut_slice<T: Plain>(&mut self) -> Result<&mut [T], Error> {
        let view = self.view();
        if view.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let len = view.slice_len::<T>()?;
        let data = view.data.cast::<T>();
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: `slice_len` found `len` values of `T` at this aligned address, and the tensor is not read-only. By the
        // contract of `from_raw` the memory is accessed only through this tensor, which `&mut self` borrows exclusively.
        Ok(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// The stream that the memory is written on, if this is an export of this crate with a stream.
    pub(crate) fn owner_stream(&self) -> Option<Queue> {
        let block = self.facts.block()?;
        // SAFETY: `block` is the table of the block that this context belongs to.
        unsafe { (block.stream)(self.tensor.fields().context) }
    }

    pub(crate) fn legacy_policy(&self) -> LegacyPolicy {
        self.facts.legacy_policy()
    }

    /// Returns the versioned struct; the caller then has to call its deleter. A legacy tensor is returned as the error.
    pub(crate) fn into_versioned_struct(
        self,
    ) -> Result<NonNull<abi::DLManagedTensorVersioned>, Self> {
        let ManagedStruct::Versioned(tensor) = self.tensor.get() else {
            return Err(self);
        };
        self.forget_struct();
        Ok(tensor)
    }

    /// Returns the legacy struct; the caller then has to call its deleter. A versioned tensor is returned as the error.
    pub(crate) fn into_legacy_struct(self) -> Result<NonNull<abi::DLManagedTensor>, Self> {
        let ManagedStruct::Legacy(tensor) = self.tensor.get() else {
            return Err(self);
        };
        self.forget_struct();
        Ok(tensor)
    }

    /// Whether this is an export of this crate, which can be converted to the legacy struct in place.
    pub(crate) fn is_own_export(&self) -> bool {
        self.facts.is_of_export()
    }

    /// The kind of C struct that contains the tensor.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    /// use dlpack_core::request::Abi;
    ///
    /// assert_eq!(vec![1_u8, 2].into_dlpack()?.abi(), Abi::Versioned);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn abi(&self) -> Abi {
        match self.tensor.get() {
            ManagedStruct::Versioned(_) => Abi::Versioned,
            ManagedStruct::Legacy(_) => Abi::Legacy,
        }
    }

    /// Drops `self` without calling the deleter.
    pub(crate) fn forget_struct(self) {
        drop(self.into_facts());
    }

    /// Returns what is known beyond the struct. The deleter is not called.
    fn into_facts(self) -> ManagedFacts {
        let mut this = ManuallyDrop::new(self);
        replace(&mut this.facts, ManagedFacts::foreign(None))
    }
}

/// Calls the deleter of another producer.
///
/// # Safety
///
/// The contract of [`PackedStruct::release_raw`].
unsafe fn release_foreign(packed: *mut c_void) {
    // SAFETY: same contract as this function's.
    unsafe { release_in_hook(packed, PackedStruct::release_raw) };
}

/// Calls the deleter. That of a foreign tensor may release another tensor of ours, which may keep another foreign tensor, and so on:
/// it may be queued.
impl Drop for Managed {
    fn drop(&mut self) {
        if self.is_own_export() {
            // SAFETY: `self` is the only owner and is not used afterwards (CAP-09: the deleter may be null).
            unsafe { self.tensor.get().call_deleter() };
        } else {
            // SAFETY: `self` is the only owner and is not used afterwards. A deleter does not unwind.
            unsafe { release_nested(self.tensor.to_raw(), release_foreign) };
        }
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Managed").field(&self.view()).finish()
    }
}
