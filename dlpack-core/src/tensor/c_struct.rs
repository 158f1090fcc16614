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

/// What both structs have. The compiler removes the loads of fields that are not used.
pub(super) struct StructFields<'a> {
    pub(super) tensor: &'a abi::DLTensor,
    /// The `manager_ctx` by which the producer finds the owner.
    pub(super) context: *mut c_void,
    /// The address of the deleter, if the struct has one.
    pub(super) deleter: Option<*const ()>,
    pub(super) flags: u64,
    pub(super) version: Option<Version>,
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

    /// The fields of the struct. A legacy struct has no flags, which is as if all were 0, and no version.
    #[inline(always)]
    pub(super) fn fields(&self) -> StructFields<'_> {
        match self.get() {
            ManagedStruct::Versioned(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let tensor = unsafe { &*tensor.as_ptr() };
                StructFields {
                    tensor: &tensor.dl_tensor,
                    context: tensor.manager_ctx,
                    deleter: tensor.deleter.map(|deleter| deleter as *const ()),
                    flags: tensor.flags,
                    version: Some(tensor.version.into()),
                }
            }
            ManagedStruct::Legacy(tensor) => {
                // SAFETY: the struct is valid while the owning `Managed` lives, and `self` is borrowed from it.
                let tensor = unsafe { &*tensor.as_ptr() };
                StructFields {
                    tensor: &tensor.dl_tensor,
                    context: tensor.manager_ctx,
                    deleter: tensor.deleter.map(|deleter| deleter as *const ()),
                    flags: 0,
                    version: None,
                }
            }
        }
    }

    /// The word, for [`release_raw`](Self::release_raw).
    #[inline(always)]
    pub(super) fn to_raw(&self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// Calls the deleter of a struct, given the word that [`to_raw`](Self::to_raw) returned.
    ///
    /// # Safety
    ///
    /// The contract of [`ManagedStruct::call_deleter`].
    pub(super) unsafe fn release_raw(packed: *mut c_void) {
        // SAFETY: by this function's contract the word of a `PackedStruct`, which is not null.
        let packed = Self(unsafe { NonNull::new_unchecked(packed) });
        // SAFETY: same contract as this function's.
        unsafe { packed.get().call_deleter() };
    }
}

impl ManagedStruct {
    /// Calls the deleter.
    ///
    /// # Safety
    ///
    /// The struct has one owner, the caller, and is not used afterwards.
    #[inline(always)]
    pub(super) unsafe fn call_deleter(self) {
        match self {
            // SAFETY: same contract as this function's.
            Self::Versioned(tensor) => unsafe { abi::DLManagedTensorVersioned::release(tensor) },
            // SAFETY: same contract as this function's.
            Self::Legacy(tensor) => unsafe { abi::DLManagedTensor::release(tensor) },
        }
    }
}

const _: () = {
    assert!(PackedStruct::LEGACY < align_of::<abi::DLManagedTensorVersioned>());
    assert!(PackedStruct::LEGACY < align_of::<abi::DLManagedTensor>());
};
