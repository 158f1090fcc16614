//! Slices of a [`SharedBuffer`]: of one that no other code has, and of a new one that safe code fills.
//!
//! Why the safe functions are sound: each consumer of the memory has a reference to the allocation, or borrows the handle that it
//! was exported from. A count of 1 excludes the first, and `&mut self` excludes the second for as long as the slice lives. It
//! also excludes new clones and new exports of this handle. The count is loaded with `Acquire`, and a consumer's reference is
//! dropped with `Release` after its last access. So all accesses of former consumers happened before those through the slice.
//! The protocol is that of [`Counted::into_value`](crate::memory::counted::Counted::into_value), and has its loom models.
#![expect(unsafe_code, reason = "lends memory that nothing else accesses")]

use alloc::borrow::Cow;
use core::{mem::MaybeUninit, ptr, slice};

use crate::element::Plain;
use crate::loan::access::Access;
use crate::memory::aligned::{AlignedBytes, allocate_vec};
use crate::{Error, SharedBuffer};

impl<T: Plain> SharedBuffer<T> {
    /// Borrows the elements as a slice, for a function that takes `&[T]`, if no other code can write to them.
    ///
    /// That is the case while this is the only handle: no clone and no array of a consumer is alive. `&mut self` prevents new ones
    /// while the slice lives. Memory that was imported from another library is refused, because its producer may write to it.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Error, SharedBuffer};
    ///
    /// let mut buffer = SharedBuffer::copied_from(&[1_u8, 2, 3])?;
    /// assert_eq!(buffer.try_as_slice()?.iter().max(), Some(&3));
    ///
    /// let array = buffer.clone().into_dlpack()?;
    /// assert_eq!(buffer.try_as_slice(), Err(Error::BufferInUse));
    /// drop(array);
    /// assert_eq!(buffer.try_as_slice()?, [1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BufferInUse`], [`Error::ForeignBuffer`].
    pub fn try_as_slice(&mut self) -> Result<&[T], Error> {
        if self.allocation.access == Access::Read {
            // SAFETY: memory with this access is never written, by the contract of its adoption, which also checked `bool`s.
            return Ok(unsafe { self.as_slice() });
        }
        self.try_as_mut_slice().map(|elements| &*elements)
    }

    /// Borrows the elements as a mutable slice, for a function that takes `&mut [T]`, if no other code can access them.
    ///
    /// The conditions are those of [`SharedBuffer::try_as_slice`].
    ///
    /// ```
    /// use dlpack_core::SharedBuffer;
    ///
    /// let mut buffer = SharedBuffer::copied_from(&[3_i32, 1, 2])?;
    /// buffer.try_as_mut_slice()?.sort();
    /// assert_eq!(buffer.to_vec(), [1, 2, 3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BufferInUse`], [`Error::ForeignBuffer`], [`Error::ReadOnly`].
    pub fn try_as_mut_slice(&mut self) -> Result<&mut [T], Error> {
        self.check_exclusive()?;
        if !T::ANY_BITS {
            // A consumer that has released the memory may have left a byte that is no valid `bool`.
            for index in 0..self.len() {
                self.set(index, self.get(index));
            }
        }
        // SAFETY: the address holds `len` aligned, initialised elements. `check_exclusive` found that only this handle leads to
        // them, and `&mut self` prevents new handles and exports. Invalid `bool`s were replaced in the loop above.
        Ok(unsafe { slice::from_raw_parts_mut(self.as_ptr(), self.len()) })
    }

