//! The allocator of this module: it counts what the module has allocated, and fails on demand as `_testcapi.set_nomemory`
//! makes Python's fail.
#![expect(unsafe_code, reason = "is an allocator")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::System;

use pyo3::prelude::*;

struct Failing;

/// Blocks that were allocated and not freed, and their bytes as they were requested.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How often this thread has asked for memory.
    static ASKED: Cell<usize> = const { Cell::new(0) };
    /// The first time it gets none, and the next that it does.
    static NONE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

// SAFETY: the system's allocator, which sometimes is not asked.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let asked = ASKED.replace(ASKED.get().wrapping_add(1));
        let (first, end) = NONE.get();
        if (Range { start: first, end }).contains(&asked) {
            return core::ptr::null_mut();
        }
        // SAFETY: passed on to the caller.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            BLOCKS.fetch_add(1, Ordering::Relaxed);
            BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(start, layout) };
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// How many blocks of the Rust code of this module are allocated now, and their bytes: no other code of the process is counted.
#[pyfunction]
pub(crate) fn allocated_in_rust() -> (usize, usize) {
    (
        BLOCKS.load(Ordering::Relaxed),
        BYTES.load(Ordering::Relaxed),
    )
}

/// From now on the allocations of this thread fail from the one with the number `first` to before the one with the
/// number `end`, or all of them if that is 0.
#[pyfunction]
pub(crate) fn set_nomemory_in_rust(first: usize, end: usize) {
    ASKED.set(0);
    NONE.set((first, if end == 0 { usize::MAX } else { end }));
}

/// No allocation fails any more.
#[pyfunction]
pub(crate) fn remove_nomemory_in_rust() {
    NONE.set((0, 0));
}
