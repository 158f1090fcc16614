//! Recognises exports of this crate by their deleter, and the owners of exports by their type.
#![expect(unsafe_code, reason = "looks at the owners of exports")]

use core::{any::TypeId, ffi::c_void, marker::PhantomData};

use crate::export::block::{
    self, UnfinishedExport, delete_legacy, delete_versioned, owner_at, vtable_of,
};
use crate::stream::{Queue, owner::StreamOwner};
use crate::tensor::managed_facts::BlockVtable;
use crate::{Descriptor, Device, Managed};

/// The device of a tensor, and the stream on which it is written.
#[derive(Clone, Copy)]
pub(super) struct StreamWork {
    device: Device,
    stream: Option<Queue>,
}

impl StreamWork {
    #[inline]
    pub(super) fn of(described: &Descriptor<'_>) -> Self {
        let Descriptor { device, stream, .. } = *described;
        Self { device, stream }
    }

    /// No work: the device of the tensor has no streams.
    #[inline]
    pub(super) fn none_on(device: Device) -> Self {
        debug_assert!(device.device_type.stream_api().is_none(), "no streams");
        Self {
            device,
            stream: None,
        }
    }
}

/// An export block of this crate that a tensor lies in.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    context: *mut c_void,
    vtable: &'static BlockVtable,
    tensor: PhantomData<&'a Managed>,
}

impl<'a> Block<'a> {
    /// The block of a tensor that this crate exported; also after the tensor was given away as a pointer and imported again.
    #[inline]
    pub(super) fn of(tensor: &'a Managed) -> Option<Self> {
        let context = tensor.released_by(delete_versioned, delete_legacy)?;
        Some(Self {
            context,
            // SAFETY: only this crate's exports have this deleter, or one of equal code, which reads the same table of the same
            // block. The block lives until the tensor is released.
            vtable: unsafe { vtable_of(context) },
            tensor: PhantomData,
        })
    }

    /// The owner, if it is exactly of type `O`. Consumers may be writing the memory that it owns.
    #[inline]
    pub(super) fn owner<O: 'static>(&self) -> Option<&'a O> {
        let is_owner = (self.vtable.owner_type)() == TypeId::of::<O>();
        // SAFETY: the table belongs to the block of this context, and says that its owner is an `O`. The block lives until the
        // tensor is released, and no other code uses its owner.
        is_owner.then(|| unsafe { owner_at(self.context) })
    }

    /// The owner, if it is of type `O` and its memory can be freed without regard to streams, or after the work on the stream on
    /// which a re-export is written.
    ///
    /// The owner of device memory is wrapped in a [`StreamOwner`], which frees it after the consumer's work. A re-export has a
    /// stream binding of its own, so it may skip the wrapper, provided that the wrapper is bound to the stream that the re-export
    /// is written on and to no other.
    #[inline]
    pub(super) fn owner_in_order<O: Send + 'static>(&self, work: StreamWork) -> Option<&'a O> {
        let plain = self.owner::<O>();
        if plain.is_some() || work.device.device_type.stream_api().is_none() {
            return plain;
        }
        self.wrapped_owner(work)
    }

    /// The owner in a [`StreamOwner`] that is bound to the stream of the re-export.
    #[cold]
    #[inline(never)]
    fn wrapped_owner<O: Send + 'static>(&self, work: StreamWork) -> Option<&'a O> {
        let StreamWork { device, stream } = work;
        if let Some(wrapper) = self.owner::<StreamOwner<O>>() {
            return wrapper.owner(device, stream);
        }
        let wrapper = self.owner::<StreamOwner<UnfinishedExport<O>>>()?;
        wrapper.owner(device, stream).map(UnfinishedExport::owner)
    }
}

/// Takes the owner out of an export of this crate that was never given away as a pointer, and frees the rest of the block.
/// Returns the tensor if its owner is not exactly of type `O`.
pub(super) fn take_owner_of_type<O: 'static>(tensor: Managed) -> Result<O, Managed> {
    let block = Block::of(&tensor).filter(|block| block.owner::<O>().is_some());
    match block.map(|block| block.context) {
        Some(context) if tensor.is_own_export() => {
            tensor.forget_struct();
            // SAFETY: the owner is an `O`, and the only tensor of the block was forgotten.
            Ok(unsafe { block::take_owner(context) })
        }
        _ => Err(tensor),
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    #[cfg(feature = "streams")]
    use super::{Block, Managed, StreamOwner, UnfinishedExport};
    use crate::{Buffer, DLPack, Device, Loan};

    struct OnGpu;

    impl Buffer for OnGpu {
        fn lend(&self) -> Loan<'_> {
            let start = core::ptr::without_provenance::<u8>(0x1000);
            // SAFETY: no code reads that memory.
            unsafe { Loan::from_raw_parts(start, 4, Device::cuda(0)) }
        }
    }

    /// Work on device memory may be pending when the tensor is dropped, also if no stream is named.
    #[cfg(feature = "streams")]
    #[test]
    fn device_memory_is_freed_in_stream_order() {
        fn is_owned_by<O: 'static>(tensor: &Managed) -> bool {
            let block = Block::of(tensor).expect("an export of this crate");
            block.owner::<O>().is_some()
        }
        let moved = OnGpu.into_dlpack().unwrap();
        assert!(is_owned_by::<StreamOwner<UnfinishedExport<OnGpu>>>(&moved));
        let shared = Arc::new(OnGpu).to_dlpack().unwrap();
        assert!(is_owned_by::<StreamOwner<Arc<OnGpu>>>(&shared));
    }

    /// Without drivers, nothing can order the work, so device memory is not exported.
    #[cfg(not(feature = "streams"))]
    #[test]
    fn device_memory_is_refused_without_streams() {
        let refusal = crate::Error::CannotOrder {
            device: Device::cuda(0),
        };
        assert_eq!(OnGpu.into_dlpack().unwrap_err(), refusal);
        assert_eq!(Arc::new(OnGpu).to_dlpack().unwrap_err(), refusal);
    }
}
