//! A `Py_buffer` of an object, released on any thread.
#![expect(
    unsafe_code,
    reason = "fills a `Py_buffer`, and releases it on any thread"
)]

use core::ptr::{self, NonNull};

use pyo3::{ffi, prelude::*};

use crate::capi::{FORMAT, PyBuffer, STRIDES, get_buffer, release_buffer};
use crate::error::Raised;
use crate::keepalive::guard::{release_attached_reference, run_attached};
use crate::keepalive::pending::PendingException;

/// A `Py_buffer`, or empty storage for one. While it is filled, the object does not move its memory: a `bytearray` does not
/// grow.
///
/// Some objects store pointers into the `Py_buffer` that point to itself, so it is filled in its final place.
pub(crate) struct BufferKeepalive(PyBuffer);

// SAFETY: the buffer is used for nothing but its release, attached; its fields may be read on any thread.
unsafe impl Send for BufferKeepalive {}

impl BufferKeepalive {
    /// Empty storage for a buffer.
    #[inline]
    pub(crate) fn new() -> Self {
        Self(PyBuffer::EMPTY)
    }

    /// Requests a buffer of `object` with its shape, strides and format, not writable.
    #[inline]
    pub(crate) fn fill_from(&mut self, object: &Bound<'_, PyAny>) -> Result<(), Raised> {
        let view = &raw mut self.0;
        // SAFETY: `view` is valid for writes. It stays in place: a filled buffer is not moved while it is in use.
        if unsafe { get_buffer(object, view, STRIDES | FORMAT) } == 0 {
            return Ok(());
        }
        // After an error the fields are undefined; a null `obj` marks the storage as empty.
        self.0.obj = ptr::null_mut();
        Err(Raised)
    }

    /// The fields of the buffer.
    #[inline]
    pub(crate) fn view(&self) -> &PyBuffer {
        &self.0
    }

    /// The object that exports the buffer; `None` if the storage is empty.
    #[inline]
    pub(crate) fn exporter<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: null, or an object that the buffer keeps alive.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, self.0.obj) }
    }
}

/// The last use may end on any thread, attached to the interpreter or not.
// CAP-13
impl Drop for BufferKeepalive {
    #[inline]
    fn drop(&mut self) {
        let Some(object) = NonNull::new(self.0.obj) else {
            return;
        };
        let view = &raw mut self.0;
        run_attached(|| {
            // The reference keeps the object alive while its buffer is released; its own release may have to be deferred.
            // SAFETY: attached; the buffer keeps the object alive.
            unsafe { ffi::Py_INCREF(object.as_ptr()) };
            let pending = PendingException::save_current();
            // SAFETY: attached; `fill_from` filled the buffer, and it is not used again.
            unsafe { release_buffer(view) };
            drop(pending);
            // SAFETY: attached; the reference was taken before the buffer was released.
            unsafe { release_attached_reference(object) };
        });
    }
}
