//! Takes a tensor out of a capsule, and decides who else may have its memory.
#![expect(unsafe_code, reason = "takes tensors out of capsules of C")]

use dlpack_core::Managed;
use dlpack_core::binding::is_own_copy;
use pyo3::{ffi, prelude::*, sync::critical_section::with_critical_section, types::PyCapsule};

use crate::error::OrRaise;
use crate::export::capsule::{USED, USED_LEGACY, VERSIONED, peek};
use crate::library::numpy;

/// The object that was asked for a copy by `__dlpack__(copy=True)` and answered with the tensor, if there is one. None for
/// everything else: a capsule that was passed as an argument, a tensor that was asked for without that keyword.
pub(super) type CopiedBy<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Takes the tensor out of a capsule of any producer; it is shared unless it is [proven](is_exclusive) to be ours alone.
///
/// Of several threads that try, one gets the tensor. What is wrong with the capsule is found before
/// it is changed; what is wrong with the tensor, after it is ours, and then it is released.
// CAP-24
pub(super) fn consume(
    capsule: &Bound<'_, PyCapsule>,
    copied_by: CopiedBy<'_, '_>,
) -> PyResult<Managed> {
    let (pointer, name) = with_critical_section(capsule.as_any(), || {
        let (pointer, name) = peek(capsule)?;
        let used = if name == VERSIONED { USED } else { USED_LEGACY };
        // SAFETY: a capsule, and a name that lives for ever.
        if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok((pointer, name))
    })?;
    let tensor = if name == VERSIONED {
        // SAFETY: a capsule of this name holds such a tensor, and renaming it made it ours. That nobody else writes is not
        // known yet: `share_unless_exclusive` comes before anything else.
        unsafe { Managed::from_raw(pointer.cast()) }
    } else {
        // SAFETY: as above.
        unsafe { Managed::from_legacy(pointer.cast()) }
    };
    let tensor = tensor.or_fetch(capsule.py())?;
    Ok(share_unless_exclusive(tensor, copied_by))
}

/// The tensor, marked as [shared](Managed::shared) unless it is proven that nobody else has its memory.
///
/// Every tensor that is imported comes through here, or is shared at once: an exchange table and a buffer are never asked
/// for a copy.
fn share_unless_exclusive(tensor: Managed, copied_by: CopiedBy<'_, '_>) -> Managed {
    if is_exclusive(&tensor, copied_by) {
        tensor
    } else {
        tensor.shared()
    }
}

/// Whether it is proven that nobody but us has the memory of a tensor, neither to read nor to write.
///
/// The flag `IS_COPIED` is needed and not enough. A producer may set it and keep the memory; and where its copy is an object
/// of Python, a hook of its class, a weak reference or the garbage collector leads other code to that object. Proven are:
///
/// - a copy that this crate made, found by its deleter: its owner is a Rust value, which no Python code reaches;
/// - the copy that `numpy.ndarray.__dlpack__(copy=True)` made of an instance of exactly that class. It is an instance of the
///   same class, which runs no code of Python when it is made, has no weak references, and is not tracked by the garbage
///   collector.
fn is_exclusive(tensor: &Managed, copied_by: CopiedBy<'_, '_>) -> bool {
    let by_numpy = || copied_by.is_some_and(numpy::is_exact_array) && tensor.view().is_copied();
    is_own_copy(tensor) || by_numpy()
}
