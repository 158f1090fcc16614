//! One function for each attribute key, called by derived code: data, owner, shape, strides, offset, dtype, device, stream.

use core::mem::ManuallyDrop;

use crate::export::finish::is_from_fast_path;
use crate::export::owner_field::{share_clone, share_packed, share_plain};
use crate::export::{extras::ShareCall, hand_over::RawExport};
use crate::layout::Dims;
use crate::layout::shape::{self, HOLE, Int, List, Shape, StridesFor};
use crate::private::probe::{Route, RouteMut, RouteToWrite};
use crate::{AsDevice, AsOrder, DataType, Descriptor, Device, Error, ExportRequest, Loan, LoanMut};
use crate::{Managed, Order, ProducerStream, StreamHandle, StreamRef, loan::buffer::Lent};

/// The key `data` on a field: lends its elements.
#[inline]
pub fn lend_field<T: ?Sized, R: Route<T>>(field: &T, _: R) -> Loan<'_> {
    R::lend(field)
}

/// The key `data` on a field, through `&mut`: lends its elements for writing if the type allows it.
#[inline]
pub fn lend_field_mut<T: ?Sized, R: RouteMut<T>>(field: &mut T, _: R) -> LoanMut<'_> {
    R::lend_mut(field)
}

/// The key `writable` on a field: compiles only if the field lends its elements for writing.
#[inline]
pub fn require_writable<T: ?Sized, R: RouteToWrite<T>>(_: R) {}

/// The key `data` with an expression: lends the elements of its value.
#[inline]
pub fn lend_expression<'a, D: Lent<'a>>(data: D) -> Loan<'a> {
    data.loan()
}

/// The bound of a field marked `owner`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an `owner`",
    label = "an `owner` is a cheap handle: a clone of it keeps the same elements",
    note = "put it behind an `Arc`: `Arc<{Self}>`"
)]
pub trait OwnerHandle: Clone + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + 'static> OwnerHandle for T {}

/// The key `owner`: exports a tensor over the memory of the field, with a clone of the field as the owner.
pub fn export_with_owner<T: OwnerHandle, R: Route<T>>(
    field: &T,
    mut described: Result<Descriptor<'_>, Error>,
    request: Option<&ExportRequest>,
    _: R,
) -> Result<Managed, Error> {
    let descriptor = described.as_mut().map_err(Error::take_out)?;
    share_clone(field, R::lend, descriptor, request)
}

/// The key `owner` in the form that `Extras::share` needs. See [`export_with_owner`].
#[inline(always)]
pub fn share_with_owner<T: OwnerHandle, R: Route<T>>(
    field: &T,
    described: Result<Descriptor<'_>, Error>,
    request: Option<&ExportRequest>,
    call: &mut ShareCall,
    route: R,
) -> Option<RawExport> {
    let mut described = ManuallyDrop::new(described);
    if let Ok(descriptor) = &mut *described {
        // The fast path first: the compiler then generates this block for descriptions from there only, with constants.
        if is_from_fast_path(descriptor) && request.is_none() && call.by_address {
            if let Some(tensor) = share_packed(field, R::lend, descriptor) {
                // The descriptor owns nothing, so it need not be dropped.
                return Some(tensor);
            }
        }
    }
    // A variable of its own: the one above need not be in memory then.
    let described = ManuallyDrop::into_inner(described);
    share_out_of_line(field, described, request, call, route)
}

/// [`share_with_owner`] for all that its fast path does not cover.
#[cold]
#[inline(never)]
fn share_out_of_line<T: OwnerHandle, R: Route<T>>(
    field: &T,
    mut described: Result<Descriptor<'_>, Error>,
    request: Option<&ExportRequest>,
    call: &mut ShareCall,
    _: R,
) -> Option<RawExport> {
    call.outcome = Some(match &mut described {
        Err(error) => Err(error.take_out()),
        Ok(descriptor) => {
            if request.is_none() && call.by_address {
                if let Some(tensor) = share_plain(field, R::lend, descriptor) {
                    return Some(tensor);
                }
            }
            share_clone(field, R::lend, descriptor, request)
        }
    });
    None
}

