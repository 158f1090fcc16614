//! [`Offer`]: a tensor that is still its caller's until it is known who else has it.
#![expect(unsafe_code, reason = "lends a tensor that may go back to its caller")]

use core::ptr::NonNull;

use crate::export::layer::Layer;
use crate::export::ways::{export_with, unordered_request};
use crate::{Descriptor, Error, Managed, abi::DLManagedTensorVersioned, memory::counted::Counted};

/// A caller's tensor, on its way to code that may take it, refuse it, or do both: keep it and fail.
///
/// What somebody has received cannot be revoked. So whether the tensor goes back to its caller is nobody's decision: it
/// does if the offer is dropped while nobody else [has](Offer::takers) it, and otherwise never again.
///
/// ```
/// use dlpack_core::binding::Offer;
/// use dlpack_core::{DLPack, Managed};
///
/// let tensor = vec![1.0_f32, 2.0].into_dlpack()?.into_raw();
/// // SAFETY: nobody else has the tensor, and it is used again only where nobody took it.
/// let offer = unsafe { Offer::of(tensor) }?;
/// let taken = offer.take()?;
/// assert_eq!(offer.takers(), 1);
/// drop(taken);
/// assert_eq!(offer.takers(), 0);
/// drop(offer);
/// // SAFETY: nobody has taken it.
/// drop(unsafe { Managed::from_raw(tensor) }?);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Offer(Option<Counted<Managed>>);

impl Offer {
    /// Offers a tensor, which others may write all the time.
    ///
    /// # Errors
    ///
    /// As [`Managed::from_raw`], or when there is no memory. The tensor is the caller's then.
    ///
    /// # Safety
    ///
    /// As [`Managed::from_raw`], but that the tensor is the caller's again if the offer is dropped while nobody has it.
    pub unsafe fn of(tensor: NonNull<DLManagedTensorVersioned>) -> Result<Self, Error> {
        // SAFETY: passed on to the caller; `shared` is called before anything else.
        let tensor = unsafe { Managed::try_from_raw(tensor) }?.shared();
        match Counted::new(tensor) {
            Ok(tensor) => Ok(Self(Some(tensor))),
            Err((tensor, bytes)) => {
                tensor.forget_struct();
                Err(Error::OutOfMemory { bytes })
            }
        }
    }

    /// The tensor, to keep for as long as one likes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn take(&self) -> Result<Managed, Error> {
        let tensor = self.0.as_ref().expect("until the end");
        let descriptor = Descriptor::of(tensor)?;
        let request = unordered_request(descriptor.device);
        // SAFETY: the owner keeps the tensor where it is, and the tensor its memory, which all may write.
        unsafe { export_with(Layer(tensor.clone()), descriptor, &request) }
    }

    /// How many have it.
    #[must_use]
    pub fn takers(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |tensor| tensor.reference_count() - 1)
    }

    /// The caller has given the tensor up: it is released when all who have it are done.
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
