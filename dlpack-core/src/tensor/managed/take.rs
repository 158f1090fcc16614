//! Takes ownership of tensors that another owner gives away, behind pointers of C.
#![expect(
    unsafe_code,
    reason = "takes ownership of tensors behind pointers of C"
)]

use core::ptr::NonNull;

use crate::tensor::c_struct::{ManagedStruct, PackedStruct};
use crate::tensor::foreign;
use crate::tensor::managed_facts::ManagedFacts;
use crate::{Error, Managed, Version, abi};

/// Takes ownership of a tensor that this crate exported. Unlike [`Managed::from_raw`], it does not check the tensor.
///
/// ```
/// use dlpack_core::{DLPack, binding::take_own};
///
/// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
/// // SAFETY: `into_raw` of this crate returned the pointer, and this is its only use.
/// let tensor = unsafe { take_own(pointer) };
/// assert_eq!(tensor.view().as_slice::<u8>()?, [1, 2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Safety
///
/// `tensor` comes from [`Managed::into_raw`], [`hand_over`](crate::binding::hand_over),
/// [`hand_over_plain`](crate::binding::hand_over_plain) or [`RawExport::into_raw`](crate::binding::RawExport::into_raw) of this crate,
/// and the struct has not been written to since. The contract of [`Managed::from_raw`] holds too.
#[inline]
#[must_use]
pub unsafe fn take_own(tensor: NonNull<abi::DLManagedTensorVersioned>) -> Managed {
    let tensor = ManagedStruct::Versioned(tensor);
    Managed::new(tensor, ManagedFacts::foreign(None))
}

/// Takes ownership of a tensor of a producer that may change its shape and strides later: those of a PyTorch tensor are the lists of the
/// tensor itself, which `x.t_()` changes. The result has copies of the lists. Otherwise like [`Managed::from_raw`].
///
/// ```
/// use dlpack_core::{DLPack, binding::take_versioned};
///
/// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
/// // SAFETY: `pointer` comes from `into_raw`, and this is its only use.
/// let managed = unsafe { take_versioned(pointer) }?;
/// assert_eq!(managed.view().shape(), [2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`Managed::from_raw`], and [`Error::OutOfMemory`].
///
/// # Safety
///
/// The contract of [`Managed::from_raw`], except that shape and strides may change after the call.
#[inline]
pub unsafe fn take_versioned(
    tensor: NonNull<abi::DLManagedTensorVersioned>,
) -> Result<Managed, Error> {
    // SAFETY: same contract as this function's.
    unsafe { Managed::take_or_release(tensor, true) }
}

/// [`take_versioned`] for the legacy struct.
///
/// ```
/// use dlpack_core::{DLPack, binding::take_legacy};
///
/// let pointer = vec![1_u8, 2].into_dlpack()?.into_legacy()?;
/// // SAFETY: `pointer` comes from `into_legacy`, and this is its only use.
/// let managed = unsafe { take_legacy(pointer) }?;
/// assert_eq!(managed.view().shape(), [2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`take_versioned`], except for the version.
///
/// # Safety
///
/// The contract of [`take_versioned`].
pub unsafe fn take_legacy(tensor: NonNull<abi::DLManagedTensor>) -> Result<Managed, Error> {
    // SAFETY: same contract as this function's.
    unsafe { Managed::of_legacy(tensor, true) }
}

impl Managed {
    /// Takes ownership of a tensor in the versioned struct of DLPack 1.0 and later.
    ///
    /// A tensor of another major version is released without reading its other fields.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: `pointer` comes from `into_raw`, and this is its only use.
    /// let managed = unsafe { Managed::from_raw(pointer) }?;
    /// assert_eq!(managed.view().shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Another major version, or a tensor that violates the format or exceeds the address space. The deleter has then been
    /// called, unless the struct is misaligned, because then not even the deleter can be read.
    ///
    /// # Safety
    ///
    /// - This function takes ownership of the struct that `tensor` points to: no other code writes the struct, its shape or
    ///   strides, or calls its deleter, and the deleter may be called on any thread.
    /// - If the major version is supported, `shape` and `strides` are null or have `ndim` entries for as long as the result lives, and
    ///   every item that they reach from `data + byte_offset` is memory of the device, which is initialised before it is read.
    /// - While the result lives, host-readable memory is written only through it. Otherwise the caller calls
    ///   [`Managed::shared`] before anything else. The flag `IS_COPIED` does not prove that there are no other writers: it is
    ///   a statement of the producer.
    #[inline(always)]
    pub unsafe fn from_raw(tensor: NonNull<abi::DLManagedTensorVersioned>) -> Result<Self, Error> {
        // SAFETY: same contract as this function's: an owned struct, valid shape and strides, no other writers.
        unsafe { Self::take_or_release(tensor, false) }
    }

