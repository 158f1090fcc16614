//! Heap memory for the elements of a tensor: aligned, and quick to use for the first time.
#![expect(unsafe_code, reason = "owns heap memory with its own alignment")]

use alloc::alloc::{alloc, alloc_zeroed, dealloc};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::{NonNull, without_provenance_mut};

/// The alignment of memory that we allocate for tensors: what DLPack asks for.
// CPY-14
const ALIGNMENT: usize = 256;

/// The size of a huge page on most machines.
const HUGE_PAGE: usize = 2 << 20;

/// Heap memory for the elements of a tensor, aligned to 256 bytes and not initialised.
///
/// The allocator is asked for a little more and the start aligned by hand: allocators are much faster at
/// their own alignment. Big memory is aligned to huge pages, which halves the cost of its first use.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    start: NonNull<u8>,
    len: usize,
    /// What the allocator gave; dangling if `len` is 0.
    base: NonNull<u8>,
}

impl AlignedBytes {
    /// Where a tensor over them begins: nowhere, if there are none.
    #[inline]
    pub(crate) fn start(&mut self) -> *mut u8 {
        if self.is_empty() {
            return core::ptr::null_mut();
        }
        self.as_mut_ptr()
    }

    /// Allocates; the error is the number of bytes that could not be had.
    pub(crate) fn new(len: usize) -> Result<Self, usize> {
        Self::from(len, alloc)
    }

    /// The same with every byte 0, which the system gives away for free where there is much of it.
    pub(crate) fn zeroed(len: usize) -> Result<Self, usize> {
        Self::from(len, alloc_zeroed)
    }

    fn from(len: usize, alloc: unsafe fn(Layout) -> *mut u8) -> Result<Self, usize> {
        let align = Self::align(len);
        if len == 0 {
            let start = NonNull::new(without_provenance_mut(align)).ok_or(len)?;
            let base = start;
            return Ok(Self { start, len, base });
        }
        let layout = Self::layout(len).ok_or(len)?;
        // SAFETY: the layout has a size, as `len` is not 0.
        let base = unsafe { alloc(layout) };
        let base = NonNull::new(base).ok_or(len)?;
        let address = base.addr().get();
        let gap = address.next_multiple_of(align) - address;
        let start = NonNull::new(base.as_ptr().wrapping_add(gap)).ok_or(len)?;
        // SAFETY: memory of ours, of this length.
        unsafe { advise(start.as_ptr(), len) };
        Ok(Self { start, len, base })
    }

    /// The alignment for memory of this size: to huge pages where these are a small part of it.
    fn align(len: usize) -> usize {
        if len >= 16 * HUGE_PAGE {
            HUGE_PAGE
        } else {
            ALIGNMENT
        }
    }

    /// What the allocator is asked for, if so much can exist: room to align within.
    fn layout(len: usize) -> Option<Layout> {
        // The alignment that every allocator gives without effort.
        let easy = 2 * align_of::<usize>();
        let size = len.checked_add(Self::align(len) - easy)?;
        Layout::from_size_align(size, easy).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first byte, to write to.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

/// A vector with room for so many; the error is the number of bytes that could not be had.
pub(crate) fn room<T>(len: usize) -> Result<Vec<T>, usize> {
    let (mut elements, bytes) = (Vec::<T>::new(), len.saturating_mul(size_of::<T>()));
    elements.try_reserve_exact(len).map_err(|_| bytes)?;
    // SAFETY: the memory of the vector.
    unsafe { advise(elements.as_mut_ptr().cast(), bytes) };
    Ok(elements)
}

/// Asks for huge pages as NumPy does, since a page fault for every 4 KB costs more than the copy.
///
/// # Safety
///
/// From `start` on the caller has `len` bytes.
unsafe fn advise(start: *mut u8, len: usize) {
    #[cfg(all(feature = "std", target_os = "linux", not(miri)))]
    if len >= 2 * HUGE_PAGE {
        use core::ffi::{c_int, c_void};
        unsafe extern "C" {
            fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int;
        }
        const MADV_HUGEPAGE: c_int = 14;
        /// The largest size of an ordinary page, hence a start that is good for all.
        const PAGE: usize = 64 << 10;

        let address = start.addr();
        let gap = address.next_multiple_of(PAGE) - address;
        let start = start.wrapping_add(gap).cast();
        // SAFETY: whole pages of the caller's memory; the advice changes neither contents nor validity. It may be
        // refused, which only costs time.
        let _refused = unsafe { madvise(start, (len - gap) / PAGE * PAGE, MADV_HUGEPAGE) };
    }
    #[cfg(not(all(feature = "std", target_os = "linux", not(miri))))]
    let _ = (start, len);
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        if self.len != 0 {
            let layout = Self::layout(self.len).expect("the memory was allocated with this layout");
            // SAFETY: `new` allocated it with this layout, and nothing else frees it.
            unsafe { dealloc(self.base.as_ptr(), layout) }
        }
    }
}

// SAFETY: the memory belongs to the value alone, and any thread may free it.
unsafe impl Send for AlignedBytes {}
// SAFETY: a shared reference gives no more than an address and a length.
unsafe impl Sync for AlignedBytes {}

static_assertions::assert_impl_all!(AlignedBytes: Send, Sync);

#[cfg(test)]
mod tests {
    use super::*;

    // CPY-14
    #[test]
    fn memory_is_aligned() {
        for len in [0, 1, 255, 256, 257, 4096, 1 << 20, 4 << 20, (32 << 20) + 1] {
            let mut bytes = AlignedBytes::new(len).expect("so much there is");
            assert_eq!(bytes.as_mut_ptr().addr() % 256, 0, "{len} bytes");
            if len > 0 {
                let start = bytes.as_mut_ptr();
                // SAFETY: the first byte of some.
                unsafe { start.write(1) };
                // SAFETY: the last byte of `len`.
                unsafe { start.wrapping_add(len - 1).write(2) };
            }
        }
    }

    /// Room to align within costs little: 240 bytes, or a sixteenth.
    #[test]
    fn alignment_takes_a_small_part() {
        let easy = 2 * align_of::<usize>();
        for (len, align) in [(1, 256), ((32 << 20) - 1, 256), (32 << 20, 2 << 20)] {
            assert_eq!(AlignedBytes::align(len), align);
            let layout = AlignedBytes::layout(len).expect("so much can exist");
            assert_eq!((layout.size(), layout.align()), (len + align - easy, easy));
        }
    }

    #[test]
    fn too_much_memory_is_an_error() {
        let most = isize::MAX.unsigned_abs();
        for len in [most - 4096, most, usize::MAX] {
            assert_eq!(AlignedBytes::new(len).map(|_| ()), Err(len));
        }
    }
}
