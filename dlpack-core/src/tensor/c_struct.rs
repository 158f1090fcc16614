//! The C struct of an owned tensor: versioned (DLPack 1.0 and later) or legacy.
#![expect(unsafe_code, reason = "reads and releases structs of C")]

use core::{ffi::c_void, ptr, ptr::NonNull};

use crate::abi;

/// The deleter of a versioned struct.
pub(crate) type Deleter = unsafe extern "C" fn(*mut abi::DLManagedTensorVersioned);
/// The deleter of a legacy struct.
pub(crate) type LegacyDeleter = unsafe extern "C" fn(*mut abi::DLManagedTensor);

/// The C struct owned by a [`Managed`](crate::Managed). It is valid until it is released or ownership is given away.
#[derive(Clone, Copy)]
pub(crate) enum ManagedStruct {
    Versioned(NonNull<abi::DLManagedTensorVersioned>),
    Legacy(NonNull<abi::DLManagedTensor>),
}

impl ManagedStruct {
    /// The `DLTensor` inside the struct.
    #[inline]
    pub(super) fn dl_tensor(&self) -> &abi::DLTensor {
        match self {
            // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
            Self::Versioned(tensor) => unsafe { &(*tensor.as_ptr()).dl_tensor },
            // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
            Self::Legacy(tensor) => unsafe { &(*tensor.as_ptr()).dl_tensor },
        }
    }

    /// The `DLTensor` for writing, and the `manager_ctx` by which the producer finds the owner.
    pub(super) fn dl_tensor_and_context_mut(&mut self) -> (&mut abi::DLTensor, &mut *mut c_void) {
        match self {
            Self::Versioned(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives; `&mut self` borrows it exclusively from it.
                let tensor = unsafe { tensor.as_mut() };
                (&mut tensor.dl_tensor, &mut tensor.manager_ctx)
            }
            Self::Legacy(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives; `&mut self` borrows it exclusively from it.
                let tensor = unsafe { tensor.as_mut() };
                (&mut tensor.dl_tensor, &mut tensor.manager_ctx)
            }
        }
    }

    /// The versioned struct, if it is one. It has a version and flags besides the tensor.
    pub(super) fn as_versioned(&self) -> Option<&abi::DLManagedTensorVersioned> {
        match self {
            // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
            Self::Versioned(tensor) => Some(unsafe { tensor.as_ref() }),
            Self::Legacy(_) => None,
        }
    }

    /// The flags; 0 for a legacy struct, which has none.
    pub(super) fn flags(&self) -> u64 {
        self.as_versioned().map_or(0, |tensor| tensor.flags)
    }

    /// The `manager_ctx` by which the producer finds the owner, and whether the struct has a deleter.
    pub(super) fn context_and_has_deleter(&self) -> (*mut c_void, bool) {
        match self {
            Self::Versioned(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let tensor = unsafe { tensor.as_ref() };
                (tensor.manager_ctx, tensor.deleter.is_some())
            }
            Self::Legacy(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let tensor = unsafe { tensor.as_ref() };
                (tensor.manager_ctx, tensor.deleter.is_some())
            }
        }
    }

    /// The `manager_ctx`, if the deleter of the struct is one of these two functions.
    pub(super) fn released_by(
        &self,
        versioned: Deleter,
        legacy: LegacyDeleter,
    ) -> Option<*mut c_void> {
        let is = match self {
            Self::Versioned(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let deleter = unsafe { (*tensor.as_ptr()).deleter };
                deleter.is_some_and(|deleter| ptr::fn_addr_eq(deleter, versioned))
            }
            Self::Legacy(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let deleter = unsafe { (*tensor.as_ptr()).deleter };
                deleter.is_some_and(|deleter| ptr::fn_addr_eq(deleter, legacy))
            }
        };
        is.then(|| self.context_and_has_deleter().0)
    }

    /// Calls the deleter.
    ///
    /// # Safety
    ///
    /// The struct is not used afterwards.
    pub(super) unsafe fn release(self) {
        match self {
            // SAFETY: by this function's contract the struct is not used afterwards; its one owner releases it.
            Self::Versioned(tensor) => unsafe { abi::DLManagedTensorVersioned::release(tensor) },
            // SAFETY: by this function's contract the struct is not used afterwards; its one owner releases it.
            Self::Legacy(tensor) => unsafe { abi::DLManagedTensor::release(tensor) },
        }
    }
}
