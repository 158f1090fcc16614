//! The way back: from an imported tensor to owned Rust values.
//!
//! The attributes of the export are read backwards: each field is asked for what it described.
//!
//! ```text
//!                     ┌── elements ── Vec, Box, Arc, array (a copy), SharedBuffer (the memory itself)
//! Managed ──[ Import ]┼── shape, strides, offset ── a list or an integer
//!                     └── device, dtype, order ── checked against the field
//! ```
//!
//! | file | job |
//! |---|---|
//! | this one | `FromDLPack` for whole values, `FromTensor` for the data |
//! | `reader` | `Import`: what the derive asks a tensor for, in which order it copies |
//! | `list` | the integers and lists that extents and strides are read back into |

pub(crate) mod list;
pub(crate) mod reader;

pub use list::{FromInt, FromList};

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::mem::take;

use crate::{Element, Error, Managed, SharedBuffer, TensorRef};
use crate::{element::Plain, error::room, import::reader::Import};

/// A type that a tensor can become.
///
/// Derive it with the attributes that describe the export. Fields that own their elements get a
/// copy in the order they need; a [`SharedBuffer`] adopts the memory as it is.
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
    note = "to read an array where it lies, use `dlpack_core::array::View`; as an argument of a Python function, `dlpack_pyo3::View<T, N>`"
)]
pub trait FromDLPack: Sized {
    /// The value that the tensor holds.
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
    /// Another data type, rank or extent than the type needs, memory that the processor cannot read, or no memory for what is
    /// read back; an `Arc<[T]>` std makes, which then ends the process.
    fn from_dlpack(tensor: Managed) -> Result<Self, Error>;

    /// Replaces the value by the one that the tensor holds. After an error the value is unchanged.
    #[doc(hidden)]
    fn replace_by(&mut self, tensor: Managed) -> Result<(), Error> {
        *self = Self::from_dlpack(tensor)?;
        Ok(())
    }

    /// Whether data type and rank are those of this type; an enum picks its variant by this.
    #[doc(hidden)]
    fn fits(tensor: &TensorRef<'_>) -> bool {
        let _ = tensor;
        true
    }
}

/// Data that a tensor's elements can go into.
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
    /// What the elements are.
    type Element: Element;

    /// Whether the memory is adopted, strides and all, rather than copied.
    #[doc(hidden)]
    const ADOPTS: bool = false;

    #[doc(hidden)]
    fn from_tensor(import: Import) -> Result<Self, Error>;

    #[doc(hidden)]
    fn replace(&mut self, import: Import) -> Result<(), Error> {
        *self = Self::from_tensor(import)?;
        Ok(())
    }

    /// Whether a tensor of any such rank will do.
    #[doc(hidden)]
    fn fits(tensor: &TensorRef<'_>) -> bool {
        tensor.dtype() == Self::Element::DTYPE
            && tensor.shape().len() > Self::Element::TRAILING.len()
            && (tensor.shape()).ends_with(Self::Element::TRAILING.extents())
    }
}

/// Closes `FromTensor`: what an import keeps count of is core's own affair.
pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<T, const N: usize> sealed::Sealed for [T; N] {}
impl<T: Plain> sealed::Sealed for SharedBuffer<T> {}

#[diagnostic::do_not_recommend]
impl<D: FromTensor> FromDLPack for D {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        Import::new::<D>(tensor)?.data::<D>()
    }

    fn replace_by(&mut self, tensor: Managed) -> Result<(), Error> {
        Import::new::<D>(tensor)?.replace(self)
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        D::fits(tensor)
    }
}

/// Lists that a vector becomes.
macro_rules! lists {
    ($($list:ty;)*) => {$(
        impl<T> sealed::Sealed for $list {}

        impl<T: Element> FromTensor for $list {
            type Element = T;

            fn from_tensor(import: Import) -> Result<Self, Error> {
                import.elements().map(Self::from)
            }

            fn replace(&mut self, import: Import) -> Result<(), Error> {
                let mut elements = Vec::from(take(self));
                let replaced = import.copy_elements(&mut elements);
                *self = Self::from(elements);
                replaced
            }
        }
    )*};
}
lists! {
    Vec<T>;
    Box<[T]>;
}

impl<T> sealed::Sealed for Arc<[T]> {}

impl<T: Element> FromTensor for Arc<[T]> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        let elements = import.elements()?;
        // They are copied behind two counts.
        room(size_of_val(&elements[..]).saturating_add(2 * size_of::<usize>()))?;
        Ok(Self::from(elements))
    }
}

impl<T: Element, const N: usize> FromTensor for [T; N] {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        import.count::<T>(N)?;
        let elements: Vec<T> = import.elements()?;
        Ok(Self::try_from(elements).unwrap_or_else(|_| unreachable!("so many were counted")))
    }
}

impl<T: Plain> FromTensor for SharedBuffer<T> {
    type Element = T;
    const ADOPTS: bool = true;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        import.adopt()
    }
}
