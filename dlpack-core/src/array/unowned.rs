//! Arrays that a binding found in a tensor or a buffer, before a view keeps the memory alive.
//!
//! ```text
//! Managed ───[ from_tensor ]────┐
//!                               ├──> UnownedArray ──[ into_view ]──> View<T, L, K>, ViewMut<T, L, K>
//! Strided ───[ from_strided ]───┘         └── span
//! ```
//!
//! An array that the buffer protocol describes by byte strides is not converted to a tensor. One loop over the axes checks
//! everything that the import of a tensor checks, even if the numbers come from a trusted library.
#![expect(unsafe_code, reason = "the caller has to keep the memory alive")]

use core::marker::PhantomData;

use crate::array::view::{View, ViewMut, check_writable};
use crate::array::write::SizedArrayMut;
use crate::array::{Array, ArrayElement, Rank, span_of};
use crate::element::{Plain, RecordLayout};
use crate::export::strided::Strided;
use crate::layout::span::{Span, greatest_common_divisor};
use crate::layout::{Dims, dims::MAX_RANK, extent, extent::stride_to_isize};
use crate::tensor::array_element::{ElementAccess, ElementTask};
use crate::{Element, Error, Managed};

/// A checked array without a keeper of its memory. No element can be read before [`into_view`](Self::into_view) gets one.
///
/// ```
/// use dlpack_core::DataType;
/// use dlpack_core::binding::{UnownedArray, Strided};
///
/// let mut numbers = Box::new([1_u16, 2, 3, 4]);
/// let (data, dtype) = (numbers.as_mut_ptr().cast(), DataType::U16);
/// let transposed = Strided { data, shape: &[2, 2], strides: Some(&[2, 4]), dtype, read_only: true };
/// let found = UnownedArray::<u16, [i64; 2]>::from_strided(&transposed, false).expect("an array of two axes");
/// // SAFETY: the box keeps the numbers where they are.
/// let view = unsafe { found.into_view(numbers) };
/// assert_eq!(view.to_vec()?, [1, 3, 2, 4]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct UnownedArray<T, L> {
    array: Array<T, L>,
    span: Span,
}

/// The task of [`UnownedArray::from_tensor`]. A tensor has no records.
struct TensorTask<'a, L>(&'a Managed, bool, PhantomData<L>);

impl<T: ArrayElement, L: Rank> ElementTask<T> for TensorTask<'_, L> {
    type Output = Result<UnownedArray<T, L>, Error>;

    #[inline(always)]
    fn run_for_plain(self) -> Self::Output
    where
        T: Plain,
    {
        let Self(tensor, writes, _) = self;
        let tensor = tensor.view_inlined();
        let array = Array::from_tensor(&tensor)?;
        if writes {
            check_writable(&tensor, &array)?;
        }
        let span = span_of(&array);
        Ok(UnownedArray { array, span })
    }

    fn run_for_records(self, _: &'static RecordLayout) -> Self::Output {
        Err(Error::NotRecords)
    }
}

/// The task of [`UnownedArray::from_strided`].
struct StridedTask<'a, 'b, L>(&'a Strided<'b>, bool, PhantomData<L>);

impl<T: ArrayElement, L: Rank> ElementTask<T> for StridedTask<'_, '_, L> {
    type Output = Option<UnownedArray<T, L>>;

    #[inline(always)]
    fn run_for_plain(self) -> Self::Output
    where
        T: Plain,
    {
        /// Whether an element takes bytes, and each scalar is one item rather than a group of items that share bytes.
        const fn in_bytes<T: Plain>() -> bool {
            size_of::<T>() > 0
                && size_of::<T::Scalar>().is_power_of_two()
                && T::Scalar::TRAILING.len() == 0
        }

        let Self(array, writes, _) = self;
        if !const { in_bytes::<T>() } || T::DTYPE != array.dtype || array.data.is_null() {
            return None;
        }
        let (shape, strides) = split_trailing::<T>(array.shape, array.strides?)?;
        let (found, is_packed) = UnownedArray::from_bytes(array.data, shape, strides)?;
        if writes && (array.read_only || (!is_packed && may_overlap(&found.array))) {
            return None;
        }
        Some(found)
    }

    fn run_for_records(self, _: &'static RecordLayout) -> Self::Output {
        None
    }
}

impl<T: ArrayElement, L: Rank> UnownedArray<T, L> {
    /// The size of an element in bytes.
    const WIDTH: isize = size_of::<T>() as isize;

    /// The binary logarithm of the size of a scalar in bytes.
    const SHIFT: u32 = T::Access::UNIT.trailing_zeros();

    /// The array of a tensor, for writing if it `writes`.
    ///
    /// # Errors
    ///
    /// The errors of [`View::new`], or of [`ViewMut::new`] if it `writes`.
    #[inline(always)]
    pub fn from_tensor(tensor: &Managed, writes: bool) -> Result<Self, Error> {
        T::Access::run_task(TensorTask(tensor, writes, PhantomData))
    }

