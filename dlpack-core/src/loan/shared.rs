//! [`SharedBuffer`]: memory that Rust and every consumer may write at the same time.
#![expect(unsafe_code, reason = "owns memory that others write meanwhile")]

use alloc::vec::Vec;
use core::mem::{MaybeUninit, align_of, size_of};
use core::{fmt, marker::PhantomData, slice};

use crate::loan::buffer::{Buffer, Writable};
use crate::loan::{Loan, access::Access, facts::Facts};
use crate::memory::{aligned::AlignedBytes, atomic, counted::Counted};
use crate::{Device, Error, element::Plain};

/// Reference-counted memory, 256-byte aligned, that may be written while consumers hold it.
///
/// Clones share the memory. A tensor over it is writable even when it is shared, so that, say, a
/// simulation can fill one buffer again and again while arrays in Python look at it.
///
/// Reading and writing in safe code works like a `Cell` that may be on several threads, and in the
/// hands of NumPy: whoever writes meanwhile, and however, what is read is a mixture of old and new
/// values, in no particular order ([why](crate::soundness#who-may-write)). Each scalar of up to 8
/// bytes is read and written whole on x86-64 and AArch64; elsewhere each byte is. Where nobody else
/// can be looking, [`SharedBuffer::get_mut`] gives an ordinary slice.
///
/// ```
/// use std::sync::Arc;
/// use dlpack_core::{DLPack, SharedBuffer};
///
/// let observation = SharedBuffer::<f32>::zeroed(4)?;
/// let exported = Arc::new(observation.clone()).to_dlpack()?;
/// assert!(!exported.view().is_read_only());
///
/// observation.set(2, 0.5);
/// assert_eq!(exported.view().to_vec::<f32>()?, [0.0, 0.0, 0.5, 0.0]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct SharedBuffer<T> {
    data: *mut T,
    len: usize,
    access: Access,
    /// Whether the memory was allocated here.
    is_own: bool,
    /// What keeps it.
    home: Counted,
    elements: PhantomData<T>,
}

// SAFETY: the memory is reached by atomic accesses, or through contracts that exclude races; the
// elements are plain numbers.
unsafe impl<T: Plain> Send for SharedBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for SharedBuffer<T> {}

