//! [`SharedBuffer`]: memory that Rust and every consumer may write at the same time.
#![expect(unsafe_code, reason = "owns memory that others write meanwhile")]

use alloc::vec::Vec;
use core::mem::{MaybeUninit, align_of, size_of};
use core::{fmt, marker::PhantomData, ptr, ptr::NonNull, slice};

use crate::element::{Plain, make_values};
use crate::loan::buffer::{Buffer, Writable};
use crate::loan::{Loan, access::Access, facts::Facts};
use crate::memory::{aligned::AlignedBytes, atomic, counted::Counted};
use crate::{Device, Error};

/// Reference-counted memory that may be written while consumers hold it. Memory that is allocated here is 256-byte aligned.
///
/// Clones share the memory. A tensor over it is writable even when it is shared. For example, a simulation can fill one buffer
/// again and again while arrays in Python read it.
///
/// Safe code reads and writes it like a `Cell` that several threads, and NumPy, may use at the same time. If other code writes
/// at the same time, a read returns a mixture of old and new values, in no particular order
/// ([why](crate::soundness#who-may-write)). If the other code is safe Rust code, and the target is x86-64 or AArch64, a read of a
/// scalar of up to 8 bytes returns its value before or after a write. On other targets this holds for single bytes only.
///
/// While this is the only handle, [`SharedBuffer::try_as_slice`] and [`SharedBuffer::try_as_mut_slice`] return ordinary slices.
/// [`SharedBuffer::filled`] lends a new buffer to a function that fills it.
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
    len: usize,
    pub(super) allocation: SharedAllocation,
    elements: PhantomData<T>,
}

/// A handle to a buffer's allocation, or to a range of it, without the element type.
#[derive(Clone, Debug)]
pub(crate) struct SharedAllocation {
    start: *mut u8,
    bytes: usize,
    pub(super) access: Access,
    /// Whether every code that can have the memory holds a handle of this crate: it was allocated here, or came in a `Vec` or a
    /// tensor that is not shared.
    pub(super) is_own: bool,
    /// The reference count that keeps the memory alive.
    pub(super) keeper: Counted,
}

// SAFETY: `SharedAllocation` does not access the memory at its address, and any thread may drop `keeper`, which is `Send` and
// `Sync`.
unsafe impl Send for SharedAllocation {}
// SAFETY: `SharedAllocation` does not access the memory at its address, and any thread may drop `keeper`, which is `Send` and
// `Sync`.
unsafe impl Sync for SharedAllocation {}

impl SharedAllocation {
    /// The address of the first byte, and the number of bytes.
    #[inline]
    pub(crate) fn byte_range(&self) -> (*mut u8, usize) {
        (self.start, self.bytes)
    }

    pub(crate) fn access(&self) -> Access {
        self.access
    }
}

// SAFETY: the elements are plain numbers, accessed atomically or by unsafe functions whose contracts exclude data races.
unsafe impl<T: Plain> Send for SharedBuffer<T> {}
// SAFETY: the elements are plain numbers, accessed atomically or by unsafe functions whose contracts exclude data races.
unsafe impl<T: Plain> Sync for SharedBuffer<T> {}

