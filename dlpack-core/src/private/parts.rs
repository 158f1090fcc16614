//! What each key becomes: the loan and who may keep it, extents, strides, offsets, items, devices, streams.

use crate::export::owner_field::{share_clone, share_plain};
use crate::export::{extras::Shared, hand_over::RawExport};
use crate::layout::Dims;
use crate::layout::shape::{self, HOLE, Int, List, Shape, StridesFor};
use crate::private::probe::{Route, RouteMut, RouteToWrite};
use crate::{AsDevice, AsOrder, DataType, Descriptor, Device, Error, ExportRequest, Loan, LoanMut};
use crate::{Managed, Order, ProducerStream, StreamHandle, StreamRef, loan::buffer::Lent};

/// The data of a field.
#[inline]
pub fn data<T: ?Sized, R: Route<T>>(field: &T, _: R) -> Loan<'_> {
    R::lend(field)
}

/// The data of a field, for writing where that can be.
#[inline]
pub fn data_mut<T: ?Sized, R: RouteMut<T>>(field: &mut T, _: R) -> LoanMut<'_> {
    R::lend_mut(field)
}

/// That a field can be written.
#[inline]
pub fn writable<T: ?Sized, R: RouteToWrite<T>>(_: R) {}

/// The data that an expression lends.
#[inline]
pub fn data_of<'a, D: Lent<'a>>(data: D) -> Loan<'a> {
    data.loan()
}

/// What a field marked `owner` is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an `owner`",
    label = "an `owner` is a cheap handle: a clone of it keeps the same elements",
    note = "put it behind an `Arc`: `Arc<{Self}>`"
)]
pub trait Handle: Clone + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + 'static> Handle for T {}

/// Exports a tensor over the memory of a field marked `owner`: a clone of the field is the owner of the export.
pub fn share<T: Handle, R: Route<T>>(
    field: &T,
    mut described: Result<Descriptor<'_>, Error>,
    request: Option<&ExportRequest>,
    _: R,
) -> Result<Managed, Error> {
    let descriptor = described.as_mut().map_err(Error::take)?;
    share_clone(field, R::lend, descriptor, request)
}

/// As [`share`], in the form of `Extras::share`.
pub fn share_owner<T: Handle, R: Route<T>>(
    field: &T,
    mut described: Result<Descriptor<'_>, Error>,
    request: Option<&ExportRequest>,
    other: &mut Shared,
    _: R,
) -> Option<RawExport> {
    other.outcome = Some(match &mut described {
        Err(error) => Err(error.take()),
        Ok(descriptor) => {
            if request.is_none() && other.by_address {
                if let Some(tensor) = share_plain(field, R::lend, descriptor) {
                    return Some(tensor);
                }
            }
            share_clone(field, R::lend, descriptor, request)
        }
    });
    None
}

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
    List(checked(numbers, shape::check_extent))
}

/// Strides that were listed one by one.
#[inline]
pub fn steps<const N: usize>(numbers: [Option<i128>; N]) -> List {
    List(checked(numbers, shape::check_stride))
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
    Dims::from(values).check_allocated()
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

/// What a field marked `dtype` may be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a DLPack data type",
    label = "expected `DataType` or a `Clone` type that converts into it",
    note = "implement `From<{Self}> for DataType`; a type that is known when the code is written goes with `elem = ..`"
)]
pub trait AsDataType {
    /// The data type.
    fn as_data_type(&self) -> DataType;
}

#[diagnostic::do_not_recommend]
impl<D: Clone + Into<DataType>> AsDataType for D {
    #[inline]
    fn as_data_type(&self) -> DataType {
        self.clone().into()
    }
}

/// A data type that is known at run time.
#[inline]
pub fn dtype<D: AsDataType>(dtype: &D) -> DataType {
    dtype.as_data_type()
}

/// A device.
#[inline]
pub fn device<D: AsDevice + ?Sized>(device: &D) -> Device {
    device.as_device()
}

/// A stream.
#[inline]
pub fn stream<S: ProducerStream + ?Sized>(stream: &S) -> StreamRef<'_> {
    stream.producer_stream()
}

/// What the expression behind `stream =` may give.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a stream",
    label = "expected `StreamHandle`, or a reference to a type implementing `ProducerStream`",
    note = "the stream has to live as long as the struct: keep it in a field, and give a reference to it"
)]
pub trait NamesStream<'a> {
    /// The stream.
    fn stream(self) -> StreamRef<'a>;
}

impl<'a> NamesStream<'a> for StreamHandle {
    #[inline]
    fn stream(self) -> StreamRef<'a> {
        self.into()
    }
}

impl<'a> NamesStream<'a> for StreamRef<'a> {
    #[inline]
    fn stream(self) -> Self {
        self
    }
}

impl<'a, S: ProducerStream + ?Sized> NamesStream<'a> for &'a S {
    #[inline]
    fn stream(self) -> StreamRef<'a> {
        self.producer_stream()
    }
}

/// A stream that an expression names.
#[inline]
pub fn stream_of<'a, S: NamesStream<'a>>(stream: S) -> StreamRef<'a> {
    stream.stream()
}
