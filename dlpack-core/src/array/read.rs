//! Reads an array: data type, shape and strides, single elements, iteration and copies.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::array::rank::{Index, Rank};
use crate::array::{Array, ArrayElement, ArrayMut, Part, PartMut, View, ViewMut};
use crate::element::Plain;
use crate::layout::Dims;
use crate::layout::extent::{extent_to_usize, stride_to_isize};
use crate::memory::{aligned::allocate_vec, gather::gather_items};
use crate::tensor::array_element::ElementAccess;
use crate::tensor::item_offsets::ItemOffsets;
use crate::tensor::items::Items;
use crate::{DataType, Error};

impl<T: ArrayElement, const N: usize> Array<T, [i64; N]> {
    /// The shape: the size of each axis.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[0_u8; 4]; 3].into_dlpack()?)?;
    /// let [height, width] = image.shape();
    /// assert_eq!((height, width), (3, 4));
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn shape(&self) -> [usize; N] {
        self.shape.map(extent_to_usize)
    }

    /// The strides in scalars, one for each axis. An element `[f32; 3]` is three scalars. The strides of an array of records are
    /// in bytes.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[0_u8; 4]; 3].into_dlpack()?)?;
    /// assert_eq!(image.strides(), [4, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn strides(&self) -> [isize; N] {
        self.strides.map(stride_to_isize)
    }
}

impl<T: ArrayElement> Array<T, Dims> {
    /// The shape: the size of each axis.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View, layout::Dims};
    ///
    /// let image = View::<u8, Dims>::new(vec![[0_u8; 4]; 3].into_dlpack()?)?;
    /// assert_eq!(image.shape(), [3, 4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The strides in scalars, one for each axis. An element `[f32; 3]` is three scalars. The strides of an array of records are
    /// in bytes.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View, layout::Dims};
    ///
    /// let image = View::<u8, Dims>::new(vec![[0_u8; 4]; 3].into_dlpack()?)?;
    /// assert_eq!(image.strides(), [4, 1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }
}

