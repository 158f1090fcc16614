//! [`Offer`]: passes a tensor to user code that may take ownership; ownership stays with the caller until it does.
#![expect(unsafe_code, reason = "lends a tensor that may go back to its caller")]

use core::ptr::NonNull;

use crate::export::finish::{export_with, unordered_request};
use crate::export::reexport::ReexportOwner;
use crate::{Descriptor, Error, Managed, abi::DLManagedTensorVersioned, memory::counted::Counted};

/// A tensor of a caller, passed to user code that may keep it, reject it, or keep it and then fail.
///
/// Once user code has the tensor it cannot be taken away. So ownership is decided when the offer is dropped: it stays with the
/// caller if no other code [holds](Offer::takers) the tensor then, and passes to the holders otherwise.
///
/// ```
/// use dlpack_core::binding::Offer;
/// use dlpack_core::{DLPack, Managed};
///
/// let tensor = vec![1.0_f32, 2.0].into_dlpack()?.into_raw();
/// // SAFETY: no other code uses the tensor, and below it is used again only after all takers were dropped.
/// let offer = unsafe { Offer::of(tensor) }?;
/// let taken = offer.take()?;
/// assert_eq!(offer.takers(), 1);
/// drop(taken);
/// assert_eq!(offer.takers(), 0);
/// drop(offer);
/// // SAFETY: the offer was dropped without takers, so the caller still owns the tensor.
/// drop(unsafe { Managed::from_raw(tensor) }?);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Offer(Option<Counted<Managed>>);

impl Offer {
    /// Wraps a tensor that other code may write at any time.
    ///
    /// # Errors
    ///
    /// Those of [`Managed::from_raw`], or a failed allocation. The caller then still owns the tensor.
    ///
    /// # Safety
    ///
    /// The contract of [`Managed::from_raw`], except that the caller owns the tensor again if the offer is dropped without
    /// takers.
    pub unsafe fn of(tensor: NonNull<DLManagedTensorVersioned>) -> Result<Self, Error> {
        // SAFETY: same contract as this function's; `shared` runs before the tensor is used, so other writers are permitted.
        let tensor = unsafe { Managed::try_from_raw(tensor) }?.shared();
        match Counted::new(tensor) {
            Ok(tensor) => Ok(Self(Some(tensor))),
            Err((tensor, bytes)) => {
                tensor.forget_struct();
                Err(Error::OutOfMemory { bytes })
            }
        }
    }

    /// A handle to the tensor, which may outlive the offer.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn take(&self) -> Result<Managed, Error> {
        let tensor = self.0.as_ref().expect("it is there until it is dropped");
        let mut descriptor = Descriptor::of_tensor(tensor)?;
        let request = unordered_request(descriptor.device);
        // SAFETY: the owner keeps the tensor alive at its address, and the tensor keeps its memory, which it shares with other
        // writers.
        unsafe { export_with(ReexportOwner(tensor.clone()), &mut descriptor, &request) }
    }

    /// The number of handles that are still alive.
    #[must_use]
    pub fn takers(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |tensor| tensor.reference_count() - 1)
    }

    /// Gives up the caller's ownership. The tensor is released when the last handle is dropped, at once if there is none.
    pub fn accept(mut self) {
        self.0 = None;
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(Ok(tensor)) = self.0.take().map(Counted::into_value) {
            tensor.forget_struct();
        }
    }
}
