//! The C functions behind `__dlpack__`, `__dlpack_device__` and `__dlpack_info__`.
#![expect(unsafe_code, reason = "defines methods, which are C functions")]

use core::ffi::{CStr, c_int};
use core::ptr;
use std::ffi::CString;

use dlpack_core::{Device, Version};
use pyo3::{ffi, ffi::PyObject, intern, prelude::*, types::PyType};

use crate::error::{catch_into_null, catch_panics};
use crate::export::arguments::{self, Arguments};
use crate::export::capsule;
use crate::handover::{ConsumerRequest, Outcome};
use crate::keepalive::{ContentsBorrow, leak_static};
use crate::vtable::{Exports, Vtable};

/// The keyword, and its line in the docstring, that the draft from before `max_version` adds.
const DRAFT: [&str; 2] = [
    ", version=None",
    "\nversion: the draft's form of max_version, 100 * major + 10 * minor",
];

/// The docstring: `inspect.signature` reads the part before the line `--`, and `help()` shows the rest.
fn dlpack_doc(draft: bool) -> String {
    let [keyword, line] = if draft { DRAFT } else { [""; 2] };
    format!(
        "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None{keyword})
--

A capsule with this object's data, for one consumer; it is not copied unless asked for.

stream: the consumer's stream, for data on a GPU; None elsewhere
max_version: the newest (major, minor) of DLPack that the consumer understands
dl_device: the (type, id) of the device on which the data is wanted
copy: True for a copy, False for an error where one is needed{line}"
    )
}

const DLPACK_DEVICE: &CStr = c"__dlpack_device__($self, /)
--

The (type, id) of the device on which this object's data lies.";

const DLPACK_INFO: &CStr = c"__dlpack_info__($self, /)
--

The newest version of DLPack that is supported, as 100 * major + 10 * minor.";

/// The C functions of a class.
pub(crate) struct MethodFunctions {
    dlpack: ffi::PyCFunctionFastWithKeywords,
    device: ffi::PyCFunction,
    draft: bool,
}

impl MethodFunctions {
    /// Selects the functions for `T`. `draft` adds `__dlpack_info__`, and the keyword `version` of `__dlpack__`.
    pub(crate) fn for_class<T: Exports>(draft: bool) -> Self {
        Self {
            dlpack: if draft {
                dlpack::<T, true>
            } else {
                dlpack::<T, false>
            },
            device: const {
                if T::EXTRAS.facts.is_on_host() {
                    dlpack_device_of_host
                } else if T::EXTRAS.device.is_some() && T::Frozen::FROZEN {
                    dlpack_device_as_known::<T>
                } else {
                    dlpack_device::<T>
                }
            },
            draft,
        }
    }

    /// Defines the methods on the class, while PyO3 creates it.
    pub(crate) fn define_methods(&self, class: &Bound<'_, PyType>) -> PyResult<()> {
        arguments::prepare_constants(class.py())?;
        let doc = CString::new(dlpack_doc(self.draft)).expect("no zero byte");
        let call = ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: self.dlpack,
        };
        let flags = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
        define_method(class, c"__dlpack__", call, flags, leak_static(doc))?;
        let call = ffi::PyMethodDefPointer {
            PyCFunction: self.device,
        };
        define_method(
            class,
            c"__dlpack_device__",
            call,
            ffi::METH_NOARGS,
            DLPACK_DEVICE,
        )?;
        if self.draft {
            let call = ffi::PyMethodDefPointer {
                PyCFunction: dlpack_info,
            };
            define_method(
                class,
                c"__dlpack_info__",
                call,
                ffi::METH_NOARGS,
                DLPACK_INFO,
            )?;
        }
        Ok(())
    }
}

/// Defines a method on a class, and replaces an attribute of this name.
pub(crate) fn define_method(
    class: &Bound<'_, PyType>,
    name: &'static CStr,
    call: ffi::PyMethodDefPointer,
    flags: c_int,
    doc: &'static CStr,
) -> PyResult<()> {
    let definition = leak_static(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: call,
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    });
    let definition = ptr::from_ref(definition).cast_mut();
    // SAFETY: a valid type; the definition lives for the rest of the process and is only read.
    let method = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), definition) };
    // SAFETY: a new reference, or null with an exception.
    let method = unsafe { Bound::from_owned_ptr_or_err(class.py(), method) }?;
    class.setattr(name.to_str().expect("ASCII"), method)
}

/// Defines a method on a class, unless the class itself has an attribute of this name.
pub(crate) fn define_default_method(
    class: &Bound<'_, PyType>,
    name: &'static CStr,
    call: ffi::PyMethodDefPointer,
    flags: c_int,
    doc: &'static CStr,
) -> PyResult<()> {
    let own = class.getattr(intern!(class.py(), "__dict__"))?;
    if own.contains(name.to_str().expect("ASCII"))? {
        return Ok(());
    }
    define_method(class, name, call, flags, doc)
}

/// `__dlpack__`. A wrapper generated by PyO3 would cost as much as the export itself.
unsafe extern "C" fn dlpack<T: Exports, const DRAFT: bool>(
    object: *mut PyObject,
    values: *const *mut PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls methods attached, with an instance of the class and the arguments of a vectorcall.
    unsafe { dlpack_of::<DRAFT>(object, values, positional, names, Vtable::of::<T>()) }
}

