//! [`Parts`], the builder for a description: every key of an annotation except its data.
//!
//! The first error is stored until `describe`, so that derived code needs no `?`. Each `?` expands to a match, a conversion and an
//! early return. Together they took a fifth of the time that the compiler spent on a derived struct.
//!
//! All methods are `inline(always)`. Called as functions they would move the parts through memory, and a description would take
//! three times as many instructions.

use core::{marker::PhantomData, mem::size_of};

use crate::layout::shape::{NumberRole, check_offset};
use crate::layout::{Dims, Int};
use crate::loan::{LentMemory, axes_of};
use crate::{DataType, Device, Element, Error, LegacyPolicy, Loan, LoanMut, Order, ReleasePolicy};
use crate::{Shape, StreamRef, Strides, abi};
use crate::{describe::descriptor::Descriptor, element::Axes, stream::Queue};

/// The builder for a description: shape, strides, offset, dtype and the other keys of an annotation, without the data. Use it to
/// implement [`DLPack`](crate::DLPack) by hand. The first invalid part, such as a negative extent, is the error that
/// [`Parts::describe`] returns.
///
/// ```
/// use dlpack_core::{Buffer, DLPack, Descriptor, Error, Parts};
///
/// struct Image { rows: usize, cols: usize, pixels: Vec<f32> }
///
/// impl DLPack for Image {
///     fn describe(&self) -> Result<Descriptor<'_>, Error> {
///         Parts::new()
///             .shape([self.rows, self.cols])
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
    /// The parts, or the error of the first invalid one.
    pub(super) annotation: Result<Annotation, Error>,
    /// The lifetime of the stream.
    lifetime: PhantomData<&'a ()>,
}

/// The parts, each of which is valid by itself.
#[derive(Clone, Debug)]
pub(crate) struct Annotation {
    pub(super) shape: Option<Dims>,
    pub(super) strides: StrideRule,
    pub(super) offset: i64,
    pub(super) byte_offset: i64,
    pub(super) reading: Option<Reading>,
    pub(super) device: Option<Device>,
    pub(super) stream: Option<Queue>,
    pub(super) read_only: bool,
    pub(super) writable: bool,
    pub(super) legacy: LegacyPolicy,
    pub(super) release: ReleasePolicy,
}

/// How the distance between the elements of an axis is given.
#[derive(Clone, Debug)]
pub(super) enum StrideRule {
    None,
    Order(Order),
    Elements(Dims),
    Bytes(Dims),
}

/// The type as which the bytes are read, if it differs from the type of the loan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) dtype: DataType,
    pub(super) axes: &'static Axes,
    pub(super) element_bits: usize,
    /// Whether every bit pattern is a valid value. Otherwise the bytes must be checked first.
    pub(super) any_bits: bool,
}

impl Reading {
    /// Reads the memory as the type of the loan.
    #[inline]
    pub(super) fn of_memory(memory: &LentMemory) -> Self {
        Self {
            dtype: memory.dtype,
            axes: memory.axes,
            element_bits: memory.element * 8,
            any_bits: true,
        }
    }
}

impl Annotation {
    /// Starts without any part.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self {
            shape: None,
            strides: StrideRule::None,
            offset: 0,
            byte_offset: 0,
            reading: None,
            device: None,
            stream: None,
            read_only: false,
            writable: false,
            legacy: LegacyPolicy::Copy,
            release: ReleasePolicy::Safe,
        }
    }
}

