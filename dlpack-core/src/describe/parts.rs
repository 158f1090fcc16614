//! [`Parts`]: what an annotation says beside its data.

use core::marker::PhantomData;
use core::mem::size_of;

use crate::abi;
use crate::device::Device;
use crate::dtype::{DataType, Order};
use crate::element::Element;
use crate::element::axes::Axes;
use crate::layout::dims::Dims;
use crate::loan::axes_of;
use crate::request::{LegacyPolicy, ReleasePolicy};
use crate::stream::{Queue, StreamRef};

#[derive(Clone, Debug)]
pub(super) enum GivenStrides {
    None,
    Order(Order),
    Elements(Dims),
    Bytes(Dims),
}

/// What an annotation says beside the data: everything the derive knows, and the builder for an
/// implementation by hand.
///
/// ```
/// use dlpack_core::{Buffer, DLPack, Descriptor, Error, Parts};
/// use dlpack_core::layout::Dims;
///
/// struct Image { rows: usize, cols: usize, pixels: Vec<f32> }
///
/// impl DLPack for Image {
///     fn describe(&self) -> Result<Descriptor<'_>, Error> {
///         Parts::new()
///             .shape(Dims::extents(&[self.rows, self.cols])?)
///             .describe(self.pixels.lend())
///     }
/// }
///
/// let image = Image { rows: 2, cols: 3, pixels: vec![0.0; 6] };
/// assert_eq!(image.describe()?.strides(), [3, 1]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Parts<'a> {
    pub(super) shape: Option<Dims>,
    pub(super) strides: GivenStrides,
    pub(super) offset: i64,
    pub(super) byte_offset: i64,
    pub(super) kind: Option<Kind>,
    pub(super) device: Option<Device>,
    pub(super) stream: Option<Queue>,
    pub(super) read_only: bool,
    pub(super) writable: bool,
    pub(super) legacy: LegacyPolicy,
    pub(super) release: ReleasePolicy,
    /// The stream lives so long.
    pub(super) lifetime: PhantomData<&'a ()>,
}

/// What the bytes are read as, where that is not what they were lent as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) dtype: DataType,
    pub(super) axes: &'static Axes,
    pub(super) element_bits: usize,
    /// Whether reading any bytes as this type is right, or each must be looked at first.
    pub(super) any_bits: bool,
}