/// Exports an object as a capsule. Arguments other than the most frequent ones are left to the next function, so that this one saves
/// fewer registers.
///
/// # Safety
///
/// The thread is attached, the object is an instance of the class, and the arguments are those of a vectorcall.
unsafe extern "C" fn dlpack_of<const DRAFT: bool>(
    object: *mut PyObject,
    values: *const *mut PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut PyObject,
    class: &Vtable,
) -> *mut PyObject {
    // SAFETY: attached, by this function's contract.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the arguments of a vectorcall, by this function's contract, which runs until this function returns.
    let arguments = unsafe { Arguments::new(py, values, positional, names) };
    if arguments.are_only_common_version() {
        // SAFETY: same contract as this function's.
        return unsafe { export_capsule(py, object, ConsumerRequest::Default, class) };
    }
    // SAFETY: same contract as this function's.
    unsafe { dlpack_with_keywords::<DRAFT>(object, values, positional, names, class) }
}

/// Exports an object as [`dlpack_of`] does, with any arguments.
///
/// # Safety
///
/// The contract of [`dlpack_of`].
#[inline(never)]
unsafe extern "C" fn dlpack_with_keywords<const DRAFT: bool>(
    object: *mut PyObject,
    values: *const *mut PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut PyObject,
    class: &Vtable,
) -> *mut PyObject {
    // SAFETY: attached, by this function's contract.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the arguments of a vectorcall, by this function's contract, which runs until this function returns.
    let arguments = unsafe { Arguments::new(py, values, positional, names) };
    if arguments.are_default() {
        // SAFETY: same contract as this function's.
        return unsafe { export_capsule(py, object, ConsumerRequest::Default, class) };
    }
    let Ok(request) = catch_panics(py, move || arguments.parse_request(DRAFT)) else {
        return ptr::null_mut();
    };
    // SAFETY: same contract as this function's.
    unsafe { export_capsule(py, object, ConsumerRequest::With(&request), class) }
}

/// Exports an object as a capsule; null with an exception.
///
/// # Safety
///
/// The object is an instance of the class.
#[inline(always)]
unsafe fn export_capsule(
    py: Python<'_>,
    object: *mut PyObject,
    request: ConsumerRequest<'_>,
    class: &Vtable,
) -> *mut PyObject {
    let mut outcome = Outcome::None;
    // SAFETY: attached, as `py` shows; an instance of the class, by this function's contract.
    let exported = unsafe { (class.export)(object, request, &mut outcome) };
    let Some((tensor, end)) = exported else {
        return wrap_outcome(py, outcome);
    };
    outcome.forget_none();
    // SAFETY: `export` returned a tensor that nothing else owns, and the destructor for it.
    unsafe { capsule::wrap_owned(py, tensor, end) }
}

/// Creates the capsule for a tensor that was not exported by its address.
#[inline(never)]
fn wrap_outcome(py: Python<'_>, outcome: Outcome) -> *mut PyObject {
    match outcome {
        Outcome::Tensor(tensor) => catch_into_null(py, || capsule::wrap_tensor(py, tensor)),
        _ => ptr::null_mut(),
    }
}

/// `__dlpack_device__` of a class with types that are always in host memory: needs no borrow and cannot fail.
unsafe extern "C" fn dlpack_device_of_host(_: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    arguments::cpu_tuple()
}

/// `__dlpack_device__` of a frozen class that knows its device without a description: [`Tensor`](crate::Tensor).
unsafe extern "C" fn dlpack_device_as_known<T: Exports>(
    object: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls methods attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: a valid object, which the caller keeps alive.
    let object = unsafe { Borrowed::from_ptr(py, object) };
    // SAFETY: CPython passes an instance of the class to its methods.
    let object = unsafe { object.cast_unchecked::<T>() };
    // SAFETY: the value is not used after this function returns; until then its caller keeps the object alive.
    let shared = unsafe { T::Frozen::borrow_shared(&object) };
    let known = const { T::EXTRAS.device }.zip(shared);
    // Sharing a frozen class never fails.
    known.map_or(ptr::null_mut(), |(device, (value, _))| {
        device_tuple(py, device(value))
    })
}

/// A device as a tuple (type, index); null with an exception if there is no memory.
#[inline(always)]
fn device_tuple(_: Python<'_>, device: Device) -> *mut PyObject {
    if device == Device::CPU {
        return arguments::cpu_tuple();
    }
    let (kind, id) = (device.device_type.0, device.device_id);
    // SAFETY: attached; the format takes two integers. The result is a new reference, or null with an exception.
    unsafe { ffi::Py_BuildValue(c"ii".as_ptr(), kind, id) }
}

unsafe extern "C" fn dlpack_device<T: Exports>(
    object: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls methods attached, with an instance of the class.
    unsafe { dlpack_device_of(object, Vtable::of::<T>()) }
}

/// The device of an object, as a tuple; null with an exception.
///
/// # Safety
///
/// The thread is attached, and the object is an instance of the class.
unsafe extern "C" fn dlpack_device_of(object: *mut PyObject, class: &Vtable) -> *mut PyObject {
    // SAFETY: attached, by this function's contract.
    let py = unsafe { Python::assume_attached() };
    catch_into_null(py, || {
        // SAFETY: a valid object, by this function's contract.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: an instance of the class, by this function's contract.
        let device = unsafe { (class.device)(&object) }?;
        Ok(device_tuple(py, device))
    })
}

unsafe extern "C" fn dlpack_info(_: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: CPython calls methods attached. The result is a new reference, or null with an exception.
    unsafe { ffi::PyLong_FromLongLong(arguments::draft_number(Version::CURRENT)) }
}