    /// Takes ownership of a versioned tensor, and releases it on an error.
    ///
    /// # Safety
    ///
    /// The contract of [`of_versioned`](Self::of_versioned).
    #[inline(always)]
    unsafe fn take_or_release(
        tensor: NonNull<abi::DLManagedTensorVersioned>,
        copies_lists: bool,
    ) -> Result<Self, Error> {
        // SAFETY: same contract as this function's.
        unsafe { Self::of_versioned(tensor, copies_lists) }.inspect_err(|_| {
            if tensor.is_aligned() {
                // SAFETY: by this function's contract the tensor is owned; it was refused, so it is released only here.
                unsafe { abi::DLManagedTensorVersioned::release(tensor) }
            }
        })
    }

    /// Takes ownership of a versioned tensor like [`Managed::from_raw`], but on an error the caller keeps ownership.
    ///
    /// # Errors
    ///
    /// The errors of [`Managed::from_raw`].
    ///
    /// # Safety
    ///
    /// The contract of [`Managed::from_raw`].
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn try_from_raw(
        tensor: NonNull<abi::DLManagedTensorVersioned>,
    ) -> Result<Self, Error> {
        // SAFETY: same contract as this function's.
        unsafe { Self::of_versioned(tensor, false) }
    }

    /// Takes ownership of a versioned tensor, but on an error the caller keeps ownership. With `copies_lists`, the tensor has copies of its
    /// shape and strides.
    ///
    /// # Safety
    ///
    /// The contract of [`Managed::from_raw`]; with `copies_lists`, the lists may change after the call.
    #[inline(always)]
    unsafe fn of_versioned(
        tensor: NonNull<abi::DLManagedTensorVersioned>,
        copies_lists: bool,
    ) -> Result<Self, Error> {
        foreign::check_aligned(tensor)?;
        // SAFETY: by this function's contract the struct has at least the fields that all versions share, and `version`
        // is the first of them.
        let version = Version::from(unsafe { (*tensor.as_ptr()).version });
        if version.major != Version::CURRENT.major {
            return Err(Error::UnsupportedMajor {
                found: version,
                supported: Version::CURRENT,
            });
        }
        let tensor = PackedStruct::new(ManagedStruct::Versioned(tensor));
        let fields = tensor.fields();
        // SAFETY: by this function's contract each list is null or has `ndim` entries.
        let lists = unsafe { foreign::check_tensor(fields.tensor, fields.flags, copies_lists) }?;
        let facts = ManagedFacts::foreign(lists);
        Ok(Self { tensor, facts })
    }

    /// Takes ownership of a tensor in the legacy struct, from before DLPack 1.0.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_legacy()?;
    /// // SAFETY: `pointer` comes from `into_legacy`, and this is its only use.
    /// let managed = unsafe { Managed::from_legacy(pointer) }?;
    /// assert!(managed.view().is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Managed::from_raw`], except for the version, which a legacy struct does not have.
    ///
    /// # Safety
    ///
    /// The contract of [`Managed::from_raw`].
    pub unsafe fn from_legacy(tensor: NonNull<abi::DLManagedTensor>) -> Result<Self, Error> {
        // SAFETY: same contract as this function's.
        unsafe { Self::of_legacy(tensor, false) }
    }

    /// Takes ownership of a legacy tensor, also on an error. With `copies_lists`, the tensor has copies of its shape and strides.
    ///
    /// # Safety
    ///
    /// The contract of [`Managed::from_raw`]; with `copies_lists`, the lists may change after the call.
    unsafe fn of_legacy(
        tensor: NonNull<abi::DLManagedTensor>,
        copies_lists: bool,
    ) -> Result<Self, Error> {
        foreign::check_aligned(tensor)?;
        let tensor = ManagedStruct::Legacy(tensor);
        let mut managed = Self::new(tensor, ManagedFacts::foreign(None));
        let fields = managed.tensor.fields();
        // SAFETY: by this function's contract each list is null or has `ndim` entries.
        let lists = unsafe { foreign::check_tensor(fields.tensor, fields.flags, copies_lists) }?;
        managed.facts = ManagedFacts::foreign(lists);
        Ok(managed)
    }
}
