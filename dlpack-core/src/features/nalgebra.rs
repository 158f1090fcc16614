//! The matrices of `nalgebra`, in column-major order, as buffers. Matrices of fixed size are also elements.
//!
//! A column vector by its type (`DVector`, `Vector3`) is a list with one axis. All other matrices have the axes row and
//! column, even if they happen to have one column. The module `views` borrows typed arrays as `nalgebra` views.
#![expect(unsafe_code, reason = "`Element` is a promise about memory layout")]

mod views;

use core::array::from_fn;

use ::nalgebra::allocator::Allocator;
use ::nalgebra::{
    ArrayStorage, Const, DefaultAllocator, Dim, Dyn, IsContiguous, Matrix, OMatrix, Point,
    RawStorageMut, SMatrix, SVector, Scalar,
};

use crate::element::{AnyBits, Axes, Plain, Source, sealed};
use crate::import::{self, FromTensor, reader::Import};
use crate::{Buffer, DataType, Element, Error, Loan, LoanMut, TensorRef, Writable};
use crate::{layout::Dims, loan::facts::Facts};

/// A number of columns, which determines whether there is a column axis.
pub trait ColumnCount: Dim {
    /// The rank of a matrix with this number of columns.
    const RANK: usize;
}

impl ColumnCount for Dyn {
    const RANK: usize = 2;
}

impl<const N: usize> ColumnCount for Const<N> {
    const RANK: usize = if N == 1 { 1 } else { 2 };
}

/// Shape and strides of a matrix.
fn matrix_layout<C: ColumnCount>(shape: (usize, usize), strides: (usize, usize)) -> (Dims, Dims) {
    let (mut extents, mut steps) = (Dims::new(), Dims::new());
    let axes = [(shape.0, strides.0), (shape.1, strides.1)];
    for (extent, stride) in axes.into_iter().take(C::RANK) {
        // A saturated value is rejected later, because it reaches outside of the elements.
        extents.push(i64::try_from(extent).unwrap_or(i64::MAX));
        steps.push(i64::try_from(stride).unwrap_or(i64::MAX));
    }
    (extents, steps)
}

/// A matrix is exported without a copy, in column-major order. A column vector has one axis.
///
/// ```
/// use dlpack_core::DLPack;
/// use nalgebra::{DMatrix, DVector};
///
/// let tensor = DMatrix::from_row_slice(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).into_dlpack()?;
/// assert_eq!(tensor.view().shape(), [2, 3]);
/// assert_eq!(tensor.view().strides(), [1, 2]);
/// assert_eq!(tensor.view().to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
///
/// let tensor = DVector::from_vec(vec![1.0_f32, 2.0]).into_dlpack()?;
/// assert_eq!(tensor.view().shape(), [2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
impl<T: Element, R: Dim, C: ColumnCount, S> Buffer for Matrix<T, R, C, S>
where
    S: RawStorageMut<T, R, C> + IsContiguous + Send,
{
    const FACTS: Facts = Facts::list::<T>().with_layout(Some(C::RANK)).writable();

    fn lend(&self) -> Loan<'_> {
        let (shape, strides) = matrix_layout::<C>(self.shape(), self.strides());
        Loan::from(self.as_slice()).with_layout(shape, strides, 0)
    }

    fn lend_mut(&mut self) -> LoanMut<'_> {
        let (shape, strides) = matrix_layout::<C>(self.shape(), self.strides());
        LoanMut::from(self.as_mut_slice()).with_layout(shape, strides, 0)
    }
}

impl<T: AnyBits, R: Dim, C: ColumnCount, S> Writable for Matrix<T, R, C, S> where
    S: RawStorageMut<T, R, C> + IsContiguous + Send
{
}

/// The elements are copied, in column-major order. A tensor of one axis becomes a column vector, a tensor of two axes a
/// matrix.
///
/// ```
/// use dlpack_core::{DLPack, FromDLPack};
/// use nalgebra::{DMatrix, Matrix2, Vector3};
///
/// let rows = DMatrix::from_dlpack([[1, 2], [3, 4], [5, 6]].into_dlpack()?)?;
/// assert_eq!(rows, DMatrix::from_row_slice(3, 2, &[1, 2, 3, 4, 5, 6]));
///
/// let column = Vector3::from_dlpack([1, 2, 3].into_dlpack()?)?;
/// assert_eq!(column, Vector3::new(1, 2, 3));
/// assert!(Matrix2::<i32>::from_dlpack([1, 2, 3, 4].into_dlpack()?).is_err());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
impl<T: Element + Scalar, R: Dim, C: ColumnCount> FromTensor for OMatrix<T, R, C>
where
    DefaultAllocator: Allocator<R, C>,
{
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        let import = import.column_major();
        import.check_rank(C::RANK)?;
        let mut extents = [0, 1];
        let fixed = [R::try_to_usize(), C::try_to_usize()];
        for (axis, fixed) in fixed.into_iter().enumerate().take(C::RANK) {
            extents[axis] = import.axis_size(axis)?;
            if let Some(needed) = fixed {
                import.check_size(axis, i64::try_from(needed).unwrap_or(i64::MAX))?;
            }
        }
        let (rows, columns) = (R::from_usize(extents[0]), C::from_usize(extents[1]));
        let elements = import.copy_elements()?;
        Ok(Self::from_iterator_generic(rows, columns, elements))
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        tensor.dtype() == T::DTYPE && tensor.shape().len() == C::RANK + T::TRAILING.len()
    }
}

