//! An allocator that counts allocations and fails on demand, each thread by its own numbers.
#![allow(unsafe_code, reason = "is an allocator")]
#![allow(dead_code, reason = "each test uses only some of it")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

struct Counting;

thread_local! {
    pub(crate) static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    pub(crate) static LIVE: Cell<isize> = const { Cell::new(0) };
    /// How many allocations failed.
    pub(crate) static REFUSED: Cell<usize> = const { Cell::new(0) };
    /// How many allocations still succeed.
    static BUDGET: Cell<usize> = const { Cell::new(usize::MAX) };
}

// SAFETY: each method forwards to the system's allocator, or returns null.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let budget = BUDGET.get();
        // No machine has that much memory, and a sanitizer aborts at the attempt.
        if budget == 0 || layout.size() >> 40 != 0 {
            REFUSED.set(REFUSED.get() + 1);
            return core::ptr::null_mut();
        }
        if budget != usize::MAX {
            BUDGET.set(budget - 1);
        }
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE.set(LIVE.get() + layout.size() as isize);
        // SAFETY: same contract as this method's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: same contract as this method's: `alloc` returned `start`, from the system's allocator, for this layout.
        unsafe { System.dealloc(start, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `work`, in which only this many allocations succeed.
pub(crate) fn with_budget<R>(allocations: usize, work: impl FnOnce() -> R) -> R {
    BUDGET.set(allocations);
    let result = work();
    BUDGET.set(usize::MAX);
    result
}
