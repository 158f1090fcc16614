//! Parts of a tensor: the same memory under fewer indices or other ones, together with all that keeps the whole.

use core::ops::Range;

use crate::export::block::narrow;
use crate::export::layer::{changed, part};
use crate::layout::cut::{Cut, Pick};
use crate::{DataType, Descriptor, Error, Managed};

/// Parts keep the whole, and whatever is true of it: who may write, the device, the stream. No memory is touched, so it
/// may be anywhere. Items that share a byte can be parted where a byte begins.
impl Managed {
    /// The part under a range of one axis.
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
        self.cut(|cut| cut.slice(axis, &range))
    }

    /// The part under one index of an axis, which is gone then.
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
    /// As [`Managed::slice`].
    pub fn index(self, axis: usize, index: usize) -> Result<Self, Error> {
        self.cut(|cut| cut.index(axis, index))
    }

    /// The same items with the axes in another order.
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
    /// [`Error::Rank`] or [`Error::NoSuchAxis`] where not each axis is named once. The tensor is dropped then.
    pub fn permute(self, axes: &[usize]) -> Result<Self, Error> {
        self.cut(|cut| cut.permute(axes))
    }

    /// The same items in the same order, under another shape; where that needs no copy.
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
    /// [`Error::Count`] if the shape has another number of items, [`Error::NotContiguous`] where they would have to be
    /// moved, [`Error::TooManyAxes`]. The tensor is dropped then.
    pub fn reshape(self, shape: &[usize]) -> Result<Self, Error> {
        self.cut(|cut| cut.reshape(shape))
    }

    /// A tensor of ours is changed where it stands; over any other lies one more.
    fn cut(mut self, cut: impl FnOnce(&mut Cut) -> Result<(), Error>) -> Result<Self, Error> {
        if !self.is_own_export() {
            return part(self, cut, None);
        }
        narrow(&mut self, cut)?;
        Ok(self)
    }
}

/// Leaves of a described tensor what is taken of each axis, from the first on; the others stay as they are.
///
/// ```
/// use dlpack_core::DLPack;
/// use dlpack_core::binding::{Pick, pick};
///
/// let image = [[1_u8, 2, 3], [4, 5, 6]];
/// let mut backwards = image.describe()?;
/// pick(&mut backwards, &[Pick::Index(1), Pick::Slice(0..3, -2)])?;
/// assert_eq!((backwards.shape(), backwards.strides()), (&[2][..], &[-2][..]));
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`Managed::slice`]; [`Error::BadStride`] where a step is 0, [`Error::TooManyAxes`]. The description is of no use then.
pub fn pick(described: &mut Descriptor<'_>, picks: &[Pick]) -> Result<(), Error> {
    described.cut(|cut| cut.pick(picks))
}

/// The bytes of a tensor as items of another type and another shape: how what was written down as bytes becomes a tensor
/// again. The memory is the same, and who may write it; the items lie one after another in row-major order.
///
/// ```
/// use dlpack_core::binding::recast;
/// use dlpack_core::{DLPack, DataType};
///
/// let bytes: Vec<u8> = [1_u16, 2].into_iter().flat_map(u16::to_ne_bytes).collect();
/// let pair = recast(bytes.into_dlpack()?, DataType::U16, &[1, 2])?;
/// assert_eq!(pair.view().to_vec::<u16>()?, [1, 2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Bytes`] where that takes more bytes or fewer, [`Error::NotContiguous`], [`Error::Misaligned`],
/// [`Error::UnknownDataType`]; and what is wrong with a shape. The tensor is dropped then.
pub fn recast(tensor: Managed, dtype: DataType, shape: &[i64]) -> Result<Managed, Error> {
    changed(tensor, |described| described.recast(dtype, shape), None)
}
