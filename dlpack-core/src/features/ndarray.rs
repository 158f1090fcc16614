//! The arrays of `ndarray`, with their shape and strides. The module `views` borrows typed arrays as `ndarray` views.
#![expect(unsafe_code, reason = "lends strided memory, which is no slice")]

mod views;

use alloc::vec::Vec;
use core::slice;

use ::ndarray::{
    ArcArray, Array, ArrayBase, ArrayD, CowArray, Data, Dimension, IxDyn, RawData, ShapeBuilder,
};

use crate::import::{FromTensor, reader::Import, sealed};
use crate::layout::{Dims, dims::INLINE};
use crate::{Buffer, Device, Element, Error, Loan, LoanMut, Order, TensorRef, Writable};
use crate::{element::AnyBits, loan::facts::Facts};

/// The position of an array's elements in memory; all fields are in elements.
struct ElementSpan {
    shape: Dims,
    strides: Dims,
    /// The distance from the lowest to the highest address, both included.
    len: usize,
    /// The distance from the lowest address to the element at index zero.
    first: usize,
}

impl ElementSpan {
    #[inline(always)]
    fn new<S: RawData, D: Dimension>(array: &ArrayBase<S, D>) -> Self {
        // Not by `extent::reached_items`: a reference to the lists would force them into memory, where the compiler loses the
        // rank. No overflow: all elements of an array lie in memory.
        let (mut min, mut max) = (0_isize, 0_isize);
        if !array.is_empty() {
            for (&extent, &stride) in array.shape().iter().zip(array.strides()) {
                let far = convert_count::<_, isize>(extent - 1) * stride;
                (min, max) = (min + far.min(0), max + far.max(0));
            }
        }
        Self {
            shape: dims_of::<D, _>(array.shape()),
            strides: dims_of::<D, _>(array.strides()),
            len: if array.is_empty() {
                0
            } else {
                convert_count(max - min + 1)
            },
            first: convert_count(-min),
        }
    }

    /// Lends the elements of an array; `start` is the address of the element at index zero. Memory in gaps may be
    /// uninitialised, but no tensor over the loan reaches it: the loan is just long enough for its layout, so any other
    /// offset is rejected.
    ///
    /// # Safety
    ///
    /// The contract of [`Loan::from_raw_parts`] holds for the elements that shape and strides reach.
    #[inline(always)]
    unsafe fn lend_from<'a, T: Element>(self, start: *const T) -> Loan<'a> {
        let lowest = start.wrapping_sub(self.first);
        // SAFETY: by this function's contract the elements are valid, and the layout reaches only them, from `lowest` on.
        let loan = unsafe { Loan::from_raw_parts(lowest, self.len, Device::CPU) };
        loan.with_layout(self.shape, self.strides, self.first)
    }
}

/// The numbers of an array's axes. The compiler knows how many there are, unless `D` is `IxDyn`, so a description has no loops.
#[inline(always)]
fn dims_of<D: Dimension, I: TryInto<i64> + Copy>(numbers: &[I]) -> Dims {
    match D::NDIM {
        Some(rank) if rank <= INLINE && rank == numbers.len() => {
            let mut values = [0; INLINE];
            let pairs = values.iter_mut().zip(&numbers[..rank]);
            pairs.for_each(|(value, &number)| *value = convert_count(number));
            Dims::from_inline(values, rank)
        }
        _ => numbers.iter().fold(Dims::new(), |mut dims, &number| {
            dims.push(convert_count(number));
            dims
        }),
    }
}

/// Converts a number of elements within one allocation.
fn convert_count<I: TryInto<J>, J>(number: I) -> J {
    let Ok(number) = number.try_into() else {
        unreachable!("an array of ndarray has fewer than isize::MAX elements");
    };
    number
}

#[inline(always)]
fn lend_array<T: Element, S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Loan<'_> {
    if !T::PLAIN {
        for element in array {
            T::verify_values(slice::from_ref(element));
        }
    }
    // SAFETY: the address of an element is `as_ptr` plus its index times the strides (documentation of `as_ptr`), from
    // which `ElementSpan` is computed. The elements are initialised, and neither move nor change while the array is borrowed.
    unsafe { ElementSpan::new(array).lend_from(array.as_ptr()) }
}

/// An array is exported without a copy, also if it is transposed, sliced or reversed.
///
/// ```
/// use dlpack_core::DLPack;
/// use ndarray::{array, s};
///
/// let every_second_backwards = array![1, 2, 3, 4, 5].slice_move(s![..;-2]);
/// let tensor = every_second_backwards.into_dlpack()?;
/// assert_eq!(tensor.view().shape(), [3]);
/// assert_eq!(tensor.view().strides(), [-2]);
/// assert_eq!(tensor.view().to_vec::<i32>()?, [5, 3, 1]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// A view borrows its elements, so it cannot be exported: export the array itself.
///
/// ```compile_fail
/// use dlpack_core::DLPack;
///
/// let array = ndarray::array![1, 2, 3];
/// array.view().into_dlpack();
/// ```
impl<T: Element, D: Dimension> Buffer for Array<T, D> {
    const FACTS: Facts = Facts::list::<T>().with_layout(D::NDIM).writable();