    /// The array in host memory that another protocol describes, for writing if it `writes`. Other code may write to it too.
    ///
    /// Returns `None` if it is not an array of `T` and `L`, if it has no elements, or if a check fails. The caller then makes a
    /// tensor of the same description by [`keep_strided`](crate::binding::keep_strided), whose import returns the error or an
    /// empty array.
    #[must_use]
    #[inline(always)]
    pub fn from_strided(array: &Strided<'_>, writes: bool) -> Option<Self> {
        T::Access::run_task(StridedTask(array, writes, PhantomData))
    }

    /// The array of records in host memory that another protocol describes, for writing if it `writes`. Other code may write the
    /// records too. Their fields are not compared with those of `T`, because any bytes make a `T`.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`]; [`Error::ReadOnly`], [`Error::Overlap`] if it `writes`; an array that memory cannot hold.
    pub fn from_records(
        data: *mut u8,
        shape: &[isize],
        strides: &[isize],
        read_only: bool,
        writes: bool,
    ) -> Result<Self, Error> {
        let numbers = |list: &[isize]| {
            let mut numbers = Dims::zeroed(list.len()).check_allocated()?;
            let places = numbers.iter_mut().zip(list);
            places.for_each(|(place, &number)| *place = number as i64);
            Ok::<_, Error>(numbers)
        };
        let (extents, steps) = (numbers(shape)?, numbers(strides)?);
        if writes && read_only {
            return Err(Error::ReadOnly);
        }
        let (found, is_packed) = if shape.contains(&0) {
            let array = Array {
                data,
                shape: L::from_slice(&extents)?,
                strides: L::from_slice(&steps)?,
                shared: true,
                elements: PhantomData,
            };
            let span = span_of(&array);
            (Self { array, span }, true)
        } else {
            // Returns the error for another rank.
            L::from_slice(&extents)?;
            let found = Self::from_bytes(data, shape, strides).filter(|_| !data.is_null());
            found.ok_or_else(|| Error::too_large(&extents))?
        };
        if writes && !is_packed {
            let (mut extents, mut steps) = (extents, steps);
            extents.append(&[Self::WIDTH as i64])?;
            steps.append(&[1])?;
            if extent::may_overlap(&extents, &steps) {
                return Err(Error::overlap(&extents, &steps));
            }
        }
        Ok(found)
    }

    /// The array of the elements at `data` with these byte strides, and whether the elements are contiguous. No axis of the array
    /// is empty.
    #[inline(always)]
    fn from_bytes(data: *mut u8, shape: &[isize], strides: &[isize]) -> Option<(Self, bool)> {
        // For a fixed rank, the compiler then knows the number of iterations of the loop below.
        let rank = match L::RANK {
            Some(rank) if rank == shape.len() => rank,
            None if shape.len() + const { T::Access::TRAILING.len() } <= MAX_RANK => shape.len(),
            _ => return None,
        };
        let (shape, strides) = (&shape[..rank], &strides[..rank]);
        let scalar = T::Access::UNIT;
        // The stride of a contiguous axis, and after the loop the size of all elements in bytes, which must not overflow.
        let (mut packed, mut is_packed) = (Self::WIDTH, true);
        let (mut first, mut last, mut step) = (0_isize, 0_isize, 0);
        for axis in (0..rank).rev() {
            let (extent, stride) = (shape[axis], strides[axis]);
            if extent <= 0 {
                return None;
            }
            // The stride of an axis of size 1 is never used.
            if extent > 1 {
                let bytes = stride.unsigned_abs();
                if bytes % scalar != 0 {
                    return None;
                }
                is_packed &= stride == packed;
                let far = (extent - 1).checked_mul(stride)?;
                // Both sums only grow, so an overflow here means that the whole array does not fit.
                if far < 0 {
                    first = first.checked_add(far)?;
                } else {
                    last = last.checked_add(far)?;
                }
                if step != scalar {
                    step = greatest_common_divisor(step, bytes);
                }
                packed = packed.checked_mul(extent)?;
            }
        }
        let end = last.checked_add(Self::WIDTH)?;
        end.checked_sub(first)?;
        let address = data.addr();
        let span = Span {
            start: address.checked_add_signed(first)?,
            end: address.checked_add_signed(end)?,
            step,
            width: size_of::<T>(),
        };
        let array = Array {
            data,
            shape: L::from_fn(rank, |axis| shape[axis] as i64).ok()?,
            strides: L::from_fn(rank, |axis| (strides[axis] >> Self::SHIFT) as i64).ok()?,
            shared: true,
            elements: PhantomData,
        };
        Some((Self { array, span }, is_packed))
    }

