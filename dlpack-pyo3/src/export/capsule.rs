//! Creates capsules for `__dlpack__`, and looks into capsules of other producers, which `import/consume.rs` consumes.
#![expect(unsafe_code, reason = "creates and reads capsules")]

use core::ffi::{CStr, c_void};
use core::ptr::{self, NonNull};

use dlpack_core::abi::DLManagedTensorVersioned;
use dlpack_core::binding::check_aligned;
use dlpack_core::{Managed, request::Abi};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::{ffi, prelude::*, types::PyCapsule};

use crate::error::{OrRaise, Raised, fail};
use crate::keepalive::destructor::{capsule_name, delete_tensor, destroy_capsule};

// CAP-01, CAP-02, CAP-03: static names, which live for the rest of the process.
pub(crate) use dlpack_core::abi::{CAPSULE_LEGACY as LEGACY, CAPSULE_VERSIONED as VERSIONED};
pub(crate) use dlpack_core::abi::{
    CAPSULE_LEGACY_USED as USED_LEGACY, CAPSULE_VERSIONED_USED as USED,
};

/// Creates a capsule around a tensor, in the struct that the tensor has.
pub(crate) fn wrap_tensor(py: Python<'_>, tensor: Managed) -> Result<*mut ffi::PyObject, Raised> {
    let capsule = if tensor.abi() == Abi::Legacy {
        let tensor = tensor.into_legacy().or_raise(py)?;
        // SAFETY: `into_legacy` gave up the tensor, so nothing else owns it; the destructor is for this struct.
        unsafe { new_capsule::<true>(py, tensor.cast(), destroy_capsule::<true>) }
    } else {
        let (tensor, end) = (tensor.into_raw(), destroy_capsule::<false>);
        // SAFETY: `into_raw` gave up the tensor, so nothing else owns it; the destructor is for this struct.
        unsafe { new_capsule::<false>(py, tensor.cast(), end) }
    };
    if capsule.is_null() {
        return Err(Raised);
    }
    Ok(capsule)
}

/// Creates a capsule around a tensor in the struct of DLPack 1.0 and later, with the destructor for the owner of its memory.
/// Returns null if an exception is set.
///
/// # Safety
///
/// The tensor is valid, nothing else owns it, and `end` is the destructor for it.
#[inline(always)]
pub(crate) unsafe fn wrap_owned(
    py: Python<'_>,
    tensor: NonNull<DLManagedTensorVersioned>,
    end: ffi::PyCapsule_Destructor,
) -> *mut ffi::PyObject {
    // SAFETY: same contract as this function's, for the struct of DLPack 1.0.
    unsafe { new_capsule::<false>(py, tensor.cast(), end) }
}

/// Creates a capsule around a tensor. If that fails, calls the tensor's deleter, and returns null with an exception.
///
/// # Safety
///
/// The tensor is valid, in the struct that `IS_LEGACY` selects. Nothing else owns it, and `end` is the destructor for it.
#[inline(always)]
unsafe fn new_capsule<const IS_LEGACY: bool>(
    _: Python<'_>,
    pointer: NonNull<c_void>,
    end: ffi::PyCapsule_Destructor,
) -> *mut ffi::PyObject {
    let name = capsule_name(IS_LEGACY);
    // SAFETY: the pointer and the name are valid, and `end` is the destructor for the tensor, by this function's contract.
    let capsule = unsafe { ffi::PyCapsule_New(pointer.as_ptr(), name.as_ptr(), Some(end)) };
    if capsule.is_null() {
        // SAFETY: the tensor is valid and owned by this function, as no capsule was created.
        return unsafe { delete_unwrapped::<IS_LEGACY>(pointer) };
    }
    capsule
}

/// Calls the deleter of a tensor for which no capsule could be created, and returns the null that [`new_capsule`] returns.
///
/// # Safety
///
/// The contract of [`delete_tensor`].
#[cold]
#[inline(never)]
unsafe fn delete_unwrapped<const IS_LEGACY: bool>(tensor: NonNull<c_void>) -> *mut ffi::PyObject {
    // SAFETY: same contract as this function's.
    unsafe { delete_tensor(tensor, IS_LEGACY) };
    ptr::null_mut()
}

/// The tensor in a capsule of any producer, and the capsule's name, which tells the struct.
// CAP-06, CAP-22, CAP-23
pub(crate) fn peek_tensor(
    capsule: &Bound<'_, PyCapsule>,
) -> PyResult<(NonNull<c_void>, &'static CStr)> {
    let is = |name: &&CStr| capsule.is_valid_checked(Some(name));
    let Some(name) = [VERSIONED, LEGACY].into_iter().find(is) else {
        return Err(not_a_tensor(capsule));
    };
    let pointer = capsule.pointer_checked(Some(name))?;
    // Both structs have the same alignment.
    check_aligned(pointer.cast::<DLManagedTensorVersioned>()).or_fetch(capsule.py())?;
    Ok((pointer, name))
}

#[cold]
fn not_a_tensor(capsule: &Bound<'_, PyCapsule>) -> PyErr {
    let py = capsule.py();
    // SAFETY: a valid capsule, so no exception is raised.
    let name = unsafe { ffi::PyCapsule_GetName(capsule.as_ptr()) };
    let raised = if name.is_null() {
        fail!(py, PyTypeError: "expected a DLPack capsule, found one without a name")
    } else {
        // SAFETY: the name of a capsule is a string that lives as long as the capsule.
        let name = unsafe { CStr::from_ptr(name) };
        if name == USED_LEGACY || name == USED {
            fail!(py, PyValueError: "this DLPack capsule was consumed already; ask the producer for a new one")
        } else {
            let known = "\"dltensor\" or \"dltensor_versioned\"";
            fail!(py, PyTypeError: "expected a capsule named {known}, found {name:?}")
        }
    };
    raised.take_exception(py)
}

/// Checks that an object is a capsule. `from` names the producer in the error.
pub(crate) fn expect_capsule<'py>(
    object: Bound<'py, PyAny>,
    from: &str,
) -> PyResult<Bound<'py, PyCapsule>> {
    let (py, found) = (object.py(), object.get_type());
    let wrong =
        |_| fail!(py, PyBufferError: "{from} returned no capsule, but an object of {found}");
    object.cast_into::<PyCapsule>().map_err(wrong).or_fetch(py)
}
