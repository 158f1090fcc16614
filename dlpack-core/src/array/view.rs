//! `View` and `ViewMut`: arrays that own their tensor, so they can be stored in a struct or sent to a thread.
//!
//! A binding to another language may keep the memory alive by another value, such as a reference to an object. The type
//! parameter `K` is this keeper. A tensor is made of it only if the caller requests one.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::array::write::{ArrayMut, SizedArrayMut};
use crate::array::{Array, ArrayElement, Rank};
use crate::element::Plain;
use crate::export::strided::Strided;
use crate::layout::{dims::MAX_RANK, extent};
use crate::{Error, FromDLPack, Managed, OwnedSlice, TensorRef};

/// The methods of both views that consume the keeper.
macro_rules! keeper_methods {
    () => {
        /// Makes a tensor by `make`, from the keeper and a description of the array. The description is `None` if items share
        /// bytes, which [`Strided`] cannot express. It is always read-only, because the array does not know who may write.
        ///
        /// # Errors
        ///
        /// The errors of `make`.
        #[doc(hidden)]
        pub fn into_tensor(
            self,
            make: impl FnOnce(K, Option<Strided<'_>>) -> Result<Managed, Error>,
        ) -> Result<Managed, Error> {
            let array: &Array<T, L> = &self;
            let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
            let array = array.write_bytes(&mut shape, &mut strides);
            make(self.keeper, array)
        }
    };
}

/// A tensor of elements of type `T`, with shape and strides of type `L`: `[i64; N]` for `N` axes, [`Dims`](crate::layout::Dims)
/// for any number. It dereferences to an [`Array`], which has the methods that read.
///
/// `K` keeps the memory alive: a tensor, except in views of a binding.
///
/// ```
/// use dlpack_core::{DLPack, array::View};
///
/// let image = View::<f32, [i64; 2]>::new(vec![[1.0_f32, 2.0], [3.0, 4.0]].into_dlpack()?)?;
/// assert_eq!(image.shape(), [2, 2]);
/// assert_eq!(image.iter().sum::<f32>(), 10.0);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct View<T, L, K = Managed> {
    array: Array<T, L>,
    keeper: K,
}

impl<T: Plain, L: Rank> View<T, L> {
    /// Checks a tensor and makes a view of it.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let error = View::<f64, [i64; 2]>::new(vec![0.0_f32].into_dlpack()?).unwrap_err();
    /// assert_eq!(error.to_string(), "expected dtype float64, found float32");
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The tensor has another data type or rank, or its last axes have other sizes than those of the element. The items of an
    /// element are not contiguous, or the CPU cannot read the memory.
    #[inline]
    pub fn new(tensor: Managed) -> Result<Self, Error> {
        Self::try_new(tensor).map_err(|(error, _)| error)
    }

    /// Checks a tensor and makes a view of it. Unlike [`View::new`], it returns the tensor to the caller if a check fails.
    ///
    /// # Errors
    ///
    /// The errors of [`View::new`], with the tensor.
    #[inline]
    pub fn try_new(tensor: Managed) -> Result<Self, (Error, Managed)> {
        match Array::from_tensor(&tensor.view()) {
            Ok(array) => Ok(Self::from_parts(array, tensor)),
            Err(error) => Err((error, tensor)),
        }
    }

    /// Returns the tensor.
    #[must_use]
    pub fn into_managed(self) -> Managed {
        self.keeper
    }
}

impl<T: Plain, L: Rank, K> View<T, L, K> {
    keeper_methods!();

    /// Converts the view to a slice that owns it, for containers of other crates that take such an owner. Nothing is copied.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let pixels = View::<u8, [i64; 2]>::new([[1_u8, 2], [3, 4]].into_dlpack()?)?;
    /// let bytes = Bytes::from_owner(pixels.into_slice()?);
    /// assert_eq!(bytes[..], [1, 2, 3, 4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// To copy the elements instead if other code may write, check [`Array::as_slice`] first.
    ///
    /// # Errors
    ///
    /// The errors of [`Array::as_slice`]; [`Error::OutOfMemory`]. The view is then dropped.
    pub fn into_slice(self) -> Result<OwnedSlice<T>, Error>
    where
        L: 'static,
        K: Send + Sync + 'static,
    {
        OwnedSlice::new(self, |view| view.as_slice())
    }
}

impl<T: ArrayElement, L: Rank, K> View<T, L, K> {
    pub(super) fn from_parts(array: Array<T, L>, keeper: K) -> Self {
        Self { array, keeper }
    }