    /// The bytes that the elements occupy.
    #[must_use]
    #[inline]
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Whether the elements are contiguous in C order.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.array.is_contiguous()
    }

    /// The view of the array. `keeper` keeps its memory alive.
    ///
    /// # Safety
    ///
    /// While `keeper` lives, the memory is valid as it is for an owner in [`keep_strided`](crate::binding::keep_strided), or for
    /// the tensor that the array came from. Each item of an array of [`from_records`](Self::from_records) has the size of a `T`.
    #[must_use]
    #[inline(always)]
    pub unsafe fn into_view<K>(self, keeper: K) -> View<T, L, K> {
        View::from_parts(self.array, keeper)
    }

    /// The writable view of the array. `keeper` keeps its memory alive.
    ///
    /// # Safety
    ///
    /// The contract of [`into_view`](Self::into_view), and the array was made with `writes`.
    #[must_use]
    #[inline(always)]
    pub unsafe fn into_view_mut<K>(self, keeper: K) -> ViewMut<T, L, K> {
        ViewMut::from_parts(SizedArrayMut::new(self.array), keeper)
    }
}

/// Whether two indices may refer to the same element. May be `true` for an array without overlap, never `false` for one with.
#[cold]
fn may_overlap<T: Plain, L: Rank>(array: &Array<T, L>) -> bool {
    // The axes of the element are included, because two elements may overlap in part.
    let with = |lists: &[i64], own: &[i64]| {
        let mut all = Dims::from(lists).check_allocated()?;
        all.append(own).map(|()| all)
    };
    let element = const { T::TRAILING };
    let shape = with(array.shape.as_ref(), element.extents());
    let strides = with(array.strides.as_ref(), element.strides());
    match (shape, strides) {
        (Ok(shape), Ok(strides)) => extent::may_overlap(&shape, &strides),
        _ => true,
    }
}

impl<T: Plain, L: Rank> Array<T, L> {
    /// Describes the array by byte strides, with the axes of an element. Returns `None` if items share bytes.
    pub(super) fn write_bytes<'a>(
        &self,
        shape: &'a mut [isize; MAX_RANK],
        strides: &'a mut [isize; MAX_RANK],
    ) -> Option<Strided<'a>> {
        let element = T::TRAILING;
        let lists = [
            (shape.iter_mut(), self.shape.as_ref(), element.extents(), 1),
            (
                strides.iter_mut(),
                self.strides.as_ref(),
                element.strides(),
                Self::UNIT,
            ),
        ];
        for (places, numbers, own, unit) in lists {
            for (place, &number) in places.zip(numbers.iter().chain(own)) {
                // Wraps only for an axis of size 1, whose stride is never used.
                *place = stride_to_isize(number).wrapping_mul(unit);
            }
        }
        let rank = self.shape.as_ref().len() + element.len();
        (T::Scalar::TRAILING.len() == 0).then_some(Strided {
            data: self.data,
            shape: &shape[..rank],
            strides: Some(&strides[..rank]),
            dtype: T::DTYPE,
            read_only: true,
        })
    }
}

