//! The way back: from an imported tensor to owned Rust values.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::element::Element;
use crate::error::Error;
use crate::import::Import;
use crate::managed::Managed;
use crate::view::TensorRef;

/// A type that a tensor can become.
///
/// Derive it with the attributes that describe the export. Fields that own their elements get a
/// copy in the order they need; a [`SharedBuffer`](crate::SharedBuffer) adopts the memory as it is.
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
    label = "expected a type that owns its elements",
    note = "use `Vec<T>`, `Box<[T]>`, `Arc<[T]>` or `SharedBuffer<T>`, or add `#[derive(FromDLPack)]` to it"
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
    /// Another data type, rank or extent than the type needs, or memory that the processor cannot read.
    fn from_dlpack(tensor: Managed) -> Result<Self, Error>;

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
/// use dlpack_core::{DLPack, FromDLPack, FromTensor};
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
pub trait FromTensor: Sized {
    /// What the elements are.
    type Element: Element;

    /// Whether the memory is adopted, strides and all, rather than copied.
    #[doc(hidden)]
    const ADOPTS: bool = false;

    /// Takes the elements.
    ///
    /// # Errors
    ///
    /// As [`FromDLPack::from_dlpack`].
    fn from_tensor(import: Import) -> Result<Self, Error>;

    /// Whether a tensor of any such rank will do.
    #[doc(hidden)]
    fn fits(tensor: &TensorRef<'_>) -> bool {
        tensor.dtype() == Self::Element::DTYPE
            && tensor.shape().len() > Self::Element::TRAILING.len()
            && (tensor.shape()).ends_with(Self::Element::TRAILING.extents())
    }
}

impl<D: FromTensor> FromDLPack for D {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        Import::new::<D>(tensor)?.data::<D>()
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        D::fits(tensor)
    }
}

impl<T: Element> FromTensor for Vec<T> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        import.elements()
    }
}

impl<T: Element> FromTensor for Box<[T]> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        Ok(import.elements()?.into_boxed_slice())
    }
}

impl<T: Element> FromTensor for Arc<[T]> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        Ok(import.elements()?.into())
    }
}

impl<T: Element, const N: usize> FromTensor for [T; N] {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        let elements: Vec<T> = import.elements()?;
        let found = elements.len();
        Self::try_from(elements).map_err(|_| Error::Extent {
            axis: 0,
            found: i64::try_from(found).unwrap_or(i64::MAX),
            needed: N.to_string(),
        })
    }
}

/// An integer that an extent, a stride or an offset is read back into.
///
/// ```
/// fn may_take_an_extent<I: dlpack_core::FromInt>() {}
///
/// may_take_an_extent::<u32>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take an extent, a stride or an offset",
    label = "expected an integer such as `usize`, `u32` or `i64`"
)]
pub trait FromInt: Sized {
    /// The integer, if it fits.
    #[doc(hidden)]
    fn from_int(what: &'static str, found: i64) -> Result<Self, Error>;
}

macro_rules! from_ints {
    ($($int:ty)*) => {$(
        impl FromInt for $int {
            fn from_int(what: &'static str, found: i64) -> Result<Self, Error> {
                Self::try_from(found).map_err(|_| Error::BadField {
                    what,
                    found: found.to_string(),
                })
            }
        }
    )*};
}
from_ints!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

/// A list that extents or strides are read back into.
///
/// ```
/// fn may_take_a_shape<L: dlpack_core::FromList>() {}
///
/// may_take_a_shape::<[usize; 3]>();
/// may_take_a_shape::<(u32, u32)>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take a list of extents or strides",
    label = "expected `[I; N]`, `Vec<I>`, `Box<[I]>` or a tuple of integers"
)]
pub trait FromList: Sized {
    /// The list, if its length and its integers fit.
    #[doc(hidden)]
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error>;
}

impl<I: FromInt> FromList for Vec<I> {
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
        found.iter().map(|&int| I::from_int(what, int)).collect()
    }
}

impl<I: FromInt> FromList for Box<[I]> {
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
        Vec::from_list(what, found).map(Vec::into_boxed_slice)
    }
}

impl<I: FromInt, const N: usize> FromList for [I; N] {
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
        Self::try_from(Vec::from_list(what, found)?).map_err(|list| Error::Rank {
            found: list.len(),
            needed: N,
        })
    }
}

macro_rules! from_tuples {
    ($($rank:literal: $($name:ident $index:tt)*;)*) => {$(
        impl<$($name: FromInt),*> FromList for ($($name,)*) {
            fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
                if found.len() != $rank {
                    return Err(Error::Rank { found: found.len(), needed: $rank });
                }
                Ok(($($name::from_int(what, found[$index])?,)*))
            }
        }
    )*};
}
from_tuples! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
}
