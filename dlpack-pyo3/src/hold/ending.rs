//! How a capsule ends that nobody consumed, or could not be made: what keeps its tensor is given back.
#![expect(
    unsafe_code,
    reason = "reads capsules of C, and takes tensors out of them"
)]

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use dlpack_core::abi::{CAPSULE_LEGACY as LEGACY, CAPSULE_VERSIONED as VERSIONED};
use dlpack_core::abi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpack_core::binding::take_back;
use pyo3::ffi;

use crate::hold::{Owner, Pending};

/// The name of a capsule that `wrap` makes, or `base`.
pub(crate) const fn name(is_base: bool, is_legacy: bool) -> &'static CStr {
    match (is_base, is_legacy) {
        (false, false) => VERSIONED,
        (false, true) => LEGACY,
        (true, false) => c"dlpack_tensor_of_array_versioned",
        (true, true) => c"dlpack_tensor_of_array",
    }
}

/// Calls the deleter of a tensor that nobody took.
///
/// # Safety
///
/// `tensor` is a valid tensor in this struct, nobody else has it, and the thread is attached.
// CAP-21
pub(crate) unsafe fn delete(tensor: NonNull<c_void>, is_legacy: bool) {
    let _pending = Pending::set_aside();
    if is_legacy {
        // SAFETY: valid and nobody else's, by the caller's contract.
        unsafe { DLManagedTensor::release(tensor.cast()) };
    } else {
        // SAFETY: as above.
        unsafe { DLManagedTensorVersioned::release(tensor.cast()) };
    }
}

/// What a dying capsule holds if nobody consumed it: if it still has its name.
///
/// # Safety
///
/// `capsule` is a capsule of ours, in its destructor.
// CAP-04, CAP-05
#[inline]
unsafe fn unconsumed(capsule: *mut ffi::PyObject, name: &'static CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a capsule; no exception is raised.
    let current = unsafe { ffi::PyCapsule_GetName(capsule) };
    if current != name.as_ptr() {
        // A consumer may have put another string there with the same text.
        // SAFETY: the name of a capsule is null or a string that lives as long as it.
        if current.is_null() || unsafe { CStr::from_ptr(current) } != name {
            return None;
        }
    }
    // SAFETY: that is its name.
    NonNull::new(unsafe { ffi::PyCapsule_GetPointer(capsule, current) })
}

/// The destructor of a capsule whose tensor is kept by such an owner: attached already, so nothing is looked up.
pub(crate) unsafe extern "C" fn release<O: Owner>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls the destructor of our capsule.
    if let Some(tensor) = unsafe { unconsumed(capsule, VERSIONED) } {
        // SAFETY: `keep` put it there for this type, and nobody took it.
        let owner = unsafe { take_back::<O>(tensor.cast()) };
        // SAFETY: a capsule dies attached.
        unsafe { owner.release_attached() };
    }
}

/// The destructor of any other capsule of ours.
pub(crate) unsafe extern "C" fn delete_other<const IS_BASE: bool, const IS_LEGACY: bool>(
    capsule: *mut ffi::PyObject,
) {
    // SAFETY: Python calls the destructor of our capsule.
    if let Some(tensor) = unsafe { unconsumed(capsule, name(IS_BASE, IS_LEGACY)) } {
        // SAFETY: `keep_as` put it there, and nobody took it; a capsule dies attached.
        unsafe { delete(tensor, IS_LEGACY) };
    }
}
