//! One error type: each variant carries what was found and what was needed.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::device::{Api, Device};
use crate::dtype::DataType;
use crate::version::Version;

pub(crate) mod words;

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
///     "the tensor reaches from byte 0 to byte 24 of a buffer of 16 bytes",
/// );
/// # Ok::<(), Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// An extent is negative or does not fit an `i64` (LAY-19).
    BadExtent {
        /// The axis.
        axis: usize,
        /// What the shape says.
        found: i128,
    },
    /// A stride does not fit an `i64`.
    BadStride {
        /// The axis.
        axis: usize,
        /// What the strides say.
        found: i128,
    },
    /// An offset is negative, or leads out of the buffer by itself.
    BadOffset {
        /// The offset.
        found: i128,
    },
    /// There is not one stride for each axis.
    StrideCount {
        /// How many strides there are.
        found: usize,
        /// How many axes there are.
        needed: usize,
    },
    /// More axes than consumers take (LAY-20).
    TooManyAxes {
        /// How many axes there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// A tensor of another rank was needed.
    Rank {
        /// The rank of the tensor.
        found: usize,
        /// The rank that is needed.
        needed: usize,
    },
    /// An axis of another extent was needed.
    Extent {
        /// The axis.
        axis: usize,
        /// The extent of the tensor.
        found: i64,
        /// What is needed, in words or as a number.
        needed: String,
    },
    /// The elements take more bytes than memory has (LAY-19).
    TooLarge {
        /// The shape.
        shape: Vec<i64>,
    },
    /// An element lies outside the buffer.
    OutOfBounds {
        /// The first byte that the tensor reaches, counted from the start of the buffer.
        first: i128,
        /// One past the last byte that it reaches.
        end: i128,
        /// The bytes of the buffer.
        len: usize,
    },
    /// The extent written `_` cannot be found from the length of the data.
    NotInferable {
        /// How many elements there are.
        elements: usize,
        /// How many elements the other extents make.
        others: i128,
    },
    /// The buffer is no whole number of elements.
    PartialElement {
        /// The bytes that the elements have.
        bytes: usize,
        /// The bits of one element.
        element_bits: usize,
    },
    /// A byte stride is no multiple of the item (LAY-13).
    PartialStride {
        /// The axis.
        axis: usize,
        /// The stride in bytes.
        found: i64,
        /// The bytes of one item.
        itemsize: usize,
    },
    /// The first element does not begin on a byte of its own.
    PartialOffset {
        /// The offset in bits.
        bits: i128,
    },
    /// The first element does not lie where its type has to (LAY-12).
    Misaligned {
        /// Its address.
        address: usize,
        /// What the address must be a multiple of.
        alignment: usize,
        /// The data type.
        dtype: DataType,
    },
    /// The data knows its own layout, and the annotation says another.
    LayoutConflict {
        /// `shape`, `strides` or `order`.
        what: &'static str,
        /// What the data says.
        data: Vec<i64>,
        /// What the annotation says.
        given: Vec<i64>,
    },
    /// The data knows its own device, and the annotation says another.
    DeviceConflict {
        /// Where the data lies.
        data: Device,
        /// What the annotation says.
        given: Device,
    },
    /// A byte that stands for a `bool` is neither 0 nor 1.
    NotBool {
        /// The byte.
        found: u8,
    },
    /// DLPack 1.3 has no such data type (DTY-08).
    UnknownDataType {
        /// What was found.
        found: DataType,
    },
    /// A tensor of another data type was needed.
    WrongDataType {
        /// The data type of the tensor.
        found: DataType,
        /// The data type that is needed.
        needed: DataType,
    },
    /// DLPack 1.3 has no such device (DEV-14).
    UnknownDevice {
        /// What was found.
        found: Device,
    },
    /// The data does not lie where the processor can read it.
    NotOnHost {
        /// Where it lies.
        device: Device,
    },
    /// The data cannot be brought to that device (DEV-06).
    UnreachableDevice {
        /// Where it lies.
        data: Device,
        /// Where it was asked for.
        requested: Device,
    },
    /// A copy on this device was asked for, which is not available (CPY-10).
    CannotCopy {
        /// Where the data lies.
        device: Device,
    },
    /// The request can only be served by a copy, and forbids one (CPY-02).
    CopyForbidden {
        /// Why a copy is needed.
        why: &'static str,
    },
    /// The data is read-only, which the legacy struct cannot say (FLG-04).
    LegacyReadOnly,
    /// The values are padded to bytes, which the legacy struct cannot say (DTY-13).
    LegacyPadded {
        /// The data type.
        dtype: DataType,
    },
    /// The stream means nothing for this device (STC-12).
    BadStream {
        /// The stream.
        found: i64,
        /// Where the data lies.
        device: Device,
    },
    /// Work on this device would have to be ordered against a stream, which is not available: the crate was
    /// built without `std`.
    CannotOrder {
        /// Where the data lies.
        device: Device,
    },
    /// The data says itself which stream it is written on, and the annotation says another.
    StreamConflict {
        /// The stream of the data.
        data: usize,
        /// What the annotation says.
        given: usize,
    },
    /// A device's driver is needed and could not be loaded.
    NoDriver {
        /// The library, without what systems add to names.
        library: &'static str,
        /// What the system said.
        why: String,
    },
    /// A device's driver lacks a function that is needed: it is too old, or is none.
    NoEntryPoint {
        /// The library that was loaded.
        library: String,
        /// The function.
        symbol: &'static str,
    },
    /// A device's driver failed.
    DriverFailed {
        /// The function that was called.
        call: String,
        /// What it returned.
        code: i32,
        /// What the driver calls that.
        name: String,
    },
    /// A stream is recording a graph, and what was asked for would break that or be broken by it.
    Capturing {
        /// What is in the way.
        what: &'static str,
    },
    /// The tensor has another major version (NEG-12).
    UnsupportedMajor {
        /// Its version.
        found: Version,
        /// Ours.
        supported: Version,
    },
    /// A foreign tensor breaks the format.
    Malformed {
        /// What is wrong with it.
        what: &'static str,
        /// The number that shows it.
        found: i64,
    },
    /// The data is read-only, and writing was asked for (FLG-09).
    ReadOnly,
    /// `writable` was asked for, and the buffer gives only shared access.
    NotWritable,
    /// Others may write to the memory, so it cannot be a slice.
    MayChange,
    /// The elements do not lie one after another, as a slice needs.
    NotContiguous {
        /// The shape.
        shape: Vec<i64>,
        /// The strides in items.
        strides: Vec<i64>,
    },
    /// A clone of the field marked `owner` does not keep the data.
    OwnerElsewhere,
    /// The memory could not be had.
    OutOfMemory {
        /// The bytes asked for.
        bytes: usize,
    },
    /// The variant is marked `skip`.
    Skipped {
        /// The enum.
        name: &'static str,
        /// The variant.
        variant: &'static str,
    },
    /// No variant of the enum takes such a tensor.
    NoVariant {
        /// The enum.
        name: &'static str,
        /// The data type of the tensor.
        dtype: DataType,
        /// The rank of the tensor.
        rank: usize,
    },
    /// There is no tensor of this name.
    NoSuchTensor {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: &'static [&'static str],
    },
    /// The field of this tensor is `None`.
    Absent {
        /// The name of the tensor.
        name: &'static str,
    },
    /// A value of the tensor does not fit the field it is read back into.
    BadField {
        /// What the value is: an extent, a stride, a data type or a device.
        what: &'static str,
        /// The value.
        found: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadExtent { axis, found } => write!(
                f,
                "axis {axis} of the shape is {found}; an extent lies between 0 and {}",
                i64::MAX
            ),
            Self::BadStride { axis, found } => write!(
                f,
                "the stride of axis {axis} is {found}, which does not fit an i64"
            ),
            Self::BadOffset { found } => write!(
                f,
                "the offset is {found}; an offset lies between 0 and the end of the buffer"
            ),
            Self::StrideCount { found, needed } => write!(
                f,
                "there are {found} strides for {needed} axes; each axis needs one"
            ),
            Self::TooManyAxes { found, most } => {
                write!(f, "the tensor has {found} axes; at most {most} are allowed")
            }
            Self::Rank { found, needed } => {
                write!(f, "the tensor has {found} axes where {needed} are needed")
            }
            Self::Extent {
                axis,
                found,
                needed,
            } => write!(f, "axis {axis} of the tensor is {found}, not {needed}"),
            Self::TooLarge { shape } => write!(
                f,
                "a tensor of shape {shape:?} takes more bytes than memory has"
            ),
            Self::OutOfBounds { first, end, len } => write!(
                f,
                "the tensor reaches from byte {first} to byte {end} of a buffer of {len} bytes"
            ),
            Self::NotInferable { elements, others } => write!(
                f,
                "`_` in the shape has no value: {elements} elements do not make whole rows of {others}"
            ),
            Self::PartialElement {
                bytes,
                element_bits,
            } => write!(
                f,
                "{bytes} bytes are no whole number of elements of {element_bits} bits"
            ),
            Self::PartialStride {
                axis,
                found,
                itemsize,
            } => write!(
                f,
                "axis {axis} has a stride of {found} bytes, which is no multiple of the {itemsize} bytes of an item"
            ),
            Self::PartialOffset { bits } => write!(
                f,
                "the first element begins at bit {bits}; it must begin on a byte of its own"
            ),
            Self::Misaligned {
                address,
                alignment,
                dtype,
            } => write!(
                f,
                "the first element lies at {address:#x}; {dtype} needs an address that is a multiple of {alignment}"
            ),
            Self::LayoutConflict { what, data, given } => write!(
                f,
                "`{what}` says {given:?}, but the data says {data:?} itself"
            ),
            Self::DeviceConflict { data, given } => {
                write!(f, "`device` says {given}, but the data lies on {data}")
            }
            Self::NotBool { found } => {
                write!(f, "a byte of the data is {found}; as bool it must be 0 or 1")
            }
            Self::UnknownDataType { found } => {
                write!(f, "DLPack {} has no data type {found}", Version::CURRENT)
            }
            Self::WrongDataType { found, needed } => {
                write!(f, "the tensor holds {found} where {needed} is needed")
            }
            Self::UnknownDevice { found } => {
                write!(f, "DLPack {} has no {found}", Version::CURRENT)
            }
            Self::NotOnHost { device } => write!(
                f,
                "the data lies on {device}, where the processor cannot read it"
            ),
            Self::UnreachableDevice { data, requested } => write!(
                f,
                "the data lies on {data} and cannot be brought to {requested}"
            ),
            Self::CannotCopy { device } => {
                write!(f, "data on {device} cannot be copied by this producer")
            }
            Self::CopyForbidden { why } => write!(f, "copy=False, but {why}"),
            Self::LegacyReadOnly => f.write_str(
                "the data is read-only, which a legacy tensor cannot say; ask for DLPack 1.0 or newer, or for a copy",
            ),
            Self::LegacyPadded { dtype } => write!(
                f,
                "the items are {dtype}, which a legacy tensor cannot say; ask for DLPack 1.1 or newer"
            ),
            Self::BadStream { found, device } => match device.device_type.api() {
                None => write!(
                    f,
                    "stream {found} means nothing for data on {device}; pass none"
                ),
                Some(Api::Cuda) => write!(
                    f,
                    "stream {found} means nothing for data on {device}; pass 1 or 2 for a default stream, a CUstream, -1 for no order, or none; none if it is to go to the cpu"
                ),
                Some(Api::Hip) => write!(
                    f,
                    "stream {found} means nothing for data on {device}; pass 0 for the default stream, a hipStream_t, -1 for no order, or none; none if it is to go to the cpu"
                ),
            },
            Self::CannotOrder { device } => write!(
                f,
                "work on {device} cannot be ordered after a stream by this producer, which was built without std; synchronize first and pass stream -1"
            ),
            Self::StreamConflict { data, given } => write!(
                f,
                "`stream` says {:#x}, but the data is written on {:#x}",
                given, data
            ),
            Self::NoDriver { library, why } => {
                write!(f, "{library} is needed, and could not be loaded: {why}")
            }
            Self::NoEntryPoint { library, symbol } => {
                write!(f, "{library} is no driver, or too old: it has no `{symbol}`")
            }
            Self::DriverFailed { call, code, name } => {
                write!(f, "`{call}` failed with {name} ({code})")
            }
            Self::Capturing { what } => write!(f, "a graph is being captured: {what}"),
            Self::UnsupportedMajor { found, supported } => write!(
                f,
                "the tensor has DLPack version {found}; {}.x is supported",
                supported.major
            ),
            Self::Malformed { what, found } => write!(f, "malformed tensor: {what} ({found})"),
            Self::ReadOnly => f.write_str("the tensor is read-only"),
            Self::NotWritable => f.write_str(
                "`writable` needs memory that nobody else holds, and the buffer only gives shared access",
            ),
            Self::MayChange => f.write_str(
                "others may write to the memory while it is read: take the elements with `to_vec` or `iter`",
            ),
            Self::NotContiguous { shape, strides } => write!(
                f,
                "a tensor of shape {shape:?} with strides {strides:?} is not one run of elements"
            ),
            Self::OwnerElsewhere => f.write_str(
                "a clone of the field marked `owner` does not hold the memory that is exported",
            ),
            Self::OutOfMemory { bytes } => write!(f, "{bytes} bytes of memory could not be had"),
            Self::Skipped { name, variant } => write!(
                f,
                "`{name}::{variant}` is marked `skip` and has no tensor"
            ),
            Self::NoVariant { name, dtype, rank } => write!(
                f,
                "no variant of `{name}` takes a tensor of {dtype} with {rank} axes"
            ),
            Self::NoSuchTensor { name, known } => {
                write!(f, "there is no tensor `{name}`, only {known:?}")
            }
            Self::Absent { name } => write!(f, "the tensor `{name}` is None"),
            Self::BadField { what, found } => {
                write!(f, "the field cannot hold {what} {found}")
            }
        }
    }
}

impl core::error::Error for Error {}
