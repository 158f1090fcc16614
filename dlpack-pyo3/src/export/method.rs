//! Puts the methods on a class, while PyO3 is making it.
#![expect(unsafe_code, reason = "defines methods, which are C functions")]

use core::ffi::CStr;

use dlpack_core::{Device, Version};
use pyo3::IntoPyObjectExt;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::error::{OrRaise, Raised, answer};
use crate::export::arguments::{self, Arguments};
use crate::export::{self, Exports};
use crate::hold::forever::keep_for_good;

const DLPACK: &CStr =
    c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
--

A capsule with this object's data, for one consumer; it is not copied unless asked for.

stream: the consumer's stream, for data on a GPU; None elsewhere
max_version: the newest (major, minor) of DLPack that the consumer understands
dl_device: the (type, id) of the device on which the data is wanted
copy: True for a copy, False for an error where one is needed";

const DLPACK_DRAFT: &CStr = c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None, version=None)
--

A capsule with this object's data, for one consumer; it is not copied unless asked for.

stream: the consumer's stream, for data on a GPU; None elsewhere
max_version: the newest (major, minor) of DLPack that the consumer understands
dl_device: the (type, id) of the device on which the data is wanted
copy: True for a copy, False for an error where one is needed
version: the draft's form of max_version, 100 * major + 10 * minor";

const DLPACK_DEVICE: &CStr = c"__dlpack_device__($self, /)
--

The (type, id) of the device on which this object's data lies.";

const DLPACK_INFO: &CStr = c"__dlpack_info__($self, /)
--

The newest version of DLPack that is supported, as 100 * major + 10 * minor.";

/// Gives the class `__dlpack__` and `__dlpack_device__`, and `__dlpack_info__` where that is wanted.
pub(crate) fn methods<T: Exports>(class: &Bound<'_, PyType>, info: bool) -> PyResult<()> {
    const {
        // The one thing about a class that says whether it is `unsendable`.
        assert!(
            size_of::<T::ThreadChecker>() == 0,
            "an `unsendable` class cannot be exported: a consumer may use and release its data on any thread"
        );
    };
    arguments::prepare(class.py())?;
    let (call, doc): (ffi::PyCFunctionFastWithKeywords, _) = if info {
        (dlpack::<T, true>, DLPACK_DRAFT)
    } else {
        (dlpack::<T, false>, DLPACK)
    };
    let call = ffi::PyMethodDefPointer {
        PyCFunctionFastWithKeywords: call,
    };
    method(
        class,
        c"__dlpack__",
        call,
        ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        doc,
    )?;
    let call = ffi::PyMethodDefPointer {
        PyCFunction: dlpack_device::<T>,
    };
    method(
        class,
        c"__dlpack_device__",
        call,
        ffi::METH_NOARGS,
        DLPACK_DEVICE,
    )?;
    if info {
        let call = ffi::PyMethodDefPointer {
            PyCFunction: dlpack_info,
        };
        method(
            class,
            c"__dlpack_info__",
            call,
            ffi::METH_NOARGS,
            DLPACK_INFO,
        )?;
    }
    Ok(())
}

fn method(
    class: &Bound<'_, PyType>,
    name: &'static CStr,
    call: ffi::PyMethodDefPointer,
    flags: core::ffi::c_int,
    doc: &'static CStr,
) -> PyResult<()> {
    let definition = keep_for_good(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: call,
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    });
    let definition = core::ptr::from_ref(definition).cast_mut();
    // SAFETY: a class, and a definition that lives for ever and is only read.
    let method = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), definition) };
    // SAFETY: a new reference, or null with an exception.
    let method = unsafe { Bound::from_owned_ptr_or_err(class.py(), method) }?;
    class.setattr(name.to_str().expect("ASCII"), method)
}

/// The method that runs. PyO3's own wrapper would cost as much again as the export itself.
unsafe extern "C" fn dlpack<T: Exports, const DRAFT: bool>(
    object: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls a method attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the arguments of this very call.
    let arguments = unsafe { Arguments::new(py, args, positional, names) };
    answer(py, || {
        // SAFETY: the descriptor checked that the object is one of its class.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: as above.
        let object = unsafe { object.cast_unchecked::<T>() };
        if arguments.are_plain() {
            export::to_capsule(object)
        } else {
            dlpack_as_asked(object, arguments, DRAFT)
        }
    })
}

#[inline(never)]
fn dlpack_as_asked<T: Exports>(
    object: Borrowed<'_, '_, T>,
    arguments: Arguments<'_, '_>,
    draft: bool,
) -> Result<*mut ffi::PyObject, Raised> {
    let request = arguments.request(draft).or_raise(object.py())?;
    export::to_capsule_with(object, &request)
}

unsafe extern "C" fn dlpack_device<T: Exports>(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls a method attached.
    let py = unsafe { Python::assume_attached() };
    answer(py, || {
        // SAFETY: the descriptor checked that the object is one of its class.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: as above.
        let object = unsafe { object.cast_unchecked::<T>() };
        let device = export::device(&object).or_raise(py)?;
        if device == Device::CPU {
            return Ok(arguments::cpu());
        }
        let pair = (device.device_type.0, device.device_id).into_py_any(py);
        Ok(pair.or_raise(py)?.into_ptr())
    })
}

unsafe extern "C" fn dlpack_info(
    _: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls a method attached.
    let py = unsafe { Python::assume_attached() };
    answer(py, || {
        let version = arguments::draft_number(Version::CURRENT);
        Ok(version.into_py_any(py).or_raise(py)?.into_ptr())
    })
}
