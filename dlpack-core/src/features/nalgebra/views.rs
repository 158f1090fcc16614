//! Borrows typed arrays as `nalgebra` views.
#![expect(unsafe_code, reason = "lends strided memory, which is no slice")]

use core::ptr::NonNull;

use ::nalgebra::{Dyn, MatrixView, MatrixViewMut, Scalar, U1, ViewStorage, ViewStorageMut};

use crate::array::{Array, ArrayMut, Rank};
use crate::{Error, element::Plain};

/// The address of the first element, the shape and the strides of a view. Strides are `usize`, because `nalgebra` has no negative
/// ones. The stride between rows is not 0.
type MatrixParts<T, const N: usize> = (*mut T, [usize; N], [usize; N]);

fn matrix_parts<T: Plain, const N: usize>(
    array: &Array<T, [i64; N]>,
) -> Result<MatrixParts<T, N>, Error>
where
    [i64; N]: Rank,
{
    let (_, steps) = array.check_lendable_layout()?;
    let shape = array.shape();
    let mut strides = [0; N];
    for (axis, stride) in strides.iter_mut().enumerate() {
        *stride = match usize::try_from(steps[axis]) {
            // The stride of an axis of one element is never applied, so it can be any number; NumPy's `x[None]` has 0.
            _ if shape[axis] <= 1 => 1,
            // The iterators of `nalgebra` step through a column until they reach its end. With a stride of 0 between rows they are
            // there before the first step, and would go on outside of the memory.
            Ok(step) if step > 0 || axis > 0 => step,
            _ => return Err(array.not_contiguous()),
        }
    }
    let start = if array.occupies_memory() {
        array.as_ptr().cast_mut()
    } else {
        NonNull::dangling().as_ptr()
    };
    Ok((start, shape, strides))
}

impl<T: Plain + Scalar> Array<T, [i64; 2]> {
    /// Borrows the array as a `nalgebra` view, without a copy. Fails if the memory is shared with writers.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let matrix = View::<f32, [i64; 2]>::new(vec![[1.0_f32, 2.0], [3.0, 4.0]].into_dlpack()?)?;
    /// assert_eq!(matrix.as_matrix()?.trace(), 5.0);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Array::as_slice`], except that every positive stride is accepted, and between columns also 0.
    pub fn as_matrix(&self) -> Result<MatrixView<'_, T, Dyn, Dyn, Dyn, Dyn>, Error> {
        let (start, [rows, columns], [down, right]) = matrix_parts(self)?;
        let (shape, strides) = ((Dyn(rows), Dyn(columns)), (Dyn(down), Dyn(right)));
        // SAFETY: `matrix_parts` found aligned, initialised elements without writers (by `check_lendable_layout`); the array is
        // borrowed and keeps them alive. An array without bytes has a dangling address.
        let storage = unsafe { ViewStorage::from_raw_parts(start, shape, strides) };
        Ok(MatrixView::from_data(storage))
    }
}

impl<T: Plain + Scalar> Array<T, [i64; 1]> {
    /// Borrows the array as a `nalgebra` column, without a copy. Fails if the memory is shared with writers.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let vector = View::<f32, [i64; 1]>::new(vec![3.0_f32, 4.0].into_dlpack()?)?;
    /// assert_eq!(vector.as_vector()?.sum(), 7.0);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Array::as_matrix`].
    pub fn as_vector(&self) -> Result<MatrixView<'_, T, Dyn, U1, Dyn, Dyn>, Error> {
        let (start, [rows], [down]) = matrix_parts(self)?;
        let (shape, strides) = ((Dyn(rows), U1), (Dyn(down), Dyn(0)));
        // SAFETY: `matrix_parts` found aligned, initialised elements without writers (by `check_lendable_layout`); the array is
        // borrowed and keeps them alive. An array without bytes has a dangling address.
        let storage = unsafe { ViewStorage::from_raw_parts(start, shape, strides) };
        Ok(MatrixView::from_data(storage))
    }
}

impl<T: Plain + Scalar> ArrayMut<T, [i64; 2]> {
    /// Borrows the array as a mutable `nalgebra` view, without a copy. Fails if the memory is shared.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut matrix = ViewMut::<f32, [i64; 2]>::new(vec![[1.0_f32, 2.0], [3.0, 4.0]].into_dlpack()?)?;
    /// matrix.as_matrix_mut()?.fill_with_identity();
    /// assert_eq!(matrix.to_vec()?, [1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Array::as_matrix`].
    pub fn as_matrix_mut(&mut self) -> Result<MatrixViewMut<'_, T, Dyn, Dyn, Dyn, Dyn>, Error> {
        let (start, [rows, columns], [down, right]) = matrix_parts(self)?;
        let (shape, strides) = ((Dyn(rows), Dyn(columns)), (Dyn(down), Dyn(right)));
        // SAFETY: `matrix_parts` found aligned, initialised elements without other users (by `check_lendable_layout`); the array is
        // exclusively borrowed and keeps them alive. No two indices refer to the same element: `ViewMut` checked that when it was
        // made. An array without bytes has a dangling address.
        let storage = unsafe { ViewStorageMut::from_raw_parts(start, shape, strides) };
        Ok(MatrixViewMut::from_data(storage))
    }
}

impl<T: Plain + Scalar> ArrayMut<T, [i64; 1]> {
    /// Borrows the array as a mutable `nalgebra` column, without a copy. Fails if the memory is shared.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut vector = ViewMut::<f32, [i64; 1]>::new(vec![3.0_f32, 4.0].into_dlpack()?)?;
    /// vector.as_vector_mut()?.add_scalar_mut(1.0);
    /// assert_eq!(vector.to_vec()?, [4.0, 5.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Array::as_matrix`].
    pub fn as_vector_mut(&mut self) -> Result<MatrixViewMut<'_, T, Dyn, U1, Dyn, Dyn>, Error> {
        let (start, [rows], [down]) = matrix_parts(self)?;
        let (shape, strides) = ((Dyn(rows), U1), (Dyn(down), Dyn(0)));
        // SAFETY: `matrix_parts` found aligned, initialised elements without other users (by `check_lendable_layout`); the array is
        // exclusively borrowed and keeps them alive. No two indices refer to the same element: `ViewMut` checked that when it was
        // made. An array without bytes has a dangling address.
        let storage = unsafe { ViewStorageMut::from_raw_parts(start, shape, strides) };
        Ok(MatrixViewMut::from_data(storage))
    }
}
