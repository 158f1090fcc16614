//! Views of a layout: slices, single indices, permuted and reshaped axes. Arithmetic only.

use core::ops::Range;

use crate::layout::extent::{self, extent_to_usize, stride_to_isize};
use crate::layout::{Dims, dims::MAX_RANK, shape_strides::ShapeStrides};
use crate::{Error, Order};

/// The selection on one axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pick {
    /// A single index. The result does not have the axis.
    Index(usize),
    /// A range of indices with a step. A negative step starts at the last index of the range.
    Slice(Range<usize>, isize),
    /// Inserts an axis of size 1 here.
    NewAxis,
}

/// The layout of a view.
#[derive(Debug)]
pub(crate) struct LayoutView {
    /// The distance in items from the first item of the whole to the first item of the view.
    pub(crate) first: isize,
    pub(crate) shape: Dims,
    pub(crate) strides: Dims,
}

impl LayoutView {
    /// The view of the whole.
    pub(crate) fn whole_layout(shape: &[i64], strides: &[i64]) -> Result<Self, Error> {
        Ok(Self {
            first: 0,
            shape: Dims::from(shape).check_allocated()?,
            strides: Dims::from(strides).check_allocated()?,
        })
    }

    /// Selects a range of an axis.
    pub(crate) fn slice(&mut self, axis: usize, range: &Range<usize>) -> Result<(), Error> {
        let (first, extent) = range_of(axis, range, &self.shape, &self.strides)?;
        self.first = self.first.wrapping_add(first);
        self.shape[axis] = extent;
        Ok(())
    }

    /// Selects one index of an axis and removes the axis.
    pub(crate) fn index(&mut self, axis: usize, index: usize) -> Result<(), Error> {
        self.slice(axis, &single_index(index))?;
        self.shape.remove_axis(axis);
        self.strides.remove_axis(axis);
        Ok(())
    }

    /// Puts the axes in another order.
    pub(crate) fn permute(&mut self, axes: &[usize]) -> Result<(), Error> {
        let (found, rank) = (axes.len(), self.shape.len());
        let (mut shape, mut strides) = (Dims::new(), Dims::new());
        for (place, &axis) in axes.iter().enumerate() {
            if axis >= rank || axes[..place].contains(&axis) {
                return Err(Error::NoSuchAxis { axis, rank });
            }
            shape.append(&[self.shape[axis]])?;
            strides.append(&[self.strides[axis]])?;
        }
        if found != rank {
            let needed = rank;
            return Err(Error::Rank { found, needed });
        }
        (self.shape, self.strides) = (shape, strides);
        Ok(())
    }

    /// Changes the shape for the same items in the same order. An error if an item would have to be moved.
    pub(crate) fn reshape(&mut self, shape: &[usize]) -> Result<(), Error> {
        let shape = Dims::extents(shape)?.check_allocated()?;
        let count = |shape| extent::count_items(shape).map_or(usize::MAX, extent_to_usize);
        let (found, needed) = (count(&self.shape), count(&shape));
        if found != needed {
            return Err(Error::Count { found, needed });
        }
        let strides = strides_of_reshape(&self.shape, &self.strides, &shape)?;
        let strides = strides.ok_or_else(|| Error::not_contiguous(&self.shape, &self.strides))?;
        (self.shape, self.strides) = (shape, strides);
        Ok(())
    }
}

/// A view that is selected by one [`Pick`] after another, from the first axis on. The remaining axes stay as they are.
#[derive(Debug)]
pub struct PickedView<'a> {
    shape: &'a [i64],
    strides: &'a [i64],
    /// The number of axes that have a pick.
    axis: usize,
    /// The distance in items from the first item of the whole to the first item of the view.
    first: isize,
    /// The number of axes of the view beyond [`MAX_RANK`], which are counted but not stored.
    excess: usize,
    /// Borrowed, because moves of it would cost as much as the picks.
    view: &'a mut ShapeStrides,
}

impl<'a> PickedView<'a> {
    /// Selects axes of a tensor for a view that has no axes yet.
    #[inline]
    pub(crate) fn new(shape: &'a [i64], strides: &'a [i64], view: &'a mut ShapeStrides) -> Self {
        Self {
            shape,
            strides,
            axis: 0,
            first: 0,
            excess: 0,
            view,
        }
    }

    /// The shape of the whole tensor.
    #[must_use]
    pub fn shape(&self) -> &'a [i64] {
        self.shape
    }

    /// Applies a pick to the next axis.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchAxis`], [`Error::OutOfRange`]; [`Error::BadStride`] if a step is 0; [`Error::OutOfMemory`].
    #[inline]
    pub fn pick(&mut self, pick: &Pick) -> Result<(), Error> {
        let axis = self.axis;
        let range = |range| range_of(axis, range, self.shape, self.strides);
        let first = match pick {
            Pick::NewAxis => return self.push_axis(1, 1),
            Pick::Index(index) => range(&single_index(*index))?.0,
            Pick::Slice(slice, step) => {
                let (first, extent) = range(slice)?;
                let (more, extent, stride) = step_axis(axis, extent, self.strides[axis], *step)?;
                self.push_axis(extent, stride)?;
                first.wrapping_add(more)
            }
        };
        self.first = self.first.wrapping_add(first);
        self.axis += 1;
        Ok(())
    }

    /// The number and the size of the next axis, if there is one.
    #[must_use]
    #[inline]
    pub fn next_axis(&self) -> Option<(usize, i64)> {
        Some((self.axis, *self.shape.get(self.axis)?))
    }

    /// Keeps the next `axes` axes as they are; fewer if there are not as many.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]
    #[inline]
    pub fn keep(&mut self, axes: usize) -> Result<(), Error> {
        let whole = self.shape.iter().zip(self.strides);
        for (&extent, &stride) in whole.skip(self.axis).take(axes) {
            self.push_axis(extent, stride)?;
            self.axis += 1;
        }
        Ok(())
    }

    #[inline]
    fn push_axis(&mut self, extent: i64, stride: i64) -> Result<(), Error> {
        if self.view.rank() == MAX_RANK {
            self.excess += 1;
            return Ok(());
        }
        self.view.push_axis(extent, stride)
    }

    /// Adds the remaining axes, which stay as they are. Returns the distance in items from the first item of the whole to the
    /// first item of the view.
    #[inline]
    pub(crate) fn finish(mut self) -> Result<isize, Error> {
        self.keep(usize::MAX)?;
        if self.excess > 0 {
            return Err(Error::TooManyAxes {
                found: MAX_RANK + self.excess,
                most: MAX_RANK,
            });
        }
        Ok(self.first)
    }
}

