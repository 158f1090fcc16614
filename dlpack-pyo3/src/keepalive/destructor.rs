//! Capsule destructors: release the tensor of a capsule that no consumer took, or that could not be created.
#![expect(unsafe_code, reason = "reads capsules, and takes tensors out of them")]

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use dlpack_core::abi::{CAPSULE_LEGACY as LEGACY, CAPSULE_VERSIONED as VERSIONED};
use dlpack_core::abi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpack_core::binding::take_back;
use pyo3::ffi;

use crate::keepalive::{ExportOwner, PendingException};

/// The name of a capsule for a tensor in this struct.
pub(crate) const fn capsule_name(is_legacy: bool) -> &'static CStr {
    if is_legacy { LEGACY } else { VERSIONED }
}

/// Calls the deleter of a tensor that no consumer took.
///
/// # Safety
///
/// `tensor` points to a valid tensor in this struct, nothing else owns it, and the thread is attached.
// CAP-21
pub(crate) unsafe fn delete_tensor(tensor: NonNull<c_void>, is_legacy: bool) {
    let _pending = PendingException::save_current();
    if is_legacy {
        // SAFETY: valid and owned by the caller, by this function's contract.
        unsafe { DLManagedTensor::release(tensor.cast()) };
    } else {
        // SAFETY: valid and owned by the caller, by this function's contract.
        unsafe { DLManagedTensorVersioned::release(tensor.cast()) };
    }
}

/// The tensor of a dying capsule, if no consumer took it: a consumer renames the capsule.
///
/// # Safety
///
/// `capsule` is a capsule that this crate created, in its destructor.
// CAP-04, CAP-05
#[inline]
unsafe fn unconsumed_tensor(
    capsule: *mut ffi::PyObject,
    name: &'static CStr,
) -> Option<NonNull<c_void>> {
    // SAFETY: a valid capsule, so no exception is raised.
    let current = unsafe { ffi::PyCapsule_GetName(capsule) };
    if current != name.as_ptr() {
        if current.is_null() {
            return None;
        }
        // SAFETY: the name of a capsule is a string that lives as long as the capsule: it has at least the zero byte at its end.
        let first = unsafe { current.cast::<u8>().read() };
        // A consumer may have set another string with the same text. Nearly all other names differ in the first byte.
        // SAFETY: as above.
        if name.to_bytes().first() != Some(&first) || unsafe { CStr::from_ptr(current) } != name {
            return None;
        }
    }
    // SAFETY: `current` is the capsule's name.
    NonNull::new(unsafe { ffi::PyCapsule_GetPointer(capsule, current) })
}

/// The destructor of a capsule with a tensor that an `O` owns. CPython calls it attached, so nothing is looked up.
pub(crate) unsafe extern "C" fn destroy_owned_capsule<O: ExportOwner>(capsule: *mut ffi::PyObject) {
    // SAFETY: CPython calls this as the destructor of a capsule of ours.
    if let Some(tensor) = unsafe { unconsumed_tensor(capsule, VERSIONED) } {
        // SAFETY: `wrap_owned` stored a tensor with an owner of this type, and no consumer took it.
        let owner = unsafe { take_back::<O>(tensor.cast()) };
        // SAFETY: CPython calls capsule destructors attached.
        unsafe { owner.release_attached() };
    }
}

/// The destructor of capsules of the other kinds, which calls the tensor's deleter.
pub(crate) unsafe extern "C" fn destroy_capsule<const IS_LEGACY: bool>(
    capsule: *mut ffi::PyObject,
) {
    // SAFETY: CPython calls this as the destructor of a capsule of ours.
    if let Some(tensor) = unsafe { unconsumed_tensor(capsule, capsule_name(IS_LEGACY)) } {
        // SAFETY: `new_capsule` stored the tensor, and no consumer took it; CPython calls capsule destructors attached.
        unsafe { delete_tensor(tensor, IS_LEGACY) };
    }
}
