//! Integers and lists that shape, strides and offset are imported into.

use alloc::{boxed::Box, vec::Vec};
use core::{any::type_name, fmt::Display};

use crate::layout::{Int, shape::for_tuples};
use crate::{Error, Shape, error::text};

/// An integer type that an extent, a stride or an offset is imported into.
///
/// ```
/// fn may_take_an_extent<I: dlpack_core::import::FromInt>() {}
///
/// may_take_an_extent::<u32>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take an extent, a stride or an offset",
    label = "expected an integer such as `usize`, `u32` or `i64`"
)]
pub trait FromInt: Int + Sized {
    /// Converts the value, or returns an error if it does not fit.
    #[doc(hidden)]
    fn from_int(what: &'static str, found: i64) -> Result<Self, Error>;
}

macro_rules! from_ints {
    ($($int:ty)*) => {$(
        impl FromInt for $int {
            fn from_int(what: &'static str, found: i64) -> Result<Self, Error> {
                Self::try_from(found).map_err(|_| bad_field::<Self>(what, found))
            }
        }
    )*};
}
from_ints!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

#[cold]
pub(super) fn bad_field<T>(what: &'static str, found: impl Display) -> Error {
    let needed = type_name::<T>();
    let error = |found| Error::BadField {
        what,
        found,
        needed,
    };
    text(found).map_or_else(|error| error, error)
}

/// A list type that a shape or strides are imported into.
///
/// ```
/// fn may_take_a_shape<L: dlpack_core::import::FromList>() {}
///
/// may_take_a_shape::<[usize; 3]>();
/// may_take_a_shape::<(u32, u32)>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take a list of extents or strides",
    label = "expected `[I; N]`, `Vec<I>`, `Box<[I]>` or a tuple of integers"
)]
pub trait FromList: Shape + Sized {
    /// Converts the list, or returns an error if its length or one of its values does not fit.
    #[doc(hidden)]
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error>;
}

impl<I: FromInt> FromList for Vec<I> {
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
        let mut list = Self::new();
        let bytes = size_of_val(found);
        let reserved = list.try_reserve_exact(found.len());
        reserved.map_err(|_| Error::OutOfMemory { bytes })?;
        for &int in found {
            list.push(I::from_int(what, int)?);
        }
        Ok(list)
    }
}

impl<I: FromInt> FromList for Box<[I]> {
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
        Vec::from_list(what, found).map(Vec::into_boxed_slice)
    }
}

impl<I: FromInt, const N: usize> FromList for [I; N] {
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
        let wrong_rank = Error::Rank {
            found: found.len(),
            needed: N,
        };
        if found.len() != N {
            return Err(wrong_rank);
        }
        Self::try_from(Vec::from_list(what, found)?).map_err(|_| wrong_rank)
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
for_tuples!(from_tuples);
