//! Borrows typed arrays as `ndarray` views.
#![expect(unsafe_code, reason = "lends strided memory, which is no slice")]

use core::ptr::NonNull;

use ::ndarray::{ArrayView, ArrayViewMut, Axis, Dim, Dimension, IxDyn, ShapeBuilder, StrideShape};

use crate::array::{Array, ArrayMut, Rank};
use crate::layout::{Dims, extent};
use crate::{Error, element::Plain};

/// The arguments from which an `ndarray` view is constructed.
struct ViewParts<T, D: Dimension> {
    /// The element at the lowest address.
    start: *mut T,
    shape: StrideShape<D>,
    /// A bit for each axis with a negative stride. `ndarray` accepts these only by inverting the axis of the finished view.
    reversed: u64,
}

impl<T: Plain, D: Dimension> ViewParts<T, D> {
    fn new<L: Rank>(array: &Array<T, L>) -> Result<Self, Error> {
        let (shape, strides) = array.check_lendable_layout()?;
        let (mut extents, mut steps) = (D::zeros(shape.len()), D::zeros(shape.len()));
        let mut start = array.as_ptr().cast_mut();
        let mut reversed = 0;
        for (axis, (&extent, &stride)) in shape.iter().zip(&strides[..]).enumerate() {
            // For an array with bytes these values fit. For one without, the check below decides.
            extents[axis] = usize::try_from(extent).unwrap_or(usize::MAX);
            steps[axis] = 1;
            if extent > 1 {
                steps[axis] = usize::try_from(stride.unsigned_abs()).unwrap_or(usize::MAX);
                if stride < 0 {
                    start = start.wrapping_sub((extents[axis] - 1).wrapping_mul(steps[axis]));
                    reversed |= 1 << axis;
                }
            }
        }
        if !array.occupies_memory() {
            start = NonNull::dangling().as_ptr();
            // `ndarray` limits the product of the sizes that are not zero.
            let mut others = Dims::from(shape).check_allocated()?;
            others
                .iter_mut()
                .for_each(|extent| *extent = (*extent).max(1));
            let elements =
                extent::count_items(&others).filter(|count| isize::try_from(*count).is_ok());
            elements.ok_or_else(|| Error::too_large(shape))?;
        }
        Ok(Self {
            start,
            shape: extents.strides(steps),
            reversed,
        })
    }
}

/// Implements the views of an array whose rank is `$dimension` in `ndarray`.
macro_rules! views {
    ([$($parameter:tt)*] $list:ty, $dimension:ty $(, where $($bound:tt)*)?) => {
        impl<T: Plain, $($parameter)*> Array<T, $list> $(where $($bound)*)? {
            /// Borrows the array as an `ndarray` view, without a copy. Fails if the memory is shared with writers.
            ///
            /// ```
            /// use dlpack_core::{DLPack, array::View};
            ///
            /// let image = View::<f32, [i64; 2]>::new(vec![[1.0_f32, 2.0], [3.0, 4.0]].into_dlpack()?)?;
            /// assert_eq!(image.as_ndarray()?.sum(), 10.0);
            /// # Ok::<(), dlpack_core::Error>(())
            /// ```
            ///
            /// # Errors
            ///
            /// The errors of [`Array::as_slice`], except that gaps between elements are accepted if they are multiples of an element.
            #[doc(alias = "as_array")]
            pub fn as_ndarray(&self) -> Result<ArrayView<'_, T, $dimension>, Error> {
                let frame = ViewParts::<T, $dimension>::new(self)?;
                // SAFETY: `ViewParts::new` found aligned, initialised elements without writers (by `check_lendable_layout`); the
                // array is borrowed and keeps them alive. An array without bytes has a dangling address.
                let mut view = unsafe { ArrayView::from_shape_ptr(frame.shape, frame.start) };
                (0..64).filter(|axis| frame.reversed >> axis & 1 != 0).for_each(|axis| view.invert_axis(Axis(axis)));
                Ok(view)
            }
        }

        impl<T: Plain, $($parameter)*> ArrayMut<T, $list> $(where $($bound)*)? {
            /// Borrows the array as a mutable `ndarray` view, without a copy. Fails if the memory is shared.
            ///
            /// ```
            /// use dlpack_core::{DLPack, array::ViewMut};
            ///
            /// let mut image = ViewMut::<f32, [i64; 2]>::new(vec![[1.0_f32, 2.0]].into_dlpack()?)?;
            /// image.as_ndarray_mut()?.mapv_inplace(|pixel| pixel + 1.0);
            /// assert_eq!(image.to_vec()?, [2.0, 3.0]);
            /// # Ok::<(), dlpack_core::Error>(())
            /// ```
            ///
            /// # Errors
            ///
            /// The errors of [`Array::as_ndarray`].
            #[doc(alias = "as_array_mut")]
            pub fn as_ndarray_mut(&mut self) -> Result<ArrayViewMut<'_, T, $dimension>, Error> {
                let frame = ViewParts::<T, $dimension>::new(self)?;
                // SAFETY: `ViewParts::new` found aligned, initialised elements without other users (by `check_lendable_layout`); the
                // array is exclusively borrowed and keeps them alive. No two indices refer to the same element: `ViewMut` checked
                // that when it was made. An array without bytes has a dangling address.
                let mut view = unsafe { ArrayViewMut::from_shape_ptr(frame.shape, frame.start) };
                (0..64).filter(|axis| frame.reversed >> axis & 1 != 0).for_each(|axis| view.invert_axis(Axis(axis)));
                Ok(view)
            }
        }
    };
}

views!([const N: usize] [i64; N], Dim<[usize; N]>, where [i64; N]: Rank, Dim<[usize; N]>: Dimension);
views!([] Dims, IxDyn);
