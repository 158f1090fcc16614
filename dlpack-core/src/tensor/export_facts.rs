//! What is known about a tensor that this crate exported, beyond its struct.

use core::{any::TypeId, ffi::c_void, ptr::NonNull};

use crate::{LegacyPolicy, abi, stream::Queue};

/// Functions of an export block, which depend on the type of its owner.
pub(crate) struct BlockVtable {
    /// The offset of shape and strides in the block.
    pub(crate) dims: usize,
    /// Converts the struct in the block to the legacy struct, in place.
    pub(crate) to_legacy:
        unsafe fn(NonNull<abi::DLManagedTensorVersioned>) -> NonNull<abi::DLManagedTensor>,
    /// Returns the type of the owner.
    pub(crate) owner_type: fn() -> TypeId,
    /// Returns the stream that the owner's memory is written on, given the block's context.
    pub(crate) stream: unsafe fn(*mut c_void) -> Option<Queue>,
}

/// Facts about an export of this crate, kept until it is given away as a pointer.
#[derive(Clone, Copy)]
pub(crate) struct ExportFacts {
    pub(crate) block: &'static BlockVtable,
    pub(crate) legacy: LegacyPolicy,
    /// Whether no other code can access the memory.
    pub(crate) is_unique: bool,
}
