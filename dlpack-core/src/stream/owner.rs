//! `StreamOwner`: drops an owner of memory once no device work uses it.
#![expect(unsafe_code, reason = "takes the owner out of what is being dropped")]

use core::mem::ManuallyDrop;

use crate::Device;
use crate::stream::{Queue, state::StreamState};

/// An owner of memory that work on a device may still be using when it is dropped.
pub(crate) struct StreamOwner<O: Send + 'static> {
    state: StreamState,
    owner: ManuallyDrop<O>,
}

impl<O: Send + 'static> StreamOwner<O> {
    pub(crate) fn new(owner: O, state: StreamState) -> Self {
        Self {
            state,
            owner: ManuallyDrop::new(owner),
        }
    }

    /// The owner, if it may be dropped after work on this stream without the check of this type.
    pub(crate) fn owner(&self, device: Device, queue: Option<Queue>) -> Option<&O> {
        let in_order = self.state.frees_on(device, queue);
        in_order.then(|| &*self.owner)
    }

    pub(crate) fn stream_state(&self) -> &StreamState {
        &self.state
    }

    pub(crate) fn stream_state_mut(&mut self) -> &mut StreamState {
        &mut self.state
    }
}

impl<O: Send + 'static> Drop for StreamOwner<O> {
    fn drop(&mut self) {
        // SAFETY: the owner is taken once, in `drop`, after which no code uses `self`.
        let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
        self.state.release_owner(owner);
    }
}
