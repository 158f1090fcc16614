//! [`Descriptor`]: a tensor that was checked to lie inside its memory.

use core::{marker::PhantomData, ptr::NonNull};

use crate::layout::dims::INLINE;
use crate::layout::extent::{self, packed_bytes, stride_to_isize};
use crate::layout::views::LayoutView;
use crate::layout::{Dims, shape_strides::ShapeStrides};
use crate::request::Subject;
use crate::stream::{Queue, rules::Origin};
use crate::tensor::{accessors::accessors, view::check_alignment};
use crate::{DataType, Device, Error, LegacyPolicy, Managed, Order, ReleasePolicy, StreamRef};
use crate::{TensorRef, Version, loan::access::Access, loan::shared::SharedAllocation};

/// A tensor that was checked against the memory it lies in.
///
/// It can only be made by [`Parts`](crate::Parts), which rejects any tensor that would reach outside the memory.
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
    /// The address of the first element or, on a device with opaque handles, the handle to which `byte_offset` is added.
    pub(crate) data: *mut u8,
    pub(crate) byte_offset: u64,
    pub(crate) dims: ShapeStrides,
    pub(crate) dtype: DataType,
    pub(crate) device: Device,
    pub(crate) stream: Option<Queue>,
    pub(crate) read_only: bool,
    /// Which code may write the memory. A tensor may also be read-only for other reasons.
    pub(crate) access: Access,
    pub(crate) legacy: LegacyPolicy,
    pub(crate) release: ReleasePolicy,
    /// The tensor that is described, if the description is not of borrowed memory.
    pub(crate) source: DescriptionSource<'a>,
    /// The handle to the shared allocation that contains the memory, if there is one; borrowed for `'a`.
    pub(crate) allocation: Option<NonNull<SharedAllocation>>,
    pub(crate) lifetime: PhantomData<&'a [u8]>,
}

/// The source of a description.
#[derive(Debug)]
pub(crate) enum DescriptionSource<'a> {
    /// Borrowed memory, described on a fast path.
    FastPath,
    /// Borrowed memory.
    Memory,
    /// A tensor that was computed for this export (`via`), owned by its descriptor.
    OwnedTensor(Managed),
    /// A tensor that was exported or imported before.
    BorrowedTensor(&'a Managed),
}

/// Moves an address by so many items: the pointer if the device's memory is addressable, else the byte offset.
#[inline]
pub(super) fn offset_address(
    (data, byte_offset): (*mut u8, u64),
    items: isize,
    dtype: DataType,
    device: Device,
) -> Result<(*mut u8, u64), Error> {
    let bits = dtype.itemsize_bits();
    let Some(bytes) = extent::bytes_to_item(items, bits) else {
        let bits = (items as i128).saturating_mul(bits as i128);
        return Err(Error::PartialOffset { bits });
    };
    Ok(if device.device_type.is_addressable() {
        (data.wrapping_offset(stride_to_isize(bytes)), byte_offset)
    } else {
        (data, byte_offset.wrapping_add_signed(bytes))
    })
}

