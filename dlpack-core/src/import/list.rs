//! Integers, and lists of them, that extents and strides are read back into.

use alloc::{boxed::Box, string::ToString, vec::Vec};

use crate::layout::{Int, shape::for_tuples};
use crate::{Error, Shape};

/// An integer that an extent, a stride or an offset is read back into.
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
    /// The integer, if it fits.
    #[doc(hidden)]
    fn from_int(what: &'static str, found: i64) -> Result<Self, Error>;
}

pub(super) fn bad_field(what: &'static str, found: impl ToString) -> Error {
    let found = found.to_string();
    Error::BadField { what, found }
}

macro_rules! from_ints {
    ($($int:ty)*) => {$(
        impl FromInt for $int {
            fn from_int(what: &'static str, found: i64) -> Result<Self, Error> {
                Self::try_from(found).map_err(|_| bad_field(what, found))
            }
        }
    )*};
}
from_ints!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

/// A list that extents or strides are read back into.
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
for_tuples!(from_tuples);
