//! Parts of an array: slices, rows, single indices, transposes and reshapes, without a copy.
#![expect(
    unsafe_code,
    reason = "functions that trust the caller's statement about other accesses"
)]

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut, Range};

use crate::Error;
use crate::array::rank::Rank;
use crate::array::write::{ArrayMut, SizedArrayMut};
use crate::array::{Array, ArrayElement};
use crate::layout::views::{LayoutView, axis_size, range_of, single_index};
use crate::layout::{Dims, extent};
use crate::tensor::item_offsets::ItemOffsets;

/// A part of an array, which borrows from a view. It dereferences to an [`Array`], which has the methods that read.
pub struct Part<'a, T, L> {
    array: Array<T, L>,
    borrow: PhantomData<&'a [T]>,
}

impl<T, L> Deref for Part<'_, T, L> {
    type Target = Array<T, L>;

    #[inline]
    fn deref(&self) -> &Array<T, L> {
        &self.array
    }
}

/// A part of an array that may be written. No other part with the same elements exists meanwhile. It dereferences to an
/// [`ArrayMut`], which has the methods that write.
pub struct PartMut<'a, T, L> {
    array: SizedArrayMut<T, L>,
    borrow: PhantomData<&'a mut [T]>,
}

impl<T, L> Deref for PartMut<'_, T, L> {
    type Target = ArrayMut<T, L>;

    #[inline]
    fn deref(&self) -> &ArrayMut<T, L> {
        &self.array
    }
}

impl<T, L> DerefMut for PartMut<'_, T, L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut ArrayMut<T, L> {
        &mut self.array
    }
}

