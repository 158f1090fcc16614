//! Consumes a capsule: takes the tensor out of it and renames it; decides whether other code may have the tensor's memory.
#![expect(unsafe_code, reason = "takes tensors out of capsules")]

use dlpack_core::Managed;
use dlpack_core::binding::{is_own_copy, take_legacy, take_versioned};
use pyo3::{ffi, prelude::*, sync::critical_section::with_critical_section, types::PyCapsule};

use crate::error::OrRaise;
use crate::export::capsule::{USED, USED_LEGACY, VERSIONED, peek_tensor};
use crate::library::numpy;

/// The object that returned the tensor from `__dlpack__(copy=True)`. `None` for a capsule that was passed as an argument, and for a
/// tensor that was requested without that keyword.
pub(super) type CopySource<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Takes the tensor out of a capsule of any producer. It is marked as shared unless it is [proven](is_exclusive) to be
/// exclusively ours.
///
/// If several threads try, one gets the tensor. Errors of the capsule are found before it is renamed. Errors of the tensor are
/// found after this function owns it, which then releases it.
// CAP-24
pub(super) fn consume_capsule(
    capsule: &Bound<'_, PyCapsule>,
    copied_by: CopySource<'_, '_>,
) -> PyResult<Managed> {
    let (pointer, name) = with_critical_section(capsule.as_any(), || {
        let (pointer, name) = peek_tensor(capsule)?;
        let used = if name == VERSIONED { USED } else { USED_LEGACY };
        // SAFETY: a valid capsule, and a name that lives for the rest of the process.
        if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok((pointer, name))
    })?;
    let tensor = if name == VERSIONED {
        // SAFETY: a capsule of this name holds such a tensor, and renaming the capsule transferred its ownership to us. Other
        // code may still write to its memory: `share_unless_exclusive` marks the tensor as shared before it is used.
        unsafe { take_versioned(pointer.cast()) }
    } else {
        // SAFETY: a capsule of the other name holds a legacy tensor, and renaming the capsule transferred its ownership to us.
        // Other code may still write to its memory: `share_unless_exclusive` marks the tensor as shared before it is used.
        unsafe { take_legacy(pointer.cast()) }
    };
    let tensor = tensor.or_fetch(capsule.py())?;
    Ok(share_unless_exclusive(tensor, copied_by))
}

/// Marks the tensor as [shared](Managed::shared) unless it is proven that no other code has its memory.
///
/// Every imported tensor passes this function or is marked as shared at once: exchange tables and buffers are never asked for a
/// copy.
fn share_unless_exclusive(tensor: Managed, copied_by: CopySource<'_, '_>) -> Managed {
    if is_exclusive(&tensor, copied_by) {
        tensor
    } else {
        tensor.shared()
    }
}

/// Whether it is proven that no other code can read or write the memory of a tensor.
///
/// The flag `IS_COPIED` is necessary but not sufficient. A producer may set it and keep a reference to the memory. If its copy
/// is a Python object, a hook of its class, a weak reference or the garbage collector can lead other code to that object.
/// Proven are:
///
/// - a copy that this crate made, recognized by its deleter: its owner is a Rust value, which no Python code can reach;
/// - the copy that `numpy.ndarray.__dlpack__(copy=True)` made of an instance of exactly that class. The copy is an instance of
///   the same class, which runs no Python code on creation, has no weak references, and is not tracked by the garbage
///   collector.
fn is_exclusive(tensor: &Managed, copied_by: CopySource<'_, '_>) -> bool {
    let by_numpy = || copied_by.is_some_and(numpy::is_plain_array) && tensor.view().is_copied();
    is_own_copy(tensor) || by_numpy()
}
