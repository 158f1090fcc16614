//! Finds our memory behind an imported array or buffer, so that the import keeps that memory and not the objects in between, which have
//! no other use. Otherwise `obj.state = np.asarray(obj.state)` would lengthen a chain of objects:
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
use pyo3::{ffi, intern, prelude::*, sync::PyOnceLock};

use crate::capi::{class_attribute, has_buffer};
use crate::error::none_if_concerns_object;
use crate::import::numpy::is_bytes;
use crate::lender::{Wrapper, tensor_of_lender};
use crate::library::numpy::{is_plain_array, value_of};

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

/// [`keep_by_root`], if the object is an array of exactly NumPy's class.
#[inline]
pub(super) fn keep_by_root_of_array(
    tensor: Managed,
    object: &Bound<'_, PyAny>,
) -> PyResult<Managed> {
    if AllocationHandle::may_exist() && is_plain_array(object) {
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

/// The object that provides the memory of another one; `None` if there is none, or if the import has to keep the object itself.
///
/// Only objects that end without an effect are looked behind: no class in Python could define `__del__` or `__release_buffer__`, and
/// no weak reference to an array is told of its end. Any other object may be a lease of a part of the memory, which ends with it.
/// Objects of our classes are looked behind, too: an export of one keeps the same allocation, without the object.
fn object_behind<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if is_plain_array(object) {
        let base = object.getattr(intern!(py, "base"))?;
        return Ok((!base.is_none() && !has_weak_references(object)?).then_some(base));
    }
    if object.is_exact_instance_of::<PyMemoryView>() {
        return object.getattr(intern!(py, "obj")).map(Some);
    }
    if is_bytes(object) {
        return Ok(None);
    }
    if has_buffer(object) {
        return view_of_passed_on_buffer(object);
    }
    if let Some(wrapper) = Wrapper::of(object)? {
        let passes_on = wrapper.object.as_ref().is_some_and(has_buffer_in_c);
        return Ok(passes_on.then_some(wrapper.view));
    }
    if is_dummy_array(object)? {
        return object.getattr(intern!(py, "base")).map(Some);
    }
    Ok(None)
}

/// A view of an object that passes on the buffer of another one: a `PickleBuffer`, or an object of our classes.
fn view_of_passed_on_buffer<'py>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !has_buffer_in_c(object) {
        return Ok(None);
    }
    let view = PyMemoryView::from(object)?;
    let exporter = view.getattr(intern!(object.py(), "obj"))?;
    Ok((!exporter.is(object)).then(|| view.into_any()))
}

/// Whether the buffer of an object comes from a slot or a C function, not from a method in Python.
fn has_buffer_in_c(object: &Bound<'_, PyAny>) -> bool {
    let defined = class_attribute(&object.get_type(), intern!(object.py(), "__buffer__"));
    // Before Python 3.12 there is no such attribute.
    defined.is_none_or(|method| {
        let class = method.get_type_ptr();
        let in_c = [
            &raw mut ffi::PyMethodDescr_Type,
            &raw mut ffi::PyWrapperDescr_Type,
        ];
        in_c.contains(&class)
    })
}

/// Whether an object is the one that `sliding_window_view` and `as_strided` put between two arrays.
fn is_dummy_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = object.get_type();
    Ok(class.name()? == "DummyArray" && class.module()?.to_str()?.starts_with("numpy."))
}

/// Whether code has weak references to an object, such as those of `weakref.finalize`.
fn has_weak_references(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static COUNT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    let count = COUNT.import(object.py(), "_weakref", "getweakrefcount")?;
    Ok(count.call1((object,))?.extract::<usize>()? > 0)
}
