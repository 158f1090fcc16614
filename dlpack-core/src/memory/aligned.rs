//! Heap memory for the elements of a tensor: aligned, and with few page faults on first use.
#![expect(unsafe_code, reason = "owns heap memory with its own alignment")]

use alloc::alloc::{alloc, alloc_zeroed, dealloc};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::{NonNull, without_provenance_mut};

/// The alignment of the memory that we allocate for tensors, as DLPack requires.
// CPY-14
const ALIGNMENT: usize = 256;

/// The size of a huge page on most machines.
const HUGE_PAGE: usize = 2 << 20;

/// The size of an ordinary page on most machines.
const SMALL_PAGE: usize = 4 << 10;

/// Heap memory for the elements of a tensor, aligned to 256 bytes and not initialised.
///
/// The allocation is a little larger than requested, and its start is aligned by hand, because allocators are much faster
/// at their default alignment. Large memory is aligned to huge pages, which halves the cost of its first use.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    start: NonNull<u8>,
    len: usize,
    /// The address that the allocator returned; dangling if `len` is 0.
    base: NonNull<u8>,
}

impl AlignedBytes {
    /// The data pointer of a tensor over these bytes; null if there are none.
    #[inline]
    pub(crate) fn data_ptr(&mut self) -> *mut u8 {
        if self.is_empty() {
            return core::ptr::null_mut();
        }
        self.as_mut_ptr()
    }

    /// Allocates uninitialised memory. The error is the number of bytes that could not be allocated.
    pub(crate) fn new(len: usize) -> Result<Self, usize> {
        Self::allocate_with(len, 0, alloc)
    }

    /// Allocates uninitialised memory for a copy of bytes at `source`. Large memory begins at nearly the same place of a page as
    /// the source.
    ///
    /// For other places, `memcpy` of glibc writes large memory around the cache. In new memory that takes a third longer: the
    /// kernel has just written zeros there, which are still in the cache.
    pub(crate) fn for_copy_of(source: *const u8, len: usize) -> Result<Self, usize> {
        let place = source.addr().wrapping_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        Self::allocate_with(len, place % SMALL_PAGE, alloc)
    }

    /// Allocates zeroed memory, which costs little for large sizes, because the system provides zeroed pages.
    pub(crate) fn zeroed(len: usize) -> Result<Self, usize> {
        Self::allocate_with(len, 0, alloc_zeroed)
    }

    /// Large memory begins `offset` bytes after the start of a huge page. The offset is less than a page.
    fn allocate_with(
        len: usize,
        offset: usize,
        alloc: unsafe fn(Layout) -> *mut u8,
    ) -> Result<Self, usize> {
        let align = Self::alignment_for(len);
        if len == 0 {
            let start = NonNull::new(without_provenance_mut(align)).ok_or(len)?;
            let base = start;
            return Ok(Self { start, len, base });
        }
        let layout = Self::allocation_layout(len).ok_or(len)?;
        // SAFETY: the size of the layout is not 0, because `len` is not 0.
        let base = unsafe { alloc(layout) };
        let base = NonNull::new(base).ok_or(len)?;
        let address = base.addr().get();
        let offset = if align == HUGE_PAGE { offset } else { 0 };
        let gap = address.next_multiple_of(align) - address + offset;
        let start = NonNull::new(base.as_ptr().wrapping_add(gap)).ok_or(len)?;
        // SAFETY: the allocation has space for the alignment and the offset, so it has `len` bytes from `start` on.
        unsafe { advise_huge_pages(start.as_ptr(), len) };
        Ok(Self { start, len, base })
    }

    /// The alignment for memory of this size: huge pages if the memory is much larger than one.
    fn alignment_for(len: usize) -> usize {
        if len >= 16 * HUGE_PAGE {
            HUGE_PAGE
        } else {
            ALIGNMENT
        }
    }

