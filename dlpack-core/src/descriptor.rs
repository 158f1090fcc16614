//! [`Descriptor`]: a tensor that was found to reach nothing outside its buffer.

use core::marker::PhantomData;

use crate::atomic::Word;
use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::DataType;
use crate::error::Error;
use crate::export::DLPack;
use crate::extent;
use crate::loan::Access;
use crate::managed::Managed;
use crate::request::{LegacyPolicy, ReleasePolicy};
use crate::stream::StreamRef;
use crate::stream::rules::Queue;

/// A tensor that was checked against the memory it lies in.
///
/// There is no way to make one but through [`Parts`](crate::Parts), which refuses whatever would reach outside.
///
/// ```
/// use dlpack_core::{DLPack, DataType, Device};
///
/// let samples = vec![[1.0_f32, 2.0]; 3];
/// let descriptor = samples.describe()?;
/// assert_eq!(descriptor.shape(), [3, 2]);
/// assert_eq!(descriptor.strides(), [2, 1]);
/// assert_eq!(descriptor.dtype(), DataType::F32);
/// assert_eq!(descriptor.device(), Device::CPU);
/// assert_eq!(descriptor.as_ptr(), samples.as_ptr().cast());
/// assert_eq!(descriptor.len_bytes(), 24);
/// assert!(descriptor.is_read_only());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Descriptor<'a> {
    /// The address of the first element, or the handle that `byte_offset` counts from.
    pub(crate) data: *mut u8,
    pub(crate) byte_offset: u64,
    pub(crate) shape: Dims,
    pub(crate) strides: Dims,
    pub(crate) dtype: DataType,
    pub(crate) device: Device,
    pub(crate) stream: Option<Queue>,
    pub(crate) read_only: bool,
    /// Who may write to the memory; a tensor is read-only for more reasons than this.
    pub(crate) access: Access,
    pub(crate) legacy: LegacyPolicy,
    pub(crate) release: ReleasePolicy,
    /// Memory that belongs to the descriptor itself: a tensor made on request (`via`).
    pub(crate) made: Option<Managed>,
    pub(crate) lifetime: PhantomData<&'a [u8]>,
}

impl Descriptor<'_> {
    /// The extents, one an axis.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert_eq!([[0_u8; 3]; 2].describe()?.shape(), [2, 3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The strides in items, one an axis.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert_eq!([[0_u8; 3]; 2].describe()?.strides(), [3, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The type of the items.
    ///
    /// ```
    /// use dlpack_core::{DLPack, DataType};
    ///
    /// assert_eq!([0_i16; 4].describe()?.dtype(), DataType::I16);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Where the memory lies.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Device};
    ///
    /// assert_eq!([0_i16; 4].describe()?.device(), Device::CPU);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The stream that the memory is written on, if the data or the annotation names one.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert_eq!([0_i16; 4].describe()?.stream(), None);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn stream(&self) -> Option<StreamRef<'_>> {
        self.stream.map(StreamRef::new)
    }

    /// The address of the first element, null if there is none; on a device of handles, the handle.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let data = [1_u8, 2, 3];
    /// assert_eq!(data.describe()?.as_ptr(), data.as_ptr());
    /// assert!([0_u8; 0].describe()?.as_ptr().is_null());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.data
    }

    /// The bytes from the handle to the first element; 0 wherever `as_ptr` is an address.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert_eq!([0_u8; 4].describe()?.byte_offset(), 0);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn byte_offset(&self) -> u64 {
        self.byte_offset
    }

    /// The bytes that the items take when they are stored one after another.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert_eq!([0_u16; 5].describe()?.len_bytes(), 10);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        packed_bytes(&self.shape, self.dtype).unwrap_or(0)
    }

    /// Whether a consumer of this tensor must not write to it.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let mut data = [0_u8; 4];
    /// assert!(data.describe()?.is_read_only());
    /// assert!(!data.describe_mut()?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The words in which the memory is accessed, if others may write to it meanwhile.
    pub(crate) fn shared(&self) -> Option<Word> {
        let readable = self.device.device_type.is_host_readable();
        self.access.shared().filter(|_| readable)
    }

    /// A tensor that belongs to its descriptor.
    pub(crate) fn made(tensor: Managed) -> Result<Self, Error> {
        let mut tensor = tensor;
        let described = tensor.describe_mut()?;
        let mut descriptor = Descriptor {
            lifetime: PhantomData,
            ..described
        };
        descriptor.made = Some(tensor);
        Ok(descriptor)
    }

    /// The addresses of the first byte that is reached and of the one behind the last; none if there
    /// are no elements.
    pub(crate) fn bytes_reached(&self) -> Option<(usize, usize)> {
        if self.shape.contains(&0) {
            return None;
        }
        let bits = i128::try_from(self.dtype.itemsize_bits()).ok()?;
        let reach = extent::reach(&self.shape, &self.strides)?;
        let start = i128::try_from(self.data.addr()).ok()? + i128::from(self.byte_offset);
        let first = start + (i128::from(reach.min) * bits).div_euclid(8);
        let end = start + ((i128::from(reach.max) + 1) * bits + 7).div_euclid(8);
        Some((
            usize::try_from(first).unwrap_or(0),
            usize::try_from(end).unwrap_or(usize::MAX),
        ))
    }
}

/// The bytes of so many items one after another, `None` where that is more than memory has (LAY-19).
pub(crate) fn packed_bytes(shape: &[i64], dtype: DataType) -> Option<usize> {
    let items = extent::count(shape)?;
    let bits = i128::from(items) * i128::try_from(dtype.itemsize_bits()).ok()?;
    let bytes = isize::try_from((bits + 7) / 8).ok()?;
    usize::try_from(bytes).ok()
}
