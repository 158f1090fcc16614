//! Hides the exception that is pending on this thread from code that is not about it.
#![expect(
    unsafe_code,
    reason = "takes and restores the exception by functions of C"
)]

use pyo3::ffi;

/// The exception that was pending on this thread, restored on drop.
// CAP-16, CAP-17
pub(crate) struct PendingException(Option<[*mut ffi::PyObject; 3]>);

impl PendingException {
    /// Takes the pending exception, if any. Only called on an attached thread.
    #[inline]
    pub(crate) fn save_current() -> Self {
        // SAFETY: attached, as every caller is.
        if unsafe { ffi::PyErr_Occurred() }.is_null() {
            return Self(None);
        }
        let mut parts = [core::ptr::null_mut(); 3];
        let [kind, value, trace] = &mut parts;
        #[allow(deprecated, reason = "the stable ABI of 3.10 has nothing newer")]
        // SAFETY: attached; the three pointers are valid for writes.
        unsafe {
            ffi::PyErr_Fetch(kind, value, trace)
        };
        Self(Some(parts))
    }
}

impl Drop for PendingException {
    #[inline]
    fn drop(&mut self) {
        if let Some([kind, value, trace]) = self.0 {
            #[allow(deprecated, reason = "as in `save_current`")]
            // SAFETY: still attached; the values are those of `PyErr_Fetch`, which are restored once.
            unsafe {
                ffi::PyErr_Restore(kind, value, trace)
            };
        }
    }
}
