//! The allocator of this module: it counts the module's allocations, and fails on demand, as `_testcapi.set_nomemory` makes
//! Python's allocator fail.
#![expect(unsafe_code, reason = "is an allocator")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::System;

use pyo3::prelude::*;

struct Failing;

/// Blocks that are allocated, and their requested bytes.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of this thread's allocations.
    static ASKED: Cell<usize> = const { Cell::new(0) };
    /// The number of the first allocation that fails, and of the next that does not.
    static NONE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

// SAFETY: each method forwards to the system's allocator, or returns null.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let asked = ASKED.replace(ASKED.get().wrapping_add(1));
        let (first, end) = NONE.get();
        if (Range { start: first, end }).contains(&asked) {
            return core::ptr::null_mut();
        }
        // SAFETY: same contract as this method's.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            BLOCKS.fetch_add(1, Ordering::Relaxed);
            BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: same contract as this method's: `alloc` returned `start`, from the system's allocator, for this layout.
        unsafe { System.dealloc(start, layout) };
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// The number of blocks that this module's Rust code has allocated now, and their bytes. No other code of the process is counted.
#[pyfunction]
pub(crate) fn allocated_in_rust() -> (usize, usize) {
    (
        BLOCKS.load(Ordering::Relaxed),
        BYTES.load(Ordering::Relaxed),
    )
}

/// From now on the allocations of this thread fail, from the one with the number `first` to the one before `end`; all later ones
/// if `end` is 0.
#[pyfunction]
pub(crate) fn set_nomemory_in_rust(first: usize, end: usize) {
    ASKED.set(0);
    NONE.set((first, if end == 0 { usize::MAX } else { end }));
}

/// Allocations succeed again.
#[pyfunction]
pub(crate) fn remove_nomemory_in_rust() {
    NONE.set((0, 0));
}
