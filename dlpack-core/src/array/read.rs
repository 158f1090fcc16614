//! What any array can be asked: how it lies, and its elements.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::slice;

use crate::array::rank::{Index, Rank};
use crate::array::{Array, ArrayElement};
use crate::element::Plain;
use crate::layout::Dims;
use crate::layout::extent::{extent_to_usize, stride_to_isize};
use crate::memory::{aligned::allocate_vec, gather::gather};
use crate::tensor::array_element::ElementAccess;
use crate::tensor::items::{ItemOffsets, Items};
use crate::tensor::view::check_alignment;
use crate::{DataType, Device, Error, TensorRef};
#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
use crate::{Order, layout::extent};

impl<T: ArrayElement, const N: usize> Array<T, [i64; N]> {
    /// The extents, one an axis.
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

    /// The strides, one an axis: how many scalars lie between neighbours. An element `[f32; 3]` is three of them; the
    /// neighbours of a record are counted in bytes.
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
    /// The extents, one an axis.
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

    /// The strides, one an axis: how many scalars lie between neighbours. An element `[f32; 3]` is three of them; the
    /// neighbours of a record are counted in bytes.
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

    /// How many elements there are.
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
        // Their bytes were counted, so none of these overflows but next to an extent of 0.
        let extents = self.shape.as_ref().iter();
        extents.fold(1, |len: usize, &extent| {
            len.wrapping_mul(extent_to_usize(extent))
        })
    }

    /// Whether there are none.
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

    /// Whether the elements lie one after another, the last axis fastest.
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

    /// The address of the first element; whoever reads by it has to know that nobody writes.
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

    /// The element at an index, if there is one.
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
        // SAFETY: the address of an element.
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
    /// Where there is none, as the index of a slice does.
    #[must_use]
    #[inline]
    pub fn at(&self, index: impl Index<L>) -> T {
        let index = index.as_ref();
        let Some(place) = self.address_of(index) else {
            self.panic_outside(index)
        };
        // SAFETY: the address of an element.
        unsafe { T::Access::read_element(place.cast(), self.shared) }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn panic_outside(&self, index: &[usize]) -> ! {
        panic!(
            "index {index:?} of an array of shape {:?}",
            self.shape.as_ref()
        )
    }

    /// The address of an element, if the index is that of one.
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
            // Wraps only next to an extent of 0, which is refused.
            place = place.wrapping_add((at as isize).wrapping_mul(stride_to_isize(stride)));
        }
        Some(self.data.wrapping_offset(place.wrapping_mul(Self::UNIT)))
    }

    /// The elements, in row-major order of their indices.
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
            positions: self.item_offsets(),
            data: self.data,
            shared: self.shared,
            lifetime: PhantomData,
        }
    }

    pub(super) fn item_offsets(&self) -> ItemOffsets<'_> {
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        ItemOffsets::new(shape, strides, T::Access::UNIT)
    }

    /// The elements in a vector, in row-major order.
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
        // SAFETY: room for all elements, which nobody else has.
        unsafe { self.copy_elements_to(elements.as_mut_ptr()) }?;
        // SAFETY: they were written right above.
        unsafe { elements.set_len(len) };
        Ok(elements)
    }

    /// Copies the elements, in row-major order.
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
    /// [`Error::Count`] if the slice has not as many.
    pub fn copy_to_slice(&self, elements: &mut [T]) -> Result<(), Error> {
        self.check_count(elements.len())?;
        // SAFETY: room for all elements, which is borrowed from its one owner.
        unsafe { self.copy_elements_to(elements.as_mut_ptr()) }
    }

    pub(super) fn check_count(&self, needed: usize) -> Result<(), Error> {
        let found = self.len();
        if found == needed {
            return Ok(());
        }
        Err(Error::Count { found, needed })
    }

    /// # Safety
    ///
    /// There is room for all elements at `to`, which nobody else has.
    unsafe fn copy_elements_to(&self, to: *mut T) -> Result<(), Error> {
        let len = self.len();
        if len * size_of::<T>() == 0 {
            return Ok(());
        }
        if T::Access::RECORD.is_some() {
            for (index, record) in self.iter().enumerate() {
                // SAFETY: as many records as there is space for, by the caller's promise.
                unsafe { to.wrapping_add(index).write(record) };
            }
            return Ok(());
        }
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        let copy = |shape, strides| {
            let (data, unit) = (self.data, T::Access::UNIT);
            // SAFETY: the scalars of all elements, which the processor reads (`of`); the caller gives room for as many, which
            // nobody touches. Who writes to what is shared is known, and does so atomically.
            unsafe { gather(data, shape, strides, unit, to.cast(), self.shared) }
        };
        if Self::SCALARS == 1 {
            copy(shape, strides);
        } else {
            let (mut shape, mut strides) = (
                Dims::from(shape).check_allocated()?,
                Dims::from(strides).check_allocated()?,
            );
            shape.append(&[Self::SCALARS])?;
            strides.append(&[1])?;
            copy(&shape, &strides);
        }
        // SAFETY: all written right above.
        unsafe { T::Access::make_values(to, len) };
        Ok(())
    }

    pub(crate) fn not_contiguous(&self) -> Error {
        Error::not_contiguous(self.shape.as_ref(), self.strides.as_ref())
    }
}

