//! The contents of a [`Tensor`]: an exported or imported tensor, or a slice of that of another `Tensor`.
#![expect(unsafe_code, reason = "keeps the tensor of a slice or an array")]

use dlpack_core::binding::{PickedView, Root, TensorSlice, share_allocation};
use dlpack_core::{DLPack as _, Descriptor, Error, Managed, TensorRef};
use pyo3::prelude::*;

use crate::class::{array::numpy_of, tensor::Tensor};
use crate::error::{OrRaise, Raised, raise_core_error};
use crate::handover::find_root;
use crate::import::from_dlpack;
use crate::keepalive::{ExceptionSafeTensor, ObjectGuard, attached, attached::check_interpreter};
use crate::library::numpy::array_over_memory;

/// The contents of a [`Tensor`].
#[derive(Debug)]
pub(super) enum Contents {
    Whole(ExceptionSafeTensor),
    /// A slice, without an export block.
    Slice {
        /// The object with the tensor that the slice was selected from. Its contents are `Whole`.
        whole: Py<Tensor>,
        slice: TensorSlice,
    },
}

impl Contents {
    /// Creates an object for a slice of an object's tensor.
    #[inline(always)]
    pub(super) fn slice<'py>(
        object: &Bound<'py, Tensor>,
        select: impl FnOnce(&mut PickedView<'_>) -> Result<(), Raised>,
    ) -> PyResult<Bound<'py, Tensor>> {
        let py = object.py();
        let (whole, of) = match object.get().contents() {
            Self::Whole(_) => (object.as_borrowed(), None),
            Self::Slice { whole, slice } => (whole.bind_borrowed(py), Some(slice)),
        };
        let tensor = whole.get().contents().whole();
        let mut slice = TensorSlice::NONE;
        let selected = slice.select(tensor, of, select, |error| raise_core_error(py, &error));
        selected.or_fetch(py)?;
        let whole = (*whole).clone().unbind();
        Tensor::of_contents(py, Self::Slice { whole, slice })
    }

    /// The tensor, unless it is a slice.
    #[inline]
    pub(super) fn as_whole(&self) -> Option<&Managed> {
        match self {
            Self::Whole(tensor) => Some(tensor),
            Self::Slice { .. } => None,
        }
    }

    /// The tensor, or that of which it is a slice.
    #[inline]
    pub(super) fn whole(&self) -> &Managed {
        match self {
            Self::Whole(tensor) => tensor,
            Self::Slice { whole, .. } => whole.get().contents().whole(),
        }
    }

    #[inline]
    pub(super) fn view(&self) -> TensorRef<'_> {
        match self {
            Self::Whole(tensor) => tensor.view(),
            // SAFETY: `select` selected the slice from this tensor, or from another slice of it.
            Self::Slice { slice, .. } => unsafe { slice.view(self.whole()) },
        }
    }

    /// Calls `read` once the CPU may read the elements.
    #[inline]
    pub(super) fn read<R>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&TensorRef<'_>) -> Result<R, Raised>,
    ) -> PyResult<R> {
        let ready = attached::wait_until_readable(py, self.whole()).or_raise(py);
        ready.and_then(|()| read(&self.view())).or_fetch(py)
    }

    pub(super) fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        match self {
            Self::Whole(tensor) => tensor.describe_mut(),
            Self::Slice { .. } => self.describe(),
        }
    }

    #[inline]
    pub(super) fn describe(&self) -> Result<Descriptor<'_>, Error> {
        match self {
            Self::Whole(tensor) => tensor.describe(),
            // SAFETY: `select` selected the slice from this tensor, or from another slice of it.
            Self::Slice { slice, .. } => unsafe { slice.describe(self.whole()) },
        }
    }

    /// The tensor. Slices stay in the objects that `tensor[index]` returns.
    pub(super) fn into_whole(self) -> Managed {
        match self {
            Self::Whole(tensor) => tensor.into_inner(),
            Self::Slice { .. } => unreachable!("a slice is not moved out of its object"),
        }
    }
}

/// A NumPy array over the memory of a [`Tensor`]. The array's base keeps a shared allocation, or the object, or the object that the
/// tensor's memory came from.
pub(super) fn numpy_of_tensor<'py>(tensor: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
    let (py, object) = (tensor.py(), tensor.as_any());
    // Used where it is: a description is large, and each move of it copies it.
    if let Ok(described) = &tensor.get().contents().describe() {
        check_interpreter(py).or_fetch(py)?;
        let root = find_root(described);
        let allocation = match &root {
            Some(Root::Allocation) => share_allocation(described),
            _ => None,
        };
        let owner = || {
            let kept = match &root {
                Some(Root::Owner(root)) => root.object(py),
                _ => object.as_borrowed(),
            };
            ObjectGuard::new((), &kept)
        };
        let array = match allocation {
            // SAFETY: the handle keeps the allocation, which contains every item of the tensor.
            Some(allocation) => unsafe { array_over_memory(py, described, || allocation) },
            // SAFETY: the owner keeps the object with the tensor, which is frozen, or the object that the tensor keeps for its memory.
            None => unsafe { array_over_memory(py, described, owner) },
        };
        if let Some(array) = array {
            return array.or_fetch(py);
        }
    }
    numpy_of(object, None, |object, _| from_dlpack(object))
}