/// Splits the axes of the element off. Returns the other axes, or `None` if the last axes are not those of the element, without
/// gaps.
#[inline(always)]
fn split_trailing<'a, T: Element>(
    shape: &'a [isize],
    strides: &'a [isize],
) -> Option<(&'a [isize], &'a [isize])> {
    let own = const { T::TRAILING };
    let rank = shape.len().checked_sub(own.len())?;
    if strides.len() != shape.len() {
        return None;
    }
    let (shape, extents) = shape.split_at(rank);
    let (strides, steps) = strides.split_at(rank);
    let mut packed = size_of::<T>() as i64;
    let mut axes = extents.iter().zip(steps).zip(own.extents());
    let fits = axes.all(|((&extent, &step), &needed)| {
        packed /= needed.max(1);
        extent as i64 == needed && (extent == 1 || step as i64 == packed)
    });
    fits.then_some((shape, strides))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataType;
    use crate::array::{View, ViewMut};
    use crate::binding::keep_strided;
    use alloc::vec::Vec;
    use core::fmt;

    /// Numbers for the arrays of the tests; each layout below stays inside.
    fn memory() -> Vec<u32> {
        (0..600).collect()
    }

    /// A small random number generator with a fixed seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from((self.0 >> 33) % end).unwrap()
        }
    }

    /// The view of a buffer equals the view of the tensor of the same description, and both accept the same descriptions.
    fn same<T: Plain + PartialEq + fmt::Debug, L: Rank>(array: Strided<'_>) -> bool {
        // SAFETY: the numbers outlive the tensor, and no code writes to them.
        let tensor = || unsafe { keep_strided((), |()| Ok(array), |error: Error| error) };
        let view = tensor().and_then(View::<T, L>::new);
        let may_write = tensor().and_then(ViewMut::<T, L>::new).is_ok();
        let found = UnownedArray::<T, L>::from_strided(&array, false);
        let is_empty = view.as_ref().is_ok_and(|view| view.is_empty());
        assert_eq!(found.is_some(), view.is_ok() && !is_empty, "{array:?}");
        let writes = UnownedArray::<T, L>::from_strided(&array, true).is_some();
        assert_eq!(writes, may_write && !is_empty, "{array:?}");
        let (Some(found), Ok(view)) = (found, view) else {
            return false;
        };
        let (span, expected) = (*found.span(), span_of(&view));
        assert_eq!(span, expected, "{array:?}");
        assert_eq!(found.is_contiguous(), view.is_contiguous(), "{array:?}");
        // SAFETY: as above.
        let found = unsafe { found.into_view(()) };
        assert_eq!(found.to_vec().unwrap(), view.to_vec().unwrap(), "{array:?}");
        assert!(found.as_slice().is_err(), "others may write");
        // Converted back to a tensor, it has the same shape and elements.
        let again = found.into_tensor(|(), array| {
            // SAFETY: as above.
            unsafe { keep_strided((), |()| Ok(array.unwrap()), |error| error) }
        });
        let (again, view) = (again.unwrap(), view.into_managed());
        assert_eq!(again.view().shape(), view.view().shape());
        assert!(again.view().is_read_only());
        let lists = |tensor: &Managed| tensor.view().to_vec::<u32>().unwrap();
        assert_eq!(lists(&again), lists(&view));
        true
    }

    #[test]
    fn it_is_what_a_tensor_of_the_same_description_gives() {
        let (memory, mut random) = (memory(), Random(1));
        let (mut found, mut refused) = (0, 0);
        // Miri is slow.
        let cases = if cfg!(miri) { 40 } else { 4000 };
        for _ in 0..cases {
            let rank = random.below(5);
            let shape: Vec<isize> = (0..rank)
                .map(|_| [0, 1, 1, 2, 3, 3, 4][random.below(7)])
                .collect();
            let steps = [-32, -16, -12, -4, 0, 3, 4, 4, 8, 12, 12, 16, 24, 36, 48];
            let mut strides: Vec<isize> = (0..rank).map(|_| steps[random.below(15)]).collect();
            // Half of them contiguous.
            if random.below(2) == 0 {
                let mut packed = 4;
                for axis in (0..rank).rev() {
                    strides[axis] = packed;
                    packed *= shape[axis].max(1);
                }
            }
            let array = Strided {
                data: memory.as_ptr().wrapping_add(300).cast_mut().cast(),
                shape: &shape,
                strides: Some(&strides),
                dtype: DataType::U32,
                read_only: random.below(2) == 0,
            };
            let some = [
                same::<u32, [i64; 0]>(array),
                same::<u32, [i64; 1]>(array),
                same::<u32, [i64; 2]>(array),
                same::<u32, [i64; 3]>(array),
                same::<u32, [i64; 4]>(array),
                same::<u32, Dims>(array),
                same::<[u32; 3], [i64; 1]>(array),
                same::<[[u32; 3]; 1], Dims>(array),
            ];
            found += some.iter().filter(|found| **found).count();
            refused += some.iter().filter(|found| !**found).count();
            assert!(UnownedArray::<i32, Dims>::from_strided(&array, false).is_none());
        }
        assert!(
            found > cases / 40 && refused > cases / 40,
            "{found} {refused}"
        );
    }

    /// Shapes and strides that lead out of memory.
    #[test]
    fn what_no_memory_has_is_refused() {
        let memory = memory();
        let many = [1; 65];
        let cases: [(&[isize], &[isize]); 8] = [
            (&[-1], &[4]),
            (&[isize::MAX, 2], &[0, 0]),
            (&[3], &[isize::MAX - 3]),
            (&[2, 2], &[isize::MAX - 3, isize::MAX - 3]),
            (&[2, 2], &[isize::MIN, isize::MAX - 3]),
            (&[2], &[isize::MIN]),
            (&[2, 2], &[4]),
            (&many, &many),
        ];
        for (shape, strides) in cases {
            let array = Strided {
                data: memory.as_ptr().cast_mut().cast(),
                shape,
                strides: Some(strides),
                dtype: DataType::U32,
                read_only: true,
            };
            assert!(!same::<u32, Dims>(array));
            assert!(!same::<u32, [i64; 1]>(array));
            assert!(!same::<u32, [i64; 2]>(array));
        }
        let null = Strided {
            data: core::ptr::null_mut(),
            shape: &[2],
            strides: Some(&[4]),
            dtype: DataType::U32,
            read_only: true,
        };
        assert!(!same::<u32, [i64; 1]>(null));
    }
}