impl<T: Plain, L: Rank> Array<T, L> {
    /// The tensor of these scalars.
    fn as_tensor<'a>(&'a self, shape: &'a [i64], strides: &'a [i64]) -> TensorRef<'a> {
        TensorRef {
            data: self.data,
            byte_offset: 0,
            shape,
            strides,
            dtype: T::DTYPE,
            device: Device::CPU,
            read_only: true,
            shared: self.shared,
            copied: false,
            version: None,
            lifetime: PhantomData,
        }
    }

    /// The elements, without a copy, where nobody else can write and they lie one after another.
    ///
    /// Nobody else can write to a tensor that was moved in, nor to a copy that Rust made. Of memory from Python that has to
    /// be promised, whatever flags its producer sets: by the function below, or for all arguments by `dlpack_pyo3::Promise`.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Error, array::View};
    ///
    /// let tensor = vec![1_u8, 2].into_dlpack()?;
    /// assert_eq!(View::<u8, [i64; 1]>::new(tensor)?.as_slice()?, [1, 2]);
    ///
    /// let tensor = vec![1_u8, 2].into_dlpack()?.shared();
    /// assert_eq!(View::<u8, [i64; 1]>::new(tensor)?.as_slice(), Err(Error::MayChange));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::MayChange`]; gaps or another order, an address that is not aligned for `T`, a byte that is no `bool`.
    #[inline]
    pub fn as_slice(&self) -> Result<&[T], Error> {
        if self.shared {
            return Err(Error::MayChange);
        }
        // SAFETY: nobody writes, or it would be shared.
        unsafe { self.as_slice_unchecked() }
    }

    /// As [`Array::as_slice`], whoever else may have the memory.
    ///
    /// # Errors
    ///
    /// As [`Array::as_slice`], but for [`Error::MayChange`].
    ///
    /// # Safety
    ///
    /// While the slice lives, nobody writes to its memory: neither Rust code, nor Python, nor another thread.
    #[inline]
    pub unsafe fn as_slice_unchecked(&self) -> Result<&[T], Error> {
        let len = self.check_slice_len()?;
        if len == 0 {
            return Ok(&[]);
        }
        // SAFETY: `len` aligned elements one after another (`check_slice_len`), which stay while the array is borrowed, and which
        // nobody writes meanwhile, as the caller promises. Any bytes are a `T`, or were looked at.
        Ok(unsafe { slice::from_raw_parts(self.data.cast(), len) })
    }

    /// How many elements follow one another at `data`, if that is all there is; 0 where they take no memory.
    #[inline]
    pub(crate) fn check_slice_len(&self) -> Result<usize, Error> {
        let len = self.len();
        if len == 0 || size_of::<T>() == 0 {
            return Ok(0);
        }
        if !self.is_contiguous() {
            return Err(self.not_contiguous());
        }
        check_alignment(self.data.addr(), align_of::<T>(), T::DTYPE)?;
        if !T::ANY_BITS {
            let bytes = i64::try_from(len * size_of::<T>()).unwrap_or(i64::MAX);
            self.as_tensor(&[bytes], &[1]).check_bools()?;
        }
        Ok(len)
    }

    /// The extents, and the strides in elements, where these may be read as plain values that lie where a `T` has to: what a
    /// matrix of another crate is made of.
    ///
    /// # Errors
    ///
    /// As [`Array::as_slice`], but any strides will do.
    #[cfg(any(feature = "ndarray", feature = "nalgebra"))]
    pub(crate) fn read_plain_layout(&self) -> Result<(&[i64], Dims), Error> {
        if self.shared {
            return Err(Error::MayChange);
        }
        let shape = self.shape.as_ref();
        let mut strides = Dims::from(self.strides.as_ref()).check_allocated()?;
        if self.is_empty() {
            // Nothing is reached; what is there need not make sense to others.
            return Ok((shape, extent::packed_strides(Order::C, shape, 1)?));
        }
        for stride in strides.iter_mut() {
            // An element of no bytes lies anywhere.
            if *stride % Self::SCALARS.max(1) != 0 {
                return Err(self.not_contiguous());
            }
            *stride /= Self::SCALARS.max(1);
        }
        check_alignment(self.data.addr(), align_of::<T>(), T::DTYPE)?;
        if !T::ANY_BITS {
            self.as_tensor(shape, self.strides.as_ref()).check_bools()?;
        }
        Ok((shape, strides))
    }

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

impl<'a, T: ArrayElement, L: Rank> IntoIterator for &'a Array<T, L> {
    type Item = T;
    type IntoIter = Items<'a, T>;

    fn into_iter(self) -> Items<'a, T> {
        self.iter()
    }
}
