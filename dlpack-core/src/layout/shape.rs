//! What may name extents and strides: any list of any integers, read once and checked.

use alloc::{boxed::Box, vec::Vec};

use crate::Error;
use crate::layout::dims::Dims;
use crate::layout::few::{Few, INLINE};
use crate::layout::rank::{Fixed, Open, Rank};

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

    /// The integer, or for one that no `i64` holds any negative number.
    #[doc(hidden)]
    #[inline]
    fn to_i64(&self) -> i64 {
        i64::try_from(self.to_i128()).unwrap_or(HOLE)
    }
}

/// Closes the traits: what else might be an integer or a list of them, core would have to check.
pub(crate) mod sealed {
    pub trait Number {}
    pub trait List {}
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
ints!(u8 u16 u32 u64 u128 i8 i16 i32 i128 isize);

impl sealed::Number for usize {}
impl Int for usize {
    #[inline]
    fn to_i128(&self) -> i128 {
        i128::try_from(*self).unwrap_or(i128::MAX)
    }

    #[inline]
    fn to_i64(&self) -> i64 {
        // The upper half becomes the negative numbers.
        #[expect(clippy::cast_possible_wrap, reason = "as it says")]
        {
            *self as i64
        }
    }
}

impl sealed::Number for i64 {}
impl Int for i64 {
    #[inline]
    fn to_i128(&self) -> i128 {
        i128::from(*self)
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
pub(crate) fn extent(axis: usize, found: i128) -> Result<i64, Error> {
    match i64::try_from(found) {
        Ok(extent) if extent >= 0 => Ok(extent),
        _ => Err(Error::BadExtent { axis, found }),
    }
}

#[inline]
pub(crate) fn stride(axis: usize, found: i128) -> Result<i64, Error> {
    match i64::try_from(found) {
        // The one value that marks a stride still to be filled in, and that no tensor can have.
        Ok(stride) if stride != HOLE => Ok(stride),
        _ => Err(Error::BadStride { axis, found }),
    }
}

/// How many elements or bytes lie in front of the first element.
#[inline]
pub(crate) fn offset<I: Int + ?Sized>(offset: &I) -> Result<i64, Error> {
    let found = offset.to_i128();
    match i64::try_from(found) {
        Ok(offset) if offset >= 0 => Ok(offset),
        _ => Err(Error::BadOffset { found }),
    }
}

/// Stands for `_` in a list of extents or strides until it is known.
pub const HOLE: i64 = i64::MIN;

/// A list of extents: `[I; N]`, `Vec<I>`, `Box<[I]>`, `&[I]` or a tuple of integers.
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
pub trait Shape: sealed::List {
    /// How many axes, as far as the type says.
    #[doc(hidden)]
    type Rank: Rank;

    #[doc(hidden)]
    fn to_extents(&self) -> Result<Dims, Error>;

    /// The same where the list is not needed any more.
    #[doc(hidden)]
    #[inline(always)]
    fn into_extents(self) -> Result<Dims, Error>
    where
        Self: Sized,
    {
        self.to_extents()
    }

    /// The extents, if they are few and make sense.
    #[doc(hidden)]
    #[inline]
    fn few(&self) -> Few {
        self.to_extents().map_or(Few::UNKNOWN, |dims| dims.few())
    }
}

/// A list of strides, in the same forms as a [`Shape`].
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
pub trait Strides: sealed::List {
    /// As [`Shape::Rank`].
    #[doc(hidden)]
    type Rank: Rank;

    #[doc(hidden)]
    fn to_strides(&self) -> Result<Dims, Error>;

    /// As [`Shape::into_extents`].
    #[doc(hidden)]
    #[inline(always)]
    fn into_strides(self) -> Result<Dims, Error>
    where
        Self: Sized,
    {
        self.to_strides()
    }

    /// As [`Shape::few`].
    #[doc(hidden)]
    #[inline]
    fn few(&self) -> Few {
        self.to_strides().map_or(Few::UNKNOWN, |dims| dims.few())
    }
}

impl Dims {
    /// The extents that any list of integers names: arrays, `Vec`, slices and tuples.
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
    /// A negative extent, or one that no `i64` holds.
    #[inline]
    pub fn extents<S: Shape + ?Sized>(shape: &S) -> Result<Self, Error> {
        shape.to_extents()
    }

    /// The strides that any list of integers names.
    ///
    /// ```
    /// assert_eq!(dlpack_core::layout::Dims::strides(&[-3_isize, 1])?[..], [-3, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A stride that no `i64` holds.
    #[inline]
    pub fn strides<S: Strides + ?Sized>(strides: &S) -> Result<Self, Error> {
        strides.to_strides()
    }
}

/// Each number of a list, checked.
#[inline]
fn read<I: Int>(list: &[I], check: fn(usize, i128) -> Result<i64, Error>) -> Result<Dims, Error> {
    let mut values = Dims::zeroed(list.len());
    for (axis, (place, found)) in values.iter_mut().zip(list).enumerate() {
        *place = check(axis, found.to_i128())?;
    }
    Ok(values)
}

/// A value that no `i64` holds becomes one that no tensor has.
#[inline(always)]
pub(crate) fn of_array<I: Int, const N: usize>(list: &[I; N]) -> Few {
    if N > INLINE {
        return Few::UNKNOWN;
    }
    let mut values = [0; INLINE];
    for (place, value) in values.iter_mut().zip(list) {
        *place = value.to_i64();
    }
    Few { values, len: N }
}

macro_rules! lists {
    ($($list:ty;)*) => {$(
        impl<I: Int> sealed::List for $list {}

        impl<I: Int> Shape for $list {
            type Rank = Open;

            #[inline]
            fn to_extents(&self) -> Result<Dims, Error> {
                read(self, extent)
            }
        }

        impl<I: Int> Strides for $list {
            type Rank = Open;

            #[inline]
            fn to_strides(&self) -> Result<Dims, Error> {
                read(self, stride)
            }
        }
    )*};
}
lists! {
    [I];
    Vec<I>;
    Box<[I]>;
}

impl<I: Int, const N: usize> sealed::List for [I; N] {}

impl<I: Int, const N: usize> Shape for [I; N] {
    type Rank = Fixed<N>;

    #[inline(always)]
    fn few(&self) -> Few {
        of_array(self)
    }

    #[inline]
    fn to_extents(&self) -> Result<Dims, Error> {
        let mut extents = [0; N];
        for (axis, found) in self.iter().enumerate() {
            extents[axis] = extent(axis, found.to_i128())?;
        }
        Ok(Dims::from(extents))
    }
}

impl<I: Int, const N: usize> Strides for [I; N] {
    type Rank = Fixed<N>;

    #[inline(always)]
    fn few(&self) -> Few {
        of_array(self)
    }

    #[inline]
    fn to_strides(&self) -> Result<Dims, Error> {
        let mut strides = [0; N];
        for (axis, found) in self.iter().enumerate() {
            strides[axis] = stride(axis, found.to_i128())?;
        }
        Ok(Dims::from(strides))
    }
}

impl<S: sealed::List + ?Sized> sealed::List for &S {}

impl<S: Shape + ?Sized> Shape for &S {
    type Rank = S::Rank;

    #[inline]
    fn to_extents(&self) -> Result<Dims, Error> {
        (**self).to_extents()
    }
}

impl<S: Strides + ?Sized> Strides for &S {
    type Rank = S::Rank;

    #[inline]
    fn to_strides(&self) -> Result<Dims, Error> {
        (**self).to_strides()
    }
}

impl sealed::List for Dims {}

impl Shape for Dims {
    type Rank = Open;

    fn to_extents(&self) -> Result<Dims, Error> {
        (**self).to_extents()
    }
}

impl Strides for Dims {
    type Rank = Open;

    fn to_strides(&self) -> Result<Dims, Error> {
        (**self).to_strides()
    }
}

/// Extents or strides that were read already, or why they cannot be. Some may be a [`HOLE`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct List(pub Result<Dims, Error>);

impl sealed::List for List {}

impl Shape for List {
    type Rank = Open;

    fn to_extents(&self) -> Result<Dims, Error> {
        self.0.clone()
    }

    #[inline(always)]
    fn into_extents(self) -> Result<Dims, Error> {
        self.0
    }
}

impl Strides for List {
    type Rank = Open;

    fn to_strides(&self) -> Result<Dims, Error> {
        self.0.clone()
    }

    #[inline(always)]
    fn into_strides(self) -> Result<Dims, Error> {
        self.0
    }
}

macro_rules! tuples {
    ($($rank:literal: $($name:ident $index:tt)*;)*) => {$(
        impl<$($name: Int),*> sealed::List for ($($name,)*) {}

        impl<$($name: Int),*> Shape for ($($name,)*) {
            type Rank = Fixed<$rank>;

            #[inline]
            fn to_extents(&self) -> Result<Dims, Error> {
                Ok(Dims::from([$(extent($index, self.$index.to_i128())?),*]))
            }
        }

        impl<$($name: Int),*> Strides for ($($name,)*) {
            type Rank = Fixed<$rank>;

            #[inline]
            fn to_strides(&self) -> Result<Dims, Error> {
                Ok(Dims::from([$(stride($index, self.$index.to_i128())?),*]))
            }
        }
    )*};
}
tuples! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
    7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}
