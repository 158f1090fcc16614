//! An owner of memory that work on a device may still be using when it is dropped.
#![expect(unsafe_code, reason = "takes the owner out of what is being dropped")]

use core::mem::ManuallyDrop;

use crate::Device;
use crate::stream::{Queue, link::Link};

/// An owner of memory that work on a device may still be using when it is dropped.
pub(crate) struct StreamOwner<O: Send + 'static> {
    link: Link,
    owner: ManuallyDrop<O>,
}

impl<O: Send + 'static> StreamOwner<O> {
    pub(crate) fn new(owner: O, link: Link) -> Self {
        Self {
            link,
            owner: ManuallyDrop::new(owner),
        }
    }

    /// The owner, if it may be dropped without this behind work on such a stream.
    pub(crate) fn owner(&self, device: Device, queue: Option<Queue>) -> Option<&O> {
        let in_order = self.link.is_of(device, queue);
        in_order.then(|| &*self.owner)
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl<O: Send + 'static> Drop for StreamOwner<O> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here, and nobody sees `self` afterwards.
        let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
        self.link.release(owner);
    }
}