/// Selects every `step`-th index of an axis: the distance to the first one in items, the number of indices, and their stride. A
/// negative step starts at the last index.
#[inline]
fn step_axis(
    axis: usize,
    extent: i64,
    stride: i64,
    step: isize,
) -> Result<(isize, i64, i64), Error> {
    if step == 1 {
        return Ok((0, extent, stride));
    }
    if step == 0 {
        return Err(Error::BadStride { axis, found: 0 });
    }
    let is_backwards = step < 0 && extent > 0;
    let last = stride_to_isize((extent - 1).wrapping_mul(stride));
    let left = extent.unsigned_abs().div_ceil(step.unsigned_abs() as u64) as i64;
    let stride = if left > 1 {
        stride.wrapping_mul(step as i64)
    } else {
        stride
    };
    Ok((if is_backwards { last } else { 0 }, left, stride))
}

/// The range of a single index.
#[inline]
pub(crate) fn single_index(index: usize) -> Range<usize> {
    index..index.saturating_add(1)
}

/// The distance from the axis's first item to that of a range, in items, and the range's length.
#[inline]
pub(crate) fn range_of(
    axis: usize,
    range: &Range<usize>,
    shape: &[i64],
    strides: &[i64],
) -> Result<(isize, i64), Error> {
    let extent = axis_size(axis, shape)?;
    if range.start > range.end || range.end > extent {
        return Err(Error::OutOfRange {
            axis,
            start: range.start,
            end: range.end,
            extent,
        });
    }
    let first = if range.is_empty() {
        0
    } else {
        // The item lies inside the tensor, so the product fits; without items no address is computed from it.
        (range.start as isize).wrapping_mul(stride_to_isize(strides[axis]))
    };
    Ok((first, range.len() as i64))
}

/// The size of an axis.
pub(crate) fn axis_size(axis: usize, shape: &[i64]) -> Result<usize, Error> {
    let extent = shape.get(axis).map(|&extent| extent_to_usize(extent));
    extent.ok_or(Error::NoSuchAxis {
        axis,
        rank: shape.len(),
    })
}

/// The strides with which another shape has the same items in the same order; `None` if items would have to be moved.
///
/// Neighbouring axes with strides that continue each other form one run of items. Each run is split into new axes.
fn strides_of_reshape(shape: &[i64], strides: &[i64], new: &[i64]) -> Result<Option<Dims>, Error> {
    let mut found = Dims::zeroed(new.len()).check_allocated()?;
    if new.contains(&0) {
        return extent::packed_strides(Order::C, new, 1).map(Some);
    }
    let mut old = (shape.iter().zip(strides))
        .filter(|(extent, _)| **extent != 1)
        .rev()
        .peekable();
    let mut at = new.len();
    while at > 0 {
        // Join the next run of axes, from the last axis on.
        let Some((&extent, &step)) = old.next() else {
            // No run is left, so the remaining new axes have size 1.
            found[..at].fill(1);
            break;
        };
        let mut run = extent;
        while let Some((&extent, _)) = old.next_if(|(_, stride)| **stride == step.wrapping_mul(run))
        {
            run *= extent;
        }
        // Split the run into new axes.
        let mut cut = 1;
        while at > 0 && (cut < run || new[at - 1] == 1) {
            at -= 1;
            found[at] = step.wrapping_mul(cut);
            cut *= new[at];
        }
        if cut != run {
            return Ok(None);
        }
    }
    Ok(old.next().is_none().then_some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reshape_without_a_copy_finds_these_strides() {
        let check = |shape: &[i64], strides: &[i64], new: &[i64], expected: Option<&[i64]>| {
            let found = strides_of_reshape(shape, strides, new).unwrap();
            assert_eq!(found.as_deref(), expected, "{shape:?} {strides:?} {new:?}");
        };
        // Axes that join, and one that is split.
        check(&[2, 3], &[3, 1], &[6], Some(&[1]));
        check(&[6], &[2], &[2, 3], Some(&[6, 2]));
        // A gap between the rows: these axes do not join, so the rows keep their length.
        check(&[2, 3], &[4, 1], &[6], None);
        check(&[2, 6], &[8, 1], &[2, 3, 2], Some(&[8, 2, 1]));
        check(&[4, 3], &[8, 1], &[2, 2, 3], Some(&[16, 8, 1]));
        check(&[2, 3], &[4, 1], &[3, 2], None);
        // Axes of size 1, at both ends and in between.
        check(&[2, 3], &[4, 1], &[1, 2, 1, 3, 1], Some(&[8, 4, 3, 1, 1]));
        check(&[1, 2, 1], &[9, 5, 9], &[2], Some(&[5]));
        check(&[1], &[7], &[1, 1], Some(&[1, 1]));
        check(&[0, 2], &[2, 1], &[3, 0], Some(&[1, 1]));
    }
}
