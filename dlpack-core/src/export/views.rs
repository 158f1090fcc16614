//! Views of a tensor: slices, single indices, permuted and reshaped axes, and the bytes as another data type.

use core::ops::Range;

use crate::element::Plain;
use crate::export::block::change_in_place;
use crate::export::reexport::reexport_changed;
use crate::export::root::allocation_of;
use crate::layout::Dims;
use crate::layout::views::LayoutView;
use crate::loan::access::Access;
use crate::tensor::view::check_alignment;
use crate::{DLPack as _, DataType, Descriptor, Error, Managed, SharedBuffer};

/// Each view keeps the whole tensor alive, and inherits its access, device and stream. No memory is read or written, so the
/// tensor may be on any device. Items that share a byte can be sliced only where a byte begins.
impl Managed {
    /// A view of a range of one axis.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let image = vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?;
    /// let right = image.slice(1, 1..3)?;
    /// assert_eq!(right.view().to_vec::<u8>()?, [2, 3, 5, 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchAxis`], [`Error::OutOfRange`], [`Error::PartialOffset`]. The tensor is dropped then.
    pub fn slice(self, axis: usize, range: Range<usize>) -> Result<Self, Error> {
        self.apply_view(|view| view.slice(axis, &range))
    }

    /// A view of one index of an axis, which the result no longer has.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let image = vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?;
    /// let column = image.index(1, 2)?;
    /// assert_eq!(column.view().shape(), [2]);
    /// assert_eq!(column.view().to_vec::<u8>()?, [3, 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchAxis`], [`Error::OutOfRange`], [`Error::PartialOffset`]. The tensor is dropped then.
    pub fn index(self, axis: usize, index: usize) -> Result<Self, Error> {
        self.apply_view(|view| view.index(axis, index))
    }

    /// A view with the axes in another order.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let image = vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?;
    /// let turned = image.permute(&[1, 0])?;
    /// assert_eq!(turned.view().to_vec::<u8>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] or [`Error::NoSuchAxis`] unless `axes` names each axis once. The tensor is dropped then.
    pub fn permute(self, axes: &[usize]) -> Result<Self, Error> {
        self.apply_view(|view| view.permute(axes))
    }

    /// A view of the same items, in the same order, with another shape. It never copies.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let image = vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?;
    /// let pairs = image.reshape(&[3, 2])?;
    /// assert_eq!(pairs.view().to_vec::<[u8; 2]>()?, [[1, 2], [3, 4], [5, 6]]);
    /// assert!(pairs.permute(&[1, 0])?.reshape(&[6]).is_err());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Count`] if the shape has another number of items, [`Error::NotContiguous`] if the items would have to be moved,
    /// [`Error::TooManyAxes`]. The tensor is dropped then.
    pub fn reshape(self, shape: &[usize]) -> Result<Self, Error> {
        self.apply_view(|view| view.reshape(shape))
    }

    /// A view of the same bytes as items of another data type, known at run time, in another shape. It converts no value, like
    /// `memoryview.cast` in Python.
    ///
    /// ```
    /// use dlpack_core::{DLPack, DataType, SharedBuffer};
    ///
    /// let bytes = SharedBuffer::<u8>::zeroed(12)?;
    /// let numbers = bytes.into_dlpack()?.cast(DataType::F32, &[3])?;
    /// assert_eq!(numbers.view().to_vec::<f32>()?, [0.0; 3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Bytes`] if the shape takes more bytes or fewer, [`Error::NotContiguous`], [`Error::Misaligned`] (a `Vec<u8>` may be;
    /// memory of [`SharedBuffer::zeroed`](crate::SharedBuffer::zeroed) is aligned for every type), [`Error::UnknownDataType`],
    /// [`Error::TooManyAxes`]. The tensor is dropped then.
    pub fn cast(self, dtype: impl Into<DataType>, shape: &[usize]) -> Result<Self, Error> {
        reinterpret_bytes(self, dtype.into(), &Dims::extents(shape)?)
    }

    fn apply_view(
        self,
        change: impl FnOnce(&mut LayoutView) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        change_description(self, |described| described.apply_view(change))
    }
}

/// Applies a change to the description of a tensor: in place if this crate exported the tensor, otherwise in a re-export that keeps
/// it. In place, any number of changes in a row leave one tensor to release, not a chain.
fn change_description(
    mut tensor: Managed,
    change: impl FnOnce(&mut Descriptor<'_>) -> Result<(), Error>,
) -> Result<Managed, Error> {
    if !tensor.is_own_export() {
        return reexport_changed(tensor, change, None);
    }
    change_in_place(&mut tensor, change)?;
    Ok(tensor)
}

impl<T: Plain> SharedBuffer<T> {
    /// Reinterprets the bytes as elements of another type. It converts no value and copies nothing; clones keep the old type.
    ///
    /// For a data type that is known at run time, select `U` by a `match`, or use [`Managed::cast`].
    ///
    /// ```
    /// use dlpack_core::SharedBuffer;
    ///
    /// let bytes = SharedBuffer::copied_from(&1.5_f32.to_ne_bytes())?;
    /// let mut numbers = bytes.cast::<f32>()?;
    /// assert_eq!(numbers.try_as_slice()?, [1.5]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::PartialElement`] if the last element is not whole; [`Error::Misaligned`], which memory from
    /// [`SharedBuffer::zeroed`] never is; [`Error::NotBool`].
    pub fn cast<U: Plain>(self) -> Result<SharedBuffer<U>, Error> {
        let bytes = self.len() * size_of::<T>();
        if bytes == 0 {
            return SharedBuffer::zeroed(0);
        }
        let len = bytes.checked_div(size_of::<U>()).unwrap_or(0);
        if len * size_of::<U>() != bytes {
            let element_bits = size_of::<U>().saturating_mul(8);
            return Err(Error::PartialElement {
                bytes,
                element_bits,
            });
        }
        check_alignment(self.as_ptr().addr(), align_of::<U>(), U::DTYPE)?;
        let described = self.describe()?;
        let allocation = allocation_of(&described).ok_or(Error::NoSharedBuffer)?;
        let (data, access) = (self.as_ptr().cast(), allocation.access());
        let cast = SharedBuffer::<U>::from_allocation(allocation, data, len, access);
        if !U::ANY_BITS && access == Access::Read {
            // Memory that is never written is lent as it is, so its bytes have to be valid.
            cast.describe()?.view().check_bools()?;
        }
        Ok(cast)
    }
}

/// Reinterprets the bytes of a tensor as items of another data type and shape, in row-major order: restores a tensor from
/// serialized bytes. The memory and the access to it stay the same.
///
/// ```
/// use dlpack_core::binding::reinterpret_bytes;
/// use dlpack_core::{DLPack, DataType};
///
/// let bytes: Vec<u8> = [1_u16, 2].into_iter().flat_map(u16::to_ne_bytes).collect();
/// let pair = reinterpret_bytes(bytes.into_dlpack()?, DataType::U16, &[1, 2])?;
/// assert_eq!(pair.view().to_vec::<u16>()?, [1, 2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Bytes`] if that takes more bytes or fewer, [`Error::NotContiguous`], [`Error::Misaligned`],
/// [`Error::UnknownDataType`], and the errors of an invalid shape. The tensor is dropped then.
pub fn reinterpret_bytes(
    tensor: Managed,
    dtype: DataType,
    shape: &[i64],
) -> Result<Managed, Error> {
    change_description(tensor, |described| {
        described.reinterpret_items(dtype, shape)
    })
}