    /// The layout of the allocation, with space for the alignment, or `None` if it is too large.
    fn allocation_layout(len: usize) -> Option<Layout> {
        // Every allocator provides this alignment without extra cost.
        let easy = 2 * align_of::<usize>();
        let align = Self::alignment_for(len);
        let offset = if align == HUGE_PAGE { SMALL_PAGE } else { 0 };
        let size = len.checked_add(align - easy + offset)?;
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

/// Allocates a vector with this capacity, which the caller fills in the order of its elements. The error is the number of bytes that could not be allocated.
pub(crate) fn allocate_vec<T>(len: usize) -> Result<Vec<T>, usize> {
    let (mut elements, bytes) = (Vec::<T>::new(), len.saturating_mul(size_of::<T>()));
    elements.try_reserve_exact(len).map_err(|_| bytes)?;
    let start = elements.as_mut_ptr().cast();
    // SAFETY: the vector owns `bytes` bytes from this address.
    unsafe { advise_huge_pages(start, bytes) };
    // SAFETY: the vector owns these bytes, and is empty.
    unsafe { fault_huge_pages(start, bytes) };
    Ok(elements)
}

/// Writes the last byte of each huge page.
///
/// The kernel zeroes a huge page when it is first accessed, and the place of that access last. If that is the first byte, the
/// kernel writes the page backwards, which takes up to three times as long.
///
/// # Safety
///
/// The caller owns `len` bytes from `start` on, and has written none.
unsafe fn fault_huge_pages(start: *mut u8, len: usize) {
    if cfg!(all(feature = "std", target_os = "linux", not(miri))) && len >= 2 * HUGE_PAGE {
        for last in ends_of_huge_pages(start.addr(), len) {
            // SAFETY: `last` is less than `len`. A plain write could be optimised away.
            unsafe { start.wrapping_add(last).write_volatile(0) };
        }
    }
}

/// The offsets of the last bytes of the huge pages that end in `len` bytes at `address`.
fn ends_of_huge_pages(address: usize, len: usize) -> impl Iterator<Item = usize> {
    (HUGE_PAGE - 1 - address % HUGE_PAGE..len).step_by(HUGE_PAGE)
}

/// Advises the kernel to use huge pages, as NumPy does: a page fault for every 4 KB would cost more than the copy.
///
/// # Safety
///
/// The caller owns `len` bytes from `start` on.
unsafe fn advise_huge_pages(start: *mut u8, len: usize) {
    #[cfg(all(feature = "std", target_os = "linux", not(miri)))]
    if len >= 2 * HUGE_PAGE {
        use core::ffi::{c_int, c_void};
        unsafe extern "C" {
            fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int;
        }
        const MADV_HUGEPAGE: c_int = 14;
        /// The largest size of an ordinary page on supported systems. A start aligned to it is aligned to every page size.
        const PAGE: usize = 64 << 10;

        let address = start.addr();
        let gap = address.next_multiple_of(PAGE) - address;
        let start = start.wrapping_add(gap).cast();
        // SAFETY: by this function's contract the caller owns these whole pages. The advice changes neither their contents nor
        // their validity. A refusal only costs time.
        let _refused = unsafe { madvise(start, (len - gap) / PAGE * PAGE, MADV_HUGEPAGE) };
    }
    #[cfg(not(all(feature = "std", target_os = "linux", not(miri))))]
    let _ = (start, len);
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        if self.len != 0 {
            let layout = Self::allocation_layout(self.len)
                .expect("the memory was allocated with this layout");
            // SAFETY: `base` was allocated with this layout, and only this drop frees it.
            unsafe { dealloc(self.base.as_ptr(), layout) }
        }
    }
}

// SAFETY: the value owns the memory, and any thread may free it.
unsafe impl Send for AlignedBytes {}
// SAFETY: a shared reference only gives access to an address and a length.
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
                // SAFETY: `len` is not 0, so the first byte exists.
                unsafe { start.write(1) };
                // SAFETY: this is the last of `len` bytes.
                unsafe { start.wrapping_add(len - 1).write(2) };
            }
        }
    }

    #[test]
    fn the_ends_of_huge_pages_are_in_the_memory() {
        for address in [0, 16, HUGE_PAGE - 1, HUGE_PAGE, 5 * HUGE_PAGE + 4096] {
            for len in [0, 1, HUGE_PAGE - 16, HUGE_PAGE, 3 * HUGE_PAGE + 1] {
                let ends: Vec<_> = ends_of_huge_pages(address, len).collect();
                let count = (address + len) / HUGE_PAGE - address / HUGE_PAGE;
                assert_eq!(ends.len(), count, "{len} bytes at {address}");
                let is_end = |at: &usize| *at < len && (address + at + 1) % HUGE_PAGE == 0;
                assert!(ends.iter().all(is_end), "{len} bytes at {address}");
            }
        }
    }

    /// Alignment by hand needs little extra memory: 240 bytes, or a sixteenth.
    #[test]
    fn alignment_takes_a_small_part() {
        let easy = 2 * align_of::<usize>();
        for (len, align, page) in [
            (1, 256, 0),
            ((32 << 20) - 1, 256, 0),
            (32 << 20, 2 << 20, 4096),
        ] {
            assert_eq!(AlignedBytes::alignment_for(len), align);
            let layout = AlignedBytes::allocation_layout(len).expect("so much can exist");
            let size = len + align - easy + page;
            assert_eq!((layout.size(), layout.align()), (size, easy));
        }
    }

    #[test]
    fn a_large_copy_begins_at_the_place_of_its_source() {
        for source in [0, 1, 16, 255, 256, 257, 3840, 3841, 4095, usize::MAX] {
            let source = without_provenance_mut::<u8>(source);
            let mut large = AlignedBytes::for_copy_of(source, 32 << 20).expect("so much there is");
            let distance = large.as_mut_ptr().addr().wrapping_sub(source.addr()) % 4096;
            assert!(distance < 256, "{source:?}");
            assert_eq!(large.as_mut_ptr().addr() % 256, 0, "{source:?}");
            // The allocation has a page more than the bytes and the alignment.
            let beyond = large.as_mut_ptr().addr() % HUGE_PAGE;
            assert!(beyond < SMALL_PAGE, "{source:?}");
            // SAFETY: the last of so many bytes.
            unsafe { large.as_mut_ptr().wrapping_add((32 << 20) - 1).write(1) };
            let mut small = AlignedBytes::for_copy_of(source, 100).expect("so much there is");
            assert_eq!(small.as_mut_ptr().addr() % 256, 0, "{source:?}");
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