impl<T: ArrayElement, L: Rank> Array<T, L> {
    /// The number of axes.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View, layout::Dims};
    ///
    /// let image = View::<u8, Dims>::new(vec![[0_u8; 4]; 3].into_dlpack()?)?;
    /// assert_eq!(image.rank(), 2);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.as_ref().len()
    }

    /// The number of elements.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[0_u8; 4]; 3].into_dlpack()?)?;
    /// assert_eq!(image.len(), 12);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        // The size in bytes was checked, or the count of elements without bytes, so the product overflows only if another extent
        // is 0.
        let extents = self.shape.as_ref().iter();
        extents.fold(1, |len: usize, &extent| {
            len.wrapping_mul(extent_to_usize(extent))
        })
    }

    /// Whether there are no elements.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// assert!(View::<u8, [i64; 1]>::new([0_u8; 0].into_dlpack()?)?.is_empty());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the elements are contiguous in C order: without gaps, the last axis fastest.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[0_u8; 4]; 3].into_dlpack()?)?;
    /// assert!(image.is_contiguous() && !image.transpose().is_contiguous());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut step = Self::SCALARS;
        for (&extent, &stride) in self.shape.as_ref().iter().zip(self.strides.as_ref()).rev() {
            if stride != step && extent != 1 {
                return self.is_empty();
            }
            step = step.wrapping_mul(extent);
        }
        true
    }

    /// The address of the first element. A caller that reads there must know that no other code writes.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let bytes = View::<u8, [i64; 1]>::new(vec![0_u8; 3].into_dlpack()?)?;
    /// assert!(!bytes.as_ptr().is_null());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.data.cast_const().cast()
    }

    /// The element at an index, or `None` if the index is outside the array.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2], [3, 4]].into_dlpack()?)?;
    /// assert_eq!(image.get([1, 0]), Some(3));
    /// assert_eq!(image.get([2, 0]), None);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn get(&self, index: impl Index<L>) -> Option<T> {
        let place = self.address_of(index.as_ref())?;
        // SAFETY: `address_of` returned the address of an element, and `shared` tells whether other code may write it.
        Some(unsafe { T::Access::read_element(place.cast(), self.shared) })
    }

    /// The element at an index.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2], [3, 4]].into_dlpack()?)?;
    /// assert_eq!(image.at([1, 0]), 3);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the index is outside the array.
    #[must_use]
    #[inline]
    pub fn at(&self, index: impl Index<L>) -> T {
        let Some(place) = self.address_of(index.as_ref()) else {
            self.panic_outside(index)
        };
        // SAFETY: `address_of` returned the address of an element, and `shared` tells whether other code may write it.
        unsafe { T::Access::read_element(place.cast(), self.shared) }
    }

    /// Takes the index by value, so that a loop over indices can keep them in registers.
    #[cold]
    #[inline(never)]
    pub(super) fn panic_outside(&self, index: impl Index<L>) -> ! {
        panic!(
            "index {:?} of an array of shape {:?}",
            index.as_ref(),
            self.shape.as_ref()
        )
    }

    /// The address of the element at an index, or `None` if the index is outside the array.
    #[inline]
    pub(super) fn address_of(&self, index: &[usize]) -> Option<*mut u8> {
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        if index.len() != shape.len() {
            return None;
        }
        let mut place = 0_isize;
        for (&at, (&extent, &stride)) in index.iter().zip(shape.iter().zip(strides)) {
            if at >= extent_to_usize(extent) {
                return None;
            }
            // Wraps only if another extent is 0, and then no index is inside the array.
            place = place.wrapping_add((at as isize).wrapping_mul(stride_to_isize(stride)));
        }
        Some(self.data.wrapping_offset(place.wrapping_mul(Self::UNIT)))
    }

    /// An iterator over the elements, in row-major order.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2], [3, 4]].into_dlpack()?)?;
    /// assert_eq!(image.iter().max(), Some(4));
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn iter(&self) -> Items<'_, T> {
        Items {
            offsets: self.item_offsets(),
            data: self.data,
            shared: self.shared,
            lifetime: PhantomData,
        }
    }

    #[inline]
    pub(super) fn item_offsets(&self) -> ItemOffsets<'_> {
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        match (L::RANK, shape, strides) {
            // Rows are short, so a loop over the rows of an array calls this often.
            (Some(1), &[extent], &[stride]) => {
                ItemOffsets::of_one_axis(extent, stride, T::Access::UNIT)
            }
            _ => ItemOffsets::new(shape, strides, T::Access::UNIT),
        }
    }

    /// Copies the elements to a vector, in row-major order.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2], [3, 4]].into_dlpack()?)?;
    /// assert_eq!(image.transpose().to_vec()?, [1, 3, 2, 4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let len = self.len();
        let mut elements = allocate_vec::<T>(len).map_err(|bytes| Error::OutOfMemory { bytes })?;
        // SAFETY: the vector has capacity for `len` elements, and no other code accesses it.
        unsafe { self.copy_elements_to(elements.as_mut_ptr()) }?;
        // SAFETY: `copy_elements_to` has written `len` elements.
        unsafe { elements.set_len(len) };
        Ok(elements)
    }

    /// Copies the elements to a slice, in row-major order.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2], [3, 4]].into_dlpack()?)?;
    /// let mut pixels = [0; 4];
    /// image.copy_to_slice(&mut pixels)?;
    /// assert_eq!(pixels, [1, 2, 3, 4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Count`] if the slice has another length.
    pub fn copy_to_slice(&self, elements: &mut [T]) -> Result<(), Error> {
        self.check_count(elements.len())?;
        // SAFETY: the slice has space for all elements, and is borrowed exclusively.
        unsafe { self.copy_elements_to(elements.as_mut_ptr()) }
    }

    pub(super) fn check_count(&self, needed: usize) -> Result<(), Error> {
        let found = self.len();
        if found == needed {
            return Ok(());
        }
        Err(Error::Count { found, needed })
    }

    /// Copies the elements to `to`, in row-major order.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of all elements, and no other code accesses it during the call.
    unsafe fn copy_elements_to(&self, to: *mut T) -> Result<(), Error> {
        let len = self.len();
        if len * size_of::<T>() == 0 {
            return Ok(());
        }
        if T::Access::RECORD.is_some() {
            for (index, record) in self.iter().enumerate() {
                // SAFETY: `to` has space for `len` elements by this function's contract, and `iter` returns as many.
                unsafe { to.wrapping_add(index).write(record) };
            }
            return Ok(());
        }
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        let copy = |shape, strides| {
            let (data, unit) = (self.data, T::Access::UNIT);
            // SAFETY:
            // 1. these are the scalars of all elements, in host-readable memory (`from_tensor`);
            // 2. `to` is valid for writes of as many, and no other code accesses it, by this function's contract;
            // 3. the array has writers only if it is `shared`, and then Rust code writes by `memory/atomic.rs`.
            unsafe { gather_items(data, shape, strides, unit, to.cast(), self.shared) }
        };
        if Self::SCALARS == 1 {
            copy(shape, strides);
        } else {
            let (shape, strides) = self.scalar_axes()?;
            copy(&shape, &strides);
        }
        // SAFETY: the call above has written the bytes of `len` elements to `to`, which no other code accesses.
        unsafe { T::Access::make_values(to, len) };
        Ok(())
    }

    /// Shape and strides with one more axis, of the scalars of an element.
    pub(super) fn scalar_axes(&self) -> Result<(Dims, Dims), Error> {
        let mut shape = Dims::from(self.shape.as_ref()).check_allocated()?;
        let mut strides = Dims::from(self.strides.as_ref()).check_allocated()?;
        shape.append(&[Self::SCALARS])?;
        strides.append(&[1])?;
        Ok((shape, strides))
    }

    pub(crate) fn not_contiguous(&self) -> Error {
        Error::not_contiguous(self.shape.as_ref(), self.strides.as_ref())
    }
}

impl<T: Plain, L: Rank> Array<T, L> {
    /// The data type of the scalars.
    ///
    /// ```
    /// use dlpack_core::{DLPack, DataType, array::View};
    ///
    /// let points = View::<[f32; 3], [i64; 1]>::new(vec![[0.0_f32; 3]; 4].into_dlpack()?)?;
    /// assert_eq!(points.dtype(), DataType::F32);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn dtype(&self) -> DataType {
        T::DTYPE
    }
}

/// Makes `for element in &array` work for an array and for the types that dereference to one.
macro_rules! into_iter {
    ($([$($parameter:tt)*] $array:ty;)*) => {$(
        impl<'a, T: ArrayElement, L: Rank, $($parameter)*> IntoIterator for &'a $array {
            type Item = T;
            type IntoIter = Items<'a, T>;

            #[inline]
            fn into_iter(self) -> Items<'a, T> {
                self.iter()
            }
        }
    )*};
}
into_iter! {
    [] Array<T, L>;
    [] ArrayMut<T, L>;
    [K] View<T, L, K>;
    [K] ViewMut<T, L, K>;
    [] Part<'_, T, L>;
    [] PartMut<'_, T, L>;
}