    /// Borrows the elements as a slice, or copies them if other code has the memory too.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use dlpack_core::SharedBuffer;
    ///
    /// let mut buffer = SharedBuffer::copied_from(&[1_u8, 2, 3])?;
    /// assert!(matches!(buffer.slice_or_copy()?, Cow::Borrowed(_)));
    /// let other = buffer.clone();
    /// assert_eq!(buffer.slice_or_copy()?, Cow::<[u8]>::Owned(vec![1, 2, 3]));
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn slice_or_copy(&mut self) -> Result<Cow<'_, [T]>, Error> {
        if self.allocation.access == Access::Read || self.check_exclusive().is_ok() {
            return self.try_as_slice().map(Cow::Borrowed);
        }
        let copy = allocate_vec(self.len()).map_err(|bytes| Error::OutOfMemory { bytes })?;
        Ok(Cow::Owned(self.load_all(copy)))
    }

    /// Checks that only this handle leads to the memory, and that it may be written.
    fn check_exclusive(&self) -> Result<(), Error> {
        if self.is_read_only() {
            return Err(match self.allocation.access {
                Access::Read => Error::ReadOnly,
                _ => Error::ForeignBuffer,
            });
        }
        if !self.allocation.is_own {
            return Err(Error::ForeignBuffer);
        }
        if self.allocation.keeper.reference_count() > 1 {
            return Err(Error::BufferInUse);
        }
        Ok(())
    }

    /// Borrows the elements as a mutable slice like [`SharedBuffer::try_as_mut_slice`]; `None` if that is refused.
    ///
    /// ```
    /// let mut buffer = dlpack_core::SharedBuffer::<u8>::zeroed(2)?;
    /// buffer.get_mut().unwrap().fill(3);
    /// let other = buffer.clone();
    /// assert!(buffer.get_mut().is_none());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    pub fn get_mut(&mut self) -> Option<&mut [T]> {
        self.try_as_mut_slice().ok()
    }

    /// The elements as a slice, while other code may hold the buffer too.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::copied_from(&[1_u8, 2])?;
    /// // SAFETY: no other handle to the buffer exists.
    /// assert_eq!(unsafe { buffer.as_slice() }, [1, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// No clone and no consumer writes the memory while the slice lives. No consumer has left a byte other than 0 and 1 in
    /// place of a `bool`.
    #[must_use]
    pub unsafe fn as_slice(&self) -> &[T] {
        if self.as_ptr().is_null() {
            return &[];
        }
        // SAFETY: the address holds `len` aligned, initialised elements that `self` keeps alive. By this function's contract
        // none is written meanwhile, and `bool`s are valid.
        unsafe { slice::from_raw_parts(self.as_ptr(), self.len()) }
    }

    /// Allocates `len` elements, and lends them to a function that fills them before any other code has them.
    ///
    /// The elements are 0 before the call. Large zeroed memory costs nothing extra: the system provides it zeroed.
    ///
    /// ```
    /// use dlpack_core::SharedBuffer;
    ///
    /// let ramp = SharedBuffer::filled(3, |elements: &mut [f32]| {
    ///     for (i, element) in elements.iter_mut().enumerate() {
    ///         *element = i as f32;
    ///     }
    /// })?;
    /// assert_eq!(ramp.to_vec(), [0.0, 1.0, 2.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn filled(len: usize, fill: impl FnOnce(&mut [T])) -> Result<Self, Error> {
        Self::try_filled(len, |elements| {
            fill(elements);
            Ok(())
        })
    }

    /// Allocates `len` elements, and lends them to a function that fills them or fails.
    ///
    /// ```
    /// use std::io::{self, Read};
    /// use dlpack_core::SharedBuffer;
    ///
    /// fn read(mut source: impl Read, len: usize) -> Result<SharedBuffer<u8>, Box<dyn std::error::Error>> {
    ///     SharedBuffer::try_filled(len, |bytes| Ok(source.read_exact(bytes)?))
    /// }
    /// assert_eq!(read(io::repeat(7), 2)?.to_vec(), [7, 7]);
    /// assert!(read(io::empty(), 2).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of `fill`, and [`Error::OutOfMemory`].
    pub fn try_filled<E: From<Error>>(
        len: usize,
        fill: impl FnOnce(&mut [T]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut buffer = Self::zeroed(len)?;
        fill(buffer.try_as_mut_slice()?)?;
        Ok(buffer)
    }

    /// Allocates `len` elements, and lends them without setting them to 0 first. The function returns the slice that it was given,
    /// with every element written.
    ///
    /// Such a slice proves itself: the functions that make a `&mut [T]` of a `&mut [MaybeUninit<T>]` write every element, or are
    /// `unsafe`. Use this if zeroing shows in a profile, which it does for memory that is allocated again and again;
    /// [`SharedBuffer::filled`] is the simple function.
    ///
    /// ```
    /// use std::ptr;
    /// use dlpack_core::SharedBuffer;
    ///
    /// let squares = SharedBuffer::filled_uninit(3, |elements| {
    ///     for (i, element) in elements.iter_mut().enumerate() {
    ///         element.write(i * i);
    ///     }
    ///     // SAFETY: the loop wrote each element. (From Rust 1.93 on, `elements.write_copy_of_slice(..)` needs no `unsafe`.)
    ///     unsafe { &mut *(ptr::from_mut(elements) as *mut [usize]) }
    /// })?;
    /// assert_eq!(squares.to_vec(), [0, 1, 4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    ///
    /// # Panics
    ///
    /// If `fill` returns another slice.
    pub fn filled_uninit(
        len: usize,
        fill: impl for<'a> FnOnce(&'a mut [MaybeUninit<T>]) -> &'a mut [T],
    ) -> Result<Self, Error> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut memory = AlignedBytes::new(bytes).map_err(|bytes| Error::OutOfMemory { bytes })?;
        let data = memory.as_mut_ptr().cast::<T>();
        // SAFETY: `memory` owns `len` aligned elements at this address, and no other code has the address.
        let elements = unsafe { slice::from_raw_parts_mut(data.cast::<MaybeUninit<T>>(), len) };
        let filled = fill(elements);
        // An empty slice may have any address.
        let is_given = bytes == 0 || ptr::eq(filled.as_ptr(), data);
        assert!(
            is_given && filled.len() == len,
            "`fill` returns the slice that it was given, all of it"
        );
        // The returned slice is valid and no other allocation has its address, so it shows that every element is initialised.
        Self::from_keeper(memory, data, len, Access::Shared).map(Self::into_own)
    }
}
