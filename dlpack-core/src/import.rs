//! Imports a tensor as an owned Rust value.
//!
//! The derive of `FromDLPack` uses the attributes of the export: each field is read from the part of the tensor that it
//! describes.
//!
//! ```text
//!                     ┌── elements ── Vec, Box, Arc, array (a copy), SharedBuffer (the memory itself)
//! Managed ──[ Import ]┼── shape, strides, offset ── a list or an integer
//!                     └── device, dtype, order ── checked against the field
//! ```
//!
//! | file | job |
//! |---|---|
//! | this file | `FromDLPack` for whole values, `FromTensor` for the data |
//! | `reader` | `Import`: reads the fields that the derive asks for, and copies the elements in the requested order |
//! | `list` | the integers and lists that shape and strides are read into |

pub(crate) mod list;
pub(crate) mod reader;

pub use list::{FromInt, FromList};

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::mem::take;

use crate::{Element, Error, Managed, SharedBuffer, TensorRef};
use crate::{element::Plain, error::check_memory, import::reader::Import};
use crate::{layout::extent::count_items, tensor::view::count_elements};

/// A type that can be constructed from a tensor.
///
/// Derive it with the attributes that describe the export. Fields that own their elements get a copy in the memory order
/// that they need. A [`SharedBuffer`] adopts the memory without a copy.
///
/// ```
/// use dlpack_core::{DLPack, FromDLPack};
///
/// #[derive(DLPack, FromDLPack)]
/// struct Image {
///     #[dlpack(data)]
///     pixels: Vec<f32>,
///     #[dlpack(shape)]
///     dims: [usize; 2],
/// }
///
/// let image = Image { pixels: vec![0.5; 6], dims: [2, 3] };
/// let back = Image::from_dlpack(image.into_dlpack()?)?;
/// assert_eq!(back.dims, [2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from a DLPack tensor",
    label = "`{Self}` does not implement `FromDLPack`",
    note = "add `#[derive(FromDLPack)]` to a struct or an enum of yours; else use a type that owns its elements: `Vec<T>`, `Box<[T]>`, `Arc<[T]>` or `SharedBuffer<T>`",
    note = "to read an array in place, use `dlpack_core::array::View`; as an argument of a Python function, `dlpack_pyo3::View<T, N>`"
)]
pub trait FromDLPack: Sized {
    /// Constructs a value from a tensor.
    ///
    /// ```
    /// use dlpack_core::{DLPack, FromDLPack};
    ///
    /// let tensor = [1_u8, 2, 3].into_dlpack()?;
    /// assert_eq!(Vec::<u8>::from_dlpack(tensor)?, [1, 2, 3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The tensor has another dtype, rank or axis size than the type needs, a byte is no valid `bool`, the memory is not
    /// host-readable, or there is no memory for the result; for an enum [`Error::NoVariant`]. A `SharedBuffer` also needs
    /// contiguous, aligned elements. If the allocation of an `Arc<[T]>` fails, std aborts the process instead.
    fn from_dlpack(tensor: Managed) -> Result<Self, Error>;

    /// Replaces the value by the one that the tensor holds. After an error the value is unchanged.
    #[doc(hidden)]
    fn replace_by(&mut self, tensor: Managed) -> Result<(), Error> {
        *self = Self::from_dlpack(tensor)?;
        Ok(())
    }

    /// Replaces the value by a copy of the elements. Returns `false`, with the value unchanged, if that needs a tensor of its own
    /// or fails; [`replace_by`](Self::replace_by) then returns the error.
    #[doc(hidden)]
    fn replace_by_view(&mut self, view: &TensorRef<'_>) -> bool {
        let _ = view;
        false
    }

    /// Whether dtype and rank of the tensor are those of this type. An enum selects its variant by this.
    #[doc(hidden)]
    fn fits(tensor: &TensorRef<'_>) -> bool {
        let _ = tensor;
        true
    }
}

