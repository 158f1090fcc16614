//! Exports: from a description, and the owner that keeps its memory, to a struct that any consumer can release.
//!
//! Each entry point takes a value, an `Arc`, a clone or a borrow, and describes its tensor. The description is planned, and
//! `finish_export` carries the plan out. The result is one allocation. Its deleter drops the owner on any thread.
//!
//! ```text
//! DLPack, DLPackTensors, a re-export, a binding        the entry points
//!        │ describe
//!        ▼
//! Descriptor ──plan──> TransferPath ──┬─ Share ──────────────> owner ──┐
//!                                     ├─ CopyHost, CopyDevice ─> copy ─┼─> block { struct, owner, dims } ─> Managed
//!                                     └─ AlreadyCopied ────────────────┘       └─ its deleter drops the owner
//! ```
//!
//! | file | job |
//! |---|---|
//! | this file | the trait [`DLPack`]: exports of values and of `Arc`s |
//! | `extras` | optional properties of a type, in addition to its description: one hidden table |
//! | `tensors` | exports of structs with several tensors |
//! | `hand_over` | exports for a binding, whose owner can be released without the deleter |
//! | `strided` | exports from a buffer-protocol description, in bytes |
//! | `into_vec` | the way back: the `Vec` that was moved into a tensor |
//! | `offer` | a tensor passed to user code that may take ownership or reject it |
//! | `recognize` | the owner of an export that comes back as a pointer |
//! | `reexport` | re-exports, and the search for the owner below them |
//! | `root` | exports that hold a shared allocation directly, however often it was exported before |
//! | `shaped` | a buffer and its shape, for a tensor without a struct of its own |
//! | `owner_field` | exports that hold a clone of the field marked `owner` |
//! | `views` | views of a tensor, which keep the whole; its bytes as another data type |
//! | `finish` | `finish_export`, which carries out a plan, and the functions that lead to it; exports of imported tensors |
//! | `host_memory` | host copies for a consumer, and tensors of zeros; `memory::gather` moves the items of a copy |
//! | `device` | device memory: shared in stream order, or copied by the host or a driver |
//! | `device_copies` | copies by a driver: new memory, and the stream order around it; `stream::session` moves the bytes |
//! | `block` | the allocation: the struct, the owner, shape and strides; and the deleter, which drops the owner |
//! | `dims_storage` | where that allocation stores shape and strides |
//!
//! `describe::check` decides whether a tensor is read-only, and `request::plan` which flags its consumer gets. `stream::order`
//! decides whether a consumer's stream waits for an event, and `stream::session` records it.

pub(crate) mod block;
pub(crate) mod device;
#[cfg(feature = "streams")]
pub(crate) mod device_copies;
pub(crate) mod dims_storage;
pub(crate) mod extras;
pub(crate) mod finish;
pub(crate) mod hand_over;
pub(crate) mod host_memory;
mod into_vec;
pub(crate) mod offer;
pub(crate) mod owner_field;
mod recognize;
pub(crate) mod reexport;
pub(crate) mod root;
pub(crate) mod shaped;
pub(crate) mod strided;
pub(crate) mod tensors;
pub(crate) mod views;

use alloc::sync::Arc;

use crate::describe::parts::Annotation;
use crate::export::extras::{Extras, of_types, share_managed};
use crate::export::finish::{export_moved, export_shared};
use crate::export::root::share_as_root;
use crate::{Buffer, Descriptor, Error, ExportRequest, Managed, Parts};

/// A type that is exported as one tensor.
///
/// Derive it, or implement [`describe`](DLPack::describe) by hand with [`Parts`]. Every [`Buffer`] implements it. The trait is
/// safe to implement: a [`Descriptor`] can only be made from borrowed memory, after every element was found to lie inside it.
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
    label = "`{Self}` is neither a tensor nor a buffer",
    note = "add `#[derive(DLPack)]` to it, or mark the field that holds the elements with `#[dlpack(data)]`"
)]
pub trait DLPack: Send // a consumer may run the deleter on any thread: use `Arc` instead of `Rc`
{
    /// Optional properties of the type's exports, which `describe` does not tell.
    #[doc(hidden)]
    const EXTRAS: Extras<Self> = Extras::NONE;

    /// Describes the tensor as seen through a shared reference.
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
    /// Those of [`Parts::describe`](crate::Parts::describe), and [`Error::Skipped`] for a variant of an enum with `skip`.
    fn describe(&self) -> Result<Descriptor<'_>, Error>;

    /// Describes the tensor as seen through an exclusive reference: writable, if the memory can be written.
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
    /// Those of [`DLPack::describe`].
    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        self.describe()
    }

    /// Exports the value by moving it into the tensor. It is dropped when the consumer releases the tensor.
    ///
    /// The tensor is writable if the value alone owns the memory, unless its elements are `bool` outside of a
    /// [`SharedBuffer`](crate::SharedBuffer): not every byte is a value. Work that is queued on a stream is not waited for: for a
    /// consumer in Rust, ordering is the caller's task.
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
    /// Those of [`DLPack::describe`]; [`Error::OutOfMemory`]; for memory of a device [`Error::TooManyWait`] and
    /// [`Error::CannotOrder`]. The value is dropped then.
    #[inline]
    fn into_dlpack(self) -> Result<Managed, Error>
    where
        Self: Sized + 'static,
    {
        export_moved(self, Self::describe_mut, None)
    }

    /// Exports the value by moving it, as a consumer requests it.
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
    /// Those of [`DLPack::into_dlpack`] and [`plan`](crate::request::plan()), and those of a copy of device memory: of the driver,
    /// and [`Error::Capturing`]. The value is dropped then.
    #[inline]
    fn into_dlpack_with(self, request: &ExportRequest) -> Result<Managed, Error>
    where
        Self: Sized + 'static,
    {
        export_moved(self, Self::describe_mut, Some(request))
    }

    /// Exports the value without moving it: the tensor holds another `Arc` to it.
    ///
    /// The tensor is read-only, unless the memory may be written through shared references. Work that is queued on a stream is
    /// not waited for, as in [`DLPack::into_dlpack`].
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
    /// Those of [`DLPack::into_dlpack`].
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

    /// Exports the value without moving it, as a consumer requests it.
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
    /// Those of [`DLPack::into_dlpack_with`].
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
    const EXTRAS: Extras<Self> = {
        let facts = of_types(<B as Buffer>::FACTS);
        if <B as Buffer>::IS_ALLOCATION {
            facts.share(share_as_root)
        } else {
            facts
        }
    };

    #[inline]
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        // Other buffers do not instantiate what describes a layout.
        if const { <B as Buffer>::FACTS.has_own_layout() } {
            return Annotation::new().describe_placed(self.lend().memory);
        }
        Parts::new().describe(self.lend())
    }

    #[inline]
    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        Parts::new().describe_mut(self.lend_mut())
    }

    #[inline]
    fn into_dlpack(self) -> Result<Managed, Error>
    where
        Self: Sized + 'static,
    {
        if let Some(shared) = share_managed(&self, None) {
            return shared;
        }
        export_moved(self, Self::describe_mut, None)
    }

    #[inline]
    fn into_dlpack_with(self, request: &ExportRequest) -> Result<Managed, Error>
    where
        Self: Sized + 'static,
    {
        if let Some(shared) = share_managed(&self, Some(request)) {
            return shared;
        }
        export_moved(self, Self::describe_mut, Some(request))
    }
}
