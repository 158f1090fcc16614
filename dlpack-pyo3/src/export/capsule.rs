//! The capsules that hold a tensor between `__dlpack__` and its consumer, and what the ones of other producers hold.
#![expect(unsafe_code, reason = "makes and reads capsules of C")]

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use dlpack_core::abi::DLManagedTensorVersioned;
use dlpack_core::binding::aligned;
use dlpack_core::{Managed, request::Abi};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::{ffi, prelude::*, types::PyCapsule};

use crate::error::{OrRaise, Raised, fail};
use crate::hold::ending::{delete, delete_other, name};

// CAP-01, CAP-02, CAP-03: fixed names, that live for ever.
pub(crate) use dlpack_core::abi::{CAPSULE_LEGACY as LEGACY, CAPSULE_VERSIONED as VERSIONED};
pub(crate) use dlpack_core::abi::{
    CAPSULE_LEGACY_USED as USED_LEGACY, CAPSULE_VERSIONED_USED as USED,
};

/// A new capsule around any tensor, in the struct that it is in.
pub(crate) fn wrap(py: Python<'_>, tensor: Managed) -> Result<*mut ffi::PyObject, Raised> {
    wrap_as::<false>(py, tensor)
}

/// The same by a name that no consumer knows: behind an array, whose memory it keeps.
pub(crate) fn base(py: Python<'_>, tensor: Managed) -> Result<Bound<'_, PyAny>, Raised> {
    let capsule = wrap_as::<true>(py, tensor)?;
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, capsule) })
}

fn wrap_as<const IS_BASE: bool>(
    py: Python<'_>,
    tensor: Managed,
) -> Result<*mut ffi::PyObject, Raised> {
    if tensor.abi() == Abi::Legacy {
        let tensor = tensor.into_legacy().or_raise(py)?;
        // SAFETY: given up right above.
        unsafe { keep_as::<IS_BASE, true>(py, tensor.cast(), delete_other::<IS_BASE, true>) }
    } else {
        let (tensor, end) = (tensor.into_raw(), delete_other::<IS_BASE, false>);
        // SAFETY: given up right above.
        unsafe { keep_as::<IS_BASE, false>(py, tensor.cast(), end) }
    }
}

/// A new capsule around a tensor in the struct of DLPack 1.0 and later, with the destructor for what keeps its memory.
///
/// # Safety
///
/// It is valid, nobody else has it, and it is one that the destructor is for.
#[inline(always)]
pub(crate) unsafe fn keep(
    py: Python<'_>,
    tensor: NonNull<DLManagedTensorVersioned>,
    end: ffi::PyCapsule_Destructor,
) -> Result<*mut ffi::PyObject, Raised> {
    // SAFETY: passed on to the caller.
    unsafe { keep_as::<false, false>(py, tensor.cast(), end) }
}

/// # Safety
///
/// As [`keep`], in the struct that is meant.
#[inline(always)]
unsafe fn keep_as<const IS_BASE: bool, const IS_LEGACY: bool>(
    _: Python<'_>,
    pointer: NonNull<c_void>,
    end: ffi::PyCapsule_Destructor,
) -> Result<*mut ffi::PyObject, Raised> {
    let name = name(IS_BASE, IS_LEGACY);
    // SAFETY: a valid pointer and name, and the destructor for what it points to.
    let capsule = unsafe { ffi::PyCapsule_New(pointer.as_ptr(), name.as_ptr(), Some(end)) };
    if capsule.is_null() {
        // SAFETY: no capsule has it.
        unsafe { delete(pointer, IS_LEGACY) };
        return Err(Raised);
    }
    Ok(capsule)
}

/// The tensor in somebody's capsule, and the name that says in which struct it is.
// CAP-06, CAP-22, CAP-23
pub(crate) fn peek(capsule: &Bound<'_, PyCapsule>) -> PyResult<(NonNull<c_void>, &'static CStr)> {
    let is = |name: &&CStr| capsule.is_valid_checked(Some(name));
    let Some(name) = [VERSIONED, LEGACY].into_iter().find(is) else {
        return Err(not_a_tensor(capsule));
    };
    let pointer = capsule.pointer_checked(Some(name))?;
    // Both structs are aligned alike.
    aligned(pointer.cast::<DLManagedTensorVersioned>()).or_fetch(capsule.py())?;
    Ok((pointer, name))
}

#[cold]
fn not_a_tensor(capsule: &Bound<'_, PyCapsule>) -> PyErr {
    let py = capsule.py();
    // SAFETY: a capsule; no exception is raised.
    let name = unsafe { ffi::PyCapsule_GetName(capsule.as_ptr()) };
    let raised = if name.is_null() {
        fail!(py, PyTypeError: "a DLPack capsule has a name, and this one has none")
    } else {
        // SAFETY: the name of a capsule is a string that lives as long as it.
        let name = unsafe { CStr::from_ptr(name) };
        if name == USED_LEGACY || name == USED {
            fail!(py, PyValueError: "this DLPack capsule was consumed already; ask the producer for a new one")
        } else {
            let known = "\"dltensor\" or \"dltensor_versioned\"";
            fail!(py, PyTypeError: "expected a capsule named {known}, found {name:?}")
        }
    };
    raised.fetch(py)
}

/// A capsule that somebody was to give, checked to be one.
pub(crate) fn expect<'py>(
    object: Bound<'py, PyAny>,
    from: &str,
) -> PyResult<Bound<'py, PyCapsule>> {
    let (py, found) = (object.py(), object.get_type());
    let wrong = |_| fail!(py, PyBufferError: "{from} gave no capsule, but an object of {found}");
    object.cast_into::<PyCapsule>().map_err(wrong).or_fetch(py)
}