impl Descriptor<'_> {
    accessors!(&[i64], ".describe()?", dims.shape(), dims.strides());

    /// The number of axes.
    #[inline(always)]
    pub(crate) fn rank(&self) -> usize {
        self.dims.rank()
    }

    /// The stream on which the memory is written, if the data or the annotation names one.
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

    /// Whether the described memory was allocated for this export. The descriptor then owns it.
    #[doc(hidden)]
    #[must_use]
    pub fn is_made_on_request(&self) -> bool {
        self.owned_tensor().is_some()
    }

    /// Whether other threads may write the memory while the host reads it.
    pub(crate) fn is_shared(&self) -> bool {
        self.access.is_shared() && self.device.device_type.is_host_readable()
    }

    /// Describes host memory that has all items of this shape.
    #[inline(always)]
    pub(crate) fn for_host_memory(
        data: *mut u8,
        dims: ShapeStrides,
        dtype: DataType,
        access: Access,
    ) -> Self {
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
            source: DescriptionSource::Memory,
            allocation: None,
            lifetime: PhantomData,
        }
    }

    /// Whether every item lies in the memory of `bytes` bytes that begins at `start`.
    #[inline]
    pub(crate) fn lies_in(&self, start: *mut u8, bytes: usize) -> bool {
        // Nearly every tensor is contiguous and begins at the start of its memory.
        let begins_there = self.data == start && self.byte_offset == 0;
        (begins_there && self.packed_bytes() <= bytes) || self.reaches_only(start, bytes)
    }

    /// [`lies_in`](Self::lies_in), for any strides.
    #[cold]
    #[inline(never)]
    fn reaches_only(&self, start: *mut u8, bytes: usize) -> bool {
        let inside = |(first, end)| {
            let start = start.addr();
            first >= start && end <= start.saturating_add(bytes)
        };
        self.bytes_reached().is_none_or(inside)
    }

    /// The size in bytes of a non-empty row-major contiguous tensor; `usize::MAX` for any other.
    #[inline(always)]
    pub(crate) fn packed_bytes(&self) -> usize {
        if !self.dims.is_inline() {
            return usize::MAX;
        }
        let [shape, strides] = *self.dims.inline_arrays();
        let mut items = 1_i64;
        for axis in (0..INLINE).rev() {
            if axis < self.rank() {
                if strides[axis] != items || shape[axis] <= 0 {
                    return usize::MAX;
                }
                let Some(more) = items.checked_mul(shape[axis]) else {
                    return usize::MAX;
                };
                items = more;
            }
        }
        let bytes = extent::bytes_of_items(items, self.dtype.itemsize_bits(), 7);
        bytes
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(usize::MAX)
    }

    /// The total size of all items in bytes, without the gaps that strides leave.
    pub(crate) fn total_item_bytes(&self) -> usize {
        let items = self.shape().iter();
        let items = items.map(|&items| usize::try_from(items).unwrap_or(0));
        items.fold(
            self.dtype.itemsize_bits().div_ceil(8),
            usize::saturating_mul,
        )
    }

    /// The properties on which the plan of an export depends.
    #[inline]
    pub(crate) fn subject(&self) -> Subject {
        Subject {
            device: self.device,
            dtype: self.dtype,
            read_only: self.read_only,
            // A copy that other code holds too was not made for this request alone.
            copied: self.owned_tensor().is_some_and(Managed::is_unique),
            legacy: self.legacy,
        }
    }

    /// The tensor that the descriptor owns, if there is one.
    #[inline]
    pub(crate) fn owned_tensor(&self) -> Option<&Managed> {
        match &self.source {
            DescriptionSource::OwnedTensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// A view of the described tensor.
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
            copied: self.owned_tensor().is_some(),
            version: Some(Version::CURRENT),
            lifetime: PhantomData,
        }
    }

    /// Replaces the description by that of a view. After an error the description must not be used.
    pub(crate) fn apply_view(
        &mut self,
        change: impl FnOnce(&mut LayoutView) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut view = LayoutView::whole_layout(self.shape(), self.strides())?;
        change(&mut view)?;
        let LayoutView {
            first,
            shape,
            strides,
        } = &view;
        shape.check_allocation()?;
        strides.check_allocation()?;
        shape.check_rank()?;
        if shape.contains(&0) {
            // LAY-05, LAY-18
            (self.data, self.byte_offset) = (core::ptr::null_mut(), 0);
            self.dims = ShapeStrides::row_major(shape)?;
            return Ok(());
        }
        self.dims.replace(shape, strides)?;
        let address = (self.data, self.byte_offset);
        (self.data, self.byte_offset) = offset_address(address, *first, self.dtype, self.device)?;
        Ok(())
    }

    /// Reinterprets the bytes as items of another data type. Both shapes are row-major contiguous.
    pub(crate) fn reinterpret_items(
        &mut self,
        dtype: DataType,
        shape: &[i64],
    ) -> Result<(), Error> {
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

    /// The device, stream and release policy of the memory; `None` on a device without streams.
    pub(crate) fn stream_origin(&self) -> Option<Origin> {
        self.device.device_type.stream_api()?;
        Some(Origin {
            device: self.device,
            queue: self.stream,
            policy: self.release,
        })
    }

    /// The address of the first byte that an item occupies, and the address after the last one; `None` if there are no elements.
    #[inline]
    pub(crate) fn bytes_reached(&self) -> Option<(usize, usize)> {
        if self.shape().contains(&0) {
            return None;
        }
        let bytes = || {
            let bits = self.dtype.itemsize_bits();
            let reach = extent::reached_items(self.shape(), self.strides())?;
            let start = self.data.addr();
            let start = start.checked_add(usize::try_from(self.byte_offset).ok()?)?;
            let first = isize::try_from(extent::bytes_of_items(reach.min, bits, 0)?).ok()?;
            let end = isize::try_from(extent::bytes_of_items(reach.max.checked_add(1)?, bits, 7)?)
                .ok()?;
            Some((
                start.checked_add_signed(first)?,
                start.checked_add_signed(end)?,
            ))
        };
        Some(bytes().unwrap_or((0, usize::MAX)))
    }
}

impl<'a> Descriptor<'a> {
    /// The tensor that is described, if it was exported or imported before.
    #[inline]
    pub(crate) fn borrowed_tensor(&self) -> Option<&'a Managed> {
        match self.source {
            DescriptionSource::BorrowedTensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{DLPack, Loan, Parts, SharedBuffer};

    #[test]
    fn a_tensor_lies_in_memory_that_holds_all_its_items() {
        let memory = [0_u16; 12];
        let start = memory.as_ptr().cast_mut().cast::<u8>();
        // The bytes of memory that the tensor needs from `start` on, and its bytes if it is packed.
        let check = |parts: Parts<'_>, needed: usize, packed: usize| {
            let described = parts.describe(Loan::from(&memory[..])).unwrap();
            assert_eq!(described.packed_bytes(), packed);
            for bytes in [0, 1, needed - 1, needed, needed + 1, 24] {
                assert_eq!(described.lies_in(start, bytes), bytes >= needed, "{bytes}");
            }
            assert!(!described.lies_in(start.wrapping_add(needed), 24));
        };
        let some = Parts::new;
        check(some(), 24, 24);
        check(some().shape([2, 3]), 12, 12);
        check(some().shape([2, 3]).offset(2), 16, 12);
        check(some().shape([2, 3]).strides([1, 2]), 12, usize::MAX);
        check(some().shape([2, 2]).strides([4, 1]), 12, usize::MAX);
        check(some().shape([3]).strides([-2]).offset(4), 10, usize::MAX);
    }

    #[test]
    fn memory_that_others_may_write_is_described_as_shared() {
        let own = [1_u8, 2];
        assert!(!own.describe().unwrap().view().shared);
        let buffer = SharedBuffer::<u8>::zeroed(2).unwrap();
        assert!(buffer.describe().unwrap().view().shared);
    }
}
