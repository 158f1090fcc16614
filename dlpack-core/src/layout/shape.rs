//! What may name extents and strides: any list of any integers, read once and checked.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::error::Error;
use crate::layout::dims::Dims;
use crate::layout::few::{Few, INLINE};

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
pub trait Int {
    #[doc(hidden)]
    fn to_i128(&self) -> i128;

    /// The integer, or for one that no `i64` holds any negative number.
    #[doc(hidden)]
    #[inline]
    fn to_i64(&self) -> i64 {
        i64::try_from(self.to_i128()).unwrap_or(HOLE)
    }

    /// Whether a list of these is one that DLPack can point to.
    #[doc(hidden)]
    const IS_I64: bool = false;

    /// The list as DLPack would point to it.
    #[doc(hidden)]
    fn as_i64s(list: &[Self]) -> Option<&[i64]>
    where
        Self: Sized,
    {
        let _ = list;
        None
    }
}

macro_rules! ints {
    ($($int:ty)*) => {$(
        impl Int for $int {
            #[inline]
            fn to_i128(&self) -> i128 {
                i128::try_from(*self).unwrap_or(i128::MAX)
            }
        }
    )*};
}
ints!(u8 u16 u32 u64 u128 i8 i16 i32 i128 isize);

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

impl Int for i64 {
    const IS_I64: bool = true;

    #[inline]
    fn to_i128(&self) -> i128 {
        i128::from(*self)
    }

    fn as_i64s(list: &[Self]) -> Option<&[Self]> {
        Some(list)
    }
}

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
pub trait Shape {
    /// How many axes, where the type alone says so.
    #[doc(hidden)]
    const RANK: Option<usize>;

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

    /// Whether the extents lie in the value as DLPack wants them: as `i64`s.
    #[doc(hidden)]
    const IN_OBJECT: bool = false;

    /// The extents where they lie, in that case.
    #[doc(hidden)]
    fn in_object(&self) -> Option<&[i64]> {
        None
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
pub trait Strides {
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

    /// As [`Shape::IN_OBJECT`].
    #[doc(hidden)]
    const IN_OBJECT: bool = false;

    /// As [`Shape::in_object`].
    #[doc(hidden)]
    fn in_object(&self) -> Option<&[i64]> {
        None
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
        impl<I: Int> Shape for $list {
            const RANK: Option<usize> = None;

            #[inline]
            fn to_extents(&self) -> Result<Dims, Error> {
                read(self, extent)
            }

            const IN_OBJECT: bool = I::IS_I64;

            fn in_object(&self) -> Option<&[i64]> {
                I::as_i64s(self)
            }
        }

        impl<I: Int> Strides for $list {
            #[inline]
            fn to_strides(&self) -> Result<Dims, Error> {
                read(self, stride)
            }

            const IN_OBJECT: bool = I::IS_I64;

            fn in_object(&self) -> Option<&[i64]> {
                I::as_i64s(self)
            }
        }
    )*};
}
lists! {
    [I];
    Vec<I>;
    Box<[I]>;
}

impl<I: Int, const N: usize> Shape for [I; N] {
    const RANK: Option<usize> = Some(N);

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

    const IN_OBJECT: bool = I::IS_I64;

    fn in_object(&self) -> Option<&[i64]> {
        I::as_i64s(self)
    }
}

impl<I: Int, const N: usize> Strides for [I; N] {
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

    const IN_OBJECT: bool = I::IS_I64;

    fn in_object(&self) -> Option<&[i64]> {
        I::as_i64s(self)
    }
}

impl<S: Shape + ?Sized> Shape for &S {
    const RANK: Option<usize> = S::RANK;

    #[inline]
    fn to_extents(&self) -> Result<Dims, Error> {
        (**self).to_extents()
    }
}

impl<S: Strides + ?Sized> Strides for &S {
    #[inline]
    fn to_strides(&self) -> Result<Dims, Error> {
        (**self).to_strides()
    }
}

impl Shape for Dims {
    const RANK: Option<usize> = None;

