//! Views of a tensor: slices, single indices, permuted and reshaped axes, and the bytes as another data type.

use core::ops::Range;

use crate::export::block::narrow_in_place;
use crate::export::reexport::{reexport_changed, reexport_view};
use crate::layout::views::{LayoutView, PickedView};
use crate::{DataType, Descriptor, Error, Managed};

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

    /// Applies a view operation: in place if this crate exported the tensor, otherwise in a re-export that keeps it.
    fn apply_view(
        mut self,
        change: impl FnOnce(&mut LayoutView) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        if !self.is_own_export() {
            return reexport_view(self, change, None);
        }
        narrow_in_place(&mut self, change)?;
        Ok(self)
    }
}

/// Replaces a description by that of a view, for which `select` applies one [`Pick`](crate::binding::Pick) after another. The outer error is that of
/// `select`.
///
/// ```
/// use dlpack_core::binding::{Pick, apply_picks};
/// use dlpack_core::{DLPack, Error};
///
/// let image = [[1_u8, 2, 3], [4, 5, 6]];
/// let mut backwards = image.describe()?;
/// let picks = [Pick::Index(1), Pick::Slice(0..3, -2)];
/// apply_picks(&mut backwards, |view| picks.iter().try_for_each(|one| view.pick(one)))??;
/// assert_eq!((backwards.shape(), backwards.strides()), (&[2][..], &[-2][..]));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
///
/// [`Error::PartialOffset`], [`Error::TooManyAxes`], and the errors of `select`. After an error the description must not be used.
#[inline(always)]
pub fn apply_picks<E>(
    described: &mut Descriptor<'_>,
    select: impl FnOnce(&mut PickedView<'_>) -> Result<(), E>,
) -> Result<Result<(), Error>, E> {
    let mut picked = PickedView::new(described.shape(), described.strides());
    select(&mut picked)?;
    let view = picked.into_layout();
    Ok(described.set_layout(&view))
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
    reexport_changed(
        tensor,
        |described| described.reinterpret_items(dtype, shape),
        None,
    )
}