    fn lend(&self) -> Loan<'_> {
        lend_array(self)
    }

    fn lend_mut(&mut self) -> LoanMut<'_> {
        if !T::PLAIN {
            for element in self.iter_mut() {
                T::verify_values_mut(slice::from_mut(element));
            }
        }
        let pointer = self.as_mut_ptr();
        let span = ElementSpan::new(self);
        let lowest = pointer.wrapping_sub(span.first);
        // SAFETY: an element's address is `as_mut_ptr` plus its index times the strides. The array is the only owner of its
        // memory, and is exclusively borrowed.
        let loan = unsafe { LoanMut::from_raw_parts(lowest, span.len, Device::CPU) };
        loan.with_layout(span.shape, span.strides, span.first)
    }
}
impl<T: AnyBits, D: Dimension> Writable for Array<T, D> {}

/// An `ArcArray` is exported read-only, even if it is the only reference to its elements.
///
/// ```
/// use dlpack_core::DLPack;
/// use ndarray::array;
///
/// let array = array![[1, 2], [3, 4]].into_shared();
/// let tensor = array.clone().into_dlpack()?;
/// assert!(tensor.view().is_read_only());
/// assert_eq!(tensor.view().as_ptr(), array.as_ptr().cast());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
impl<T: Element, D: Dimension> Buffer for ArcArray<T, D> {
    const FACTS: Facts = Facts::list::<T>().with_layout(D::NDIM);

    fn lend(&self) -> Loan<'_> {
        lend_array(self)
    }
}

/// A `CowArray` is exported read-only, even if it owns its elements.
///
/// ```
/// use dlpack_core::DLPack;
/// use ndarray::{CowArray, array};
///
/// let tensor = CowArray::from(array![1, 2, 3]).into_dlpack()?;
/// assert_eq!(tensor.view().as_slice::<i32>()?, [1, 2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
impl<T: Element, D: Dimension> Buffer for CowArray<'_, T, D> {
    const FACTS: Facts = Facts::list::<T>().with_layout(D::NDIM);

    fn lend(&self) -> Loan<'_> {
        lend_array(self)
    }
}

fn fits_array<T: Element, D: Dimension>(tensor: &TensorRef<'_>) -> bool {
    let leading = tensor.shape().len().checked_sub(T::TRAILING.len());
    tensor.dtype() == T::DTYPE
        && leading.is_some_and(|found| D::NDIM.is_none_or(|needed| found == needed))
}

/// The elements are copied, in C order.
///
/// ```
/// use dlpack_core::{DLPack, FromDLPack};
/// use ndarray::{Array2, array};
///
/// let tensor = array![[1, 2, 3], [4, 5, 6]].reversed_axes().into_dlpack()?;
/// assert_eq!(Array2::<i32>::from_dlpack(tensor)?, array![[1, 4], [2, 5], [3, 6]]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
impl<T: Element, D: Dimension> FromTensor for Array<T, D> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        if let Some(rank) = D::NDIM {
            import.check_rank(rank)?;
        }
        let extents: Vec<usize> = import.shape()?;
        let shape = IxDyn(&extents).set_f(import.memory_order() == Order::F);
        // The elements fit in memory, but `ndarray` may reject an empty shape with sizes that are too large.
        let Ok(array) = ArrayD::from_shape_vec(shape, import.copy_elements()?) else {
            return Err(Error::TooLarge {
                shape: import.shape()?,
            });
        };
        Ok(array.into_dimensionality().expect("the rank was compared"))
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        fits_array::<T, D>(tensor)
    }
}

impl<T: Element, D: Dimension> sealed::Sealed for Array<T, D> {}

/// The elements are copied to an array that is not shared yet, in C order.
///
/// ```
/// use dlpack_core::{DLPack, FromDLPack};
/// use ndarray::{ArcArray1, array};
///
/// let tensor = [1_u8, 2].into_dlpack()?;
/// assert_eq!(ArcArray1::<u8>::from_dlpack(tensor)?, array![1, 2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
impl<T: Element, D: Dimension> FromTensor for ArcArray<T, D> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        Array::from_tensor(import).map(Self::from)
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        fits_array::<T, D>(tensor)
    }
}

impl<T: Element, D: Dimension> sealed::Sealed for ArcArray<T, D> {}
