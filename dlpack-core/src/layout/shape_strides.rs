//! [`ShapeStrides`]: shape and strides of one tensor. Descriptors hold them, and exports store them in their block.

use alloc::boxed::Box;

use crate::Error;
use crate::error::concat_lists;
use crate::layout::dims::{INLINE, MAX_RANK};
use crate::layout::extent;

/// Shape and strides of one tensor: plain values for up to [`INLINE`] axes, on the heap for more.
#[derive(Debug)]
pub(crate) struct ShapeStrides {
    rank: usize,
    /// Shape and strides, if there are at most [`INLINE`] axes.
    inline: [[i64; INLINE]; 2],
    /// The shape followed by the strides, if there are more.
    heap: Option<Box<[i64]>>,
}

impl ShapeStrides {
    /// Those of a tensor without axes.
    pub(crate) const EMPTY: Self = Self::from_inline([0; INLINE], [0; INLINE], 0);

    /// Takes the first `rank` values of each array, at most [`INLINE`].
    #[inline(always)]
    pub(crate) const fn from_inline(
        shape: [i64; INLINE],
        strides: [i64; INLINE],
        rank: usize,
    ) -> Self {
        Self {
            rank,
            inline: [shape, strides],
            heap: None,
        }
    }

    /// Copies a shape and its strides.
    #[inline(always)]
    pub(crate) fn new(shape: &[i64], strides: &[i64]) -> Result<Self, Error> {
        match Self::copy_short(shape, strides) {
            Some(short) => Ok(short),
            None => Self::on_heap(shape, strides),
        }
    }

    /// Copies a shape of at most [`INLINE`] axes and its strides. The loops have a constant number of steps, and no reference to the
    /// result leaves the caller, so the values can stay in registers, and a description that is built from them is written once.
    #[inline(always)]
    pub(crate) fn copy_short(shape: &[i64], strides: &[i64]) -> Option<Self> {
        let rank = shape.len();
        if rank > INLINE {
            return None;
        }
        let strides = &strides[..rank];
        // `from_fn` would be a call in a large function.
        let mut copies = [[0; INLINE]; 2];
        for axis in 0..INLINE {
            if axis < rank {
                copies[0][axis] = shape[axis];
                copies[1][axis] = strides[axis];
            }
        }
        Some(Self::from_inline(copies[0], copies[1], rank))
    }

    /// Replaces shape and strides by copies of these.
    #[inline]
    pub(crate) fn replace(&mut self, shape: &[i64], strides: &[i64]) -> Result<(), Error> {
        let rank = shape.len();
        let [extents, steps] = &mut self.inline;
        let (Some(extents), Some(steps)) = (extents.get_mut(..rank), steps.get_mut(..rank)) else {
            *self = Self::on_heap(shape, strides)?;
            return Ok(());
        };
        let axes = shape.iter().zip(strides);
        for (places, (&extent, &stride)) in extents.iter_mut().zip(steps).zip(axes) {
            (*places.0, *places.1) = (extent, stride);
        }
        (self.rank, self.heap) = (rank, None);
        Ok(())
    }

    /// Appends an axis to shape and strides.
    #[inline]
    pub(crate) fn push_axis(&mut self, extent: i64, stride: i64) -> Result<(), Error> {
        let [extents, steps] = &mut self.inline;
        // If the values are on the heap, there are more axes than places.
        let places = (extents.get_mut(self.rank), steps.get_mut(self.rank));
        let (Some(last_extent), Some(last_stride)) = places else {
            return self.push_axis_to_heap(extent, stride);
        };
        (*last_extent, *last_stride) = (extent, stride);
        self.rank += 1;
        Ok(())
    }

    #[cold]
    fn push_axis_to_heap(&mut self, extent: i64, stride: i64) -> Result<(), Error> {
        let [shape, strides] = [(self.shape(), extent), (self.strides(), stride)];
        let shape = concat_lists(shape.0, &[shape.1])?;
        *self = Self::on_heap(&shape, &concat_lists(strides.0, &[strides.1])?)?;
        Ok(())
    }

    /// Copies a shape and its strides to the heap, for any number of axes.
    #[cold]
    pub(crate) fn on_heap(shape: &[i64], strides: &[i64]) -> Result<Self, Error> {
        Ok(Self {
            heap: Some(concat_lists(shape, strides)?.into_boxed_slice()),
            ..Self::from_inline([0; INLINE], [0; INLINE], shape.len())
        })
    }

    /// Collects pairs of extent and stride, one for each axis.
    #[inline(always)]
    pub(crate) fn from_axes(
        axes: impl ExactSizeIterator<Item = (i64, i64)>,
    ) -> Result<Self, Error> {
        Self::fill_new(axes.len(), |shape, strides| {
            for ((extent, stride), axis) in shape.iter_mut().zip(strides).zip(axes) {
                (*extent, *stride) = axis;
            }
        })
    }

    /// Copies a shape and computes its row-major strides.
    #[inline]
    pub(crate) fn row_major(shape: &[i64]) -> Result<Self, Error> {
        Self::fill_new(shape.len(), |extents, strides| {
            extents.copy_from_slice(shape);
            extent::fill_row_major(strides, shape, 1);
        })
    }

    /// Allocates space for `rank` axes and calls `fill` to write them.
    #[inline(always)]
    fn fill_new(rank: usize, fill: impl FnOnce(&mut [i64], &mut [i64])) -> Result<Self, Error> {
        let mut dims = Self::from_inline([0; INLINE], [0; INLINE], rank);
        if rank <= INLINE {
            let [shape, strides] = &mut dims.inline;
            fill(&mut shape[..rank], &mut strides[..rank]);
            return Ok(dims);
        }
        let zeros = &[0; MAX_RANK];
        let too_many = Error::TooManyAxes {
            found: rank,
            most: MAX_RANK,
        };
        let zeros = zeros.get(..rank).ok_or(too_many)?;
        let mut heap = concat_lists(zeros, zeros)?.into_boxed_slice();
        let (shape, strides) = heap.split_at_mut(rank);
        fill(shape, strides);
        dims.heap = Some(heap);
        Ok(dims)
    }

    /// The number of axes.
    #[inline(always)]
    pub(crate) const fn rank(&self) -> usize {
        self.rank
    }

    /// The inline arrays of shape and strides. They are meaningful unless the values are on the heap.
    #[inline(always)]
    pub(crate) const fn inline_arrays(&self) -> &[[i64; INLINE]; 2] {
        &self.inline
    }

    /// Whether shape and strides are plain values.
    #[inline(always)]
    pub(crate) const fn is_inline(&self) -> bool {
        self.heap.is_none()
    }

    /// Takes shape and strides from the heap, if they are there.
    #[inline(always)]
    pub(crate) fn take_heap(&mut self) -> Option<Box<[i64]>> {
        // Without a store the compiler still knows that there is none when the value is dropped.
        self.heap.as_ref()?;
        self.heap.take()
    }

    #[inline]
    pub(crate) fn shape(&self) -> &[i64] {
        match &self.heap {
            None => self.inline[0].get(..self.rank).unwrap_or(&[]),
            Some(both) => &both[..self.rank],
        }
    }

    #[inline]
    pub(crate) fn strides(&self) -> &[i64] {
        match &self.heap {
            None => self.inline[1].get(..self.rank).unwrap_or(&[]),
            Some(both) => &both[self.rank..],
        }
    }
}