/// A container that the elements of a tensor can be imported into.
///
/// ```
/// use dlpack_core::{DLPack, FromDLPack};
/// use dlpack_core::import::FromTensor;
///
/// fn there_and_back<D: FromTensor + DLPack + 'static>(data: D) -> Result<D, dlpack_core::Error> {
///     D::from_dlpack(data.into_dlpack()?)
/// }
/// assert_eq!(there_and_back(vec![1, 2, 3])?, [1, 2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take the elements of a DLPack tensor",
    label = "expected a type that owns its elements",
    note = "use `Vec<T>`, `Box<[T]>`, `Arc<[T]>` or `SharedBuffer<T>`"
)]
pub trait FromTensor: Sized + sealed::Sealed {
    /// The type of the elements.
    type Element: Element;

    /// Whether the container adopts the memory, with its strides, instead of copying it.
    #[doc(hidden)]
    const ADOPTS: bool = false;

    #[doc(hidden)]
    fn from_tensor(import: Import) -> Result<Self, Error>;

    #[doc(hidden)]
    fn replace(&mut self, import: Import) -> Result<(), Error> {
        *self = Self::from_tensor(import)?;
        Ok(())
    }

    /// Copies the elements, as [`FromDLPack::replace_by_view`] does.
    #[doc(hidden)]
    fn replace_by_view(&mut self, view: &TensorRef<'_>) -> bool {
        let _ = view;
        false
    }

    /// Whether dtype and trailing axes are those of the element type. The default accepts every rank above that, and an array
    /// without axes, which is one number.
    #[doc(hidden)]
    fn fits(tensor: &TensorRef<'_>) -> bool {
        fits_elements::<Self::Element>(tensor)
    }
}

fn fits_elements<T: Element>(tensor: &TensorRef<'_>) -> bool {
    tensor.dtype() == T::DTYPE
        && (tensor.shape().len() > T::TRAILING.len() || tensor.shape().is_empty())
        && tensor.shape().ends_with(T::TRAILING.extents())
}

/// Seals `FromTensor`, because `Import` is private.
pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<T, const N: usize> sealed::Sealed for [T; N] {}
impl<T: Plain> sealed::Sealed for SharedBuffer<T> {}

#[diagnostic::do_not_recommend]
impl<D: FromTensor> FromDLPack for D {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        Import::new::<D>(tensor)?.into_data::<D>()
    }

    fn replace_by(&mut self, tensor: Managed) -> Result<(), Error> {
        Import::new::<D>(tensor)?.replace(self)
    }

    fn replace_by_view(&mut self, view: &TensorRef<'_>) -> bool {
        D::replace_by_view(self, view)
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        D::fits(tensor)
    }
}

/// Implements `FromTensor` for lists that a vector converts into.
macro_rules! list_imports {
    ($($list:ty;)*) => {$(
        impl<T> sealed::Sealed for $list {}

        impl<T: Element> FromTensor for $list {
            type Element = T;

            fn from_tensor(import: Import) -> Result<Self, Error> {
                import.copy_elements().map(Self::from)
            }

            fn replace(&mut self, import: Import) -> Result<(), Error> {
                let mut elements = Vec::from(take(self));
                let replaced = import.replace_elements(&mut elements);
                *self = Self::from(elements);
                replaced
            }

            fn replace_by_view(&mut self, view: &TensorRef<'_>) -> bool {
                let mut elements = Vec::from(take(self));
                let copied = view.copy_to_vec(&mut elements);
                *self = Self::from(elements);
                copied.is_ok()
            }
        }
    )*};
}
list_imports! {
    Vec<T>;
    Box<[T]>;
}

impl<T> sealed::Sealed for Arc<[T]> {}

impl<T: Element> FromTensor for Arc<[T]> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        let elements = import.copy_elements()?;
        // An `Arc` copies the elements to a new allocation, after two counts.
        check_memory(size_of_val(&elements[..]).saturating_add(2 * size_of::<usize>()))?;
        Ok(Self::from(elements))
    }
}

impl<T: Element, const N: usize> FromTensor for [T; N] {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        import.check_count::<T>(N)?;
        let elements: Vec<T> = import.copy_elements()?;
        Ok(Self::try_from(elements).unwrap_or_else(|_| unreachable!("so many were counted")))
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        let items = count_items(tensor.shape());
        fits_elements::<T>(tensor) && items.is_some_and(|items| count_elements::<T>(items) == N)
    }
}

impl<T: Plain> FromTensor for SharedBuffer<T> {
    type Element = T;
    const ADOPTS: bool = true;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        import.adopt_memory()
    }
}
