//! The owner behind an import of an array of NumPy's: references that keep its memory, given back on any thread.
#![expect(unsafe_code, reason = "counts references to objects on any thread")]

use core::ptr::NonNull;

use pyo3::{ffi, prelude::*};

use crate::hold::held::{give_back_attached, while_attached};

/// Two references to an array that owns its memory, or whose base does.
///
/// `array.resize(..)` frees the memory unless the array has more than two references: NumPy takes two of them for those of the
/// caller, the variable and the stack. In `list.pop().resize(..)` the caller has one, so one of ours is not enough. (On Python
/// 3.14, where the stack borrows, NumPy 2.5 refuses where there are two at all.) NumPy gives no other way to lock an array,
/// and does not count buffers.
pub(crate) struct HeldArray(NonNull<ffi::PyObject>);

// SAFETY: the array is only given back, attached.
unsafe impl Send for HeldArray {}

impl HeldArray {
    /// Takes two references to `array`.
    #[inline(always)]
    pub(crate) fn new(array: &Bound<'_, PyAny>) -> Self {
        let array = array.as_ptr();
        // SAFETY: attached, and alive since the caller has it.
        unsafe { ffi::Py_INCREF(array) };
        // SAFETY: as above.
        unsafe { ffi::Py_INCREF(array) };
        // SAFETY: an object is somewhere.
        Self(unsafe { NonNull::new_unchecked(array) })
    }
}

/// On whatever thread a consumer's last use ends, with the interpreter's lock or without.
// CAP-13
impl Drop for HeldArray {
    #[inline(always)]
    fn drop(&mut self) {
        let array = self.0;
        while_attached(|| {
            // SAFETY: attached, and one of the two references that `new` took: the other keeps the array alive.
            unsafe { ffi::Py_DECREF(array.as_ptr()) };
            // SAFETY: attached, and the other one.
            unsafe { give_back_attached(array) };
        });
    }
}
