//! [`Descriptor`]: a tensor that was found to reach nothing outside its buffer.

use core::{marker::PhantomData, ptr::NonNull};

use crate::layout::cut::Cut;
use crate::layout::extent::{self, distance, packed_bytes};
use crate::layout::{Dims, shape_strides::ShapeStrides};
use crate::stream::{Queue, rules::Origin};
use crate::tensor::{accessors::accessors, view::check_alignment};
use crate::{DataType, Device, Error, LegacyPolicy, Managed, Order, ReleasePolicy, StreamRef};
use crate::{TensorRef, Version, loan::access::Access, loan::shared::Home};

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
    pub(crate) dims: ShapeStrides,
    pub(crate) dtype: DataType,
    pub(crate) device: Device,
    pub(crate) stream: Option<Queue>,
    pub(crate) read_only: bool,
    /// Who may write to the memory; a tensor is read-only for more reasons than this.
    pub(crate) access: Access,
    pub(crate) legacy: LegacyPolicy,
    pub(crate) release: ReleasePolicy,
    /// What it is of, if that is a tensor.
    pub(crate) of: Of<'a>,
    /// The buffer that keeps the memory, if that keeps itself: one that is lent for `'a`.
    pub(crate) home: Option<NonNull<Home>>,
    pub(crate) lifetime: PhantomData<&'a [u8]>,
}

/// The tensor that is described, or a part of it.
#[derive(Debug)]
pub(crate) enum Of<'a> {
    /// None: memory that is lent.
    Memory,
    /// One that was made on request (`via`), and belongs to its descriptor.
    Own(Managed),
    /// One that was exported before.
    Lent(&'a Managed),
}

