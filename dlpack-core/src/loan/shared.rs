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
    len: usize,
    home: Home,
    elements: PhantomData<T>,
}

/// Memory that keeps itself: a buffer, whatever its elements are.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    start: *mut u8,
    bytes: usize,
    access: Access,
    /// Whether the memory was allocated here.
    is_own: bool,
    /// What keeps it.
    keeper: Counted,
}

// SAFETY: an address, through which `Home` itself neither reads nor writes, and what keeps it, which any thread may drop.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

impl Home {
    /// The first byte, and how many there are.
    #[inline]
    pub(crate) fn bytes(&self) -> (*mut u8, usize) {
        (self.start, self.bytes)
    }

    #[inline]
    pub(crate) fn access(&self) -> Access {
        self.access
    }
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
        let mut buffer = Self::kept_by(memory, data, len, Access::Shared)?;
        buffer.home.is_own = true;
        Ok(buffer)
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
        let keeper = Counted::new(home).map_err(|(_, bytes)| Error::OutOfMemory { bytes })?;
        let home = Home {
            start: data.cast(),
            bytes: len.saturating_mul(size_of::<T>()),
            access,
            is_own: false,
            keeper: keeper.erase_type(),
        };
        Ok(Self {
            len,
            home,
            elements: PhantomData,
        })
    }

    /// `len` aligned, initialised elements in memory that keeps itself, which `home` contains. Others access them as `access`
    /// says, or as those who have that memory already do.
    pub(crate) fn within(home: &Home, data: *mut T, len: usize, access: Access) -> Self {
        let mut home = home.clone();
        home.access = match access {
            Access::Read if home.access.is_shared() => Access::ReadShared,
            access => access,
        };
        home.is_own &= !home.access.is_read_only();
        (home.start, home.bytes) = (data.cast(), len.saturating_mul(size_of::<T>()));
        Self {
            len,
            home,
            elements: PhantomData,
        }
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
        self.home.access.is_read_only()
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
        self.home.start.cast()
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

    /// The elements from `start` on, as many as there is room for.
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
    /// If there are not so many.
    pub fn get_range(&self, start: usize, elements: &mut [T]) {
        // SAFETY: the same elements; `load` writes nothing but values.
        let room = unsafe { &mut *(ptr::from_mut(elements) as *mut [MaybeUninit<T>]) };
        self.load(start, room);
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
    /// If there are not so many, or the memory is [read-only](SharedBuffer::is_read_only).
    pub fn set_range(&self, start: usize, elements: &[T]) {
        // SAFETY: the elements of a slice.
        unsafe { self.store(start, elements.as_ptr(), elements.len()) };
    }

    /// Replaces all elements by copies of one.
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
        // Small ones are written many at a time.
        let mut block = MaybeUninit::<[u8; 1024]>::uninit();
        let (one, many) = (ptr::from_ref(&element), block.as_mut_ptr().cast::<T>());
        let copies = size_of_val(&block).checked_div(size_of::<T>());
        let copies = copies.unwrap_or(0).min(self.len);
        for copy in 0..copies {
            let (from, to) = (one.cast::<u8>(), many.wrapping_add(copy).cast());
            // SAFETY: the bytes of an element, which is no more than them, and room for as many.
            unsafe { ptr::copy_nonoverlapping(from, to, size_of::<T>()) };
        }
        let (from, copies) = if copies > 0 {
            (many.cast_const(), copies)
        } else {
            (one, 1)
        };
        for index in (0..self.len).step_by(copies) {
            // SAFETY: so many elements lie there, one after another.
            unsafe { self.store(index, from, copies.min(self.len - index)) };
        }
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
        self.check_len(elements);
        self.set_range(0, elements);
    }

    /// Copies all elements.
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
    /// If there are not as many.
    pub fn copy_to_slice(&self, elements: &mut [T]) {
        self.check_len(elements);
        self.get_range(0, elements);
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
        if !self.home.is_own || self.home.keeper.reference_count() > 1 {
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
        Some(unsafe { slice::from_raw_parts_mut(self.as_ptr(), self.len) })
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
        if self.as_ptr().is_null() {
            return &[];
        }
        // SAFETY: `len` aligned, initialised elements that `home` keeps; the caller excludes writers.
        unsafe { slice::from_raw_parts(self.as_ptr(), self.len) }
    }

    /// That a slice is as long as the buffer.
    fn check_len(&self, elements: &[T]) {
        assert_eq!(
            elements.len(),
            self.len,
            "the slice has as many elements as the buffer"
        );
    }

    /// The address of `count` elements from `index` on.
    fn place(&self, index: usize, count: usize) -> *mut T {
        if count > self.len.saturating_sub(index) {
            self.no_such(index, count);
        }
        self.as_ptr().wrapping_add(index)
    }

    #[cold]
    fn no_such(&self, index: usize, count: usize) -> ! {
        let len = self.len;
        assert!(
            count == 1,
            "{count} elements from index {index} of a buffer of {len} elements"
        );
        panic!("index {index} of a buffer of {len} elements")
    }

    /// Reads as many elements from `index` on as there is room for.
    fn load(&self, index: usize, elements: &mut [MaybeUninit<T>]) {
        // Looked up before the pointer is taken: a later use of `elements` would end its permission to write.
        let (count, bytes) = (elements.len(), size_of_val(elements));
        let to = elements.as_mut_ptr().cast::<T>();
        let from = self.place(index, count).cast();
        // SAFETY: elements of this buffer, initialised and kept by `home`, which all Rust code accesses like this while others
        // look. There is room for as many.
        unsafe { atomic::load(from, to.cast(), bytes, align_of::<T>()) };
        // SAFETY: all written right above.
        unsafe { make_values(to, count) };
    }

    /// Writes so many elements from `index` on.
    ///
    /// # Safety
    ///
    /// From `from` on there are `count` elements, at whatever alignment.
    unsafe fn store(&self, index: usize, from: *const T, count: usize) {
        assert!(
            !self.is_read_only(),
            "the memory belongs to a read-only tensor"
        );
        let to = self.place(index, count).cast();
        // SAFETY: as in `load`, with the sides exchanged.
        unsafe { atomic::store(from.cast(), to, count * size_of::<T>(), align_of::<T>()) };
    }
}

impl<T> Clone for SharedBuffer<T> {
    fn clone(&self) -> Self {
        Self {
            len: self.len,
            home: self.home.clone(),
            elements: PhantomData,
        }
    }
}

impl<T> fmt::Debug for SharedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuffer")
            .field("data", &self.home.start)
            .field("len", &self.len)
            .field("access", &self.home.access)
            .finish_non_exhaustive()
    }
}

impl<T: Plain> Buffer for SharedBuffer<T> {
    const FACTS: Facts = Facts::list::<T>().any_bits().writable_shared();

    fn lend(&self) -> Loan<'_> {
        // SAFETY: `len` elements that `home` keeps while `self` is borrowed. If they were adopted for reading, nobody
        // writes to them, by that contract, and `store` refuses. Else others may write, we only access them atomically,
        // and the loan says so, as one of `from_raw_parts_mut` does.
        let mut loan = unsafe { Loan::from_raw_parts(self.as_ptr(), self.len, Device::CPU) };
        // `bool` too may be written: whatever `load` reads, it makes a value first.
        loan.memory.access = self.home.access;
        loan.memory.home = Some(NonNull::from(&self.home));
        loan
    }
}

impl<T: Plain> Writable for SharedBuffer<T> {}