impl<T: ArrayElement, L: Rank> Array<T, L> {
    fn make_part<M>(&self, first: isize, shape: M, strides: M) -> Part<'_, T, M> {
        Part {
            array: self.with_layout(first, shape, strides),
            borrow: PhantomData,
        }
    }

    /// The layout of a range of one axis: the offset of its first element, shape and strides.
    fn slice_layout(&self, axis: usize, range: &Range<usize>) -> Result<(isize, L, L), Error> {
        let mut layout = self.copy_layout()?;
        layout.slice(axis, range)?;
        Ok((
            layout.first,
            L::from_slice(&layout.shape)?,
            L::from_slice(&layout.strides)?,
        ))
    }

    /// The layout of one index of an axis: the offset of its first element, shape and strides.
    fn index_layout(&self, axis: usize, index: usize) -> Result<(isize, L::Less, L::Less), Error> {
        // Loops call this for each index of an axis, so the longer lists of a `LayoutView` are avoided.
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        let (first, _) = range_of(axis, &single_index(index), shape, strides)?;
        Ok((
            first,
            self.shape.without_axis(axis)?,
            self.strides.without_axis(axis)?,
        ))
    }

    /// Shape and strides with the axes in another order.
    fn permute_layout(&self, axes: &[usize]) -> Result<(L, L), Error> {
        let mut layout = self.copy_layout()?;
        layout.permute(axes)?;
        Ok((
            L::from_slice(&layout.shape)?,
            L::from_slice(&layout.strides)?,
        ))
    }

    fn copy_layout(&self) -> Result<LayoutView, Error> {
        LayoutView::whole_layout(self.shape.as_ref(), self.strides.as_ref())
    }

    /// The elements in a range of indices of one axis.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// assert_eq!(image.slice(1, 1..3)?.to_vec()?, [2, 3, 5, 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchAxis`], [`Error::OutOfRange`].
    pub fn slice(&self, axis: usize, range: Range<usize>) -> Result<Part<'_, T, L>, Error> {
        let (first, shape, strides) = self.slice_layout(axis, &range)?;
        Ok(self.make_part(first, shape, strides))
    }

    /// The elements at one index of an axis. The part does not have this axis.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// assert_eq!(image.index(1, 2)?.to_vec()?, [3, 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchAxis`], [`Error::OutOfRange`].
    pub fn index(&self, axis: usize, index: usize) -> Result<Part<'_, T, L::Less>, Error> {
        let (first, shape, strides) = self.index_layout(axis, index)?;
        Ok(self.make_part(first, shape, strides))
    }

    /// All elements, with the axes in another order.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 3]>::new(vec![[[0_u8; 3]; 5]; 4].into_dlpack()?)?;
    /// assert_eq!(image.permute(&[2, 0, 1])?.shape(), [3, 4, 5]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] or [`Error::NoSuchAxis`] if `axes` does not name each axis once.
    pub fn permute(&self, axes: &[usize]) -> Result<Part<'_, T, L>, Error> {
        let (shape, strides) = self.permute_layout(axes)?;
        Ok(self.make_part(0, shape, strides))
    }

    /// All elements, with the axes in reverse order.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// assert_eq!(image.transpose().at([2, 0]), 3);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there are more than six axes, and no memory for their shape and strides.
    #[must_use]
    pub fn transpose(&self) -> Part<'_, T, L> {
        let reversed = |list: &L| {
            let mut list: Dims = copy_axis_list(list.as_ref());
            list.reverse();
            copy_axis_list(&list)
        };
        self.make_part(0, reversed(&self.shape), reversed(&self.strides))
    }

    /// All elements in the same order with another shape, if that needs no copy.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// assert_eq!(image.reshape([3, 2])?.index(0, 1)?.to_vec()?, [3, 4]);
    /// assert!(image.transpose().reshape([6]).is_err());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Count`] if the shape has another number of elements; [`Error::BadExtent`] if a size exceeds `i64::MAX`;
    /// [`Error::NotContiguous`] if no strides fit the shape.
    pub fn reshape<const M: usize>(&self, shape: [usize; M]) -> Result<Part<'_, T, [i64; M]>, Error>
    where
        [i64; M]: Rank,
    {
        let mut layout = self.copy_layout()?;
        layout.reshape(&shape)?;
        Ok(self.make_part(
            0,
            <[i64; M]>::from_slice(&layout.shape)?,
            <[i64; M]>::from_slice(&layout.strides)?,
        ))
    }

    /// The array with another shape, in which elements repeat along axes that it does not have or that have size 1, as NumPy
    /// broadcasts.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let row = View::<u8, [i64; 1]>::new(vec![1_u8, 2, 3].into_dlpack()?)?;
    /// assert_eq!(row.broadcast_to([2, 3])?.to_vec()?, [1, 2, 3, 1, 2, 3]);
    ///
    /// assert!(row.broadcast_to([3, 2]).is_err());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Broadcast`] if an axis has a size other than 1 and that of `shape`, or if `shape` has fewer axes;
    /// [`Error::BadExtent`] if a size exceeds `i64::MAX`; [`Error::TooLarge`].
    pub fn broadcast_to<const M: usize>(
        &self,
        shape: [usize; M],
    ) -> Result<Part<'_, T, [i64; M]>, Error>
    where
        [i64; M]: Rank,
    {
        let (own, steps) = (self.shape.as_ref(), self.strides.as_ref());
        let (shape, strides) = broadcast_layout(own, steps, shape)?;
        let bytes = extent::count_items(&shape)
            .and_then(|len| len.checked_mul(size_of::<T>().max(1) as i64))
            .and_then(|bytes| isize::try_from(bytes).ok());
        bytes.ok_or_else(|| Error::too_large(&shape))?;
        Ok(self.make_part(
            0,
            <[i64; M]>::from_slice(&shape)?,
            <[i64; M]>::from_slice(&strides)?,
        ))
    }

    /// A part with all elements, for a caller that knows that no other code writes to them. It has [`Array::as_slice`].
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let samples = View::<u8, [i64; 1]>::new(vec![1_u8, 2].into_dlpack()?.shared())?;
    /// // SAFETY: no other code accesses the tensor.
    /// let samples = unsafe { samples.unshared() };
    /// assert_eq!(samples.as_slice()?, [1, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there are more than six axes, and no memory for their shape and strides.
    ///
    /// # Safety
    ///
    /// While the part lives, no code writes to the elements: no Rust code, no Python code, no other thread.
    #[must_use]
    pub unsafe fn unshared(&self) -> Part<'_, T, L> {
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        let mut part = self.make_part::<L>(0, copy_axis_list(shape), copy_axis_list(strides));
        part.array.shared = false;
        part
    }

    /// An iterator over the rows: the elements along the last axis, for each index of the other axes in row-major order. An array
    /// without axes has one row of one element.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// let sums: Vec<u8> = image.rows().map(|row| row.iter().sum()).collect();
    /// assert_eq!(sums, [6, 15]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    pub fn rows(&self) -> impl Iterator<Item = Part<'_, T, [i64; 1]>> {
        let (starts, shape, strides) = self.row_layout();
        starts.map(move |first| self.make_part(first, shape, strides))
    }

    /// The offsets of the rows, in units of [`Self::UNIT`] bytes, and the shape and strides of each.
    fn row_layout(&self) -> (ItemOffsets<'_>, [i64; 1], [i64; 1]) {
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        let (last, outer) = shape.split_last().unwrap_or((&1, &[]));
        let stride = strides.last().copied().unwrap_or(Self::SCALARS);
        (
            ItemOffsets::new(outer, &strides[..outer.len()], 1),
            [*last],
            [stride],
        )
    }

    /// An iterator over the indices of an axis: the part at each index, without this axis.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// let sums: Vec<u8> = image.axis(1)?.map(|column| column.iter().sum()).collect();
    /// assert_eq!(sums, [5, 7, 9]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchAxis`].
    pub fn axis(
        &self,
        axis: usize,
    ) -> Result<impl ExactSizeIterator<Item = Part<'_, T, L::Less>>, Error> {
        let indices = 0..axis_size(axis, self.shape.as_ref())?;
        Ok(indices.map(move |index| self.index(axis, index).expect("an index of the axis")))
    }
}

