//! The owner behind an import of a NumPy array: references that keep its memory alive, released on any thread.
#![expect(unsafe_code, reason = "changes reference counts on any thread")]

use core::ptr::NonNull;

use pyo3::{ffi, prelude::*};

use crate::keepalive::guard::{release_attached_reference, run_attached};

/// Two references to an array. The array or its base owns the memory.
///
/// `array.resize(..)` frees the memory unless the array has more than two references: NumPy attributes two of them to the
/// caller (its variable and the stack). In `list.pop().resize(..)` the caller has only one, so a single reference of ours would
/// not prevent it. (On Python 3.14 the stack borrows its references, and NumPy 2.5 refuses to resize an array with two or more.)
/// NumPy offers no other way to lock an array, and does not count exported buffers.
pub(crate) struct ArrayKeepalive(NonNull<ffi::PyObject>);

// SAFETY: the references are used for nothing but their release, which attaches to the interpreter first.
unsafe impl Send for ArrayKeepalive {}

impl ArrayKeepalive {
    /// Takes two references to `array`.
    #[inline(always)]
    pub(crate) fn new(array: &Bound<'_, PyAny>) -> Self {
        let array = array.as_ptr();
        // SAFETY: `array` is a `Bound`: this thread is attached, and the object is alive.
        unsafe { ffi::Py_INCREF(array) };
        // SAFETY: `array` is a `Bound`: this thread is attached, and the object is alive.
        unsafe { ffi::Py_INCREF(array) };
        // SAFETY: the pointer of a `Bound` is not null.
        Self(unsafe { NonNull::new_unchecked(array) })
    }
}

/// The last use may end on any thread, attached to the interpreter or not.
// CAP-13
impl Drop for ArrayKeepalive {
    #[inline(always)]
    fn drop(&mut self) {
        let array = self.0;
        run_attached(|| {
            // SAFETY: attached; this is one of the two references that `new` took, and the other one keeps the array alive.
            unsafe { ffi::Py_DECREF(array.as_ptr()) };
            // SAFETY: attached; this is the second of the two references that `new` took.
            unsafe { release_attached_reference(array) };
        });
    }
}
