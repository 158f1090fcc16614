//! The bytes behind the addresses: the only place that reads and writes memory by address.
#![expect(
    unsafe_code,
    reason = "addresses come from the caller, as with any driver"
)]

use core::alloc::Layout;
use core::ptr::{self, with_exposed_provenance, with_exposed_provenance_mut};
use std::alloc::alloc_zeroed;

use crate::record::{Noted, note};

/// What `cuMemAlloc` aligns to: "suitably aligned for any kind of variable", and 256 in practice.
const ALIGNMENT: usize = 256;

/// The address of so many new zeros. They are never given back: an address that is used again would hide the use of
/// memory that was freed.
pub(crate) fn allocate(bytes: usize) -> Option<usize> {
    let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()?;
    // SAFETY: the layout is not of size 0.
    let pointer = unsafe { alloc_zeroed(layout) };
    (!pointer.is_null()).then(|| pointer.expose_provenance())
}

/// Moves bytes between two addresses, of which each was given to a copying entry point, or lies in a block.
pub(crate) fn copy(from: usize, to: usize, bytes: usize) {
    let from = with_exposed_provenance::<u8>(from);
    let to = with_exposed_provenance_mut::<u8>(to);
    // SAFETY: either address lies with all its bytes in a block, which `World::touch` has checked and which is never
    // given back, or in memory of the caller, who promises the driver that it is there. `copy` lets them overlap.
    unsafe { ptr::copy(from, to, bytes) }
}

/// Sets the bytes of a block.
pub(crate) fn fill(to: usize, value: u8, bytes: usize) {
    let to = with_exposed_provenance_mut::<u8>(to);
    // SAFETY: `World::touch` has checked that the bytes lie in a block, and blocks are never given back.
    unsafe { ptr::write_bytes(to, value, bytes) }
}

/// A pointer that a C caller passes for a result.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T: Noted> Out<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes the result, if there is a place for it.
    pub(crate) fn give(self, value: T) {
        note(value);
        if !self.0.is_null() {
            // SAFETY: the caller of the driver promises that the place is null or may be written.
            unsafe { self.0.write(value) }
        }
    }

    /// Reads what the caller has put there.
    pub(crate) fn take(self) -> Option<T> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the caller of the driver promises that what is not null may be read.
        let value = unsafe { self.0.read() };
        note(value);
        Some(value)
    }

    /// The place of one element of an array.
    pub(crate) fn at(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }
}
