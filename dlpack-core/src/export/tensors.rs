//! Structs with several named tensors.

use alloc::sync::Arc;

use crate::describe::record::{NamedDocs, Records};
use crate::error::text;
use crate::{Descriptor, Error, ExportRequest, Managed, TensorRef};
use crate::{export::finish::export_shared, loan::facts::NamedFacts};

/// An export that keeps a clone of the tensor's field instead of the whole struct; `None` if the field is not an `owner`, so that
/// the struct has to be kept.
pub type SharedTensor = Result<Option<Managed>, Error>;

/// A type that holds several tensors, each with a name. Derived for a struct with a key `tensor` or `columns`.
///
/// ```
/// use dlpack_core::{DLPack, DLPackTensors};
///
/// #[derive(DLPack)]
/// struct Batch {
///     #[dlpack(tensor(shape = [_, 4]))]
///     observations: Vec<f32>,
///     #[dlpack(tensor)]
///     rewards: Vec<f64>,
/// }
///
/// let batch = Batch { observations: vec![0.0; 8], rewards: vec![1.0, 2.0] };
/// assert_eq!(Batch::NAMES, ["observations", "rewards"]);
/// assert_eq!(batch.describe_tensor("observations")?.shape(), [2, 4]);
/// assert_eq!(batch.describe_rewards()?.shape(), [2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub trait DLPackTensors {
    /// The names: those of the tensors in declaration order, then those of the columns.
    const NAMES: &'static [&'static str];

    /// The compile-time facts of each tensor; see [`assert_exports!`](crate::assert_exports).
    #[doc(hidden)]
    const FACTS: &'static [NamedFacts] = &[];

    /// The doc comments of the tensors that have one, for `help()` in Python.
    #[doc(hidden)]
    const DOCS: &'static [NamedDocs] = &[];

    /// The tensor of this name.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTensor`], [`Error::Absent`] if the field is `None`, or an error of
    /// [`Parts::describe`](crate::Parts::describe).
    fn describe_tensor(&self, name: &str) -> Result<Descriptor<'_>, Error>;

    /// Whether the type has one list of records and no other tensor. Only such a type can be exported as a structured array.
    #[doc(hidden)]
    const HAS_RECORDS: bool = false;

    /// The list of records, if [`HAS_RECORDS`](Self::HAS_RECORDS) is true.
    #[doc(hidden)]
    fn records(&self) -> Option<Records<'_>> {
        None
    }

    /// The names that [`share_tensor`](Self::share_tensor) exports.
    #[doc(hidden)]
    const SHARED: &'static [&'static str] = &[];

    /// Exports the tensor of this name with a clone of its field as the owner, if the field has the key `owner`; `None` if the
    /// struct has to be kept.
    #[doc(hidden)]
    fn share_tensor(&self, name: &str, request: Option<&ExportRequest>) -> SharedTensor {
        let _ = (name, request);
        Ok(None)
    }

    /// The names that [`set_tensor`](Self::set_tensor) accepts.
    #[doc(hidden)]
    const SETTABLE: &'static [&'static str] = &[];

    /// Assigns a tensor's elements, or `None`, to the field of this name, if it has the key `set`.
    #[doc(hidden)]
    fn set_tensor(&mut self, name: &str, tensor: Option<Managed>) -> Result<(), Error> {
        let _ = tensor;
        let (name, known) = (text(name)?, Self::SETTABLE);
        Err(Error::NoSuchTensor { name, known })
    }

    /// Copies the elements of an array to the field of this name, if it has the key `set`. Returns `false`, with the field unchanged,
    /// if that needs a tensor of its own or fails; [`set_tensor`](Self::set_tensor) then returns the error.
    #[doc(hidden)]
    fn copy_to_tensor(&mut self, name: &str, view: &TensorRef<'_>) -> bool {
        let _ = (name, view);
        false
    }

    /// Exports the tensor of this name. The export holds another `Arc` to the struct or, with the key `owner`, a clone of the
    /// field.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use dlpack_core::{DLPack, DLPackTensors};
    ///
    /// #[derive(DLPack)]
    /// struct Stereo {
    ///     #[dlpack(tensor)]
    ///     left: Vec<f32>,
    ///     #[dlpack(tensor)]
    ///     right: Vec<f32>,
    /// }
    ///
    /// let sound = Arc::new(Stereo { left: vec![0.0; 2], right: vec![1.0; 2] });
    /// let right = sound.to_dlpack_tensor("right")?;
    /// assert_eq!(right.view().as_slice::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`DLPackTensors::describe_tensor`].
    fn to_dlpack_tensor(self: &Arc<Self>, name: &str) -> Result<Managed, Error>
    where
        Self: Sized + Send + Sync + 'static,
    {
        if let Some(shared) = self.share_tensor(name, None)? {
            return Ok(shared);
        }
        export_shared(self, |this| this.describe_tensor(name), None)
    }

    /// Exports the tensor of this name as a consumer requests it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use dlpack_core::{DLPack, DLPackTensors, ExportRequest};
    /// # #[derive(DLPack)]
    /// # struct Stereo { #[dlpack(tensor)] left: Vec<f32> }
    /// let sound = Arc::new(Stereo { left: vec![0.0; 2] });
    /// let request = ExportRequest { copy: Some(true), ..ExportRequest::versioned() };
    /// assert!(sound.to_dlpack_tensor_with("left", &request)?.view().is_copied());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`DLPackTensors::describe_tensor`] and [`plan`](crate::request::plan()).
    fn to_dlpack_tensor_with(
        self: &Arc<Self>,
        name: &str,
        request: &ExportRequest,
    ) -> Result<Managed, Error>
    where
        Self: Sized + Send + Sync + 'static,
    {
        if let Some(shared) = self.share_tensor(name, Some(request))? {
            return Ok(shared);
        }
        export_shared(self, |this| this.describe_tensor(name), Some(request))
    }
}
