//! What the derive calls. Hidden, and free to change with every release: `dlpack-derive` is pinned to it.

#[path = "private/claim.rs"]
mod claim;
#[path = "private/probe.rs"]
mod probe;

pub use core::default::Default;
pub use core::marker::Send;
pub use core::option::Option::{self, None, Some};
pub use core::primitive::{bool as Bool, str as Str};
pub use core::result::Result::{self, Err, Ok};

use alloc::borrow::ToOwned;

pub use crate::__private::claim::{Claim, Elem, Text};
pub use crate::__private::probe::{Probe, Unsaid, Whole};
pub use crate::describe::record::{Columns, Rows, Table, record_column};
pub use crate::describe::usual::{Usual, few, few_strides, usual};
pub use crate::element::Source;
pub use crate::element::axes::Axes;
pub use crate::element::homogeneous::{
    Homogeneous, Part, PartOf, SourceOf, Walk, WalkMut, WalkMutOf, WalkOf, no_padding, part,
};
pub use crate::export::extras::{Extras, Shared};
pub use crate::import::reader::Import;
pub use crate::layout::LentLists;
pub use crate::layout::dims::Dims;
pub use crate::layout::few::Few;
pub use crate::layout::rank::RankOf;
pub use crate::layout::shape::{HOLE, List};
pub use crate::loan::facts::{Facts, NamedFacts};
pub use crate::loan::raw::{address, raw};

use crate::__private::claim::equal;
use crate::__private::probe::{Route, RouteMut, RouteToTensor, RouteToTensorMut, RouteToWrite};
use crate::describe::descriptor::Descriptor;
use crate::describe::parts::Parts;
use crate::describe::record::Record;
use crate::device::{AsDevice, Device};
use crate::dtype::{AsOrder, DataType, Order};
use crate::error::Error;
use crate::export::DLPack;
use crate::import::FromDLPack;
use crate::layout::rank::StridesFor;
use crate::layout::shape::{Int, Shape};
use crate::loan::buffer::Buffer;
use crate::loan::{Loan, LoanMut};
use crate::request::ExportRequest;
use crate::stream::{ProducerStream, StreamHandle, StreamRef};
use crate::tensor::managed::Managed;

/// What describing gives.
pub type Described<'a> = Result<Descriptor<'a>, Error>;

/// A type that the compiler finds; it only stands where an error about that type shall point.
pub type Found<T> = T;

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

/// What the expression behind `data =` may give.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not lend elements",
    label = "expected `&[T]`, or a reference to a buffer such as `&Vec<T>`",
    note = "borrow a slice: `data = &self.field[..]`"
)]
pub trait Lent<'a> {
    /// The loan.
    fn loan(self) -> Loan<'a>;
}

impl<'a, B: Buffer + ?Sized> Lent<'a> for &'a B {
    #[inline]
    fn loan(self) -> Loan<'a> {
        self.lend()
    }
}

impl<'a> Lent<'a> for Loan<'a> {
    #[inline]
    fn loan(self) -> Loan<'a> {
        self
    }
}

/// The data that an expression lends.
#[inline]
pub fn data_of<'a, D: Lent<'a>>(data: D) -> Loan<'a> {
    data.loan()
}

/// A field that is the whole tensor.
#[inline]
pub fn whole<T: ?Sized, R: RouteToTensor<T>>(field: &T, _: R) -> Result<Descriptor<'_>, Error> {
    R::describe(field)
}

/// The short way to describe a field that is the whole tensor.
#[inline]
pub fn whole_usual<T: ?Sized, R: RouteToTensor<T>>(field: &T, _: R) -> Option<Usual<'_>> {
    R::usual(field)
}

/// A field that is the whole tensor, for writing where that can be.
#[inline]
pub fn whole_mut<T: ?Sized, R: RouteToTensorMut<T>>(
    field: &mut T,
    _: R,
) -> Result<Descriptor<'_>, Error> {
    R::describe_mut(field)
}

/// A field that is the whole tensor, exported without the struct if it can be.
#[inline]
pub fn whole_share<T: ?Sized, R: RouteToTensorMut<T>>(
    field: &T,
    request: &ExportRequest,
    _: R,
) -> Shared {
    R::share(field, request)
}

/// A shape.
#[inline]
pub fn shape<S: Shape + ?Sized>(shape: &S) -> List {
    List(shape.to_extents())
}