impl<T: Plain> SharedBuffer<T> {
    /// Allocates `len` elements of zero.
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
        Self::from_keeper(memory, data, len, Access::Shared).map(Self::into_own)
    }

    /// Allocates a copy of these elements.
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

    /// Wraps memory that `owner` keeps alive: `len` aligned, initialised elements, which other code may access as `access` says.
    /// If no memory is left for the reference count, `owner` is dropped.
    pub(crate) fn from_keeper(
        owner: impl Send + Sync + 'static,
        data: *mut T,
        len: usize,
        access: Access,
    ) -> Result<Self, Error> {
        let keeper = Counted::new(owner).map_err(|(_, bytes)| Error::OutOfMemory { bytes })?;
        let allocation = SharedAllocation {
            start: data.cast(),
            bytes: len.saturating_mul(size_of::<T>()),
            access,
            is_own: false,
            keeper: keeper.erase_type(),
        };
        Ok(Self {
            len,
            allocation,
            elements: PhantomData,
        })
    }

    /// Declares that only handles to this allocation lead to its memory. The caller has established that.
    pub(crate) fn into_own(mut self) -> Self {
        self.allocation.is_own = true;
        self
    }

    /// A buffer over a range of an existing shared allocation: `len` aligned, initialised elements inside `allocation`. Other
    /// code may access them as `access` says, and may also write if the allocation already permits it.
    pub(crate) fn from_allocation(
        allocation: &SharedAllocation,
        data: *mut T,
        len: usize,
        access: Access,
    ) -> Self {
        let mut allocation = allocation.clone();
        allocation.access = match access {
            Access::Read if allocation.access.is_shared() => Access::ReadShared,
            access => access,
        };
        allocation.is_own &= !allocation.access.is_read_only();
        (allocation.start, allocation.bytes) = (data.cast(), len.saturating_mul(size_of::<T>()));
        Self {
            len,
            allocation,
            elements: PhantomData,
        }
    }

    /// The number of elements.
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

    /// Whether the memory was imported from a read-only tensor.
    ///
    /// ```
    /// assert!(!dlpack_core::SharedBuffer::<u8>::zeroed(3)?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.allocation.access.is_read_only()
    }

    /// The address of the first element. The caller must exclude data races for accesses through it.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::<u8>::zeroed(3)?;
    /// assert_eq!(buffer.as_ptr().addr() % 256, 0);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn as_ptr(&self) -> *mut T {
        self.allocation.start.cast()
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
    /// If `index` is out of range.
    #[must_use]
    pub fn get(&self, index: usize) -> T {
        let mut element = MaybeUninit::uninit();
        self.load_range(index, slice::from_mut(&mut element));
        // SAFETY: `load_range` wrote every byte of a valid value.
        unsafe { element.assume_init() }
    }

    /// Copies the elements from `start` on, as many as the slice holds.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::copied_from(&[1_u8, 2, 3, 4])?;
    /// let mut middle = [0; 2];
    /// buffer.get_range(1, &mut middle);
    /// assert_eq!(middle, [2, 3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the range exceeds the buffer.
    pub fn get_range(&self, start: usize, elements: &mut [T]) {
        // SAFETY: the type change keeps the layout, and `load_range` writes only valid values.
        let room = unsafe { &mut *(ptr::from_mut(elements) as *mut [MaybeUninit<T>]) };
        self.load_range(start, room);
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
    /// If `index` is out of range, or the memory is [read-only](SharedBuffer::is_read_only).
    pub fn set(&self, index: usize, element: T) {
        self.set_range(index, slice::from_ref(&element));
    }

    /// Replaces the elements from `start` on.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::<u8>::zeroed(4)?;
    /// buffer.set_range(1, &[2, 3]);
    /// assert_eq!(buffer.to_vec(), [0, 2, 3, 0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the range exceeds the buffer, or the memory is [read-only](SharedBuffer::is_read_only).
    pub fn set_range(&self, start: usize, elements: &[T]) {
        // SAFETY: a slice has `len` elements at its address.
        unsafe { self.store_range(start, elements.as_ptr(), elements.len()) };
    }

    /// Sets every element to the same value.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::<f32>::zeroed(3)?;
    /// buffer.fill(0.5);
    /// assert_eq!(buffer.to_vec(), [0.5; 3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the memory is [read-only](SharedBuffer::is_read_only).
    pub fn fill(&self, element: T) {
        // Small elements are first repeated in a block, which is then written at once.
        let mut block = MaybeUninit::<[u8; 1024]>::uninit();
        let (one, many) = (ptr::from_ref(&element), block.as_mut_ptr().cast::<T>());
        let copies = size_of_val(&block).checked_div(size_of::<T>());
        let copies = copies.unwrap_or(0).min(self.len);
        for copy in 0..copies {
            let (from, to) = (one.cast::<u8>(), many.wrapping_add(copy).cast());
            // SAFETY: `from` points to the bytes of one element, and `copies` elements fit into `block`.
            unsafe { ptr::copy_nonoverlapping(from, to, size_of::<T>()) };
        }
        let (from, copies) = if copies > 0 {
            (many.cast_const(), copies)
        } else {
            (one, 1)
        };
        for index in (0..self.len).step_by(copies) {
            // SAFETY: `from` points to one element, or to `copies` elements in `block`, and at most that many are read.
            unsafe { self.store_range(index, from, copies.min(self.len - index)) };
        }
    }

    /// Replaces all elements by those of a slice.
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
    /// If the lengths differ, or the memory is [read-only](SharedBuffer::is_read_only).
    pub fn copy_from_slice(&self, elements: &[T]) {
        self.check_len(elements);
        self.set_range(0, elements);
    }

    /// Copies all elements to a slice.
    ///
    /// ```
    /// let buffer = dlpack_core::SharedBuffer::copied_from(&[7, 8])?;
    /// let mut copy = [0; 2];
    /// buffer.copy_to_slice(&mut copy);
    /// assert_eq!(copy, [7, 8]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn copy_to_slice(&self, elements: &mut [T]) {
        self.check_len(elements);
        self.get_range(0, elements);
    }

    /// Copies all elements to a `Vec`.
    ///
    /// ```
    /// assert_eq!(dlpack_core::SharedBuffer::<u8>::zeroed(2)?.to_vec(), [0, 0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        self.load_all(Vec::with_capacity(self.len))
    }

    /// Copies all elements to an empty vector that has capacity for them.
    pub(super) fn load_all(&self, mut elements: Vec<T>) -> Vec<T> {
        self.load_range(0, &mut elements.spare_capacity_mut()[..self.len]);
        // SAFETY: `load_range` wrote `self.len` valid values.
        unsafe { elements.set_len(self.len) };
        elements
    }

    /// Panics if a slice is not as long as the buffer.
    fn check_len(&self, elements: &[T]) {
        let (found, needed) = (elements.len(), self.len);
        assert_eq!(
            found, needed,
            "the slice has as many elements as the buffer"
        );
    }

    /// The address of `count` elements from `index` on. Panics if they exceed the buffer.
    fn range_address(&self, index: usize, count: usize) -> *mut T {
        if count > self.len.saturating_sub(index) {
            self.panic_out_of_range(index, count);
        }
        self.as_ptr().wrapping_add(index)
    }

    #[cold]
    fn panic_out_of_range(&self, index: usize, count: usize) -> ! {
        let len = self.len;
        match count {
            1 => panic!("index {index} of a buffer of {len} elements"),
            _ => panic!("{count} elements from index {index} of a buffer of {len} elements"),
        }
    }

    /// Copies elements from `index` on, as many as `elements` holds.
    fn load_range(&self, index: usize, elements: &mut [MaybeUninit<T>]) {
        // Computed before the pointer is taken: a later use of `elements` would invalidate the pointer.
        let (count, bytes) = (elements.len(), size_of_val(elements));
        let to = elements.as_mut_ptr().cast::<T>();
        let from = self.range_address(index, count).cast();
        // SAFETY: `range_address` checked the range, and `self` keeps its initialised elements alive. All Rust code accesses
        // them atomically while other code may write. `to` has space for `bytes` bytes.
        unsafe { atomic::load_bytes(from, to.cast(), bytes, align_of::<T>()) };
        // SAFETY: `atomic::load_bytes` wrote all `count` elements.
        unsafe { make_values(to, count) };
    }

    /// Writes `count` elements from `index` on.
    ///
    /// # Safety
    ///
    /// `from` points to `count` readable elements, with any alignment.
    unsafe fn store_range(&self, index: usize, from: *const T, count: usize) {
        let is_writable = !self.is_read_only();
        assert!(is_writable, "the memory belongs to a read-only tensor");
        let to = self.range_address(index, count).cast();
        // SAFETY: `from` is readable by this function's contract. `range_address` checked the range, and its elements are kept
        // alive by `self`. All Rust code accesses them atomically while other code may read or write.
        unsafe { atomic::store_bytes(from.cast(), to, count * size_of::<T>(), align_of::<T>()) };
    }
}