    fn to_extents(&self) -> Result<Dims, Error> {
        (**self).to_extents()
    }
}

impl Strides for Dims {
    fn to_strides(&self) -> Result<Dims, Error> {
        (**self).to_strides()
    }
}

/// Extents or strides that were read already, or why they cannot be. Some may be a [`HOLE`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct List(pub Result<Dims, Error>);

impl Shape for List {
    const RANK: Option<usize> = None;

    fn to_extents(&self) -> Result<Dims, Error> {
        self.0.clone()
    }

    #[inline(always)]
    fn into_extents(self) -> Result<Dims, Error> {
        self.0
    }
}

impl Strides for List {
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
        impl<$($name: Int),*> Shape for ($($name,)*) {
            const RANK: Option<usize> = Some($rank);

            #[inline]
            fn to_extents(&self) -> Result<Dims, Error> {
                Ok(Dims::from([$(extent($index, self.$index.to_i128())?),*]))
            }
        }

        impl<$($name: Int),*> Strides for ($($name,)*) {
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

/// The rank of a shape; read where another call already complains that it is none.
#[derive(Debug)]
pub struct Rank<S: ?Sized>(PhantomData<S>);

impl<S: Shape + ?Sized> Rank<S> {
    /// How many axes, where the type says so.
    pub const RANK: Option<usize> = S::RANK;
}

/// Says which strides go with which shape, as far as the types know; the derive asks for it.
#[diagnostic::on_unimplemented(
    message = "strides `{Self}` do not fit shape `{S}`",
    label = "one stride an axis, as many as `{S}` has"
)]
pub trait StridesFor<S: ?Sized>: Strides {}

/// Stands for a shape whose rank the types do not say.
#[derive(Debug)]
pub enum AnyRank {}

impl<T: Strides + ?Sized> StridesFor<AnyRank> for T {}
impl<I: Int, J: Int, const N: usize> StridesFor<[J; N]> for [I; N] {}

macro_rules! strides_for {
    ($([$($generics:tt)*] $strides:ty => $shape:ty;)*) => {$(
        impl<I: Int, J: Int, $($generics)*> StridesFor<$shape> for $strides {}
    )*};
}
// A list of unknown length goes with every shape: only its values can tell.
strides_for! {
    [] Vec<I> => Vec<J>;
    [] Vec<I> => Box<[J]>;
    [] Vec<I> => &[J];
    [] Box<[I]> => Vec<J>;
    [] Box<[I]> => Box<[J]>;
    [] Box<[I]> => &[J];
    [] &[I] => Vec<J>;
    [] &[I] => Box<[J]>;
    [] &[I] => &[J];
    [const N: usize] [I; N] => Vec<J>;
    [const N: usize] [I; N] => Box<[J]>;
    [const N: usize] [I; N] => &[J];
    [const N: usize] Vec<I> => [J; N];
    [const N: usize] Box<[I]> => [J; N];
    [const N: usize] &[I] => [J; N];
}

macro_rules! strides_for_tuples {
    ($($rank:literal: $($s:ident)*, $($d:ident)*;)*) => {$(
        impl<$($s: Int,)* $($d: Int),*> StridesFor<($($d,)*)> for ($($s,)*) {}
        impl<$($s: Int,)* J: Int> StridesFor<[J; $rank]> for ($($s,)*) {}
        impl<I: Int, $($d: Int),*> StridesFor<($($d,)*)> for [I; $rank] {}
        impl<I: Int, $($d: Int),*> StridesFor<($($d,)*)> for Vec<I> {}
        impl<I: Int, $($d: Int),*> StridesFor<($($d,)*)> for Box<[I]> {}
        impl<$($s: Int,)* J: Int> StridesFor<Vec<J>> for ($($s,)*) {}
        impl<$($s: Int,)* J: Int> StridesFor<Box<[J]>> for ($($s,)*) {}
    )*};
}
strides_for_tuples! {
    1: A, K;
    2: A B, K L;
    3: A B C, K L M;
    4: A B C D, K L M N;
    5: A B C D E, K L M N O;
    6: A B C D E F, K L M N O P;
}
