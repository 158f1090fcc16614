//! One error type: each variant carries what was found and what was needed.

use alloc::{string::String, vec::Vec};
use core::fmt;

use crate::{DataType, Device, Version, device::Api};

/// Each variant with its fields and what they are, and the text that it is shown as: with the fields by name, and what
/// else there is behind it.
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
    /// Why something cannot be described, exported, imported or copied.
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
        /// An extent is negative or does not fit an `i64`.
        BadExtent { axis: usize = "The axis.", found: i128 = "What the shape says." }
            => "axis {axis} of the shape is {found}; expected a size between 0 and {}", i64::MAX;
        /// A stride does not fit an `i64`.
        BadStride { axis: usize = "The axis.", found: i128 = "What the strides say." }
            => "the stride of axis {axis} is {found}, which does not fit in an i64";
        /// An offset is negative, or leads out of the buffer by itself.
        BadOffset { found: i128 = "The offset." }
            => "the offset is {found}; expected one between 0 and the end of the buffer";
        /// There is not one stride for each axis.
        StrideCount { found: usize = "How many strides there are.", needed: usize = "How many axes there are." }
            => "expected {needed} strides, one for each axis, found {found}";
        /// More axes than consumers take.
        TooManyAxes { found: usize = "How many axes there are.", most: usize = "How many there may be." }
            => "the tensor has {found} axes; at most {most} are supported";
        /// A tensor of another rank was needed.
        Rank { found: usize = "The rank of the tensor.", needed: usize = "The rank that is needed." }
            => "expected a tensor of rank {needed}, found one of rank {found}";
        /// An axis of another extent was needed.
        Extent {
            axis: usize = "The axis.",
            found: i64 = "The extent of the tensor.",
            needed: String = "What is needed, in words or as a number.",
        } => "expected size {needed} for axis {axis} of the tensor, found {found}";
        /// There is no such axis, or it was named before.
        NoSuchAxis { axis: usize = "What was named.", rank: usize = "How many axes there are." }
            => "axis {axis} {} {rank} axes, counted from 0", no_such_axis(*axis, *rank);
        /// An index or a range leads out of an axis.
        OutOfRange {
            axis: usize = "The axis.",
            start: usize = "The first index.",
            end: usize = "One past the last.",
            extent: usize = "The extent of the axis.",
        } => "indices {start}..{end} are out of range for axis {axis} of size {extent}";
        /// There are more elements, or fewer, than are needed.
        Count { found: usize = "How many there are.", needed: usize = "How many are needed." }
            => "expected {needed} elements, found {found}";
        /// There are more bytes, or fewer, than the items of a tensor take.
        Bytes { found: usize = "How many there are.", needed: usize = "How many are needed." }
            => "expected {needed} bytes for the items, found {found}";
        /// The elements take more bytes than memory has.
        TooLarge { shape: Vec<i64> = "The shape." }
            => "a tensor of shape {shape:?} does not fit in the address space";
        /// The data has fewer elements than the shape says.
        TooShort {
            shape: Vec<i64> = "The shape, without the axes of the elements.",
            needed: i128 = "How many elements it needs.",
            found: usize = "How many elements the data has.",
        } => "shape {shape:?} needs {needed} elements, the data has {found}";
        /// An element lies outside the buffer, where strides or an offset say where.
        OutOfBounds {
            first: i128 = "The first byte that the tensor reaches, counted from the start of the buffer.",
            end: i128 = "One past the last byte that it reaches.",
            len: usize = "The bytes of the buffer.",
        } => "shape, strides and offset reach from byte {first} to byte {end}, the data has {len} bytes";
        /// The extent written `_` cannot be found from the length of the data.
        NotInferable {
            elements: usize = "How many elements there are.",
            others: i128 = "How many elements the other extents make.",
        } => "cannot infer `_` in the shape: {elements} elements do not divide into rows of {others}";
        /// The buffer is no whole number of elements.
        PartialElement {
            bytes: usize = "The bytes that the elements have.",
            element_bits: usize = "The bits of one element.",
        } => "{bytes} bytes are not a whole number of elements of {element_bits} bits";
        /// A byte stride is no multiple of the item.
        PartialStride {
            axis: usize = "The axis.",
            found: i64 = "The stride in bytes.",
            itemsize: usize = "The bytes of one item.",
        } => "axis {axis} has a stride of {found} bytes; expected a multiple of the item size, {itemsize} bytes";
        /// The first element does not begin on a byte of its own.
        PartialOffset { bits: i128 = "The offset in bits." }
            => "the first element begins at bit {bits}; it must begin on a byte of its own";
        /// The first element does not lie where its type has to.
        Misaligned {
            address: usize = "Its address.",
            alignment: usize = "What the address must be a multiple of.",
            dtype: DataType = "The data type.",
        } => "the first element is at address {address:#x}; {dtype} needs a multiple of {alignment}";
        /// The data knows its own layout, and the annotation says another.
        LayoutConflict {
            what: &'static str = "`shape`, `strides` or `order`.",
            data: Vec<i64> = "What the data says.",
            given: Vec<i64> = "What the annotation says.",
        } => "`{what}` is {given:?}, but the data itself has {data:?}; remove the key, or make them agree";
        /// The data knows its own device, and the annotation says another.
        DeviceConflict { data: Device = "Where the data lies.", given: Device = "What the annotation says." }
            => "`device` is {given}, but the data is on {data}; remove the key, or make them agree";
        /// A byte that stands for a `bool` is neither 0 nor 1.
        NotBool { found: u8 = "The byte." }
            => "a byte of the data is {found}; expected 0 or 1, as for every bool";
        /// DLPack 1.3 has no such data type.
        UnknownDataType { found: DataType = "What was found." }
            => "DLPack {} has no data type {found}", Version::CURRENT;
        /// A tensor of another data type was needed.
        WrongDataType {
            found: DataType = "The data type of the tensor.",
            needed: DataType = "The data type that is needed.",
        } => "expected dtype {needed}, found {found}";
        /// DLPack 1.3 has no such device.
        UnknownDevice { found: Device = "What was found." }
            => "DLPack {} has no {found}", Version::CURRENT;
        /// The data does not lie where the processor can read it.
        NotOnHost { device: Device = "Where it lies." }
            => "the data is on {device}, where the CPU cannot read it; copy it to the host first";
        /// The data does not lie where work of CUDA reads it.
        NotOnCuda { device: Device = "Where it lies." }
            => "expected data on a CUDA device, found {device}";
        /// A stream of another device, or of a context that is not the primary one.
        ForeignStream { device: Device = "Where the data lies." }
            => "the stream does not belong to the primary context of {device}, where the data is";
        /// The data cannot be brought to that device.
        UnreachableDevice { data: Device = "Where it lies.", requested: Device = "Where it was asked for." }
            => "the data is on {data}, and this producer cannot copy it to {requested}";
        /// A copy on this device was asked for, which is not available.
        CannotCopy { device: Device = "Where the data lies." }
            => "data on {device} cannot be copied by this producer";
        /// The request can only be served by a copy, and forbids one.
        CopyForbidden { why: &'static str = "Why a copy is needed." }
            => "copy=False, but {why}";
        /// The data is read-only, which the legacy struct cannot say.
        LegacyReadOnly
            => "the data is read-only, and a legacy tensor has no flag for that; request DLPack 1.0 or newer, or a copy";
        /// The values are padded to bytes, which the legacy struct cannot say.
        LegacyPadded { dtype: DataType = "The data type." }
            => "the items are {dtype}, which a legacy tensor cannot describe; request DLPack 1.1 or newer";
        /// The stream means nothing for this device.
        BadStream { found: i64 = "The stream.", device: Device = "Where the data lies." }
            => "stream {found} is not valid for data on {device}; pass {}", streams_of(*device);
        /// Work on this device would have to be ordered against a stream, which is not available: the crate was
        /// built without `std`.
        CannotOrder { device: Device = "Where the data lies." }
            => "work on {device} cannot be ordered after a stream by this producer, which was built without std; synchronize first and pass stream -1";
        /// The data says itself which stream it is written on, and the annotation says another.
        StreamConflict { data: usize = "The stream of the data.", given: usize = "What the annotation says." }
            => "`stream` is {given:#x}, but the data is written on {data:#x}; remove the key, or make them agree";
        /// A device's driver is needed and could not be loaded.
        NoDriver {
            library: &'static str = "The library, without what systems add to names.",
            why: String = "What the system said.",
        } => "{library} is needed, but could not be loaded: {why}";
        /// A device's driver lacks a function that is needed: it is too old, or is none.
        NoEntryPoint { library: String = "The library that was loaded.", symbol: &'static str = "The function." }
            => "{library} has no function `{symbol}`: it is too old, or not a driver";
        /// A device's driver failed.
        DriverFailed {
            call: String = "The function that was called.",
            code: i32 = "What it returned.",
            name: String = "What the driver calls that.",
        } => "`{call}` failed with {name} ({code})";
        /// A stream is recording a graph, and what was asked for would break that or be broken by it.
        Capturing { what: &'static str = "What is in the way." }
            => "a graph is being captured: {what}";
        /// As many tensors as may were dropped by consumers whose streams nobody has named again.
        TooManyWait { owners: usize = "How many owners wait.", bytes: usize = "How much memory they keep." }
            => "{owners} tensors of {bytes} bytes were dropped by consumers whose streams nobody has named again, which is as much as may be kept: call `collect` where no stream captures";
        /// The tensor has another major version.
        UnsupportedMajor { found: Version = "Its version.", supported: Version = "Ours." }
            => "the tensor has DLPack version {found}; expected {}.x", supported.major;
        /// A foreign tensor breaks the format.
        Malformed { what: &'static str = "What is wrong with it.", found: i64 = "The number that shows it." }
            => "malformed tensor: {what} ({found})";
        /// The data is read-only, and writing was asked for.
        ReadOnly => "the tensor is read-only; write to a copy of it";
        /// A view that is alive may share elements with this one, and one of the two may write.
        Borrowed => "another view of this memory is alive, and one of the two may write: drop that one first";
        /// The table that keeps views with a promise apart cannot be used.
        NoLeaseTable { why: &'static str = "What is in the way." }
            => "views with a promise cannot be kept apart: {why}";
        /// Two indices mean the same element, and writing was asked for.
        Overlap { shape: Vec<i64> = "The shape.", strides: Vec<i64> = "The strides in items." }
            => "a tensor of shape {shape:?} with strides {strides:?} has elements that share memory, so it cannot be written";
        /// `writable` was asked for, and the buffer gives only shared access.
        NotWritable => "`writable` needs exclusive access to the memory, and this buffer gives shared access only";
        /// Others may write to the memory, so it cannot be a slice.
        MayChange => "others may write to this memory, so it cannot be a slice: copy it with `to_vec`, read it with `iter`, or take the argument as a view with a `Promise`";
        /// An array of records was needed, and a tensor has none.
        NotRecords => "a DLPack tensor cannot hold records: pass a structured array of NumPy";
        /// The elements do not lie one after another, as a slice needs.
        NotContiguous { shape: Vec<i64> = "The shape.", strides: Vec<i64> = "The strides in items." }
            => "a tensor of shape {shape:?} with strides {strides:?} is not contiguous, as a slice needs: copy it with `to_vec`, or read it with `iter`";
        /// A clone of the field marked `owner` does not keep the data.
        OwnerElsewhere => "a clone of the field marked `owner` does not hold the memory that is exported";
        /// The memory could not be had.
        OutOfMemory { bytes: usize = "The bytes asked for." }
            => "cannot allocate {bytes} bytes of memory";
        /// The variant is marked `skip`.
        Skipped { name: &'static str = "The enum.", variant: &'static str = "The variant." }
            => "`{name}::{variant}` is marked `skip` and has no tensor";
        /// No variant of the enum takes such a tensor.
        NoVariant {
            name: &'static str = "The enum.",
            dtype: DataType = "The data type of the tensor.",
            rank: usize = "The rank of the tensor.",
        } => "no variant of `{name}` accepts {dtype} of rank {rank}; convert the array to a dtype and rank that one accepts";
        /// There is no tensor of this name.
        NoSuchTensor { name: String = "The name asked for.", known: &'static [&'static str] = "The names that there are." }
            => "there is no tensor `{name}`; expected one of {known:?}";
        /// The field of this tensor is `None`.
        Absent { name: &'static str = "The name of the tensor." }
            => "the tensor `{name}` is None";
        /// A value of the tensor does not fit the field it is read back into.
        BadField {
            what: &'static str = "What the value is: an extent, a stride, a data type or a device.",
            found: String = "The value.",
        } => "the field cannot hold {what} {found}";
    }
}

/// What is wrong with the axis, up to how many there are.
fn no_such_axis(axis: usize, rank: usize) -> &'static str {
    if axis < rank {
        "is listed twice; list each once of the"
    } else {
        "does not exist: the tensor has"
    }
}

/// The streams that can be named for data on a device.
fn streams_of(device: Device) -> &'static str {
    match device.device_type.api() {
        None => "none, or -1 for no order",
        Some(Api::Cuda) => {
            "1 or 2 for a default stream, a CUstream, -1 for no order, or none; none if it is to go to the cpu"
        }
        Some(Api::Hip) => {
            "0 for the default stream, a hipStream_t, -1 for no order, or none; none if it is to go to the cpu"
        }
    }
}

impl core::error::Error for Error {}

/// The errors that hold lists, if there is memory for those.
impl Error {
    /// Takes it out of where it is not needed any more.
    #[cold]
    pub(crate) fn take(&mut self) -> Self {
        core::mem::replace(self, Self::ReadOnly)
    }

    #[cold]
    pub(crate) fn too_large(shape: &[i64]) -> Self {
        list(shape).map_or_else(|error| error, |shape| Self::TooLarge { shape })
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
        list(shape).map_or_else(|error| error, error)
    }

    #[cold]
    pub(crate) fn not_contiguous(shape: &[i64], strides: &[i64]) -> Self {
        Self::of_layout(shape, strides, |shape, strides| Self::NotContiguous {
            shape,
            strides,
        })
    }

    #[cold]
    pub(crate) fn overlap(shape: &[i64], strides: &[i64]) -> Self {
        Self::of_layout(shape, strides, |shape, strides| Self::Overlap {
            shape,
            strides,
        })
    }

    fn of_layout(shape: &[i64], strides: &[i64], error: fn(Vec<i64>, Vec<i64>) -> Self) -> Self {
        match (list(shape), list(strides)) {
            (Ok(shape), Ok(strides)) => error(shape, strides),
            (Err(error), _) | (_, Err(error)) => error,
        }
    }

    /// A clone, if there is memory for one, of an error that is remembered.
    #[cfg(feature = "std")]
    #[cold]
    pub(crate) fn again(&self) -> Self {
        let clone = || match self {
            Self::NoDriver { library, why } => {
                let (library, why) = (*library, text(why)?);
                Ok(Self::NoDriver { library, why })
            }
            Self::NoEntryPoint { library, symbol } => {
                let (library, symbol) = (text(library)?, *symbol);
                Ok(Self::NoEntryPoint { library, symbol })
            }
            other => Ok(other.clone()),
        };
        clone().unwrap_or_else(|error| error)
    }
}

/// `value.to_string()`, where there is memory for it.
///
/// # Errors
///
/// [`Error::OutOfMemory`], where `to_string` would end the process.
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

/// That there is so much memory just now: asked before what would end the process without.
pub(crate) fn room(bytes: usize) -> Result<(), Error> {
    let room = Vec::<u8>::new().try_reserve_exact(bytes);
    room.map_err(|_| Error::OutOfMemory { bytes })
}

/// `values.to_vec()`, where there is memory for it.
pub(crate) fn list(values: &[i64]) -> Result<Vec<i64>, Error> {
    joined(values, &[])
}

/// `[values, more].concat()`, likewise.
pub(crate) fn joined(values: &[i64], more: &[i64]) -> Result<Vec<i64>, Error> {
    let mut list = Vec::new();
    if list.try_reserve_exact(values.len() + more.len()).is_err() {
        let bytes = size_of_val(values) + size_of_val(more);
        return Err(Error::OutOfMemory { bytes });
    }
    list.extend_from_slice(values);
    list.extend_from_slice(more);
    Ok(list)
}
