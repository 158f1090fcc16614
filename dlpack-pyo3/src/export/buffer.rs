//! Python's own buffer protocol over what a class exports: `memoryview(obj)`, `numpy.asarray(obj)`.
#![expect(unsafe_code, reason = "fills and releases a struct of Python's")]

use core::ffi::{CStr, c_int};
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use std::panic::catch_unwind;

use dlpack_core::{DataType, ExportRequest, Managed, binding::Handover};
use pyo3::ffi::Py_ssize_t;
use pyo3::{exceptions::PyBufferError, prelude::*};

use crate::error::{OrRaise, Raised, bail, contained, list};
use crate::export::export;
use crate::hidden::{
    ANY_CONTIGUOUS, C_CONTIGUOUS, F_CONTIGUOUS, FORMAT, ND, PyBuffer, STRIDES, WRITABLE,
};
use crate::vtable::{Exports, Vtable};

/// What a buffer keeps until it is released.
struct Lent {
    #[expect(dead_code, reason = "held for its `Drop`")]
    tensor: Managed,
    shape: Vec<Py_ssize_t>,
    strides: Vec<Py_ssize_t>,
}

/// Fills a buffer with what `object` exports.
///
/// # Errors
///
/// `BufferError` if the request asks for what the data is not.
///
/// # Safety
///
/// `view` is the `Py_buffer` that Python wants filled.
pub unsafe fn get_buffer<T: Exports, V>(
    object: &Bound<'_, T>,
    view: *mut V,
    flags: c_int,
) -> PyResult<()> {
    // SAFETY: passed on to the caller; the object is one of this class.
    unsafe { get_buffer_of(object.as_any(), view.cast(), flags, Vtable::of::<T>()) }
}

/// # Safety
///
/// As [`get_buffer`], and the object is one of the class.
unsafe fn get_buffer_of<G: Send + 'static>(
    object: &Bound<'_, PyAny>,
    view: *mut PyBuffer,
    flags: c_int,
    class: &Vtable<G>,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("there is no buffer to fill"));
    }
    // The protocol wants this place null if it fails.
    // SAFETY: the caller passes a buffer.
    unsafe { (*view).obj = ptr::null_mut() };
    let py = object.py();
    let fill = || {
        // SAFETY: passed on to the caller.
        let tensor = match unsafe { export(object, class, Some(&ExportRequest::versioned())) }? {
            // SAFETY: it was just made, and nobody else has it; of its memory nothing is read here.
            Handover::Kept(tensor) => unsafe { Managed::from_raw(tensor) }.or_raise(py)?,
            Handover::Other(tensor) => tensor,
        };
        let mut filled = fill(py, tensor, flags)?;
        // The buffer holds a reference to its exporter.
        filled.obj = object.clone().into_ptr();
        // SAFETY: the caller passes a buffer.
        unsafe { view.write(filled) };
        Ok(())
    };
    contained(py, fill).or_fetch(py)
}

fn fill(py: Python<'_>, tensor: Managed, flags: c_int) -> Result<PyBuffer, Raised> {
    let view = tensor.view();
    let (dtype, device) = (view.dtype(), view.device());
    if !device.device_type.is_host_readable() {
        bail!(py, PyBufferError: "the data lies on {device}, which a buffer cannot say");
    }
    let Some((format, itemsize)) = format_of(dtype) else {
        bail!(py, PyBufferError: "the buffer protocol has no format for {dtype}; use DLPack");
    };
    let readonly = view.is_read_only();
    if readonly && flags & WRITABLE != 0 {
        bail!(py, PyBufferError: "the data is read-only, and a writable buffer was asked for");
    }
    let wants = |what: c_int| flags & what == what;
    let rows = view.is_contiguous();
    let columns = view.is_column_major();
    if !rows && (wants(C_CONTIGUOUS) || !wants(STRIDES)) {
        bail!(py, PyBufferError: "the data is not contiguous in row-major order");
    }
    if wants(F_CONTIGUOUS) && !columns {
        bail!(py, PyBufferError: "the data is not contiguous in column-major order");
    }
    if wants(ANY_CONTIGUOUS) && !rows && !columns {
        bail!(py, PyBufferError: "the data is not contiguous");
    }

    let size = |number: &i64| Py_ssize_t::try_from(*number).expect("checked when it was described");
    let shape = list(py, view.shape().iter().map(size))?;
    let strides = view.strides().iter().map(|stride| size(stride) * itemsize);
    let strides = list(py, strides)?;
    let ndim = c_int::try_from(shape.len()).expect("at most 64 axes");
    let len = view.len_bytes();
    let mut buf = view.as_ptr().cast_mut().cast();
    if len == 0 {
        // Nothing is there to be read, but some readers do not take null.
        buf = NonNull::<u64>::dangling().as_ptr().cast();
    }
    let lent = Lent {
        tensor,
        shape,
        strides,
    };
    // A list of one, since a box cannot say that there is no memory for it.
    let lent = Box::leak(list(py, core::iter::once(lent))?.into_boxed_slice());
    let lists = &mut lent[0];
    let list = |what, list: &mut Vec<_>| {
        if wants(what) {
            list.as_mut_ptr()
        } else {
            ptr::null_mut()
        }
    };
    let format = Some(format).filter(|_| wants(FORMAT));
    Ok(PyBuffer {
        buf,
        obj: ptr::null_mut(),
        len: Py_ssize_t::try_from(len).expect("no more than memory has"),
        itemsize,
        readonly: readonly.into(),
        ndim,
        format: format.map_or(ptr::null(), CStr::as_ptr).cast_mut(),
        shape: list(ND, &mut lists.shape),
        strides: list(STRIDES, &mut lists.strides),
        suboffsets: ptr::null_mut(),
        internal: lent.as_mut_ptr().cast(),
    })
}

/// Gives back what a buffer keeps.
///
/// # Safety
///
/// `view` was filled by [`get_buffer`], and this is its one release.
pub unsafe fn release_buffer<V>(view: *mut V) {
    let view = view.cast::<PyBuffer>();
    // SAFETY: the caller passes a buffer that was filled.
    let lent = unsafe { (*view).internal }.cast::<[Lent; 1]>();
    if lent.is_null() {
        return;
    }
    // SAFETY: as above; nothing uses it afterwards.
    unsafe { (*view).internal = ptr::null_mut() };
    // SAFETY: `fill` leaked it, and this is the one release.
    let lent = unsafe { Box::from_raw(lent) };
    core::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(lent))));
}

/// The format of the `struct` module, and the bytes of an item.
fn format_of(dtype: DataType) -> Option<(&'static CStr, Py_ssize_t)> {
    const FORMATS: [(DataType, &CStr, Py_ssize_t); 14] = [
        (DataType::BOOL, c"?", 1),
        (DataType::I8, c"b", 1),
        (DataType::I16, c"h", 2),
        (DataType::I32, c"i", 4),
        (DataType::I64, c"q", 8),
        (DataType::U8, c"B", 1),
        (DataType::U16, c"H", 2),
        (DataType::U32, c"I", 4),
        (DataType::U64, c"Q", 8),
        (DataType::F16, c"e", 2),
        (DataType::F32, c"f", 4),
        (DataType::F64, c"d", 8),
        (DataType::C64, c"Zf", 8),
        (DataType::C128, c"Zd", 16),
    ];
    let found = FORMATS.iter().find(|(known, ..)| *known == dtype);
    found.map(|&(_, format, itemsize)| (format, itemsize))
}