impl Descriptor<'_> {
    accessors!(&[i64], ".describe()?", dims.shape(), dims.strides());

    /// The number of axes.
    #[inline(always)]
    pub(crate) fn rank(&self) -> usize {
        self.dims.rank()
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

    /// Whether the described memory was made on request, and is freed with the descriptor.
    #[doc(hidden)]
    #[must_use]
    pub fn is_made_on_request(&self) -> bool {
        self.own().is_some()
    }

    /// Whether the processor reads the memory while others may be writing it.
    pub(crate) fn is_shared(&self) -> bool {
        self.access.is_shared() && self.device.device_type.is_host_readable()
    }

    /// The tensor of these dimensions over new memory on the host, which the caller allocated for its items.
    #[inline(always)]
    pub(crate) fn over(data: *mut u8, dims: ShapeStrides, dtype: DataType, access: Access) -> Self {
        Self {
            data,
            byte_offset: 0,
            dims,
            dtype,
            device: Device::CPU,
            stream: None,
            read_only: false,
            access,
            legacy: LegacyPolicy::Copy,
            release: ReleasePolicy::Safe,
            of: Of::Memory,
            home: None,
            lifetime: PhantomData,
        }
    }

    /// Whether every item lies in the `bytes` bytes from `start` on.
    #[inline]
    pub(crate) fn lies_in(&self, start: *mut u8, bytes: usize) -> bool {
        // Nearly always the tensor is packed from the start of its memory on.
        let begins_there = self.data == start && self.byte_offset == 0;
        if begins_there && self.packed_bytes() <= bytes {
            return true;
        }
        let inside = |(first, end)| {
            let start = start.addr();
            first >= start && end <= start.saturating_add(bytes)
        };
        self.bytes_reached().is_none_or(inside)
    }

    /// The size in bytes of a tensor that is packed in row-major order and not empty; `usize::MAX` for any other.
    #[inline]
    pub(crate) fn packed_bytes(&self) -> usize {
        let (shape, strides) = (self.shape(), self.strides());
        let mut items = 1_i64;
        for (&extent, &stride) in shape.iter().zip(strides).rev() {
            if stride != items || extent <= 0 {
                return usize::MAX;
            }
            let Some(more) = items.checked_mul(extent) else {
                return usize::MAX;
            };
            items = more;
        }
        let bytes = extent::bytes(items, self.dtype.itemsize_bits(), 7);
        bytes
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(usize::MAX)
    }

    /// The size of all items in bytes, whatever the strides.
    pub(crate) fn bytes_of_items(&self) -> usize {
        let items = self.shape().iter();
        let items = items.map(|&items| usize::try_from(items).unwrap_or(0));
        items.fold(
            self.dtype.itemsize_bits().div_ceil(8),
            usize::saturating_mul,
        )
    }

    /// A tensor that belongs to its descriptor.
    pub(crate) fn owning(mut tensor: Managed) -> Result<Self, Error> {
        let described = Descriptor {
            of: Of::Memory,
            lifetime: PhantomData,
            ..Descriptor::of_mut(&mut tensor)?
        };
        Ok(Self {
            of: Of::Own(tensor),
            ..described
        })
    }

    /// The tensor that belongs to the descriptor.
    #[inline]
    pub(crate) fn own(&self) -> Option<&Managed> {
        match &self.of {
            Of::Own(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// What is described, to be looked at.
    pub(crate) fn view(&self) -> TensorRef<'_> {
        TensorRef {
            data: self.data,
            byte_offset: self.byte_offset,
            shape: self.dims.shape(),
            strides: self.dims.strides(),
            dtype: self.dtype,
            device: self.device,
            read_only: self.read_only,
            shared: self.is_shared(),
            copied: self.own().is_some(),
            version: Some(Version::CURRENT),
            lifetime: PhantomData,
        }
    }

    /// Becomes a part of the memory, as `cut` says; of no use any more where that fails.
    pub(crate) fn cut(
        &mut self,
        cut: impl FnOnce(&mut Cut) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut part = Cut::of(self.shape(), self.strides())?;
        cut(&mut part)?;
        let Cut {
            first,
            shape,
            strides,
        } = part;
        shape.check_rank()?;
        if shape.contains(&0) {
            // LAY-05, LAY-18
            (self.data, self.byte_offset) = (core::ptr::null_mut(), 0);
            self.dims = ShapeStrides::row_major(&shape)?;
            return Ok(());
        }
        self.dims = ShapeStrides::new(&shape, &strides)?;
        let bits = i128::try_from(self.dtype.itemsize_bits()).unwrap_or(i128::MAX);
        let bits = bits.saturating_mul(first as i128);
        if bits % 8 != 0 {
            return Err(Error::PartialOffset { bits });
        }
        // Inside what the whole reaches.
        let bytes = i64::try_from(bits / 8).unwrap_or(i64::MAX);
        if self.device.device_type.is_addressable() {
            self.data = self.data.wrapping_offset(distance(bytes));
        } else {
            self.byte_offset = self.byte_offset.wrapping_add_signed(bytes);
        }
        Ok(())
    }

    /// The same bytes as items of another type in row-major order, which lie one after another before and after.
    pub(crate) fn recast(&mut self, dtype: DataType, shape: &[i64]) -> Result<(), Error> {
        if !dtype.is_known() {
            return Err(Error::UnknownDataType { found: dtype });
        }
        let shape = Dims::extents(shape)?;
        shape.check_rank()?;
        let too_large = || Error::too_large(&shape);
        let needed = packed_bytes(&shape, dtype).ok_or_else(too_large)?;
        let found = packed_bytes(self.shape(), self.dtype).unwrap_or(0);
        if found != needed {
            return Err(Error::Bytes { found, needed });
        }
        let (old, strides) = (self.shape(), self.strides());
        if !extent::is_packed(Order::C, old, strides, 1) {
            return Err(Error::not_contiguous(old, strides));
        }
        if self.device.device_type.is_addressable() {
            check_alignment(self.data.addr(), dtype.alignment(), dtype)?;
        }
        self.dims = ShapeStrides::row_major(&shape)?;
        self.dtype = dtype;
        if shape.contains(&0) {
            // LAY-05
            (self.data, self.byte_offset) = (core::ptr::null_mut(), 0);
        }
        Ok(())
    }

    /// Where the memory comes from; nothing where there are no streams.
    pub(crate) fn origin(&self) -> Option<Origin> {
        self.device.device_type.stream_api()?;
        Some(Origin {
            device: self.device,
            queue: self.stream,
            policy: self.release,
        })
    }

    /// The addresses of the first byte that is reached and of the one behind the last; none if there
    /// are no elements.
    #[inline]
    pub(crate) fn bytes_reached(&self) -> Option<(usize, usize)> {
        if self.shape().contains(&0) {
            return None;
        }
        let bytes = || {
            let bits = self.dtype.itemsize_bits();
            let reach = extent::reach(self.shape(), self.strides())?;
            let start = self.data.addr();
            let start = start.checked_add(usize::try_from(self.byte_offset).ok()?)?;
            let first = isize::try_from(extent::bytes(reach.min, bits, 0)?).ok()?;
            let end = isize::try_from(extent::bytes(reach.max.checked_add(1)?, bits, 7)?).ok()?;
            Some((
                start.checked_add_signed(first)?,
                start.checked_add_signed(end)?,
            ))
        };
        Some(bytes().unwrap_or((0, usize::MAX)))
    }
}

impl<'a> Descriptor<'a> {
    /// A tensor that somebody exported, as it is seen through a shared reference.
    pub(crate) fn of(tensor: &'a Managed) -> Result<Self, Error> {
        let view = tensor.view_inlined();
        let access = tensor.access;
        Ok(Self {
            data: view.data,
            byte_offset: view.byte_offset,
            dims: ShapeStrides::new(view.shape, view.strides)?,
            dtype: view.dtype,
            device: view.device,
            stream: tensor.owner_stream(),
            // What all may write to can also be written by whoever gets it from a shared reference.
            read_only: view.is_read_only() || access != Access::Shared,
            access: if view.is_read_only() {
                access.for_reading()
            } else {
                access.through_shared()
            },
            legacy: tensor.legacy_policy(),
            release: ReleasePolicy::Safe,
            of: Of::Lent(tensor),
            home: None,
            lifetime: PhantomData,
        })
    }

    /// The same through an exclusive reference.
    pub(crate) fn of_mut(tensor: &'a mut Managed) -> Result<Self, Error> {
        let (read_only, access) = (tensor.view().is_read_only(), tensor.access);
        Ok(Self {
            read_only,
            access,
            ..Self::of(tensor)?
        })
    }
}
