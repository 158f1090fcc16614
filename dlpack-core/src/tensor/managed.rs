//! [`Managed`]: a tensor that somebody exported, ours or foreign, and the duty to call its deleter once.
#![expect(unsafe_code, reason = "owns tensors behind pointers of C")]

use alloc::boxed::Box;
use core::{ffi::c_void, fmt, marker::PhantomData, mem::ManuallyDrop, ptr::NonNull, slice};

use crate::tensor::c_struct::{Deleter, LegacyDeleter, Struct};
use crate::tensor::{foreign, view::TensorRef};
use crate::{DataType, Device, Error, LegacyPolicy, Version, abi};
use crate::{element::Plain, loan::access::Access, request::Plan, stream::Queue, version::Abi};

/// An exported tensor, in the struct of either version, together with its memory.
///
/// Dropping it calls the deleter, on whatever thread that happens.
///
/// ```
/// use dlpack_core::{DLPack, Managed};
///
/// let exported: Managed = vec![1.0_f32, 2.0].into_dlpack()?;
/// // Over a C boundary and back.
/// let pointer = exported.into_raw();
/// // SAFETY: `pointer` comes from `into_raw`, and nobody else has it.
/// let imported = unsafe { Managed::from_raw(pointer) }?;
/// assert_eq!(imported.view().as_slice::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct Managed {
    tensor: Struct,
    /// Strides that the producer left out, computed from the shape.
    // LAY-04
    strides: Option<Box<[i64]>>,
    /// What is known of a tensor of ours beside what its struct says.
    ours: Option<Ours>,
    /// Who may write: to a foreign tensor only we may, by the contract of `from_raw`, unless it is known to be shared.
    pub(crate) access: Access,
}

/// What can be done with an exported block by who knows the type of its owner.
pub(crate) struct BlockTable {
    /// Where in the block the lists are.
    pub(crate) dims: usize,
    /// Turns it into the legacy struct, where it stands.
    pub(crate) to_legacy:
        unsafe fn(NonNull<abi::DLManagedTensorVersioned>) -> NonNull<abi::DLManagedTensor>,
    /// The stream that the owner's memory is written on, by the block's context.
    pub(crate) stream: unsafe fn(*mut c_void) -> Option<Queue>,
}

/// What an export from this crate remembers until it is given away as a pointer.
#[derive(Clone, Copy)]
pub(crate) struct Ours {
    pub(crate) block: &'static BlockTable,
    pub(crate) legacy: LegacyPolicy,
    /// Nobody had the memory before.
    pub(crate) sole: bool,
}

// SAFETY: DLPack lets a consumer use and release a tensor on any thread; for ours, owners are `Send`.
unsafe impl Send for Managed {}
// SAFETY: through a shared reference a `Managed` is only read.
unsafe impl Sync for Managed {}

static_assertions::assert_impl_all!(Managed: Send, Sync);

/// Where the data of a tensor is: what its [`view`](Managed::view) says, which reads all else of it too.
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
    Device::from(tensor.tensor.head().device)
}

/// As [`Managed::from_raw`], of a tensor that this crate gave: it was checked then.
///
/// ```
/// use dlpack_core::{DLPack, binding::take_own};
///
/// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
/// // SAFETY: it was given right above, and nobody else has it.
/// let tensor = unsafe { take_own(pointer) };
/// assert_eq!(tensor.view().as_slice::<u8>()?, [1, 2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Safety
///
/// `tensor` comes from [`Managed::into_raw`] or [`hand_over`](crate::binding::hand_over) of this very crate, and nobody has
/// written to the struct since. For the rest as for [`Managed::from_raw`].
#[inline]
#[must_use]
pub unsafe fn take_own(tensor: NonNull<abi::DLManagedTensorVersioned>) -> Managed {
    Managed::new(Struct::Versioned(tensor), None, None, Access::Exclusive)
}

impl Managed {
    /// Takes over a tensor in the struct of DLPack 1.0 and later.
    ///
    /// Another major version is released without a look at anything else.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: `pointer` comes from `into_raw`, and nobody else has it.
    /// let managed = unsafe { Managed::from_raw(pointer) }?;
    /// assert_eq!(managed.view().shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Another major version, or a tensor that breaks the format or the limits of memory. The
    /// deleter has been called then, unless the struct itself is not aligned: nothing of that is read.
    ///
    /// # Safety
    ///
    /// - `tensor` points to a struct whose owner hands it over: nobody else uses it or its lists, or
    ///   calls its deleter, and the deleter may be called on any thread.
    /// - Where the version is known, `shape` and `strides` are null or have `ndim` entries, and every
    ///   item that they reach from `data + byte_offset` is initialised memory of the device.
    /// - While the result lives, nobody writes to memory that the processor can read, unless through it;
    ///   or the caller calls [`Managed::shared`] before anything else. The flag `IS_COPIED` does not prove that nobody
    ///   writes: it is a statement of the producer.
    #[inline(always)]
    pub unsafe fn from_raw(tensor: NonNull<abi::DLManagedTensorVersioned>) -> Result<Self, Error> {
        // SAFETY: the caller's contract is that of `try_from_raw`.
        unsafe { Self::try_from_raw(tensor) }.inspect_err(|_| {
            if tensor.is_aligned() {
                // SAFETY: the caller hands over the tensor, and this is its one release.
                unsafe { abi::DLManagedTensorVersioned::release(tensor) }
            }
        })
    }