/// The key `shape` on a field or as an expression.
#[inline]
pub fn shape<S: Shape + ?Sized>(shape: &S) -> List {
    List(Dims::extents(shape))
}

/// The key `strides` on a field or as an expression. Compiles only if the types allow the rank of the shape.
#[inline]
pub fn strides<T: StridesFor<S> + ?Sized, S: ?Sized>(strides: &T) -> List {
    List(Dims::strides(strides))
}

/// One number in a list `shape = [..]` or `strides = [..]`; derived code passes `None` for `_`.
#[inline]
#[must_use]
pub fn list_number<I: Int>(number: I) -> Option<i128> {
    Some(number.to_i128())
}

/// The number of an axis that has one size in all values of a type, as `FromDLPack` compares it. No axis has the size -1.
#[inline]
#[must_use]
pub fn constant_size<I: Int>(number: I) -> i64 {
    i64::try_from(number.to_i128()).unwrap_or(-1)
}

/// The key `shape` as a list of numbers.
#[inline]
pub fn shape_list<const N: usize>(numbers: [Option<i128>; N]) -> List {
    List(check_list(numbers, shape::check_extent))
}

/// The key `strides` as a list of numbers.
#[inline]
pub fn strides_list<const N: usize>(numbers: [Option<i128>; N]) -> List {
    List(check_list(numbers, shape::check_stride))
}

#[inline]
fn check_list<const N: usize>(
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

/// The key `len` of `unsafe(data = .., len = ..)`: the number of elements.
#[inline]
pub fn len<I: Int>(len: I) -> Result<usize, Error> {
    let found = len.to_i128();
    usize::try_from(found).map_err(|_| Error::BadExtent { axis: 0, found })
}

/// The keys `offset` and `byte_offset`. Returns a number whatever the type, so that a wrong type is reported here only.
#[inline]
#[must_use]
pub fn offset<I: Int>(offset: &I) -> i128 {
    offset.to_i128()
}

/// The key `order` with a value that is computed at run time.
#[inline]
pub fn order<O: AsOrder + ?Sized>(order: &O) -> Order {
    order.as_order()
}

/// The bound of a field marked `dtype`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a DLPack data type",
    label = "expected `DataType` or a `Clone` type that converts into it",
    note = "implement `From<{Self}> for DataType`; for a type that is known at compile time use `elem = ..`"
)]
pub trait AsDataType {
    /// Returns the data type.
    fn as_data_type(&self) -> DataType;
}

#[diagnostic::do_not_recommend]
impl<D: Clone + Into<DataType>> AsDataType for D {
    #[inline]
    fn as_data_type(&self) -> DataType {
        self.clone().into()
    }
}

/// The key `dtype`, a data type that is computed at run time.
#[inline]
pub fn dtype<D: AsDataType>(dtype: &D) -> DataType {
    dtype.as_data_type()
}

/// The key `device`.
#[inline]
pub fn device<D: AsDevice + ?Sized>(device: &D) -> Device {
    device.as_device()
}

/// The key `stream` on a field.
#[inline]
pub fn stream<S: ProducerStream + ?Sized>(stream: &S) -> StreamRef<'_> {
    stream.producer_stream()
}

/// The bound of the expression in `stream = ..`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a stream",
    label = "expected `StreamHandle`, or a reference to a type implementing `ProducerStream`",
    note = "the stream must live as long as the struct: store it in a field, and pass a reference to it"
)]
pub trait NamesStream<'a> {
    /// Returns the stream.
    fn into_stream_ref(self) -> StreamRef<'a>;
}

impl<'a> NamesStream<'a> for StreamHandle {
    #[inline]
    fn into_stream_ref(self) -> StreamRef<'a> {
        self.into()
    }
}

impl<'a> NamesStream<'a> for StreamRef<'a> {
    #[inline]
    fn into_stream_ref(self) -> Self {
        self
    }
}

impl<'a, S: ProducerStream + ?Sized> NamesStream<'a> for &'a S {
    #[inline]
    fn into_stream_ref(self) -> StreamRef<'a> {
        self.producer_stream()
    }
}

/// The key `stream` with an expression.
#[inline]
pub fn stream_expression<'a, S: NamesStream<'a>>(stream: S) -> StreamRef<'a> {
    stream.into_stream_ref()
}