impl<T: Plain> SharedBuffer<T> {
    /// `len` elements of zero.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::<u16>::zeroed(3)?;
    /// assert_eq!(buffer.to_vec(), [0, 0, 0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut memory =
            AlignedBytes::zeroed(bytes).map_err(|bytes| Error::OutOfMemory { bytes })?;
        let data = memory.as_mut_ptr().cast();
        Ok(Self {
            is_own: true,
            ..Self::kept_by(memory, data, len, Access::Shared)?
        })
    }

    /// A copy of these elements.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::copied_from(&[1.0_f64, 2.0])?;
    /// assert_eq!(buffer.get(1), 2.0);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn copied_from(elements: &[T]) -> Result<Self, Error> {
        let buffer = Self::zeroed(elements.len())?;
        buffer.copy_from_slice(elements);
        Ok(buffer)
    }

    /// Memory that somebody else keeps: `len` aligned, initialised elements, for as long as `home` lives. Others access
    /// them as `access` says. Without memory it is dropped.
    pub(crate) fn kept_by(
        home: impl Send + Sync + 'static,
        data: *mut T,
        len: usize,
        access: Access,
    ) -> Result<Self, Error> {
        let home = Counted::new(home).map_err(|(_, bytes)| Error::OutOfMemory { bytes })?;
        Ok(Self {
            data,
            len,
            access,
            is_own: false,
            home: home.untyped(),
            elements: PhantomData,
        })
    }

    /// How many elements there are.
    ///
    /// ```
    /// assert_eq!(dlpack_core::SharedBuffer::<u8>::zeroed(3)?.len(), 3);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    ///
    /// ```
    /// assert!(dlpack_core::SharedBuffer::<u8>::zeroed(0)?.is_empty());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the memory came from a producer that lets nobody write to it.
    ///
    /// ```
    /// assert!(!dlpack_core::SharedBuffer::<u8>::zeroed(3)?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.access.is_read_only()
    }

    /// The address of the first element; reading and writing through it is for the caller to order.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::<u8>::zeroed(3)?;
    /// assert_eq!(buffer.as_ptr().addr() % 256, 0);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn as_ptr(&self) -> *mut T {
        self.data
    }

    /// One element.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::copied_from(&[[1_u8, 2], [3, 4]])?;
    /// assert_eq!(buffer.get(1), [3, 4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such element.
    #[must_use]
    pub fn get(&self, index: usize) -> T {
        let mut element = MaybeUninit::uninit();
        self.load(index, slice::from_mut(&mut element));
        // SAFETY: `load` filled every byte with those of a value.
        unsafe { element.assume_init() }
    }

    /// Replaces one element.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::<i64>::zeroed(2)?;
    /// buffer.set(0, -1);
    /// assert_eq!(buffer.to_vec(), [-1, 0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such element, or the memory is [read-only](SharedBuffer::is_read_only).
    pub fn set(&self, index: usize, element: T) {
        self.store(index, slice::from_ref(&element));
    }

    /// Replaces all elements.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::<i64>::zeroed(2)?;
    /// buffer.copy_from_slice(&[7, 8]);
    /// assert_eq!(buffer.get(0), 7);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there are not as many, or the memory is [read-only](SharedBuffer::is_read_only).
    pub fn copy_from_slice(&self, elements: &[T]) {
        assert_eq!(
            elements.len(),
            self.len,
            "the slice has as many elements as the buffer"
        );
        self.store(0, elements);
    }

    /// All elements.
    ///
    /// ```
    /// assert_eq!(dlpack_core::SharedBuffer::<u8>::zeroed(2)?.to_vec(), [0, 0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        let mut elements = Vec::with_capacity(self.len);
        self.load(0, &mut elements.spare_capacity_mut()[..self.len]);
        // SAFETY: `load` filled so many with values.
        unsafe { elements.set_len(self.len) };
        elements
    }

    /// The elements as a slice, if this is the only handle and the memory was allocated here: then no
    /// consumer can be looking.
    ///
    /// ```
    /// let mut buffer = dlpack_core::SharedBuffer::<u8>::zeroed(2)?;
    /// buffer.get_mut().unwrap().fill(3);
    /// let other = buffer.clone();
    /// assert!(buffer.get_mut().is_none());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    pub fn get_mut(&mut self) -> Option<&mut [T]> {
        if !self.is_own || self.home.holds() > 1 {
            return None;
        }
        if !T::ANY_BITS {
            // A consumer that is gone may have left anything where a `bool` belongs.
            for index in 0..self.len {
                self.set(index, self.get(index));
            }
        }
        // SAFETY: `len` aligned, initialised elements. Every export and every clone holds `home`, and
        // nobody does; `&mut self` keeps it so. What stands for a `bool` was made one right above.
        Some(unsafe { slice::from_raw_parts_mut(self.data, self.len) })
    }

    /// The elements as a slice, while others may hold them.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::copied_from(&[1_u8, 2])?;
    /// // SAFETY: nobody else has the buffer.
    /// assert_eq!(unsafe { buffer.as_slice() }, [1, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// Nobody writes to the memory while the slice lives: no clone, no consumer. No consumer has left a
    /// byte other than 0 and 1 where a `bool` stands.
    #[must_use]
    pub unsafe fn as_slice(&self) -> &[T] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: `len` aligned, initialised elements that `home` keeps; the caller excludes writers.
        unsafe { slice::from_raw_parts(self.data, self.len) }
    }

    /// The address of `count` elements from `index` on.
    fn place(&self, index: usize, count: usize) -> *mut T {
        assert!(
            count <= self.len.saturating_sub(index),
            "index {index} of a buffer of {} elements",
            self.len
        );
        self.data.wrapping_add(index)
    }

    /// Reads as many elements from `index` on as there is room for.
    fn load(&self, index: usize, elements: &mut [MaybeUninit<T>]) {
        let from = self.place(index, elements.len()).cast();
        let (to, bytes) = (elements.as_mut_ptr().cast::<u8>(), size_of_val(elements));
        // SAFETY: elements of this buffer, initialised and kept by `home`, which all Rust code accesses like this while others
        // look. There is room for as many.
        unsafe { atomic::load(from, to, bytes, align_of::<T>()) };
        if !T::ANY_BITS {
            // SAFETY: the bytes of `elements`, all written right above.
            let bytes = unsafe { slice::from_raw_parts_mut(to, bytes) };
            // A consumer may have left anything where a `bool` belongs.
            bytes
                .iter_mut()
                .for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }

    /// Writes elements from `index` on.
    fn store(&self, index: usize, elements: &[T]) {
        assert!(
            !self.is_read_only(),
            "the memory belongs to a read-only tensor"
        );
        let (from, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
        let to = self.place(index, elements.len()).cast();
        // SAFETY: as in `load`, with the sides exchanged.
        unsafe { atomic::store(from, to, bytes, align_of::<T>()) };
    }
}

impl<T> Clone for SharedBuffer<T> {
    fn clone(&self) -> Self {
        Self {
            data: self.data,
            len: self.len,
            access: self.access,
            is_own: self.is_own,
            home: self.home.clone(),
            elements: PhantomData,
        }
    }
}

impl<T> fmt::Debug for SharedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuffer")
            .field("data", &self.data)
            .field("len", &self.len)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

impl<T: Plain> Buffer for SharedBuffer<T> {
    const FACTS: Facts = Facts::list::<T>().any_bits().writable_shared();

    fn lend(&self) -> Loan<'_> {
        // SAFETY: `len` elements that `home` keeps while `self` is borrowed. If they were adopted for reading, nobody
        // writes to them, by that contract, and `store` refuses. Else others may write, we only access them atomically,
        // and the loan says so, as one of `from_raw_parts_mut` does.
        let mut loan = unsafe { Loan::from_raw_parts(self.data, self.len, Device::CPU) };
        // `bool` too may be written: whatever `load` reads, it makes a value first.
        loan.memory.access = self.access;
        loan
    }
}

impl<T: Plain> Writable for SharedBuffer<T> {}
