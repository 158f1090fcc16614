//! [`OwnedSlice`]: elements that no code writes, and the value that keeps them in place.
//!
//! # Why `OwnedSlice::new` is safe
//!
//! 1. The owner is moved to its final address first, and is then only borrowed by `&` until the last clone is dropped. So what it
//!    lends for `&'a self` is valid for as long as a clone exists, whatever safe code stands behind the closure.
//! 2. The closure accepts every lifetime, so it cannot lend memory of the caller that ends earlier, and it runs once.
//! 3. Any thread may drop the last clone, and several threads may read: owners and elements are `Send` and `Sync`.
#![expect(unsafe_code, reason = "borrows from an owner of any type")]

use core::mem::size_of;
use core::{fmt, marker::PhantomData, ops::Deref, ptr::NonNull, slice};

use crate::element::Plain;
use crate::loan::{Loan, buffer::Buffer, facts::Facts};
use crate::memory::counted::Counted;
use crate::{Element, Error, SharedBuffer};

/// Elements that no code writes, together with the owner of their memory: an `Arc<[T]>` over memory of any kind.
///
/// Containers of other crates accept it as the owner of their memory, so an imported tensor becomes one of theirs without a copy:
/// `bytes::Bytes::from_owner(slice.into_bytes())`, and from that a buffer of Arrow or a tensor of burn. A clone shares the memory.
/// The last clone releases it, on any thread.
///
/// | from | by | why no code writes |
/// |---|---|---|
/// | a tensor that is not shared | [`View::into_slice`](crate::array::View::into_slice) | it was moved into the view, or is a proven copy |
/// | an argument of a Python function | `dlpack_pyo3::View::into_slice` | the `Promise` of the view, whose lease the slice keeps |
/// | any tensor | `into_slice` after [`View::assume_unshared`](crate::array::View::assume_unshared) | `unsafe`: the caller guarantees it |
/// | a [`SharedBuffer`] without other handles | [`SharedBuffer::try_into_slice`] | no handle is left |
/// | any other owner | [`OwnedSlice::new`] | the owner lends a `&[T]` |
///
/// ```
/// use bytes::Bytes;
/// use dlpack_core::{DLPack, array::View};
///
/// let samples = vec![1.0_f32, 2.0];
/// let address = samples.as_ptr().addr();
///
/// let tensor = samples.into_dlpack()?;
/// let slice = View::<f32, [i64; 1]>::new(tensor)?.into_slice()?;
/// assert_eq!(*slice, [1.0, 2.0]);
///
/// let bytes = Bytes::from_owner(slice.into_bytes());
/// assert_eq!(bytes.as_ptr().addr(), address);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct OwnedSlice<T> {
    start: NonNull<T>,
    len: usize,
    owner: Counted,
    elements: PhantomData<T>,
}

// SAFETY: an `OwnedSlice` only lends `&[T]`, and elements are `Sync`. `owner` is `Send`.
unsafe impl<T: Element> Send for OwnedSlice<T> {}
// SAFETY: an `OwnedSlice` only lends `&[T]`, and elements are `Sync`. `owner` is `Sync`.
unsafe impl<T: Element> Sync for OwnedSlice<T> {}

impl<T: Element> OwnedSlice<T> {
    /// Moves the owner to its final place, and borrows elements from it once.
    ///
    /// ```
    /// use dlpack_core::OwnedSlice;
    ///
    /// let columns = vec![vec![1.0_f64, 2.0], vec![3.0]];
    /// let first = OwnedSlice::new(columns, |columns| Ok(&columns[0][..]))?;
    /// assert_eq!(*first, [1.0, 2.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of `borrow`; [`Error::OutOfMemory`]. The owner is then dropped.
    pub fn new<O, F>(owner: O, borrow: F) -> Result<Self, Error>
    where
        O: Send + Sync + 'static,
        F: for<'a> FnOnce(&'a O) -> Result<&'a [T], Error>,
    {
        let owner = Counted::new(owner).map_err(|(_, bytes)| Error::OutOfMemory { bytes })?;
        let elements = NonNull::from(borrow(&owner)?);
        Ok(Self {
            start: elements.cast(),
            len: elements.len(),
            owner: owner.erase_type(),
            elements: PhantomData,
        })
    }
}

impl<T: Plain> OwnedSlice<T> {
    /// The bytes of the elements, at the same address.
    ///
    /// ```
    /// use dlpack_core::OwnedSlice;
    ///
    /// let bytes = OwnedSlice::new([1_u16, 2], |numbers| Ok(&numbers[..]))?.into_bytes();
    /// assert_eq!(bytes.len(), 4);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn into_bytes(self) -> OwnedSlice<u8> {
        OwnedSlice {
            start: self.start.cast(),
            // The bytes of a slice that exists.
            len: self.len * size_of::<T>(),
            owner: self.owner,
            elements: PhantomData,
        }
    }
}

impl<T: Plain> SharedBuffer<T> {
    /// Converts the buffer to a slice that no code writes any more, if this is the only handle, and the memory was allocated here or
    /// by a `Vec`. Nothing is copied.
    ///
    /// ```
    /// use dlpack_core::SharedBuffer;
    ///
    /// let buffer = SharedBuffer::copied_from(&[1_u8, 2])?;
    /// let other = buffer.clone();
    /// let buffer = buffer.try_into_slice().unwrap_err();
    /// drop(other);
    /// assert_eq!(*buffer.try_into_slice().unwrap(), [1, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The buffer, if other code may have the memory: another handle, an export, or the producer of an import.
    pub fn try_into_slice(mut self) -> Result<OwnedSlice<T>, Self> {
        let Some(elements) = self.get_mut() else {
            return Err(self);
        };
        let elements = NonNull::from(elements);
        Ok(OwnedSlice {
            start: elements.cast(),
            len: elements.len(),
            owner: self.allocation.keeper,
            elements: PhantomData,
        })
    }
}

impl<T> Deref for OwnedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: in `new`, the owner lent these elements for as long as it is borrowed by `&`, which it stays until the last clone
        // of `owner` is dropped. In `try_into_slice`, the handle was the only one, so no code writes the memory, which `owner`
        // keeps. In `into_bytes`, the elements were `Plain`, so each of their bytes is initialised (`Element`).
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> AsRef<[T]> for OwnedSlice<T> {
    #[inline]
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> Clone for OwnedSlice<T> {
    fn clone(&self) -> Self {
        Self {
            start: self.start,
            len: self.len,
            owner: self.owner.clone(),
            elements: PhantomData,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for OwnedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Exports are read-only. Left out of the compiler's lists of implementations, which are short and have to name `Vec<T>`.
#[diagnostic::do_not_recommend]
impl<T: Element> Buffer for OwnedSlice<T> {
    const FACTS: Facts = Facts::list::<T>();

    #[inline]
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self[..])
    }
}
