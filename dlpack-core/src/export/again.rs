//! A tensor that somebody made, exported again or given up as a pointer.

use core::ptr::NonNull;

use crate::export::DLPack;
use crate::export::ways::{again, export_moved, export_moved_unasked, subject, unordered};
use crate::request::{Consumer, Transfer, consumer, plan};
use crate::{Descriptor, Error, ExportRequest, Managed, Parts, abi, version::Abi};

impl Managed {
    /// Gives up the tensor in the struct of DLPack 1.0 and later. A foreign tensor is wrapped if
    /// it is a legacy one, or lacks strides or a deleter.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: the pointer is valid until its deleter is called.
    /// assert_eq!(unsafe { pointer.as_ref() }.dl_tensor.ndim, 1);
    /// // SAFETY: nobody else has the pointer.
    /// drop(unsafe { Managed::from_raw(pointer) }?);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If a tensor has to be wrapped and there is no memory for the wrapper, of some hundred bytes.
    #[must_use = "the tensor is leaked unless its deleter is called"]
    pub fn into_raw(self) -> NonNull<abi::DLManagedTensorVersioned> {
        let tensor = if self.is_complete() {
            match self.give_up() {
                Ok(tensor) => return tensor,
                Err(tensor) => tensor,
            }
        } else {
            self
        };
        let wrapped = export_moved_unasked(tensor, again)
            .expect("a checked tensor is described again without an error");
        wrapped.into_raw()
    }

    /// Gives up the tensor in the struct from before DLPack 1.0. Read-only data is copied, since
    /// that struct cannot say so, unless its producer said `legacy = "refuse"`.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_legacy()?;
    /// // SAFETY: nobody else has the pointer.
    /// drop(unsafe { Managed::from_legacy(pointer) }?);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LegacyReadOnly`], [`Error::LegacyPadded`], or a copy that cannot be made.
    pub fn into_legacy(self) -> Result<NonNull<abi::DLManagedTensor>, Error> {
        let tensor = if self.abi() == Abi::Versioned {
            self
        } else if self.is_complete() {
            match self.give_up_legacy() {
                Ok(tensor) => return Ok(tensor),
                Err(tensor) => tensor,
            }
        } else {
            return export_moved_unasked(self, again)?
                .legacy_in_place()
                .into_legacy();
        };
        if tensor.is_ours() && !tensor.flags_matter() {
            return tensor.legacy_in_place().into_legacy();
        }
        let request = ExportRequest {
            stream: unordered(tensor.view().device()),
            ..ExportRequest::default()
        };
        tensor.into_dlpack_with(&request)?.into_legacy()
    }
}

/// A tensor from elsewhere is exported again: its deleter runs when the new consumer is done.
impl DLPack for Managed {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Ok(Descriptor::of(self))
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        again(self)
    }

    fn into_dlpack(self) -> Result<Self, Error> {
        if self.abi() == Abi::Versioned {
            return Ok(self);
        }
        export_moved_unasked(self, again)
    }

    fn into_dlpack_with(mut self, request: &ExportRequest) -> Result<Self, Error> {
        let subject = subject(&Descriptor::of_mut(&mut self));
        let plan = plan(request, &subject)?;
        let as_it_is = plan.abi == Abi::Versioned
            && self.abi() == Abi::Versioned
            && plan.transfer == Transfer::Share
            && plan.device == subject.device
            && consumer(request, subject.device)? == Consumer::Unordered;
        if as_it_is {
            return Ok(self);
        }
        export_moved(self, again, request)
    }
}

impl<'a> Parts<'a> {
    /// The tensor that `tensor` is, computed on request: the descriptor owns it.
    #[doc(hidden)]
    pub fn via<T: DLPack + 'static>(self, tensor: T) -> Result<Descriptor<'a>, Error> {
        let mut descriptor = Descriptor::owning(tensor.into_dlpack()?);
        (descriptor.legacy, descriptor.release) = self.policies()?;
        Ok(descriptor)
    }
}
