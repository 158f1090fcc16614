//! Handing a tensor over: from a description, and the owner that keeps its memory, to a struct that any consumer releases.
//!
//! Everybody comes in by a door, with a value, an `Arc`, a clone or a borrow; the description is planned, and one finisher
//! follows the plan. What it gives is one allocation, whose deleter drops the owner, on whatever thread.
//!
//! ```text
//! DLPack, DLPackTensors, Managed again, a binding      the doors
//!        │ describe
//!        ▼
//! Descriptor ──plan──> Way ──┬─ Share ──────────────> owner ──┐
//!                            ├─ CopyHost, CopyDevice ─> copy ─┼──> block { struct, owner, shape, strides } ──> Managed
//!                            └─ AlreadyCopied ────────────────┘        └─ its deleter drops the owner
//! ```
//!
//! | file | job |
//! |---|---|
//! | this one | the trait [`DLPack`], the door of values and of `Arc`s |
//! | `extras` | what a type says beside its description: one hidden table |
//! | `tensors` | the door of structs with several tensors |
//! | `hand_over` | the door of a binding, and back: an owner that is released without its deleter |
//! | `strided` | the door of memory that another protocol describes, in bytes |
//! | `offer` | a tensor that code of the user may take or refuse, and so its caller may get back |
//! | `layer` | exports of what was exported before, and who keeps the memory below them |
//! | `root` | exports of memory that keeps itself, however often it was exported before |
//! | `owner_field` | exports by a clone of the field that is marked `owner` |
//! | `cuts` | parts of a tensor, which keep the whole; and its bytes as other items |
//! | `ways` | from each door to `finish`, the one function that follows a plan; the door of tensors that were exported before |
//! | `fresh` | copies that the processor makes, and zeros: new memory, which `tensor::view` fills |
//! | `device` | memory of devices: shared in the order of streams, or who copies it: the processor or a driver |
//! | `copies` | copies that drivers make: new memory, and the order of streams around it; `stream::visit` moves the bytes |
//! | `dims_storage` | where that allocation keeps shape and strides |
//! | `block` | the allocation: the struct, the owner, shape and strides where the consumer finds them; and the deleter, which drops that owner |
//!
//! Whether a tensor is read-only is decided in `describe::check`, what its consumer is told in `request::plan`; the event that
//! makes a consumer wait for the producer is asked for in `stream::order`.

pub(crate) mod block;
#[cfg(feature = "std")]
pub(crate) mod copies;
pub(crate) mod cuts;
pub(crate) mod device;
pub(crate) mod dims_storage;
pub(crate) mod extras;
pub(crate) mod fresh;
pub(crate) mod hand_over;
pub(crate) mod layer;
pub(crate) mod offer;
pub(crate) mod owner_field;
pub(crate) mod root;
pub(crate) mod strided;
pub(crate) mod tensors;
pub(crate) mod ways;

use alloc::sync::Arc;

use crate::export::extras::{Extras, of_types, share_managed};
use crate::export::ways::{export_moved, export_shared};
use crate::{Buffer, Descriptor, Error, ExportRequest, Managed, Parts};

/// A type whose values are tensors.
///
/// Derive it; or implement [`describe`](DLPack::describe) by hand with [`Parts`]. Every [`Buffer`]
/// is one without further ado. The trait is safe: a [`Descriptor`] can only be had from memory
/// that was lent, after every element was found inside it.
///
/// ```
/// use std::sync::Arc;
/// use dlpack_core::DLPack;
///
/// #[derive(DLPack)]
/// struct Image {
///     #[dlpack(data)]
///     pixels: Vec<f32>,
///     #[dlpack(shape)]
///     dims: [usize; 2],
/// }
///
/// let image = Arc::new(Image { pixels: vec![0.5; 6], dims: [2, 3] });
/// let shared = image.to_dlpack()?;
/// assert_eq!(shared.view().as_ptr(), image.pixels.as_ptr().cast());
/// assert_eq!(shared.view().shape(), [2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a DLPack tensor",
    label = "`{Self}` neither is a tensor nor lends its elements",
    note = "add `#[derive(DLPack)]` to it, or mark the field that holds the elements with `#[dlpack(data)]`"
)]
pub trait DLPack: Send // a consumer may run the deleter on any thread
{
    /// What is known of its exports beside this.
    #[doc(hidden)]
    const EXTRAS: Extras<Self> = Extras::NONE;

