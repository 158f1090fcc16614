//! Extents, strides, offsets and the order of axes.

use crate::dtype::{AsOrder, Order};
use crate::error::Error;
use crate::layout::dims::Dims;
use crate::layout::shape::{self, HOLE, Int, List, Shape, StridesFor};

/// A shape.
#[inline]
pub fn shape<S: Shape + ?Sized>(shape: &S) -> List {
    List(Dims::extents(shape))
}

/// Strides that fit the shape, as far as the types can tell.
#[inline]
pub fn strides<T: StridesFor<S> + ?Sized, S: ?Sized>(strides: &T) -> List {
    List(Dims::strides(strides))
}

/// One number of a list; `None` stands for `_`.
#[inline]
#[must_use]
pub fn number<I: Int>(number: I) -> Option<i128> {
    Some(number.to_i128())
}

/// Extents that were listed one by one.
#[inline]
pub fn extents<const N: usize>(numbers: [Option<i128>; N]) -> List {
    List(checked(numbers, shape::extent))
}

/// Strides that were listed one by one.
#[inline]
pub fn steps<const N: usize>(numbers: [Option<i128>; N]) -> List {
    List(checked(numbers, shape::stride))
}

#[inline]
fn checked<const N: usize>(
    numbers: [Option<i128>; N],
    check: fn(usize, i128) -> Result<i64, Error>,
) -> Result<Dims, Error> {
    let mut values = [HOLE; N];
    for (axis, number) in numbers.into_iter().enumerate() {
        if let Some(number) = number {
            values[axis] = check(axis, number)?;
        }
    }
    Ok(Dims::from(values))
}

/// How many elements lie there.
#[inline]
pub fn len<I: Int>(len: I) -> Result<usize, Error> {
    let found = len.to_i128();
    usize::try_from(found).map_err(|_| Error::BadExtent { axis: 0, found })
}

/// An offset.
#[inline]
pub fn offset<I: Int>(offset: &I) -> &I {
    offset
}

/// An order of axes that is known at run time.
#[inline]
pub fn order<O: AsOrder + ?Sized>(order: &O) -> Order {
    order.as_order()
}
