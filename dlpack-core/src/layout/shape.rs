//! The types that can be shapes and strides: any list of any integers, read once, each number in range.
//!
//! Whether strides stay inside the memory is checked in `describe/check.rs`.
//!
//! If the type of a list determines its rank, the rank is a type too. So strides of the wrong rank are a compile error.

use alloc::{boxed::Box, vec::Vec};
use core::marker::PhantomData;

use crate::Error;
use crate::layout::dims::Dims;

/// An integer that can be an extent, a stride or an offset.
///
/// Every Rust integer is one, and so is a reference to one.
///
/// ```
/// fn may_be_an_extent(_: impl dlpack_core::layout::Int) {}
///
/// may_be_an_extent(3_u8);
/// may_be_an_extent(&3_usize);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an extent, a stride or an offset",
    label = "expected an integer such as `usize`, `u32` or `i64`"
)]
pub trait Int: sealed::Number {
    #[doc(hidden)]
    fn to_i128(&self) -> i128;
}

/// Seals the traits. Implementations by other crates could return any numbers, which this crate would have to validate.
pub(crate) mod sealed {
    use super::{Dims, Error, NumberRole, StaticRank};

    pub trait Number {}

    /// A list of integers, read as a shape or as strides.
    pub trait List {
        /// The rank, if the type determines it.
        type Rank: StaticRank;

        fn read(&self, numbers: NumberRole) -> Result<Dims, Error>;

        /// Reads the list and consumes it.
        #[inline(always)]
        fn into_dims(self, numbers: NumberRole) -> Result<Dims, Error>
        where
            Self: Sized,
        {
            self.read(numbers)
        }
    }
}

macro_rules! ints {
    ($($int:ty)*) => {$(
        impl sealed::Number for $int {}
        impl Int for $int {
            #[inline]
            fn to_i128(&self) -> i128 {
                i128::try_from(*self).unwrap_or(i128::MAX)
            }
        }
    )*};
}
ints!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 isize);

impl sealed::Number for usize {}
impl Int for usize {
    #[inline]
    fn to_i128(&self) -> i128 {
        i128::try_from(*self).unwrap_or(i128::MAX)
    }
}

impl<I: Int + ?Sized> sealed::Number for &I {}
impl<I: Int + ?Sized> Int for &I {
    #[inline]
    fn to_i128(&self) -> i128 {
        (**self).to_i128()
    }
}

#[inline]
pub(crate) fn check_extent(axis: usize, found: i128) -> Result<i64, Error> {
    match i64::try_from(found) {
        Ok(extent) if extent >= 0 => Ok(extent),
        _ => Err(Error::BadExtent { axis, found }),
    }
}

#[inline]
pub(crate) fn check_stride(axis: usize, found: i128) -> Result<i64, Error> {
    match i64::try_from(found) {
        // `HOLE` marks a stride that is still to be filled in. No tensor can have that stride.
        Ok(stride) if stride != HOLE => Ok(stride),
        _ => Err(Error::BadStride { axis, found }),
    }
}

/// Validates the number of elements or bytes before the first element.
#[inline]
pub(crate) fn check_offset<I: Int + ?Sized>(offset: &I) -> Result<i64, Error> {
    let found = offset.to_i128();
    match i64::try_from(found) {
        Ok(offset) if offset >= 0 => Ok(offset),
        _ => Err(Error::BadOffset { found }),
    }
}

/// The placeholder for `_` in a shape or in strides, until its value is computed.
pub const HOLE: i64 = i64::MIN;

/// A shape: `[I; N]`, `Vec<I>`, `Box<[I]>`, `&[I]` or a tuple of integers.
///
/// ```
/// fn may_be_a_shape(_: impl dlpack_core::Shape) {}
///
/// may_be_a_shape([480_usize, 640]);
/// may_be_a_shape((480_u32, 640_u64));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a shape",
    label = "expected a list of integers, one an axis",
    note = "a shape is `[I; N]`, `Vec<I>`, `Box<[I]>`, `&[I]` or a tuple of integers; single fields are listed on the struct: `#[dlpack(shape = [rows, cols])]`"
)]
pub trait Shape: sealed::List {}

