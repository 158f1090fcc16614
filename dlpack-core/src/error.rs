//! The error type of the crate and its text. Each variant has fields for what was found and what was expected.

use alloc::{string::String, vec::Vec};
use core::fmt;

use crate::{DataType, Device, Version, device::StreamApi};

/// Declares the variants, each with its fields, their docs, and the text that `Display` writes. The text names the fields,
/// and may use further expressions.
macro_rules! errors {
    (
        $(#[$attribute:meta])*
        pub enum Error {$(
            $(#[$doc:meta])*
            $variant:ident $({ $($field:ident: $type:ty = $about:literal),+ $(,)? })? => $text:literal $(, $more:expr)?;
        )*}
    ) => {
        $(#[$attribute])*
        pub enum Error {
            $($(#[$doc])* $variant $({ $(#[doc = $about] $field: $type,)+ })?,)*
        }

        impl fmt::Display for Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),+ })? => write!(f, $text $(, $more)?),)*
                }
            }
        }
    };
}

errors! {
    /// An error of describing, exporting, importing or copying a tensor.
    ///
    /// ```
    /// use dlpack_core::{Error, Parts, Loan};
    /// use dlpack_core::layout::Dims;
    ///
    /// let data = [1.0_f32; 4];
    /// let shape = Dims::extents(&[2, 3])?;
    /// let error = Parts::new().shape(shape).describe(Loan::from(&data[..])).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "shape [2, 3] needs 6 elements, the data has 4",
    /// );
    /// # Ok::<(), Error>(())
    /// ```
    #[non_exhaustive]
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Error {
        /// The size of an axis is negative or does not fit an `i64`.
        BadExtent { axis: usize = "The axis.", found: i128 = "The size." }
            => "axis {axis} of the shape is {found}; expected a size between 0 and {}", i64::MAX;
        /// A stride does not fit an `i64`.
        BadStride { axis: usize = "The axis.", found: i128 = "The stride." }
            => "the stride of axis {axis} is {found}; expected a number between -(2^63 - 1) and 2^63 - 1";
        /// An offset is negative or lies outside the buffer.
        BadOffset { found: i128 = "The offset." }
            => "the offset is {found}; expected one between 0 and the end of the buffer";
        /// The number of strides is not the number of axes.
        StrideCount { found: usize = "The number of strides.", needed: usize = "The number of axes." }
            => "expected {needed} strides, one for each axis, found {found}";
        /// The tensor has more axes than are supported.
        TooManyAxes { found: usize = "The number of axes.", most: usize = "The maximum." }
            => "the tensor has {found} axes; at most {most} are supported";
        /// A tensor has another rank than is needed.
        Rank { found: usize = "The rank of the tensor.", needed: usize = "The expected rank." }
            => "expected a tensor of rank {needed}, found one of rank {found}";
        /// An axis of a tensor has another size than is needed.
        Extent {
            axis: usize = "The axis.",
            found: i64 = "The size of the axis.",
            needed: String = "The expected size, in words or as a number.",
        } => "expected size {needed} for axis {axis} of the tensor, found {found}";
        /// The tensor has no such axis, or the axis is listed twice.
        NoSuchAxis { axis: usize = "The axis.", rank: usize = "The rank of the tensor." }
            => "axis {axis} {} {rank} axes, counted from 0", no_such_axis(*axis, *rank);
        /// An index or a range is out of range for an axis.
        OutOfRange {
            axis: usize = "The axis.",
            start: usize = "The first index of the range.",
            end: usize = "One past the last index of the range.",
            extent: usize = "The size of the axis.",
        } => "indices {start}..{end} are out of range for axis {axis} of size {extent}";
        /// The number of elements is not the expected number.
        Count { found: usize = "The number of elements.", needed: usize = "The expected number." }
            => "expected {needed} elements, found {found}";
        /// The number of bytes is not the size of the items.
        Bytes { found: usize = "The number of bytes.", needed: usize = "The expected number." }
            => "expected {needed} bytes for the items, found {found}";
        /// The elements take more bytes than the address space has.
        TooLarge { shape: Vec<i64> = "The shape." }
            => "a tensor of shape {shape:?} does not fit in the address space";
        /// The data has fewer elements than the shape needs.
        TooShort {
            shape: Vec<i64> = "The shape, without the axes of the elements.",
            needed: i128 = "The number of elements that the shape needs.",
            found: usize = "The number of elements of the data.",
        } => "shape {shape:?} needs {needed} elements, the data has {found}";
        /// With these strides or this offset, an element lies outside the buffer.
        OutOfBounds {
            first: i128 = "The first byte of the tensor, counted from the start of the buffer.",
            end: i128 = "One past the last byte of the tensor.",
            len: usize = "The size of the buffer in bytes.",
        } => "shape, strides and offset reach from byte {first} to byte {end}, the data has {len} bytes";
        /// The size written `_` cannot be inferred from the number of elements.
        NotInferable {
            elements: usize = "The number of elements of the data.",
            others: i128 = "The product of the other sizes.",
        } => "cannot infer `_` in the shape: {elements} elements do not divide into rows of {others}";
        /// The size of the buffer is not a multiple of the element size.
        PartialElement {
            bytes: usize = "The size of the buffer in bytes.",
            element_bits: usize = "The size of one element in bits.",
        } => "{bytes} bytes are not a whole number of elements of {element_bits} bits";
        /// A byte stride is not a multiple of the item size.
        PartialStride {
            axis: usize = "The axis.",
            found: i64 = "The stride in bytes.",
            itemsize: usize = "The size of one item in bytes.",
        } => "axis {axis} has a stride of {found} bytes; expected a multiple of the item size, {itemsize} bytes";
        /// The first element does not start at a byte boundary.
        PartialOffset { bits: i128 = "The offset in bits." }
            => "the first element begins at bit {bits}; it must begin on a byte of its own";
        /// The address of the first element is not aligned for the data type.
        Misaligned {
            address: usize = "The address.",
            alignment: usize = "The required alignment.",
            dtype: DataType = "The data type.",
        } => "the first element is at address {address:#x}; {dtype} needs a multiple of {alignment}";
        /// The data has its own layout, and the attribute gives a different one.
        LayoutConflict {
            what: &'static str = "`shape`, `strides` or `order`.",
            data: Vec<i64> = "The layout of the data.",
            given: Vec<i64> = "The value of the attribute.",
        } => "`{what}` is {given:?}, but the data itself has {data:?}; remove the key, or make them agree";
        /// The data has its own device, and the attribute gives a different one.
        DeviceConflict { data: Device = "The device of the data.", given: Device = "The value of the attribute." }
            => "`device` is {given}, but the data is on {data}; remove the key, or make them agree";
        /// A byte of a `bool` tensor is neither 0 nor 1.
        NotBool { found: u8 = "The byte." }
            => "a byte of the data is {found}; expected 0 or 1, as for every bool";
        /// DLPack 1.3 does not define the data type.
        UnknownDataType { found: DataType = "The data type." }
            => "DLPack {} has no data type {found}", Version::CURRENT;
        /// A tensor has another data type than is needed.
        WrongDataType {
            found: DataType = "The data type of the tensor.",
            needed: DataType = "The expected data type.",
        } => "expected dtype {needed}, found {found}";
        /// DLPack 1.3 does not define the device type.
        UnknownDevice { found: Device = "The device." }
            => "DLPack {} has no {found}", Version::CURRENT;
        /// The CPU cannot read the memory of the device that the data is on.
        NotOnHost { device: Device = "The device of the data." }
            => "the data is on {device}, where the CPU cannot read it; copy it to the host first";
        /// The data is not on a CUDA device.
        NotOnCuda { device: Device = "The device of the data." }
            => "expected data on a CUDA device, found {device}";
        /// The stream belongs to another device, or to a context that is not the primary one.
        ForeignStream { device: Device = "The device of the data." }
            => "the stream does not belong to the primary context of {device}, where the data is";
        /// This producer cannot copy the data to the requested device.
        UnreachableDevice { data: Device = "The device of the data.", requested: Device = "The requested device." }
            => "the data is on {data}, and this producer cannot copy it to {requested}";
        /// New memory was requested on this device, but this producer allocates host memory only.
        CannotAllocate { device: Device = "The requested device." }
            => "memory on {device} was requested, and this producer allocates memory on the CPU only";
        /// The request needs a copy on this device, which this producer cannot make.
        CannotCopy { device: Device = "The device of the data." }
            => "the request needs a copy on {device}, which this producer cannot make";
        /// The request needs a copy, and forbids one.
        CopyForbidden { why: &'static str = "Why a copy is needed." }
            => "copy=False, but {why}";
        /// The data is read-only, for which the legacy struct has no flag.
        LegacyReadOnly
            => "the data is read-only, and a legacy tensor has no flag for that; request DLPack 1.0 or newer, or a copy";
        /// The sub-byte values are padded to bytes, for which the legacy struct has no flag.
        LegacyPadded { dtype: DataType = "The data type." }
            => "the items are {dtype}, which a legacy tensor cannot describe; request DLPack 1.1 or newer";
        /// The stream is not valid for this device.
        BadStream { found: i64 = "The stream.", device: Device = "The device of the data." }
            => "stream {found} is not valid for data on {device}; pass {}", valid_streams(*device);
        /// Work on this device has to be ordered by its driver, but the crate was built without the feature `streams`.
        CannotOrder { device: Device = "The device of the data." }
            => "memory on {device} is exported in the order of streams, but this producer was built without the feature `streams` of dlpack-core";
        /// The data has its own stream, and the attribute gives a different one.
        StreamConflict { data: usize = "The stream of the data.", given: usize = "The value of the attribute." }
            => "`stream` is {given:#x}, but the data is written on {data:#x}; remove the key, or make them agree";
        /// A device's driver is needed and could not be loaded.
        NoDriver {
            library: &'static str = "The name of the library, without the system's prefix and suffix.",
            why: String = "The system's error message.",
        } => "{library} is needed, but could not be loaded: {why}";
        /// The loaded library lacks a function that is needed: it is too old, or not a driver.
        NoEntryPoint { library: String = "The library that was loaded.", symbol: &'static str = "The function." }
            => "{library} has no function `{symbol}`: it is too old, or not a driver";
        /// A call of a device's driver failed.
        DriverFailed {
            call: String = "The function that was called.",
            code: i32 = "The error code that it returned.",
            name: String = "The driver's name for the error code.",
        } => "`{call}` failed with {name} ({code})";
        /// A stream is capturing a graph, which the requested operation would invalidate or would not be ordered with.
        Capturing { what: &'static str = "The reason." }
            => "a graph is being captured: {what}";
        /// The limit of deferred owners is reached: consumers dropped this many tensors, and their streams have not been named
        /// again since.
        TooManyWait { owners: usize = "The number of deferred owners.", bytes: usize = "The size of their memory in bytes." }
            => "{owners} tensors of {bytes} bytes wait for consumers that did not pass their streams again, and the limit is reached: call `collect` while no stream captures";
        /// The tensor has an unsupported major version.
        UnsupportedMajor { found: Version = "The version of the tensor.", supported: Version = "The supported version." }
            => "the tensor has DLPack version {found}; expected {}.x", supported.major;
        /// A foreign tensor violates the DLPack format.
        Malformed { what: &'static str = "The violation.", found: i128 = "The offending value." }
            => "malformed tensor: {what} ({found})";
        /// The data is read-only, and write access was requested.
        ReadOnly => "the tensor is read-only; write to a copy of it";
        /// Another live view may share elements with this one, and one of the two may write.
        Borrowed => "another view of this memory is alive, and one of the two may write: drop that view first, or use a copy";
        /// The table that detects overlapping views with a promise cannot be used.
        NoLeaseTable { why: &'static str = "The reason." }
            => "views with a promise cannot be kept apart: {why}";
        /// Two indices refer to the same element, and write access was requested.
        Overlap { shape: Vec<i64> = "The shape.", strides: Vec<i64> = "The strides in items." }
            => "a tensor of shape {shape:?} with strides {strides:?} has elements that share memory, so it cannot be written";
        /// The key `writable` is set, but the buffer gives only shared access.
        NotWritable => "`writable` needs exclusive access to the memory, and this buffer gives shared access only";
        /// The memory is shared with writers, so it cannot be borrowed as a slice.
        MayChange => "others may write to this memory, so it cannot be a slice: copy it with `to_vec`, read it with `iter`, or take the argument as a view with a `Promise`";
        /// Another handle or an export has the memory of a `SharedBuffer`, so it cannot be borrowed as a slice.
        BufferInUse => "an array, an export or a clone has this buffer too, so it cannot be a slice now: drop that one first, or copy the elements with `to_vec`";
        /// The memory of a `SharedBuffer` was imported, and its producer may write to it, so it cannot be borrowed as a slice.
        ForeignBuffer => "this buffer has memory that was imported, and others may write to it, so it cannot be a slice: copy the elements with `to_vec`, or lend it with a `Promise`";
        /// The elements of a value are not in a `SharedBuffer`, so a view cannot keep them alive.
        NoSharedBuffer => "the elements are not in a `SharedBuffer`, so a view cannot keep them alive: borrow them from their container, or keep them in a `SharedBuffer`";
        /// An array of records was needed, and a tensor has none.
        NotRecords => "a DLPack tensor cannot hold records: pass a structured array of NumPy";
        /// The elements are not contiguous in the required order.
        NotContiguous { shape: Vec<i64> = "The shape.", strides: Vec<i64> = "The strides in items." }
            => "a tensor of shape {shape:?} with strides {strides:?} does not have the contiguous layout that is needed: copy it first, in Rust \
                with `to_vec`, in NumPy with `ascontiguousarray`, or with `asfortranarray` for a field in Fortran order";
        /// A copy was requested of items that are smaller than a byte and not contiguous.
        PackedStrides {
            dtype: DataType = "The data type.",
            shape: Vec<i64> = "The shape.",
            strides: Vec<i64> = "The strides in items.",
        } => "items of {dtype} share bytes, so they can be copied from a contiguous tensor only: found shape {shape:?} with strides {strides:?}";
        /// An array cannot be broadcast to a shape.
        Broadcast { shape: Vec<i64> = "The shape of the array.", needed: Vec<i64> = "The shape to broadcast to." }
            => "cannot broadcast shape {shape:?} to shape {needed:?}: from the last axis on, each size must be the same or 1";
        /// A clone of the field marked `owner` does not keep the data alive.
        OwnerElsewhere => "a clone of the field marked `owner` does not hold the memory that is exported";
        /// An allocation failed.
        OutOfMemory { bytes: usize = "The requested number of bytes." }
            => "cannot allocate {bytes} bytes of memory";
        /// The variant is marked `skip`, so it has no tensor.
        Skipped { name: &'static str = "The enum.", variant: &'static str = "The variant." }
            => "`{name}::{variant}` is marked `skip` and has no tensor";
        /// No variant of the enum accepts the tensor.
        NoVariant {
            name: &'static str = "The enum.",
            dtype: DataType = "The data type of the tensor.",
            rank: usize = "The rank of the tensor.",
            variants: &'static [&'static str] = "The variants, each with the type that it imports.",
        } => "no variant of `{name}` accepts {dtype} of rank {rank}; expected one of {variants:?}";
        /// There is no tensor with this name.
        NoSuchTensor { name: String = "The requested name.", known: &'static [&'static str] = "The existing names." }
            => "there is no tensor `{name}`; expected one of {known:?}";
        /// The field of this tensor is `None`.
        Absent { name: &'static str = "The name of the tensor." }
            => "the tensor `{name}` is None";
        /// A value of the tensor does not fit the field that it is imported into.
        BadField {
            what: &'static str = "The kind of value: a size, a stride, a data type or a device.",
            found: String = "The value.",
            needed: &'static str = "The type that cannot hold the value.",
        } => "a field of type `{needed}` cannot hold {what} {found}";
    }
}

/// Describes why an axis number is invalid for a tensor of this rank.
fn no_such_axis(axis: usize, rank: usize) -> &'static str {
    if axis < rank {
        "is listed twice; list each once of the"
    } else {
        "does not exist: the tensor has"
    }
}

/// Lists the valid values of `stream` for data on a device, for a message.
fn valid_streams(device: Device) -> &'static str {
    match device.device_type.stream_api() {
        None => "none, or -1 for no order",
        Some(StreamApi::Cuda) => {
            "1 or 2 for a default stream, a CUstream, -1 for no order, or none; none if it is to go to the cpu"
        }
        Some(StreamApi::Hip) => {
            "0 for the default stream, a hipStream_t, -1 for no order, or none; none if it is to go to the cpu"
        }
    }
}

impl core::error::Error for Error {}

/// Constructors of errors that own lists. If there is no memory for the lists, the result is `OutOfMemory`.
impl Error {
    /// Moves the error out of a place that is not read afterwards.
    #[cold]
    pub(crate) fn take_out(&mut self) -> Self {
        core::mem::replace(self, Self::ReadOnly)
    }

    #[cold]
    pub(crate) fn too_large(shape: &[i64]) -> Self {
        copy_list(shape).map_or_else(|error| error, |shape| Self::TooLarge { shape })
    }

    #[cold]
    pub(crate) fn too_short(shape: &[i64], found: usize) -> Self {
        let wide = shape.iter().map(|&extent| i128::from(extent));
        let needed = wide.fold(1, i128::saturating_mul);
        let error = |shape| Self::TooShort {
            shape,
            needed,
            found,
        };
        copy_list(shape).map_or_else(|error| error, error)
    }

    #[cold]
    pub(crate) fn not_contiguous(shape: &[i64], strides: &[i64]) -> Self {
        Self::from_layout(shape, strides, |shape, strides| Self::NotContiguous {
            shape,
            strides,
        })
    }

    #[cold]
    pub(crate) fn packed_strides(dtype: DataType, shape: &[i64], strides: &[i64]) -> Self {
        Self::from_layout(shape, strides, |shape, strides| Self::PackedStrides {
            dtype,
            shape,
            strides,
        })
    }

    #[cold]
    pub(crate) fn overlap(shape: &[i64], strides: &[i64]) -> Self {
        Self::from_layout(shape, strides, |shape, strides| Self::Overlap {
            shape,
            strides,
        })
    }

    #[cold]
    pub(crate) fn broadcast(shape: &[i64], needed: &[i64]) -> Self {
        Self::from_layout(shape, needed, |shape, needed| Self::Broadcast {
            shape,
            needed,
        })
    }

    fn from_layout(
        shape: &[i64],
        strides: &[i64],
        error: impl FnOnce(Vec<i64>, Vec<i64>) -> Self,
    ) -> Self {
        match (copy_list(shape), copy_list(strides)) {
            (Ok(shape), Ok(strides)) => error(shape, strides),
            (Err(error), _) | (_, Err(error)) => error,
        }
    }

    /// Clones the remembered error of a search for a driver, or returns `OutOfMemory` if there is no memory for the clone.
    #[cfg(feature = "streams")]
    #[cold]
    pub(crate) fn clone_or_out_of_memory(&self) -> Self {
        let clone = || match self {
            Self::NoDriver { library, why } => {
                let (library, why) = (*library, text(why)?);
                Ok(Self::NoDriver { library, why })
            }
            Self::NoEntryPoint { library, symbol } => {
                let (library, symbol) = (text(library)?, *symbol);
                Ok(Self::NoEntryPoint { library, symbol })
            }
            Self::OutOfMemory { bytes } => Err(Self::OutOfMemory { bytes: *bytes }),
            // A derived clone would contain the code for each variant.
            _ => unreachable!("a search for a driver fails in no other way"),
        };
        clone().unwrap_or_else(|error| error)
    }
}

/// Formats a value like `to_string`, but returns an error if there is no memory for the text.
///
/// # Errors
///
/// [`Error::OutOfMemory`], where `to_string` would abort the process.
pub fn text(value: impl fmt::Display) -> Result<String, Error> {
    struct Text(String);

    impl fmt::Write for Text {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0.try_reserve(part.len()).map_err(|_| fmt::Error)?;
            self.0.push_str(part);
            Ok(())
        }
    }

    let mut text = Text(String::new());
    let written = fmt::write(&mut text, format_args!("{value}"));
    let bytes = text.0.len() + 1;
    written.map_or(Err(Error::OutOfMemory { bytes }), |()| Ok(text.0))
}

/// Checks that an allocation of `bytes` succeeds now. Called before an operation that would abort if its allocation failed.
pub(crate) fn check_memory(bytes: usize) -> Result<(), Error> {
    let reserved = Vec::<u8>::new().try_reserve_exact(bytes);
    reserved.map_err(|_| Error::OutOfMemory { bytes })
}

/// Copies a list as `to_vec` does, but returns an error if there is no memory for it.
pub(crate) fn copy_list(values: &[i64]) -> Result<Vec<i64>, Error> {
    concat_lists(values, &[])
}

/// Concatenates two lists, or returns an error if there is no memory for the result.
pub(crate) fn concat_lists(values: &[i64], more: &[i64]) -> Result<Vec<i64>, Error> {
    let mut list = Vec::new();
    if list.try_reserve_exact(values.len() + more.len()).is_err() {
        let bytes = size_of_val(values) + size_of_val(more);
        return Err(Error::OutOfMemory { bytes });
    }
    list.extend_from_slice(values);
    list.extend_from_slice(more);
    Ok(list)
}