impl<T, R, C, S> import::sealed::Sealed for Matrix<T, R, C, S> {}

/// A list of vectors is a tensor of two axes, and a list of matrices a tensor of three axes.
///
/// ```
/// use dlpack_core::DLPack;
/// use nalgebra::{Matrix2x3, Vector3};
///
/// let tensor = vec![Vector3::new(1.0_f32, 2.0, 3.0); 5].into_dlpack()?;
/// assert_eq!(tensor.view().shape(), [5, 3]);
/// assert_eq!(tensor.view().as_slice::<Vector3<f32>>()?.len(), 5);
///
/// let tensor = vec![Matrix2x3::<f32>::zeros(); 5].into_dlpack()?;
/// assert_eq!(tensor.view().shape(), [5, 2, 3]);
/// assert_eq!(tensor.view().strides(), [6, 1, 2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
// SAFETY: a `Matrix` is `repr(C)` over its storage and zero-sized markers, and an `ArrayStorage` is `repr(transparent)`
// over its columns, `[[T; R]; C]`, as the documentation of both shows. So the contract is that of this array, and
// `TRAILING` describes the position of rows and columns in it. Scalars in C order are only copied as such a value
// (`PLAIN`) if there is one row or one column.
unsafe impl<T: Element, const R: usize, const C: usize> Element for SMatrix<T, R, C> {
    type Scalar = T::Scalar;
    const DTYPE: DataType = T::DTYPE;
    const TRAILING: Axes = if C == 1 {
        Axes::of_array(R, T::TRAILING)
    } else {
        Axes::of_columns(R, C, T::TRAILING)
    };
    const ANY_BITS: bool = T::ANY_BITS;
    const PLAIN: bool = T::PLAIN && (R == 1 || C == 1);

    fn verify_values(values: &[Self]) {
        values
            .iter()
            .for_each(|value| T::verify_values(value.as_slice()));
    }

    fn verify_values_mut(values: &mut [Self]) {
        values
            .iter_mut()
            .for_each(|value| T::verify_values_mut(value.as_mut_slice()));
    }

    fn build_from(source: &mut Source<'_, T::Scalar>) -> Self {
        let mut rows: [[Option<T>; C]; R] = from_fn(|_| from_fn(|_| Some(T::build_from(source))));
        let mut take = |row: usize, column: usize| rows[row][column].take();
        Self::from_array_storage(ArrayStorage(from_fn(|column| {
            from_fn(|row| take(row, column).expect("each place is taken once"))
        })))
    }
}

impl<T: Element, const R: usize, const C: usize> sealed::Element for SMatrix<T, R, C> {}
impl<T: Plain, const R: usize> sealed::Plain for SVector<T, R> {}
impl<T: Plain, const R: usize> Plain for SVector<T, R> {}

/// A point is exported as its coordinates.
///
/// ```
/// use dlpack_core::DLPack;
/// use nalgebra::Point3;
///
/// let cloud = vec![Point3::new(1.0_f32, 2.0, 3.0); 100];
/// assert_eq!(cloud.into_dlpack()?.view().shape(), [100, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
// SAFETY: a `Point` is `repr(C)` over its coordinates alone, as its documentation shows, so the contract is that of the
// vector of coordinates.
unsafe impl<T: Element + Scalar, const D: usize> Element for Point<T, D> {
    type Scalar = T::Scalar;
    const DTYPE: DataType = T::DTYPE;
    const TRAILING: Axes = <SVector<T, D>>::TRAILING;
    const ANY_BITS: bool = T::ANY_BITS;
    const PLAIN: bool = T::PLAIN;

    fn verify_values(values: &[Self]) {
        values
            .iter()
            .for_each(|value| T::verify_values(value.coords.as_slice()));
    }

    fn verify_values_mut(values: &mut [Self]) {
        values
            .iter_mut()
            .for_each(|value| T::verify_values_mut(value.coords.as_mut_slice()));
    }

    fn build_from(source: &mut Source<'_, T::Scalar>) -> Self {
        <SVector<T, D>>::build_from(source).into()
    }
}

impl<T: Element + Scalar, const D: usize> sealed::Element for Point<T, D> {}
impl<T: Plain + Scalar, const D: usize> sealed::Plain for Point<T, D> {}
impl<T: Plain + Scalar, const D: usize> Plain for Point<T, D> {}