/// Strides, in the same forms as a [`Shape`].
///
/// ```
/// fn may_be_strides(_: impl dlpack_core::Strides) {}
///
/// may_be_strides(vec![-640_i64, 1]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be strides",
    label = "expected a list of integers, one an axis",
    note = "strides are `[I; N]`, `Vec<I>`, `Box<[I]>`, `&[I]` or a tuple of integers"
)]
pub trait Strides: sealed::List {}

impl Dims {
    /// Reads a shape from an array, a `Vec`, a slice or a tuple of integers.
    ///
    /// ```
    /// use dlpack_core::layout::Dims;
    ///
    /// assert_eq!(Dims::extents(&(2_u32, 3_u64))?[..], [2, 3]);
    /// assert!(Dims::extents(&[-1]).is_err());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A negative extent, or one that exceeds an `i64`.
    #[inline]
    pub fn extents<S: Shape + ?Sized>(shape: &S) -> Result<Self, Error> {
        shape.read(NumberRole::Extents)
    }

    /// Reads strides from an array, a `Vec`, a slice or a tuple of integers.
    ///
    /// ```
    /// assert_eq!(dlpack_core::layout::Dims::strides(&[-3_isize, 1])?[..], [-3, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A stride that exceeds an `i64`.
    #[inline]
    pub fn strides<S: Strides + ?Sized>(strides: &S) -> Result<Self, Error> {
        strides.read(NumberRole::Strides)
    }
}

/// The meaning of the numbers in a list.
#[derive(Clone, Copy, Debug)]
pub enum NumberRole {
    /// The numbers of a [`Shape`].
    Extents,
    /// The numbers of [`Strides`].
    Strides,
}

impl NumberRole {
    #[inline(always)]
    fn check_number(self, axis: usize, found: i128) -> Result<i64, Error> {
        match self {
            Self::Extents => check_extent(axis, found),
            Self::Strides => check_stride(axis, found),
        }
    }
}

/// Implements the traits for lists with a length that is known only at run time.
macro_rules! lists {
    ($($list:ty;)*) => {$(
        impl<I: Int> sealed::List for $list {
            type Rank = OpenRank;

            #[inline]
            fn read(&self, numbers: NumberRole) -> Result<Dims, Error> {
                let mut values = Dims::zeroed(self.len()).check_allocated()?;
                for (axis, (place, found)) in values.iter_mut().zip(self.iter()).enumerate() {
                    *place = numbers.check_number(axis, found.to_i128())?;
                }
                Ok(values)
            }
        }

        impl<I: Int> Shape for $list {}
        impl<I: Int> Strides for $list {}
    )*};
}
lists! {
    [I];
    Vec<I>;
    Box<[I]>;
}

impl<I: Int, const N: usize> sealed::List for [I; N] {
    type Rank = FixedRank<N>;

    #[inline]
    fn read(&self, numbers: NumberRole) -> Result<Dims, Error> {
        let mut values = [0; N];
        for (axis, found) in self.iter().enumerate() {
            values[axis] = numbers.check_number(axis, found.to_i128())?;
        }
        Dims::from(values).check_allocated()
    }
}

impl<I: Int, const N: usize> Shape for [I; N] {}
impl<I: Int, const N: usize> Strides for [I; N] {}

impl<L: sealed::List + ?Sized> sealed::List for &L {
    type Rank = L::Rank;

    #[inline]
    fn read(&self, numbers: NumberRole) -> Result<Dims, Error> {
        (**self).read(numbers)
    }
}

impl<S: Shape + ?Sized> Shape for &S {}
impl<S: Strides + ?Sized> Strides for &S {}

impl sealed::List for Dims {
    type Rank = OpenRank;