    /// The tensor as it is seen through a shared reference.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert_eq!([1.0_f32, 2.0].describe()?.shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Whatever would make the tensor reach outside its memory.
    fn describe(&self) -> Result<Descriptor<'_>, Error>;

    /// The tensor as it is seen through an exclusive reference: writable, where the memory can be.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert!(!vec![1.0_f32, 2.0].describe_mut()?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`].
    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        self.describe()
    }

    /// Exports the value: it moves into the tensor, and is dropped when the consumer is done.
    ///
    /// The tensor is writable if the memory is the value's alone. Work that is queued on a stream is
    /// not waited for: between Rust and Rust that is the caller's to order.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let managed = vec![1.0_f32, 2.0].into_dlpack()?;
    /// assert!(!managed.view().is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`]. The value is dropped then.
    #[inline]
    fn into_dlpack(self) -> Result<Managed, Error>
    where
        Self: Sized + 'static,
    {
        export_moved(self, Self::describe_mut, None)
    }

    /// Exports the value as a consumer asks for it.
    ///
    /// ```
    /// use dlpack_core::{DLPack, ExportRequest};
    ///
    /// let request = ExportRequest { copy: Some(true), ..ExportRequest::versioned() };
    /// assert!(vec![1.0_f32, 2.0].into_dlpack_with(&request)?.view().is_copied());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`] and [`plan`](crate::request::plan()). The value is dropped then.
    #[inline]
    fn into_dlpack_with(self, request: &ExportRequest) -> Result<Managed, Error>
    where
        Self: Sized + 'static,
    {
        export_moved(self, Self::describe_mut, Some(request))
    }

    /// Exports the value without giving it up: the tensor holds another `Arc` to it.
    ///
    /// The tensor is read-only, unless the memory may be written through shared references. Order is
    /// the caller's, as for [`DLPack::into_dlpack`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use dlpack_core::DLPack;
    ///
    /// let samples = Arc::new(vec![1.0_f32, 2.0]);
    /// let managed = samples.to_dlpack()?;
    /// assert!(managed.view().is_read_only());
    /// assert_eq!(Arc::strong_count(&samples), 2);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`].
    #[inline]
    fn to_dlpack(self: &Arc<Self>) -> Result<Managed, Error>
    where
        Self: Sized + Sync + 'static,
    {
        if let Some(shared) = share_managed(&**self, None) {
            return shared;
        }
        export_shared(self, Self::describe, None)
    }

    /// Exports the value without giving it up, as a consumer asks for it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use dlpack_core::{DLPack, ExportRequest};
    ///
    /// let samples = Arc::new(vec![1.0_f32, 2.0]);
    /// let request = ExportRequest { copy: Some(false), ..ExportRequest::versioned() };
    /// let managed = samples.to_dlpack_with(&request)?;
    /// assert_eq!(managed.view().as_ptr(), samples.as_ptr().cast());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DLPack::describe`] and [`plan`](crate::request::plan()).
    #[inline]
    fn to_dlpack_with(self: &Arc<Self>, request: &ExportRequest) -> Result<Managed, Error>
    where
        Self: Sized + Sync + 'static,
    {
        if let Some(shared) = share_managed(&**self, Some(request)) {
            return shared;
        }
        export_shared(self, Self::describe, Some(request))
    }
}

impl<B: Buffer + ?Sized> DLPack for B {
    const EXTRAS: Extras<Self> = of_types(<B as Buffer>::FACTS);

    #[inline]
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Parts::new().describe(self.lend())
    }

    #[inline]
    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        Parts::new().describe_mut(self.lend_mut())
    }
}