/// Strides that fit the shape, as far as the types can tell.
#[inline]
pub fn strides<T: StridesFor<S> + ?Sized, S: ?Sized>(strides: &T) -> List {
    List(strides.to_strides())
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
    List(checked(numbers, crate::layout::shape::extent))
}

/// Strides that were listed one by one.
#[inline]
pub fn steps<const N: usize>(numbers: [Option<i128>; N]) -> List {
    List(checked(numbers, crate::layout::shape::stride))
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

/// An order of axes that is known at run time.
#[inline]
pub fn order<O: AsOrder + ?Sized>(order: &O) -> Order {
    order.as_order()
}

/// The column of this name in a list, if it has one.
pub fn column<'a, L: Columns + ?Sized>(
    list: &'a L,
    name: &str,
) -> Option<Result<Descriptor<'a>, Error>> {
    L::Record::NAMES
        .contains(&name)
        .then(|| L::Record::column(list.rows(), name))
}

/// What was found under a name, or that nothing was.
pub fn find<'a>(
    name: &str,
    known: &'static [&'static str],
    found: Option<Result<Descriptor<'a>, Error>>,
) -> Result<Descriptor<'a>, Error> {
    found.unwrap_or_else(|| unknown_tensor(name, known))
}

/// That there is no tensor of this name.
pub fn unknown_tensor<'a>(
    name: &str,
    known: &'static [&'static str],
) -> Result<Descriptor<'a>, Error> {
    Err(Error::NoSuchTensor {
        name: name.to_owned(),
        known,
    })
}

/// How many names there are in all.
#[must_use]
pub const fn count(lists: &[&[&str]]) -> usize {
    let mut names = 0;
    let mut list = 0;
    while list < lists.len() {
        names += lists[list].len();
        list += 1;
    }
    names
}

/// All names in one list.
#[must_use]
pub const fn names<const N: usize>(lists: &[&[&'static str]]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    let mut list = 0;
    while list < lists.len() {
        let mut name = 0;
        while name < lists[list].len() {
            let mut earlier = 0;
            while earlier < at {
                assert!(
                    !equal(names[earlier], lists[list][name]),
                    "two tensors have the same name"
                );
                earlier += 1;
            }
            names[at] = lists[list][name];
            at += 1;
            name += 1;
        }
        list += 1;
    }
    names
}

/// A field that may be `None`.
pub fn present<'a, T>(field: &'a Option<T>, name: &'static str) -> Result<&'a T, Error> {
    field.as_ref().ok_or(Error::Absent { name })
}

/// That a variant has no tensor.
pub fn skipped<'a>(name: &'static str, variant: &'static str) -> Result<Descriptor<'a>, Error> {
    Err(Error::Skipped { name, variant })
}

/// What the expression behind `via =` gives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor that owns its elements",
    label = "expected an owned tensor, such as `Vec<T>`",
    note = "of a slice, give a copy: `via = self.items[..].to_vec()`; to lend it as it is, say `data = &self.items[..]`"
)]
pub trait Computed: DLPack + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DLPack + 'static> Computed for T {}

/// A tensor that is computed on request: the descriptor owns it.
pub fn via<'a, T: Computed>(tensor: T) -> Result<Descriptor<'a>, Error> {
    Parts::new().via(tensor)
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

/// What a clone of the field marked `owner` keeps, exported without the struct.
pub fn share<T: Handle, R: Route<T>>(
    field: &T,
    described: Result<Descriptor<'_>, Error>,
    request: &ExportRequest,
    _: R,
) -> Result<Managed, Error> {
    crate::export::ways::share_clone(field, R::lend, described?, request)
}

/// A field that is read back from a whole tensor.
pub fn import_whole<T: FromDLPack>(tensor: Managed) -> Result<T, Error> {
    T::from_dlpack(tensor)
}

/// Whether a variant's field takes such a tensor.
#[must_use]
pub fn fits<T: FromDLPack>(tensor: &Managed) -> bool {
    T::fits(&tensor.view())
}

/// That no variant takes such a tensor.
#[must_use]
pub fn no_variant(name: &'static str, tensor: Managed) -> Error {
    let view = tensor.view();
    Error::NoVariant {
        name,
        dtype: view.dtype(),
        rank: view.shape().len(),
    }
}

/// Stands where an error was reported.
pub fn unreachable_stub<T>() -> T {
    unreachable!("the derive reported an error, so this never compiled")
}