    /// As [`Managed::from_raw`], but after an error the tensor is still the caller's.
    ///
    /// # Errors
    ///
    /// As [`Managed::from_raw`].
    ///
    /// # Safety
    ///
    /// As [`Managed::from_raw`].
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn try_from_raw(
        tensor: NonNull<abi::DLManagedTensorVersioned>,
    ) -> Result<Self, Error> {
        foreign::aligned(tensor)?;
        // SAFETY: the caller hands over a struct of at least the fields that all versions share, of
        // which this is the first.
        let version = Version::from(unsafe { (*tensor.as_ptr()).version });
        if version.major != Version::CURRENT.major {
            return Err(Error::UnsupportedMajor {
                found: version,
                supported: Version::CURRENT,
            });
        }
        let tensor = Struct::Versioned(tensor);
        let strides = foreign::check(tensor.head(), tensor.flags())?;
        Ok(Self::new(tensor, strides, None, Access::Exclusive))
    }

    /// Takes over a tensor in the struct from before DLPack 1.0.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_legacy()?;
    /// // SAFETY: `pointer` comes from `into_legacy`, and nobody else has it.
    /// let managed = unsafe { Managed::from_legacy(pointer) }?;
    /// assert!(managed.view().is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Managed::from_raw`], but for versions, which it has none.
    ///
    /// # Safety
    ///
    /// As [`Managed::from_raw`].
    pub unsafe fn from_legacy(tensor: NonNull<abi::DLManagedTensor>) -> Result<Self, Error> {
        foreign::aligned(tensor)?;
        let mut managed = Self::new(Struct::Legacy(tensor), None, None, Access::Exclusive);
        managed.strides = foreign::check(managed.tensor.head(), managed.tensor.flags())?;
        Ok(managed)
    }

