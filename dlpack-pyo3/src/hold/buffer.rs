//! A buffer that an object lends by Python's buffer protocol, given back on whatever thread the last use ends.
#![expect(
    unsafe_code,
    reason = "fills a struct of Python's, and releases it on any thread"
)]

use core::mem::zeroed;
use core::ptr::{self, NonNull};

use pyo3::{ffi, prelude::*};

use crate::error::Raised;
use crate::hidden::{FORMAT, PyBuffer, STRIDES, get_buffer, release_buffer};
use crate::hold::held::{Pending, give_back_attached, while_attached};

/// A buffer, or room for one. While there is one the object keeps its memory where it is: a `bytearray` does not grow.
///
/// Some objects put pointers into the buffer that lead back into it, so it is filled where it stays.
pub(crate) struct HeldBuffer(PyBuffer);

// SAFETY: the buffer is only given back, attached; what it says may be read on any thread.
unsafe impl Send for HeldBuffer {}

impl HeldBuffer {
    /// Room for a buffer.
    #[inline]
    pub(crate) fn new() -> Self {
        // SAFETY: it is made of numbers and pointers.
        Self(unsafe { zeroed() })
    }

    /// Asks `object` for its items as they are, and not to write them.
    #[inline]
    pub(crate) fn fill(&mut self, object: &Bound<'_, PyAny>) -> Result<&PyBuffer, Raised> {
        let view = &raw mut self.0;
        // SAFETY: a place for a buffer. It stays there: whoever moves it moves one that is not used any more.
        if unsafe { get_buffer(object, view, STRIDES | FORMAT) } == 0 {
            return Ok(&self.0);
        }
        // Whatever was written there is no buffer.
        self.0.obj = ptr::null_mut();
        Err(Raised)
    }
}

/// On whatever thread a consumer's last use ends, with the interpreter's lock or without.
// CAP-13
impl Drop for HeldBuffer {
    #[inline]
    fn drop(&mut self) {
        let Some(object) = NonNull::new(self.0.obj) else {
            return;
        };
        let view = &raw mut self.0;
        while_attached(|| {
            // The object may go with the last of its buffers, and then its turn may have to come later.
            // SAFETY: attached, and alive as long as the buffer.
            unsafe { ffi::Py_INCREF(object.as_ptr()) };
            let pending = Pending::set_aside();
            // SAFETY: attached; `fill` filled it, and this is the last use.
            unsafe { release_buffer(view) };
            drop(pending);
            // SAFETY: attached; the reference was taken right above.
            unsafe { give_back_attached(object) };
        });
    }
}
