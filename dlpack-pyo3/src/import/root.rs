//! Finds our memory behind an imported array or buffer, so that the import keeps that memory and not the objects in between. Otherwise
//! `obj.state = np.asarray(obj.state)` would lengthen a chain of objects:
//!
//! ```text
//! ndarray ── base ──▶ memoryview ──▶ lender ──▶ tensor ──▶ allocation
//!                └──▶ capsule of `numpy.from_dlpack` ──▶ tensor ──▶ allocation
//!                └──▶ value ──▶ tensor, or allocation
//! ```
#![expect(unsafe_code, reason = "reads the tensor in a capsule of NumPy's")]

use core::{ffi::CStr, mem::replace};

use dlpack_core::binding::{
    AllocationHandle, allocation_of_export, keep_by_allocation, share_allocation,
};
use dlpack_core::{DLPack as _, Managed};
use pyo3::types::{PyCapsule, PyMemoryView};
use pyo3::{intern, prelude::*};

use crate::capi::has_buffer;
use crate::error::none_if_concerns_object;
use crate::import::numpy::is_bytes;
use crate::lender::{behind_wrapper, tensor_of_lender};
use crate::library::numpy::{is_array_or_derived, value_of};

/// The name that NumPy gives the capsule with an imported tensor of DLPack 1.0 and later, which it keeps as the base of an array.
const IMPORTED: &CStr = c"numpy_dltensor_versioned";

/// Replaces the keepalive of a tensor that was imported from `object` by our shared allocation, if it lies in one that is found behind
/// the object.
#[inline]
pub(super) fn keep_by_root(tensor: Managed, object: &Bound<'_, PyAny>) -> PyResult<Managed> {
    if AllocationHandle::may_exist() {
        find_and_keep_root(tensor, object)
    } else {
        Ok(tensor)
    }
}

/// [`keep_by_root`], if the object is an array of NumPy or of a class that derives from it.
#[inline]
pub(super) fn keep_by_root_of_array(
    tensor: Managed,
    object: &Bound<'_, PyAny>,
) -> PyResult<Managed> {
    if AllocationHandle::may_exist() && is_array_or_derived(object) {
        find_and_keep_root(tensor, object)
    } else {
        Ok(tensor)
    }
}

#[cold]
#[inline(never)]
fn find_and_keep_root(tensor: Managed, object: &Bound<'_, PyAny>) -> PyResult<Managed> {
    let found = none_if_concerns_object(object.py(), find_allocation(object))?;
    // The allocation may be another one: this checks that it contains the tensor's items.
    Ok(match found {
        Some(allocation) => keep_by_allocation(tensor, &allocation),
        None => tensor,
    })
}

/// The shared allocation behind an object.
fn find_allocation(object: &Bound<'_, PyAny>) -> PyResult<Option<AllocationHandle>> {
    let mut found = object.clone();
    // Python's wrapper forgets its memoryview when the view of its buffer is dropped, which therefore lives one step longer.
    let mut before = None;
    // Real chains are shorter than this limit: NumPy and `memoryview` skip objects of their own class.
    for _ in 0..16 {
        if let Some(tensor) = tensor_of_lender(&found).or_else(|| value_of::<Managed>(&found)) {
            return Ok(allocation_of(tensor));
        }
        if let Some(allocation) = value_of::<AllocationHandle>(&found) {
            return Ok(Some(allocation.clone()));
        }
        if let Ok(capsule) = found.cast::<PyCapsule>() {
            return Ok(allocation_in_capsule(capsule));
        }
        let Some(next) = object_behind(&found)? else {
            return Ok(None);
        };
        let _ = before.replace(replace(&mut found, next));
    }
    Ok(None)
}

fn allocation_of(tensor: &Managed) -> Option<AllocationHandle> {
    share_allocation(&tensor.describe().ok()?)
}

/// The allocation of the tensor in a capsule that NumPy made for an import.
fn allocation_in_capsule(capsule: &Bound<'_, PyCapsule>) -> Option<AllocationHandle> {
    let tensor = capsule.pointer_checked(Some(IMPORTED)).ok()?;
    // SAFETY: NumPy gives this name to capsules of versioned structs only, and does not write to the structs. The capsule keeps the
    // tensor alive.
    unsafe { allocation_of_export(tensor.cast()) }
}

/// The object that provides the memory of another one; `None` if there is none.
fn object_behind<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if is_array_or_derived(object) {
        let base = object.getattr(intern!(py, "base"))?;
        return Ok((!base.is_none()).then_some(base));
    }
    if let Ok(view) = object.cast_exact::<PyMemoryView>() {
        return view.getattr(intern!(py, "obj")).map(Some);
    }
    if is_bytes(object) {
        return Ok(None);
    }
    if !has_buffer(object) {
        if let Some(view) = behind_wrapper(object)? {
            return Ok(Some(view));
        }
        // The object that `sliding_window_view` and `as_strided` put between two arrays has an attribute `base`.
        let base = object.getattr_opt(intern!(py, "base"))?;
        return Ok(base.filter(is_array_or_derived));
    }
    // Classes of ours, a `PickleBuffer` and a method `__buffer__` pass on the buffer of another object.
    let view = PyMemoryView::from(object)?;
    let exporter = view.getattr(intern!(py, "obj"))?;
    Ok((!exporter.is(object)).then(|| view.into_any()))
}
