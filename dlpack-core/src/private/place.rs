//! What the items are, on which device they lie, and which stream writes them.

use crate::{AsDevice, DataType, Device, ProducerStream, StreamHandle, StreamRef};

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
