//! The struct of C that a tensor is in: that of DLPack 1.0 and later, or the one from before.
#![expect(unsafe_code, reason = "reads and releases structs of C")]

use core::{ffi::c_void, ptr, ptr::NonNull};

use crate::abi;

/// The deleter of a versioned struct.
pub(crate) type Deleter = unsafe extern "C" fn(*mut abi::DLManagedTensorVersioned);
/// That of a legacy one.
pub(crate) type LegacyDeleter = unsafe extern "C" fn(*mut abi::DLManagedTensor);

/// The C struct that a [`Managed`](crate::Managed) is the one owner of: it is valid until it is released or given up.
#[derive(Clone, Copy)]
pub(crate) enum Struct {
    Versioned(NonNull<abi::DLManagedTensorVersioned>),
    Legacy(NonNull<abi::DLManagedTensor>),
}

impl Struct {
    /// The tensor in it.
    #[inline]
    pub(super) fn head(&self) -> &abi::DLTensor {
        match self {
            // SAFETY: valid while there is a `Managed`, which this is borrowed from.
            Self::Versioned(tensor) => unsafe { &(*tensor.as_ptr()).dl_tensor },
            // SAFETY: as above.
            Self::Legacy(tensor) => unsafe { &(*tensor.as_ptr()).dl_tensor },
        }
    }

    /// The same to be changed, and what its producer finds the owner by.
    pub(super) fn head_mut(&mut self) -> (&mut abi::DLTensor, &mut *mut c_void) {
        match self {
            Self::Versioned(tensor) => {
                // SAFETY: as in `head`, and borrowed from its one owner.
                let tensor = unsafe { tensor.as_mut() };
                (&mut tensor.dl_tensor, &mut tensor.manager_ctx)
            }
            Self::Legacy(tensor) => {
                // SAFETY: as above.
                let tensor = unsafe { tensor.as_mut() };
                (&mut tensor.dl_tensor, &mut tensor.manager_ctx)
            }
        }
    }

    /// The struct itself, if it is that of DLPack 1.0 and later: it says more.
    pub(super) fn versioned(&self) -> Option<&abi::DLManagedTensorVersioned> {
        match self {
            // SAFETY: as in `head`.
            Self::Versioned(tensor) => Some(unsafe { tensor.as_ref() }),
            Self::Legacy(_) => None,
        }
    }

    /// The flags, which only the versioned struct has.
    pub(super) fn flags(&self) -> u64 {
        self.versioned().map_or(0, |tensor| tensor.flags)
    }

    /// What its producer finds the owner by, and whether there is anything to release.
    pub(super) fn context(&self) -> (*mut c_void, bool) {
        match self {
            Self::Versioned(tensor) => {
                // SAFETY: as in `head`.
                let tensor = unsafe { tensor.as_ref() };
                (tensor.manager_ctx, tensor.deleter.is_some())
            }
            Self::Legacy(tensor) => {
                // SAFETY: as in `head`.
                let tensor = unsafe { tensor.as_ref() };
                (tensor.manager_ctx, tensor.deleter.is_some())
            }
        }
    }

    /// What its producer finds the owner by, if the struct is released by one of these.
    pub(super) fn released_by(
        &self,
        versioned: Deleter,
        legacy: LegacyDeleter,
    ) -> Option<*mut c_void> {
        let is = match self {
            Self::Versioned(tensor) => {
                // SAFETY: as in `head`.
                let deleter = unsafe { (*tensor.as_ptr()).deleter };
                deleter.is_some_and(|deleter| ptr::fn_addr_eq(deleter, versioned))
            }
            Self::Legacy(tensor) => {
                // SAFETY: as in `head`.
                let deleter = unsafe { (*tensor.as_ptr()).deleter };
                deleter.is_some_and(|deleter| ptr::fn_addr_eq(deleter, legacy))
            }
        };
        is.then(|| self.context().0)
    }

    /// Calls the deleter.
    ///
    /// # Safety
    ///
    /// Nobody uses the struct afterwards.
    pub(super) unsafe fn release(self) {
        match self {
            // SAFETY: the one owner gives it up, by the caller's contract.
            Self::Versioned(tensor) => unsafe { abi::DLManagedTensorVersioned::release(tensor) },
            // SAFETY: as above.
            Self::Legacy(tensor) => unsafe { abi::DLManagedTensor::release(tensor) },
        }
    }
}
