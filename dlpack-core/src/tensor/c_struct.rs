//! The C struct of an owned tensor: versioned (DLPack 1.0 and later) or legacy; and its address in one word.
#![expect(unsafe_code, reason = "reads and releases structs of C")]

use core::{ffi::c_void, ptr::NonNull};

use crate::{Version, abi};

/// The C struct owned by a [`Managed`](crate::Managed). It is valid until it is released or ownership is given away.
#[derive(Clone, Copy)]
pub(crate) enum ManagedStruct {
    Versioned(NonNull<abi::DLManagedTensorVersioned>),
    Legacy(NonNull<abi::DLManagedTensor>),
}

/// A [`ManagedStruct`] in one word: its address, with the lowest bit set if the struct is legacy.
pub(super) struct PackedStruct(NonNull<c_void>);

impl PackedStruct {
    const LEGACY: usize = 1;

    #[inline(always)]
    pub(super) fn new(tensor: ManagedStruct) -> Self {
        Self(match tensor {
            ManagedStruct::Versioned(tensor) => tensor.cast(),
            ManagedStruct::Legacy(tensor) => {
                tensor.cast().map_addr(|address| address | Self::LEGACY)
            }
        })
    }

    #[inline(always)]
    pub(super) fn get(&self) -> ManagedStruct {
        let tensor = self.0.as_ptr();
        if tensor.addr() & Self::LEGACY == 0 {
            return ManagedStruct::Versioned(self.0.cast());
        }
        let legacy = tensor.map_addr(|address| address & !Self::LEGACY);
        // SAFETY: `new` set the bit in the address of a struct, whose alignment leaves that bit free; without it the address is
        // that of the struct, which is not null.
        ManagedStruct::Legacy(unsafe { NonNull::new_unchecked(legacy.cast()) })
    }

    /// The `DLTensor` inside the struct.
    #[inline]
    pub(super) fn dl_tensor(&self) -> &abi::DLTensor {
        match self.get() {
            // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
            ManagedStruct::Versioned(tensor) => unsafe { &(*tensor.as_ptr()).dl_tensor },
            // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
            ManagedStruct::Legacy(tensor) => unsafe { &(*tensor.as_ptr()).dl_tensor },
        }
    }

    /// The `DLTensor` for writing, and the `manager_ctx` by which the producer finds the owner.
    pub(super) fn dl_tensor_and_context_mut(&mut self) -> (&mut abi::DLTensor, &mut *mut c_void) {
        match self.get() {
            ManagedStruct::Versioned(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives; `&mut self` borrows it exclusively from it.
                let tensor = unsafe { &mut *tensor.as_ptr() };
                (&mut tensor.dl_tensor, &mut tensor.manager_ctx)
            }
            ManagedStruct::Legacy(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives; `&mut self` borrows it exclusively from it.
                let tensor = unsafe { &mut *tensor.as_ptr() };
                (&mut tensor.dl_tensor, &mut tensor.manager_ctx)
            }
        }
    }

    /// The tensor, the flags and the version. A legacy struct has no flags, which is as if all were 0, and no version.
    #[inline(always)]
    pub(super) fn fields(&self) -> (&abi::DLTensor, u64, Option<Version>) {
        match self.get() {
            ManagedStruct::Versioned(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let tensor = unsafe { &*tensor.as_ptr() };
                (&tensor.dl_tensor, tensor.flags, Some(tensor.version.into()))
            }
            ManagedStruct::Legacy(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                (unsafe { &(*tensor.as_ptr()).dl_tensor }, 0, None)
            }
        }
    }

    /// The flags; 0 for a legacy struct, which has none.
    pub(super) fn flags(&self) -> u64 {
        self.fields().1
    }

    /// The `manager_ctx` by which the producer finds the owner, and whether the struct has a deleter.
    pub(super) fn context_and_has_deleter(&self) -> (*mut c_void, bool) {
        match self.get() {
            ManagedStruct::Versioned(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let tensor = unsafe { &*tensor.as_ptr() };
                (tensor.manager_ctx, tensor.deleter.is_some())
            }
            ManagedStruct::Legacy(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let tensor = unsafe { &*tensor.as_ptr() };
                (tensor.manager_ctx, tensor.deleter.is_some())
            }
        }
    }

    /// The `manager_ctx`, if the deleter of the struct is one of these.
    #[inline]
    pub(super) fn released_by(
        &self,
        versioned: unsafe extern "C" fn(*mut abi::DLManagedTensorVersioned),
        legacy: unsafe extern "C" fn(*mut abi::DLManagedTensor),
    ) -> Option<*mut c_void> {
        let (context, is_released) = match self.get() {
            ManagedStruct::Versioned(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let tensor = unsafe { &*tensor.as_ptr() };
                let deleter = tensor.deleter.map(|deleter| deleter as *const ());
                (tensor.manager_ctx, deleter == Some(versioned as *const ()))
            }
            ManagedStruct::Legacy(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let tensor = unsafe { &*tensor.as_ptr() };
                let deleter = tensor.deleter.map(|deleter| deleter as *const ());
                (tensor.manager_ctx, deleter == Some(legacy as *const ()))
            }
        };
        is_released.then_some(context)
    }

    /// Calls the deleter.
    ///
    /// # Safety
    ///
    /// The struct is not used afterwards.
    pub(super) unsafe fn release(&mut self) {
        match self.get() {
            // SAFETY: by this function's contract the struct is not used afterwards; its one owner releases it.
            ManagedStruct::Versioned(tensor) => unsafe {
                abi::DLManagedTensorVersioned::release(tensor)
            },
            // SAFETY: by this function's contract the struct is not used afterwards; its one owner releases it.
            ManagedStruct::Legacy(tensor) => unsafe { abi::DLManagedTensor::release(tensor) },
        }
    }
}

const _: () = {
    assert!(PackedStruct::LEGACY < align_of::<abi::DLManagedTensorVersioned>());
    assert!(PackedStruct::LEGACY < align_of::<abi::DLManagedTensor>());
};