impl Default for Parts<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Parts<'a> {
    /// Nothing said: the tensor is what the data says it is.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// assert_eq!(Parts::new().describe(Loan::from(&[1, 2, 3][..]))?.shape(), [3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub const fn new() -> Self {
        Self {
            shape: None,
            strides: GivenStrides::None,
            offset: 0,
            byte_offset: 0,
            kind: None,
            device: None,
            stream: None,
            read_only: false,
            writable: false,
            legacy: LegacyPolicy::Copy,
            release: ReleasePolicy::Safe,
            lifetime: PhantomData,
        }
    }

    /// The extents of the axes in front of those of the element.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    /// use dlpack_core::layout::Dims;
    ///
    /// let shape = Dims::from([2, 2]);
    /// assert_eq!(Parts::new().shape(shape).describe(Loan::from(&[0; 4][..]))?.shape(), [2, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn shape(mut self, shape: Dims) -> Self {
        self.shape = Some(shape);
        self
    }

    /// The strides of those axes, in elements.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    /// use dlpack_core::layout::Dims;
    ///
    /// let every_second = Parts::new().shape(Dims::from([2])).strides(Dims::from([2]));
    /// assert_eq!(every_second.describe(Loan::from(&[0; 4][..]))?.strides(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn strides(mut self, strides: Dims) -> Self {
        self.strides = GivenStrides::Elements(strides);
        self
    }

    /// The strides of those axes, in bytes.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    /// use dlpack_core::layout::Dims;
    ///
    /// let padded_rows = Parts::new().shape(Dims::from([2, 3])).byte_strides(Dims::from([8, 2]));
    /// assert_eq!(padded_rows.describe(Loan::from(&[0_u16; 8][..]))?.strides(), [4, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn byte_strides(mut self, strides: Dims) -> Self {
        self.strides = GivenStrides::Bytes(strides);
        self
    }

    /// The axis that moves fastest is the first one.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    /// use dlpack_core::layout::Dims;
    ///
    /// let matrix = Parts::new().shape(Dims::from([2, 3])).column_major();
    /// assert_eq!(matrix.describe(Loan::from(&[0; 6][..]))?.strides(), [1, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn column_major(self) -> Self {
        self.order(Order::F)
    }

    /// Which axis moves fastest, where that is known only at run time.
    ///
    /// ```
    /// use dlpack_core::{Loan, Order, Parts};
    /// use dlpack_core::layout::Dims;
    ///
    /// let matrix = Parts::new().shape(Dims::from([2, 3])).order(Order::C);
    /// assert_eq!(matrix.describe(Loan::from(&[0; 6][..]))?.strides(), [3, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn order(mut self, order: Order) -> Self {
        self.strides = GivenStrides::Order(order);
        self
    }

    /// The elements in front of the first one.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// let data = [1, 2, 3];
    /// assert_eq!(Parts::new().offset(1).describe(Loan::from(&data[..]))?.shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn offset(mut self, elements: i64) -> Self {
        self.offset = elements;
        self
    }

    /// The bytes in front of the first element.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// let data = [1_u16, 2, 3];
    /// assert_eq!(Parts::new().byte_offset(4).describe(Loan::from(&data[..]))?.shape(), [1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn byte_offset(mut self, bytes: i64) -> Self {
        self.byte_offset = bytes;
        self
    }

    /// Reads the bytes as elements of another type.
    ///
    /// ```
    /// use dlpack_core::{DataType, Loan, Parts};
    ///
    /// let halves = [0_u32; 3];
    /// let descriptor = Parts::new().elem::<u16>().describe(Loan::from(&halves[..]))?;
    /// assert_eq!((descriptor.dtype(), descriptor.shape()), (DataType::U16, &[6][..]));
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn elem<E: Element>(mut self) -> Self {
        self.kind = Some(Kind {
            dtype: E::DTYPE,
            axes: axes_of::<E>(),
            element_bits: size_of::<E>() * 8,
            any_bits: E::ANY_BITS,
        });
        self
    }

    /// Reads the bytes as items of a type that is known only at run time.
    ///
    /// ```
    /// use dlpack_core::{DataType, Loan, Parts};
    ///
    /// let bytes = [0_u8; 8];
    /// let descriptor = Parts::new().dtype(DataType::F4_E2M1FN).describe(Loan::from(&bytes[..]))?;
    /// assert_eq!(descriptor.shape(), [16]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn dtype(mut self, dtype: DataType) -> Self {
        self.kind = Some(Kind {
            dtype,
            axes: &Axes::NONE,
            element_bits: dtype.itemsize_bits(),
            any_bits: dtype.code() != abi::kDLBool,
        });
        self
    }

    /// Where the memory lies: what the data says itself, or it is an error.
    ///
    /// ```
    /// use dlpack_core::{Device, Loan, Parts};
    ///
    /// let on_gpu = Parts::new().device(Device::cuda(0));
    /// assert!(on_gpu.describe(Loan::from(&[0; 4][..])).is_err());
    /// ```
    #[inline]
    pub fn device(mut self, device: Device) -> Self {
        self.device = Some(device);
        self
    }

    /// The stream that the memory is written on.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts, StreamHandle};
    ///
    /// let parts = Parts::new().stream(StreamHandle::DEFAULT);
    /// assert!(parts.describe(Loan::from(&[0; 4][..]))?.stream().is_some());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn stream(mut self, stream: impl Into<StreamRef<'a>>) -> Self {
        self.stream = Some(stream.into().queue);
        self
    }

    /// No consumer may write, even where the memory could be written.
    ///
    /// ```
    /// use dlpack_core::{LoanMut, Parts};
    ///
    /// let parts = Parts::new().read_only();
    /// assert!(parts.describe_mut(LoanMut::from(&mut [0; 4][..]))?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// [`Parts::describe_mut`] fails if the memory cannot be written.
    ///
    /// ```
    /// use dlpack_core::{Loan, LoanMut, Parts};
    ///
    /// let only_lent = LoanMut::from(Loan::from(&[0; 4][..]));
    /// assert!(Parts::new().writable().describe_mut(only_lent).is_err());
    /// ```
    #[inline]
    pub fn writable(mut self) -> Self {
        self.writable = true;
        self
    }

    /// Read-only data is refused to a consumer of the legacy struct, instead of copied for it.
    ///
    /// ```
    /// use dlpack_core::{Buffer, DLPack, Descriptor, Error, ExportRequest, Parts};
    /// use std::sync::Arc;
    ///
    /// struct Strict(Vec<u8>);
    /// impl DLPack for Strict {
    ///     fn describe(&self) -> Result<Descriptor<'_>, Error> {
    ///         Parts::new().legacy_refuse().describe(self.0.lend())
    ///     }
    /// }
    /// let legacy = ExportRequest::default();
    /// let refused = Arc::new(Strict(vec![1])).to_dlpack_with(&legacy);
    /// assert_eq!(refused.unwrap_err(), Error::LegacyReadOnly);
    /// ```
    #[inline]
    pub fn legacy_refuse(mut self) -> Self {
        self.legacy = LegacyPolicy::Refuse;
        self
    }

    /// What is said of legacy consumers and of freeing.
    pub(crate) fn policies(&self) -> (LegacyPolicy, ReleasePolicy) {
        (self.legacy, self.release)
    }

    /// Frees device memory without waiting for the consumer's last use of it.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// assert!(Parts::new().release_immediate().describe(Loan::from(&[0; 4][..])).is_ok());
    /// ```
    #[inline]
    pub fn release_immediate(mut self) -> Self {
        self.release = ReleasePolicy::Immediate;
        self
    }
}
