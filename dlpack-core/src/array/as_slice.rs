//! Borrows the elements of an array as a slice, or as the matrix of another crate, if no other code can write to them.
#![expect(unsafe_code, reason = "lends the elements of a checked tensor")]

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::slice;

#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
use crate::Order;
use crate::array::{Array, Rank};
use crate::element::Plain;
#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
use crate::layout::{Dims, extent};
use crate::tensor::view::check_alignment;
use crate::{Device, Error, TensorRef};

impl<T: Plain, L: Rank> Array<T, L> {
    /// A tensor over the memory of the array, with this shape and these strides, both counted in scalars.
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

    /// Borrows the elements as a slice, without a copy. The array must be contiguous, and no other code may write to it.
    ///
    /// No other code can write to a tensor that was moved into the view and is not shared, or to a copy that this crate made. For
    /// memory from Python, the caller must promise that no other code writes, whatever flags the producer sets: by
    /// [`Array::as_slice_unchecked`], or for all arguments by `dlpack_pyo3::Promise`.
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
    /// [`Error::MayChange`] if other code may write; elements that are not contiguous in C order, an address that is not aligned
    /// for `T`, or a byte that is not a valid `bool`.
    #[inline]
    pub fn as_slice(&self) -> Result<&[T], Error> {
        if self.shared {
            return Err(Error::MayChange);
        }
        // SAFETY: the array is not `shared`, so no code writes to its memory while it is borrowed.
        unsafe { self.as_slice_unchecked() }
    }

    /// Borrows the elements as a slice, also if other code may write to the memory.
    ///
    /// # Errors
    ///
    /// The errors of [`Array::as_slice`], except [`Error::MayChange`].
    ///
    /// # Safety
    ///
    /// While the slice lives, no code writes to its memory: no Rust code, no Python code, no other thread.
    #[inline]
    pub unsafe fn as_slice_unchecked(&self) -> Result<&[T], Error> {
        let (data, len) = self.slice_parts()?;
        // SAFETY: `slice_parts` found `len` contiguous, aligned, valid elements. They live while the array is borrowed, and are
        // not written meanwhile by this function's contract.
        Ok(unsafe { slice::from_raw_parts(data, len) })
    }

    /// The address and the length of the slice of all elements. The address of elements that take no memory is dangling.
    ///
    /// # Errors
    ///
    /// The errors of [`Array::as_slice`], except [`Error::MayChange`].
    #[inline]
    pub(super) fn slice_parts(&self) -> Result<(*mut T, usize), Error> {
        if size_of::<T>() == 0 {
            return Ok((NonNull::dangling().as_ptr(), self.len()));
        }
        Ok(match self.check_slice_len()? {
            0 => (NonNull::dangling().as_ptr(), 0),
            len => (self.data.cast(), len),
        })
    }

    /// The length of the slice of all elements at `data`; 0 if they take no memory.
    ///
    /// # Errors
    ///
    /// The errors of [`Array::as_slice`], except [`Error::MayChange`].
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
            // Only `bool` has invalid bytes, and a `bool` is one byte.
            let bytes = i64::try_from(len * size_of::<T>()).unwrap_or(i64::MAX);
            self.as_tensor(&[bytes], &[1]).check_bools()?;
        }
        Ok(len)
    }

    /// The shape, and the strides in elements, for a matrix type of another crate that borrows the memory.
    ///
    /// # Errors
    ///
    /// The errors of [`Array::as_slice`], except that gaps between elements are accepted if they are multiples of an element.
    #[cfg(any(feature = "ndarray", feature = "nalgebra"))]
    pub(crate) fn check_lendable_layout(&self) -> Result<(&[i64], Dims), Error> {
        if self.shared {
            return Err(Error::MayChange);
        }
        let shape = self.shape.as_ref();
        if !self.occupies_memory() {
            // No byte is reached. Other crates may reject the strides of such an array, so these are replaced.
            return Ok((shape, extent::packed_strides(Order::C, shape, 1)?));
        }
        let mut strides = Dims::from(self.strides.as_ref()).check_allocated()?;
        for (stride, &extent) in strides.iter_mut().zip(shape) {
            // The stride of an axis of one element is never applied.
            if extent > 1 && *stride % Self::SCALARS != 0 {
                return Err(self.not_contiguous());
            }
            *stride /= Self::SCALARS;
        }
        check_alignment(self.data.addr(), align_of::<T>(), T::DTYPE)?;
        if !T::ANY_BITS {
            let (shape, strides) = self.scalar_axes()?;
            self.as_tensor(&shape, &strides).check_bools()?;
        }
        Ok((shape, strides))
    }

    /// Whether the elements have bytes. The address of an array without bytes may be null.
    #[cfg(any(feature = "ndarray", feature = "nalgebra"))]
    pub(crate) fn occupies_memory(&self) -> bool {
        size_of::<T>() != 0 && !self.is_empty()
    }
}