impl<T> Clone for SharedBuffer<T> {
    fn clone(&self) -> Self {
        Self {
            len: self.len,
            allocation: self.allocation.clone(),
            elements: PhantomData,
        }
    }
}

impl<T> fmt::Debug for SharedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuffer")
            .field("data", &self.allocation.start)
            .field("len", &self.len)
            .field("access", &self.allocation.access)
            .finish_non_exhaustive()
    }
}

impl<T: Plain> Buffer for SharedBuffer<T> {
    const FACTS: Facts = Facts::list::<T>().any_bits().writable_shared();
    const IS_ALLOCATION: bool = true;

    fn lend(&self) -> Loan<'_> {
        // SAFETY: the address holds `len` elements that the handle keeps alive while `self` is borrowed. If the memory was
        // adopted for reading, no code writes it, by the contract of the adoption, and `store_range` panics. Otherwise other
        // code may write it: the access set below says so, and Rust code accesses it only atomically, as `from_raw_parts_mut`
        // requires.
        let mut loan = unsafe { Loan::from_raw_parts(self.as_ptr(), self.len, Device::CPU) };
        // `from_raw_parts` computes this size, with a check for an overflow. The allocation has stored it.
        loan.memory.bytes = self.allocation.bytes;
        // `bool`s may be written too, since `load_range` makes every byte a valid value.
        loan.memory.access = self.allocation.access;
        loan.memory.allocation = Some(NonNull::from(&self.allocation));
        loan
    }
}

impl<T: Plain> Writable for SharedBuffer<T> {}
