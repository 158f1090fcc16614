//! Exports, imports and copies a tensor in a program without the standard library.
//!
//! It brings its own allocator and its own panic handler. Were `std` linked by anything it uses, the handler would be
//! there twice and rustc would refuse.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::sync::Arc;
use alloc::vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_int, c_void};
use core::panic::PanicInfo;

use dlpack_core::{DLPack, Error};

#[link(name = "c")]
unsafe extern "C" {
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    safe fn abort() -> !;
}

struct Libc;

#[global_allocator]
static ALLOCATOR: Libc = Libc;

// SAFETY: `aligned_alloc` gives memory of this size and alignment, or null; `free` takes it back.
unsafe impl GlobalAlloc for Libc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let alignment = layout.align().max(size_of::<usize>());
        // SAFETY: the alignment is a power of two and the size a multiple of it.
        unsafe { aligned_alloc(alignment, layout.size().next_multiple_of(alignment)).cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: `alloc` gave it.
        unsafe { free(memory.cast()) }
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    abort()
}

/// The compiled `alloc` refers to it, although nothing here unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// What C calls; 0 when everything held.
#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    c_int::from(!matches!(round_trip(), Ok(true)))
}

fn round_trip() -> Result<bool, Error> {
    let moved = vec![1.0_f32, 2.0, 3.0].into_dlpack()?;
    let kept = Arc::new(vec![1_u8, 2]);
    let shared = kept.to_dlpack()?;
    let same = moved.view().as_slice::<f32>()? == [1.0, 2.0, 3.0]
        && shared.view().as_slice::<u8>()? == [1, 2]
        && Arc::strong_count(&kept) == 2;
    drop(shared);
    Ok(same && Arc::strong_count(&kept) == 1)
}