    /// The same tensor, with memory that all who get it may write: its elements are then read and written
    /// in atomic words, and never lent as a slice.
    ///
    /// This is how to take over a tensor from a language in which nobody can promise that a
    /// producer keeps its hands off what it has shared; and how to give away one that is writable in
    /// several hands. What is read-only stays so.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Error, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: `pointer` comes from `into_raw`, and nobody else has it.
    /// let managed = unsafe { Managed::from_raw(pointer) }?.shared();
    /// assert_eq!(managed.view().to_vec::<u8>()?, [1, 2]);
    /// assert_eq!(managed.view().as_slice::<u8>(), Err(Error::MayChange));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn shared(mut self) -> Self {
        if self.access == Access::Exclusive {
            self.access = Access::Shared;
        }
        self
    }

    /// A tensor that was just made by this crate.
    #[inline]
    pub(crate) fn ours(tensor: Struct, ours: Ours, access: Access) -> Self {
        Self::new(tensor, None, Some(ours), access)
    }

    #[inline]
    fn new(
        tensor: Struct,
        strides: Option<Box<[i64]>>,
        ours: Option<Ours>,
        access: Access,
    ) -> Self {
        Self {
            tensor,
            strides,
            ours,
            access,
        }
    }

    /// The same export in the legacy struct. Only for a block of ours.
    pub(crate) fn legacy_in_place(self) -> Self {
        let (Struct::Versioned(tensor), Some(ours)) = (self.tensor, self.ours) else {
            return self;
        };
        let access = self.access;
        self.forget();
        // SAFETY: `to_legacy` belongs to this very block, which nobody else uses.
        let tensor = Struct::Legacy(unsafe { (ours.block.to_legacy)(tensor) });
        Self::new(tensor, None, Some(ours), access)
    }

    /// A tensor of ours that nobody has seen yet, in the form that the plan asks for. The legacy struct only where that
    /// can say all there is to say.
    pub(crate) fn stamped(self, plan: &Plan) -> Self {
        if plan.abi == Abi::Legacy {
            return self.legacy_in_place();
        }
        if let Struct::Versioned(tensor) = self.tensor {
            // SAFETY: this is the one owner of a valid struct.
            unsafe { (*tensor.as_ptr()).flags = plan.flags };
        }
        self
    }

    /// Whether a consumer finds all that it may look for: we take a tensor without strides or without
    /// a deleter, but never hand one out.
    // LAY-02, CAP-08
    pub(crate) fn is_complete(&self) -> bool {
        let (_, has_deleter) = self.tensor.context();
        has_deleter && self.strides.is_none()
    }

    /// Whether the tensor says something that the legacy struct cannot.
    pub(crate) fn flags_matter(&self) -> bool {
        let view = self.view();
        view.is_read_only() || view.dtype().is_padded()
    }

    /// What the tensor is.
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

    /// [`view`](Self::view), inlined into the caller.
    #[inline(always)]
    pub(crate) fn view_inlined(&self) -> TensorRef<'_> {
        let tensor = self.tensor.head();
        let shape = foreign::list(tensor.shape, tensor.ndim);
        let strides = match &self.strides {
            Some(computed) => computed,
            None => foreign::list(tensor.strides, tensor.ndim),
        };
        let (flags, version) = (
            self.tensor.flags(),
            self.tensor.versioned().map(|tensor| tensor.version.into()),
        );
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
            read_only: flag(abi::DLPACK_FLAG_BITMASK_READ_ONLY) || version.is_none(),
            shared: self.access.is_shared() && device.device_type.is_host_readable(),
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

    /// Removes the flag `IS_COPIED` from a block of this crate: others have the memory too.
    #[cold]
    pub(crate) fn unmark_copied(&mut self) {
        if let Struct::Versioned(tensor) = self.tensor {
            // SAFETY: this is the one owner of a valid struct.
            unsafe { (*tensor.as_ptr()).flags &= !abi::DLPACK_FLAG_BITMASK_IS_COPIED };
        }
    }

    /// Whether the memory is this tensor's alone: nobody writes it but through it, nor reads it.
    pub(crate) fn is_sole(&self) -> bool {
        self.ours.is_some_and(|ours| ours.sole) && self.access == Access::Exclusive
    }

    /// An export of ours over another tensor, and what is true of that.
    pub(crate) fn over(mut self, sole: bool, copied: bool) -> Self {
        if let Some(ours) = &mut self.ours {
            ours.sole &= sole;
        }
        if let (Struct::Versioned(tensor), true) = (self.tensor, copied) {
            // SAFETY: this is the one owner of a valid struct.
            unsafe { (*tensor.as_ptr()).flags |= abi::DLPACK_FLAG_BITMASK_IS_COPIED };
        }
        self
    }

    /// The tensor in a block of ours, to be changed, what leads to that block, and where its lists are.
    ///
    /// # Panics
    ///
    /// If it is not ours.
    pub(crate) fn block_mut(&mut self) -> (&mut abi::DLTensor, &mut *mut c_void, usize) {
        let ours = self
            .ours
            .expect("a block of somebody else is never changed");
        let (head, context) = self.tensor.head_mut();
        (head, context, ours.block.dims)
    }

    /// What the producer of a tensor finds its owner by, if it is released by one of these.
    pub(crate) fn released_by(
        &self,
        versioned: Deleter,
        legacy: LegacyDeleter,
    ) -> Option<*mut c_void> {
        self.tensor.released_by(versioned, legacy)
    }

    /// The elements, for writing in place.
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
    /// As [`TensorRef::as_slice`], and [`Error::ReadOnly`].
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
        // SAFETY: `slice_len` found `len` values of `T` at this aligned address, which the producer
        // lets us write. `&mut self` is the one way to them, by the contract of `from_raw`.
        Ok(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// The stream that the memory is written on, if it is an export of ours that named one.
    pub(crate) fn stream(&self) -> Option<Queue> {
        let block = self.ours?.block;
        // SAFETY: the context of the very block that the table was made for.
        unsafe { (block.stream)(self.tensor.context().0) }
    }

    pub(crate) fn legacy_policy(&self) -> LegacyPolicy {
        self.ours.map_or(LegacyPolicy::Copy, |ours| ours.legacy)
    }

    /// The struct of DLPack 1.0 and later, whose deleter is the caller's to call from now on; the tensor, if it is in
    /// the other one.
    pub(crate) fn give_up(self) -> Result<NonNull<abi::DLManagedTensorVersioned>, Self> {
        let Struct::Versioned(tensor) = self.tensor else {
            return Err(self);
        };
        self.forget();
        Ok(tensor)
    }

    /// The same for the struct from before.
    pub(crate) fn give_up_legacy(self) -> Result<NonNull<abi::DLManagedTensor>, Self> {
        let Struct::Legacy(tensor) = self.tensor else {
            return Err(self);
        };
        self.forget();
        Ok(tensor)
    }

    /// Whether it is an export of ours, which can be turned into the legacy struct where it stands.
    pub(crate) fn is_ours(&self) -> bool {
        self.ours.is_some()
    }

    /// The struct that the tensor is in.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    /// use dlpack_core::request::Abi;
    ///
    /// assert_eq!(vec![1_u8, 2].into_dlpack()?.abi(), Abi::Versioned);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn abi(&self) -> Abi {
        match self.tensor {
            Struct::Versioned(_) => Abi::Versioned,
            Struct::Legacy(_) => Abi::Legacy,
        }
    }

    /// Ends the duty to call the deleter.
    pub(crate) fn forget(self) {
        let mut this = ManuallyDrop::new(self);
        drop(this.strides.take());
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // SAFETY: ownership ends here, and this is the one release (CAP-09: which may be none).
        unsafe { self.tensor.release() };
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Managed").field(&self.view()).finish()
    }
}
