//! The types of shape, strides and index: arrays for a fixed rank; for any rank `Dims`, and a slice as the index.

use core::{array, fmt};

use crate::{Error, layout::Dims, layout::dims::INLINE};

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape of a typed array",
    label = "expected a rank of 0 to 8",
    note = "for any number of axes use `dlpack_core::layout::Dims`; as an argument of a Python function, `ViewDyn<T>` or `ViewMutDyn<T>`"
)]
/// The type of a shape: a list with one number for each axis. `[i64; N]` for `N` axes, [`Dims`] for any number of axes. Strides
/// have the same type.
pub trait Rank: AsRef<[i64]> + Clone + fmt::Debug + Send + Sync + sealed::Sealed {
    /// The list with one axis less.
    type Less: Rank;

    /// The number of axes, if the type fixes it.
    const RANK: Option<usize>;

    /// The list of these numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] if the type fixes another rank, or no memory for the list.
    #[doc(hidden)]
    fn from_slice(numbers: &[i64]) -> Result<Self, Error>;

    /// The list `number(0), number(1), ..` of length `rank`. If the type fixes the rank, the caller has checked that they agree.
    ///
    /// # Errors
    ///
    /// No memory for the list.
    #[doc(hidden)]
    fn from_fn(rank: usize, number: impl FnMut(usize) -> i64) -> Result<Self, Error>;

    /// The list without the number of one axis.
    ///
    /// # Errors
    ///
    /// No memory for the list.
    #[doc(hidden)]
    fn without_axis(&self, axis: usize) -> Result<Self::Less, Error>;
}

#[inline]
fn to_fixed_rank<const N: usize>(numbers: &[i64]) -> Result<[i64; N], Error> {
    let (found, needed) = (numbers.len(), N);
    numbers
        .try_into()
        .map_err(|_| Error::Rank { found, needed })
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Dims {}

impl Rank for Dims {
    type Less = Self;

    const RANK: Option<usize> = None;

    fn from_slice(numbers: &[i64]) -> Result<Self, Error> {
        Self::from(numbers).check_allocated()
    }

    #[inline]
    fn from_fn(rank: usize, mut number: impl FnMut(usize) -> i64) -> Result<Self, Error> {
        if rank <= INLINE {
            // With a constant number of steps the list is built in registers, and stored once.
            let values = array::from_fn(|axis| if axis < rank { number(axis) } else { 0 });
            return Ok(Self::from_inline(values, rank));
        }
        let mut list = Self::zeroed(rank).check_allocated()?;
        list.iter_mut()
            .zip((0..rank).map(number))
            .for_each(|(place, number)| *place = number);
        Ok(list)
    }

    fn without_axis(&self, axis: usize) -> Result<Self, Error> {
        let mut less = self.clone().check_allocated()?;
        less.remove_axis(axis);
        Ok(less)
    }
}

macro_rules! ranks {
    ($($rank:literal $less:literal;)*) => {$(
        impl sealed::Sealed for [i64; $rank] {}

        impl Rank for [i64; $rank] {
            type Less = [i64; $less];

            const RANK: Option<usize> = Some($rank);

            #[inline]
            fn from_slice(numbers: &[i64]) -> Result<Self, Error> {
                to_fixed_rank(numbers)
            }

            #[inline]
            fn from_fn(_: usize, number: impl FnMut(usize) -> i64) -> Result<Self, Error> {
                Ok(array::from_fn(number))
            }

            #[inline]
            fn without_axis(&self, axis: usize) -> Result<Self::Less, Error> {
                Ok(array::from_fn(|i| self[i + usize::from(i >= axis)]))
            }
        }
    )*};
}

// An array of rank 0 has no axis to remove, so its `without_axis` is never called.
ranks! {
    0 0;
    1 0;
    2 1;
    3 2;
    4 3;
    5 4;
    6 5;
    7 6;
    8 7;
}

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index of this array",
    label = "expected as many `usize` as the array has axes",
    note = "an array of rank `N` takes `[usize; N]`; one of any rank takes `&[usize]`"
)]
/// The index of an element: one number for each axis of `L`.
pub trait Index<L>: AsRef<[usize]> {}

impl<const N: usize> Index<[i64; N]> for [usize; N] {}
impl<const N: usize> Index<Dims> for [usize; N] {}
impl Index<Dims> for &[usize] {}
