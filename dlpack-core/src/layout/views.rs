//! Views of a layout: slices, single indices, permuted and reshaped axes. Arithmetic only.

use core::ops::Range;

use crate::layout::Dims;
use crate::layout::extent::{self, extent_to_usize, stride_to_isize};
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
        self.shape.remove_axis(axis)?;
        self.strides.remove_axis(axis)
    }

    /// Applies one pick to each axis, from the first on. Further axes stay as they are.
    pub(crate) fn apply_picks(&mut self, picks: &[Pick]) -> Result<(), Error> {
        let mut axis = 0;
        for pick in picks {
            match pick {
                Pick::Index(index) => {
                    self.index(axis, *index)?;
                    continue;
                }
                Pick::Slice(range, step) => {
                    self.slice(axis, range)?;
                    self.step_axis(axis, *step)?;
                }
                Pick::NewAxis => {
                    self.shape = self.shape.with_axis(axis, 1)?;
                    self.strides = self.strides.with_axis(axis, 1)?;
                }
            }
            axis += 1;
        }
        Ok(())
    }

    /// Selects every `step`-th index of an axis; a negative step starts at the last one.
    fn step_axis(&mut self, axis: usize, step: isize) -> Result<(), Error> {
        let (extent, stride) = (self.shape[axis], self.strides[axis]);
        if step == 0 {
            return Err(Error::BadStride { axis, found: 0 });
        }
        if step < 0 && extent > 0 {
            let last = stride_to_isize((extent - 1).wrapping_mul(stride));
            self.first = self.first.wrapping_add(last);
        }
        let left = extent.unsigned_abs().div_ceil(step.unsigned_abs() as u64) as i64;
        self.shape[axis] = left;
        if left > 1 {
            self.strides[axis] = stride.wrapping_mul(step as i64);
        }
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

/// The range of a single index.
#[inline]
pub(crate) fn single_index(index: usize) -> Range<usize> {
    index..index.saturating_add(1)
}

/// The distance from the axis's first item to that of a range, in items, and the range's length.
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