    fn read(&self, numbers: NumberRole) -> Result<Dims, Error> {
        self.clone().check_allocated()?[..].read(numbers)
    }
}

impl Shape for Dims {}
impl Strides for Dims {}

/// A shape or strides that were read before, or the error. Values may be a [`HOLE`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct List(pub Result<Dims, Error>);

impl List {
    /// Returns the list, or its error.
    #[inline(always)]
    pub fn check(self) -> Result<Self, Error> {
        Ok(Self(Ok(self.0?)))
    }
}

impl sealed::List for List {
    type Rank = OpenRank;

    fn read(&self, _: NumberRole) -> Result<Dims, Error> {
        self.0.clone()?.check_allocated()
    }

    #[inline(always)]
    fn into_dims(self, _: NumberRole) -> Result<Dims, Error> {
        self.0
    }
}

impl Shape for List {}
impl Strides for List {}

/// Calls a macro with the tuples of one to eight integers: their rank, then a type and an index for each.
macro_rules! for_tuples {
    ($each:ident) => {
        $each! {
            1: A 0;
            2: A 0 B 1;
            3: A 0 B 1 C 2;
            4: A 0 B 1 C 2 D 3;
            5: A 0 B 1 C 2 D 3 E 4;
            6: A 0 B 1 C 2 D 3 E 4 F 5;
            7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
            8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
        }
    };
}
pub(crate) use for_tuples;

macro_rules! tuples {
    ($($rank:literal: $($name:ident $index:tt)*;)*) => {$(
        impl<$($name: Int),*> sealed::List for ($($name,)*) {
            type Rank = FixedRank<$rank>;

            #[inline]
            fn read(&self, numbers: NumberRole) -> Result<Dims, Error> {
                Dims::from([$(numbers.check_number($index, self.$index.to_i128())?),*]).check_allocated()
            }
        }

        impl<$($name: Int),*> Shape for ($($name,)*) {}
        impl<$($name: Int),*> Strides for ($($name,)*) {}
    )*};
}
for_tuples!(tuples);

/// A rank of exactly `N` axes.
#[derive(Debug)]
pub enum FixedRank<const N: usize> {}

/// A rank that is known only at run time.
#[derive(Debug)]
pub enum OpenRank {}

/// A rank, fixed or open.
pub trait StaticRank {
    /// The number of axes, if the type determines it.
    const RANK: Option<usize>;
}

impl<const N: usize> StaticRank for FixedRank<N> {
    const RANK: Option<usize> = Some(N);
}

impl StaticRank for OpenRank {
    const RANK: Option<usize> = None;
}

/// Strides of this rank fit shapes of rank `R`.
pub trait Fits<R> {}

impl<const N: usize> Fits<Self> for FixedRank<N> {}
// A list of unknown length fits every shape, and every list of strides fits it: the values are checked at run time.
impl<const N: usize> Fits<OpenRank> for FixedRank<N> {}
impl<R> Fits<R> for OpenRank {}

/// Strides that fit the shape `S`, as far as the types tell. Derived code requires it.
#[diagnostic::on_unimplemented(
    message = "strides `{Self}` do not fit shape `{S}`",
    label = "one stride an axis, as many as `{S}` has"
)]
pub trait StridesFor<S: ?Sized>: Strides {}

#[diagnostic::do_not_recommend]
impl<S: Shape + ?Sized, T: Strides + sealed::List<Rank: Fits<S::Rank>> + ?Sized> StridesFor<S>
    for T
{
}

/// The rank of a shape. If `S` is not a shape, the constant of `private::probe::ProbeDefaults` applies, so that only the call that
/// needs the shape reports the error.
#[derive(Debug)]
pub struct RankOf<S: ?Sized>(PhantomData<S>);

impl<S: Shape + ?Sized> RankOf<S> {
    /// The number of axes, if the type determines it.
    pub const RANK: Option<usize> = <S::Rank as StaticRank>::RANK;
}