impl Default for Parts<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Parts<'a> {
    /// Starts without any part. Described like this, the tensor has the shape, dtype and device of the loan.
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
            annotation: Ok(Annotation::new()),
            lifetime: PhantomData,
        }
    }

    /// Sets a part that is always valid.
    #[inline(always)]
    fn set_part(mut self, put: impl FnOnce(&mut Annotation)) -> Self {
        if let Ok(annotation) = &mut self.annotation {
            put(annotation);
        }
        self
    }

    /// Sets a part that was validated, unless an earlier part was invalid.
    #[inline(always)]
    fn set_checked_part<T>(
        self,
        part: Result<T, Error>,
        put: impl FnOnce(&mut Annotation, T),
    ) -> Self {
        let annotation = match (self.annotation, part) {
            (Ok(mut annotation), Ok(part)) => {
                put(&mut annotation, part);
                Ok(annotation)
            }
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
        };
        Self { annotation, ..self }
    }

    /// The shape, without the axes of the element type itself, which follow.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// let dims = vec![2_u32, 2];
    /// assert_eq!(Parts::new().shape(&dims).describe(Loan::from(&[0; 4][..]))?.shape(), [2, 2]);
    /// assert!(Parts::new().shape([-1, 2]).describe(Loan::from(&[0; 4][..])).is_err());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline(always)]
    pub fn shape(self, shape: impl Shape) -> Self {
        let shape = shape.into_dims(NumberRole::Extents);
        self.set_checked_part(shape, |annotation, shape| annotation.shape = Some(shape))
    }

    /// The stride of each axis of [`shape`](Self::shape), in elements.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// let every_second = Parts::new().shape([2]).strides([2]);
    /// assert_eq!(every_second.describe(Loan::from(&[0; 4][..]))?.strides(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline(always)]
    pub fn strides(self, strides: impl Strides) -> Self {
        let strides = strides.into_dims(NumberRole::Strides);
        self.set_checked_part(strides, |to, strides| {
            to.strides = StrideRule::Elements(strides)
        })
    }

    /// The stride of each axis of [`shape`](Self::shape), in bytes.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// let padded_rows = Parts::new().shape([2, 3]).byte_strides([8, 2]);
    /// assert_eq!(padded_rows.describe(Loan::from(&[0_u16; 8][..]))?.strides(), [4, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline(always)]
    pub fn byte_strides(self, strides: impl Strides) -> Self {
        let strides = strides.into_dims(NumberRole::Strides);
        self.set_checked_part(strides, |to, strides| {
            to.strides = StrideRule::Bytes(strides)
        })
    }

    /// Packs the tensor in column-major order: the first axis varies fastest.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// let matrix = Parts::new().shape([2, 3]).column_major();
    /// assert_eq!(matrix.describe(Loan::from(&[0; 6][..]))?.strides(), [1, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline(always)]
    pub fn column_major(self) -> Self {
        self.order(Order::F)
    }

    /// Packs the tensor in an order that is known only at run time.
    ///
    /// ```
    /// use dlpack_core::{Loan, Order, Parts};
    ///
    /// let matrix = Parts::new().shape([2, 3]).order(Order::C);
    /// assert_eq!(matrix.describe(Loan::from(&[0; 6][..]))?.strides(), [3, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline(always)]
    pub fn order(self, order: Order) -> Self {
        self.set_part(|annotation| annotation.strides = StrideRule::Order(order))
    }

    /// The number of elements before the tensor's first element.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// let data = [1, 2, 3];
    /// assert_eq!(Parts::new().offset(1).describe(Loan::from(&data[..]))?.shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline(always)]
    pub fn offset(self, elements: impl Int) -> Self {
        self.set_checked_part(check_offset(&elements), |annotation, n| {
            annotation.offset = n
        })
    }

    /// The number of bytes before the tensor's first element.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// let data = [1_u16, 2, 3];
    /// assert_eq!(Parts::new().byte_offset(4).describe(Loan::from(&data[..]))?.shape(), [1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline(always)]
    pub fn byte_offset(self, bytes: impl Int) -> Self {
        self.set_checked_part(check_offset(&bytes), |annotation, n| {
            annotation.byte_offset = n
        })
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
    #[inline(always)]
    pub fn elem<E: Element>(self) -> Self {
        self.set_part(|annotation| {
            annotation.reading = Some(Reading {
                dtype: E::DTYPE,
                axes: axes_of::<E>(),
                element_bits: size_of::<E>() * 8,
                any_bits: E::ANY_BITS,
            });
        })
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
    #[inline(always)]
    pub fn dtype(self, dtype: DataType) -> Self {
        self.set_part(|annotation| {
            annotation.reading = Some(Reading {
                dtype,
                axes: &Axes::NONE,
                element_bits: dtype.itemsize_bits(),
                any_bits: dtype.code() != abi::kDLBool,
            });
        })
    }

    /// The device of the memory. An error if the data itself is on another device.
    ///
    /// ```
    /// use dlpack_core::{Device, Loan, Parts};
    ///
    /// let on_gpu = Parts::new().device(Device::cuda(0));
    /// assert!(on_gpu.describe(Loan::from(&[0; 4][..])).is_err());
    /// ```
    #[inline(always)]
    pub fn device(self, device: Device) -> Self {
        self.set_part(|annotation| annotation.device = Some(device.normalized()))
    }

    /// The stream on which the memory is written.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts, StreamHandle};
    ///
    /// let parts = Parts::new().stream(StreamHandle::DEFAULT);
    /// assert!(parts.describe(Loan::from(&[0; 4][..]))?.stream().is_some());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline(always)]
    pub fn stream(self, stream: impl Into<StreamRef<'a>>) -> Self {
        let stream = stream.into().queue;
        self.set_part(|annotation| annotation.stream = Some(stream))
    }

    /// Forbids consumers to write, even if the memory can be written.
    ///
    /// ```
    /// use dlpack_core::{LoanMut, Parts};
    ///
    /// let parts = Parts::new().read_only();
    /// assert!(parts.describe_mut(LoanMut::from(&mut [0; 4][..]))?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline(always)]
    pub fn read_only(self) -> Self {
        self.set_part(|annotation| annotation.read_only = true)
    }

    /// Makes [`Parts::describe_mut`] fail if the memory cannot be written.
    ///
    /// ```
    /// use dlpack_core::{Loan, LoanMut, Parts};
    ///
    /// let only_lent = LoanMut::from(Loan::from(&[0; 4][..]));
    /// assert!(Parts::new().writable().describe_mut(only_lent).is_err());
    /// ```
    #[inline(always)]
    pub fn writable(self) -> Self {
        self.set_part(|annotation| annotation.writable = true)
    }

    /// Refuses read-only data to a consumer of the legacy struct, instead of copying it.
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
    #[inline(always)]
    pub fn legacy_refuse(self) -> Self {
        self.set_part(|annotation| annotation.legacy = LegacyPolicy::Refuse)
    }

    /// The policies for legacy consumers and for the release of device memory.
    pub(crate) fn into_policies(self) -> Result<(LegacyPolicy, ReleasePolicy), Error> {
        let annotation = self.annotation?;
        Ok((annotation.legacy, annotation.release))
    }

    /// Frees device memory without waiting for the consumer's last use of it.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// assert!(Parts::new().release_immediate().describe(Loan::from(&[0; 4][..])).is_ok());
    /// ```
    #[inline(always)]
    pub fn release_immediate(self) -> Self {
        self.set_part(|annotation| annotation.release = ReleasePolicy::Immediate)
    }

    /// Describes the tensor over memory that is lent for reading.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts};
    ///
    /// assert_eq!(Parts::new().describe(Loan::from(&[0; 4][..]))?.shape(), [4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An invalid part, a tensor that would reach outside the memory, or a part that contradicts the data;
    /// [`Error::UnknownDataType`], [`Error::UnknownDevice`], [`Error::NotBool`], [`Error::Misaligned`], [`Error::NotOnHost`],
    /// [`Error::PartialElement`]; [`Error::OutOfMemory`] for lists of more than six axes.
    #[inline(always)]
    pub fn describe(self, loan: Loan<'a>) -> Result<Descriptor<'a>, Error> {
        // The descriptor gets the lifetime of the loan.
        self.annotation?.describe_over(loan.memory)
    }

    /// Describes the tensor over memory that is lent for writing.
    ///
    /// ```
    /// use dlpack_core::{LoanMut, Parts};
    ///
    /// let mut data = [0; 4];
    /// assert!(!Parts::new().describe_mut(LoanMut::from(&mut data[..]))?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Parts::describe`], and [`Error::NotWritable`] after [`Parts::writable`].
    #[inline(always)]
    pub fn describe_mut(self, loan: LoanMut<'a>) -> Result<Descriptor<'a>, Error> {
        let annotation = self.annotation?;
        if annotation.writable && loan.memory.access.is_read_only() {
            return Err(Error::NotWritable);
        }
        annotation.describe_over(loan.memory)
    }

    /// Describes like [`describe`](Self::describe), for a declaration with an offset, a data type or strides: derived code calls it,
    /// since it knows the keys. Its code is larger, and faster for these.
    ///
    /// # Errors
    ///
    /// Those of [`Parts::describe`].
    #[doc(hidden)]
    #[inline(always)]
    pub fn describe_placed(self, loan: Loan<'a>) -> Result<Descriptor<'a>, Error> {
        // The descriptor gets the lifetime of the loan.
        self.annotation?.describe_placed(loan.memory)
    }
}
