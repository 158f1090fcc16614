//! Parts of a layout: fewer indices of its axes, or other axes; pure.

use core::ops::Range;

use crate::layout::Dims;
use crate::layout::extent::{self, distance, size};
use crate::{Error, Order};

/// What is taken of the next axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pick {
    /// One index: the axis is gone then.
    Index(usize),
    /// A range of indices, and how far apart; from its end backwards, where that is negative.
    Slice(Range<usize>, isize),
    /// Nothing yet: an axis of extent 1 comes first.
    NewAxis,
}

/// A part of a layout.
#[derive(Debug)]
pub(crate) struct Cut {
    /// How many items lie between the first item of the whole and that of the part.
    pub(crate) first: isize,
    pub(crate) shape: Dims,
    pub(crate) strides: Dims,
}

impl Cut {
    /// All of it.
    pub(crate) fn of(shape: &[i64], strides: &[i64]) -> Result<Self, Error> {
        Ok(Self {
            first: 0,
            shape: Dims::from(shape).whole()?,
            strides: Dims::from(strides).whole()?,
        })
    }

    /// A range of an axis.
    pub(crate) fn slice(&mut self, axis: usize, range: &Range<usize>) -> Result<(), Error> {
        let (first, extent) = range_of(axis, range, &self.shape, &self.strides)?;
        self.first = self.first.wrapping_add(first);
        self.shape[axis] = extent;
        Ok(())
    }

    /// One index of an axis, which is gone then.
    pub(crate) fn index(&mut self, axis: usize, index: usize) -> Result<(), Error> {
        self.slice(axis, &one(index))?;
        self.shape.remove(axis)?;
        self.strides.remove(axis)
    }

    /// What is taken of each axis, from the first on; the others stay as they are.
    pub(crate) fn pick(&mut self, picks: &[Pick]) -> Result<(), Error> {
        let mut axis = 0;
        for pick in picks {
            match pick {
                Pick::Index(index) => {
                    self.index(axis, *index)?;
                    continue;
                }
                Pick::Slice(range, step) => {
                    self.slice(axis, range)?;
                    self.step(axis, *step)?;
                }
                Pick::NewAxis => {
                    self.shape = self.shape.with(axis, 1)?;
                    self.strides = self.strides.with(axis, 1)?;
                }
            }
            axis += 1;
        }
        Ok(())
    }

    /// Every so manyeth index of an axis, from the last one backwards where that is negative.
    fn step(&mut self, axis: usize, step: isize) -> Result<(), Error> {
        let (extent, stride) = (self.shape[axis], self.strides[axis]);
        if step == 0 {
            return Err(Error::BadStride { axis, found: 0 });
        }
        if step < 0 && extent > 0 {
            let last = distance((extent - 1).wrapping_mul(stride));
            self.first = self.first.wrapping_add(last);
        }
        let left = extent.unsigned_abs().div_ceil(step.unsigned_abs() as u64) as i64;
        self.shape[axis] = left;
        if left > 1 {
            self.strides[axis] = stride.wrapping_mul(step as i64);
        }
        Ok(())
    }

    /// The axes in another order.
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

    /// Another shape for the same items in the same order, where none has to be moved.
    pub(crate) fn reshape(&mut self, shape: &[usize]) -> Result<(), Error> {
        let shape = Dims::extents(shape)?.whole()?;
        let count = |shape| extent::count(shape).map_or(usize::MAX, size);
        let (found, needed) = (count(&self.shape), count(&shape));
        if found != needed {
            return Err(Error::Count { found, needed });
        }
        let strides = reshaped(&self.shape, &self.strides, &shape)?;
        let strides = strides.ok_or_else(|| Error::not_contiguous(&self.shape, &self.strides))?;
        (self.shape, self.strides) = (shape, strides);
        Ok(())
    }
}

/// The range of one index.
#[inline]
pub(crate) fn one(index: usize) -> Range<usize> {
    index..index.saturating_add(1)
}

/// The first item that a range of an axis means, counted from that of the whole, and the extent that is left.
pub(crate) fn range_of(
    axis: usize,
    range: &Range<usize>,
    shape: &[i64],
    strides: &[i64],
) -> Result<(isize, i64), Error> {
    let extent = extent_of(axis, shape)?;
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
        // Inside what is reached, or there are no items at all.
        (range.start as isize).wrapping_mul(distance(strides[axis]))
    };
    Ok((first, range.len() as i64))
}

/// How many indices an axis has.
pub(crate) fn extent_of(axis: usize, shape: &[i64]) -> Result<usize, Error> {
    let extent = shape.get(axis).map(|&extent| size(extent));
    extent.ok_or(Error::NoSuchAxis {
        axis,
        rank: shape.len(),
    })
}

/// What another shape has to have for strides, so that its items are the same in the same order; none where they would
/// have to be moved.
///
/// Axes that continue each other are one run of items, and a run can be cut anew.
fn reshaped(shape: &[i64], strides: &[i64], new: &[i64]) -> Result<Option<Dims>, Error> {
    let mut found = Dims::zeroed(new.len()).whole()?;
    if new.contains(&0) {
        return extent::packed(Order::C, new, 1).map(Some);
    }
    let mut old = (shape.iter().zip(strides))
        .filter(|(extent, _)| **extent != 1)
        .rev()
        .peekable();
    let mut at = new.len();
    while at > 0 {
        // The next run, from the last axis on ..
        let Some((&extent, &step)) = old.next() else {
            // .. behind which only extents of 1 are left.
            found[..at].fill(1);
            break;
        };
        let mut run = extent;
        while let Some((&extent, _)) = old.next_if(|(_, stride)| **stride == step.wrapping_mul(run))
        {
            run *= extent;
        }
        // .. and the new axes that it makes.
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