/// Shape and strides of an array that is broadcast to `shape`.
fn broadcast_layout<const M: usize>(
    own: &[i64],
    steps: &[i64],
    needed: [usize; M],
) -> Result<([i64; M], [i64; M]), Error> {
    let mut shape = [0; M];
    for (axis, (size, &needed)) in shape.iter_mut().zip(&needed).enumerate() {
        let found = needed as i128;
        *size = i64::try_from(needed).map_err(|_| Error::BadExtent { axis, found })?;
    }
    let Some(added) = M.checked_sub(own.len()) else {
        return Err(Error::broadcast(own, &shape));
    };
    let mut strides = [0; M];
    for axis in added..M {
        let (size, stride) = (own[axis - added], steps[axis - added]);
        if size == shape[axis] {
            strides[axis] = stride;
        } else if size != 1 {
            return Err(Error::broadcast(own, &shape));
        }
    }
    Ok((shape, strides))
}

/// Copies a list of one number for each axis. Panics if there is no memory for it, in functions that return no error.
fn copy_axis_list<L: Rank>(numbers: &[i64]) -> L {
    L::from_slice(numbers).expect("memory for a list of axes")
}

impl<T: ArrayElement, L: Rank> ArrayMut<T, L> {
    fn make_part_mut<M>(&mut self, first: isize, shape: M, strides: M) -> PartMut<'_, T, M> {
        PartMut {
            array: SizedArrayMut::new(self.with_layout(first, shape, strides)),
            borrow: PhantomData,
        }
    }

    /// A writable part with all elements, for a caller that knows that no other code accesses them. It has
    /// [`ArrayMut::as_mut_slice`].
    ///
    /// # Panics
    ///
    /// If there are more than six axes, and no memory for their shape and strides.
    ///
    /// # Safety
    ///
    /// While the part lives, no other code reads or writes the elements: no Rust code, no Python code, no other thread.
    #[must_use]
    pub unsafe fn unshared_mut(&mut self) -> PartMut<'_, T, L> {
        let (shape, strides) = (
            copy_axis_list(self.shape.as_ref()),
            copy_axis_list(self.strides.as_ref()),
        );
        let mut part = self.make_part_mut::<L>(0, shape, strides);
        part.array.set_shared(false);
        part
    }

    /// The elements in a range of indices of one axis, for writing.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut image = ViewMut::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// image.slice_mut(1, 1..3)?.fill(0);
    /// assert_eq!(image.to_vec()?, [1, 0, 0, 4, 0, 0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Array::slice`].
    pub fn slice_mut(
        &mut self,
        axis: usize,
        range: Range<usize>,
    ) -> Result<PartMut<'_, T, L>, Error> {
        let (first, shape, strides) = self.slice_layout(axis, &range)?;
        Ok(self.make_part_mut(first, shape, strides))
    }

    /// The elements at one index of an axis, for writing. The part does not have this axis.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut image = ViewMut::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// image.index_mut(1, 0)?.fill(0);
    /// assert_eq!(image.to_vec()?, [0, 2, 3, 0, 5, 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Array::index`].
    pub fn index_mut(
        &mut self,
        axis: usize,
        index: usize,
    ) -> Result<PartMut<'_, T, L::Less>, Error> {
        let (first, shape, strides) = self.index_layout(axis, index)?;
        Ok(self.make_part_mut(first, shape, strides))
    }

    /// All elements with the axes in another order, for writing.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut image = ViewMut::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// image.permute_mut(&[1, 0])?.set([2, 0], 9);
    /// assert_eq!(image.at([0, 2]), 9);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Array::permute`].
    pub fn permute_mut(&mut self, axes: &[usize]) -> Result<PartMut<'_, T, L>, Error> {
        let (shape, strides) = self.permute_layout(axes)?;
        Ok(self.make_part_mut(0, shape, strides))
    }

    /// An iterator over the rows, for writing. No two rows share an element.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut image = ViewMut::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?)?;
    /// for (index, mut row) in (0..).zip(image.rows_mut()) {
    ///     row.fill(index);
    /// }
    /// assert_eq!(image.to_vec()?, [0, 0, 0, 1, 1, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    pub fn rows_mut(&mut self) -> impl Iterator<Item = PartMut<'_, T, [i64; 1]>> {
        let this: &Array<T, L> = self;
        let (starts, shape, strides) = this.row_layout();
        starts.map(move |first| PartMut {
            array: SizedArrayMut::new(this.with_layout(first, shape, strides)),
            borrow: PhantomData,
        })
    }
}