    /// Declares that no other code writes to the memory. Then [`Array::as_slice`] and [`View::into_slice`] work, and reads are as
    /// fast as those of a slice.
    ///
    /// # Safety
    ///
    /// While the view lives, or a slice that [`View::into_slice`] made of it, no code writes to the elements: no Rust code, no
    /// Python code, no other thread.
    #[must_use]
    pub unsafe fn assume_unshared(mut self) -> Self {
        self.array.shared = false;
        self
    }
}

impl<T, L, K> Deref for View<T, L, K> {
    type Target = Array<T, L>;

    #[inline]
    fn deref(&self) -> &Array<T, L> {
        &self.array
    }
}

/// A [`View`] whose elements may be written. It dereferences to an [`ArrayMut`], which has the methods that write.
///
/// ```
/// use dlpack_core::{DLPack, array::ViewMut};
///
/// let mut image = ViewMut::<f32, [i64; 2]>::new(vec![[1.0_f32, 2.0], [3.0, 4.0]].into_dlpack()?)?;
/// image.update(|pixel| pixel * 2.0);
/// assert_eq!(image.at([1, 1]), 8.0);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct ViewMut<T, L, K = Managed> {
    array: SizedArrayMut<T, L>,
    keeper: K,
}

impl<T: Plain, L: Rank> ViewMut<T, L> {
    /// Checks a tensor and makes a view of it.
    ///
    /// # Errors
    ///
    /// The errors of [`View::new`]; [`Error::ReadOnly`]; [`Error::Overlap`] if two indices refer to the same element.
    #[inline]
    pub fn new(tensor: Managed) -> Result<Self, Error> {
        Self::try_new(tensor).map_err(|(error, _)| error)
    }

    /// Checks a tensor and makes a view of it. Unlike [`ViewMut::new`], it returns the tensor to the caller if a check fails.
    ///
    /// # Errors
    ///
    /// The errors of [`ViewMut::new`], with the tensor.
    #[inline]
    pub fn try_new(tensor: Managed) -> Result<Self, (Error, Managed)> {
        let found = Array::from_tensor(&tensor.view());
        match found.and_then(|array| check_writable(&tensor.view(), &array).map(|()| array)) {
            Ok(array) => Ok(Self::from_parts(SizedArrayMut::new(array), tensor)),
            Err(error) => Err((error, tensor)),
        }
    }

    /// Returns the tensor.
    #[must_use]
    pub fn into_managed(self) -> Managed {
        self.keeper
    }
}

impl<T: Plain, L: Rank, K> ViewMut<T, L, K> {
    keeper_methods!();
}

impl<T: ArrayElement, L: Rank, K> ViewMut<T, L, K> {
    pub(super) fn from_parts(array: SizedArrayMut<T, L>, keeper: K) -> Self {
        Self { array, keeper }
    }

    /// Declares that no other code accesses the memory. Then [`ArrayMut::as_mut_slice`] works, and reads and writes are as fast
    /// as those of a slice.
    ///
    /// # Safety
    ///
    /// While the view lives, no other code reads or writes the elements: no Rust code, no Python code, no other thread.
    #[must_use]
    pub unsafe fn assume_unshared(mut self) -> Self {
        self.array.set_shared(false);
        self
    }
}

impl<T, L, K> Deref for ViewMut<T, L, K> {
    type Target = ArrayMut<T, L>;

    #[inline]
    fn deref(&self) -> &ArrayMut<T, L> {
        &self.array
    }
}

impl<T, L, K> DerefMut for ViewMut<T, L, K> {
    #[inline]
    fn deref_mut(&mut self) -> &mut ArrayMut<T, L> {
        &mut self.array
    }
}

impl<T: ArrayElement, L: Rank, K> fmt::Debug for View<T, L, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("View").field(&self.array).finish()
    }
}

impl<T: ArrayElement, L: Rank, K> fmt::Debug for ViewMut<T, L, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array: &Array<T, L> = self;
        f.debug_tuple("ViewMut").field(array).finish()
    }
}

impl<T: Plain, L: Rank> FromDLPack for View<T, L> {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        Self::new(tensor)
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        Array::<T, L>::from_tensor(tensor).is_ok()
    }
}

impl<T: Plain, L: Rank> FromDLPack for ViewMut<T, L> {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        Self::new(tensor)
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        Array::<T, L>::from_tensor(tensor).is_ok()
    }
}

/// Checks that the array of a tensor may be written.
pub(super) fn check_writable<T: Plain, L: Rank>(
    tensor: &TensorRef<'_>,
    array: &Array<T, L>,
) -> Result<(), Error> {
    if tensor.is_read_only() {
        return Err(Error::ReadOnly);
    }
    let (shape, strides) = (tensor.shape(), tensor.strides());
    if !array.is_contiguous() && extent::may_overlap(shape, strides) {
        return Err(Error::overlap(shape, strides));
    }
    Ok(())
}
