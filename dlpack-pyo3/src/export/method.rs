//! The methods of a class in Python: the C functions behind `__dlpack__`, `__dlpack_device__` and `__dlpack_info__`.
#![expect(unsafe_code, reason = "defines methods, which are C functions")]

use core::ffi::{CStr, c_int};
use core::ptr;
use std::ffi::CString;

use dlpack_core::{Device, Version};
use pyo3::{ffi, ffi::PyObject, intern, prelude::*, types::PyType};

use crate::error::{Raised, answer, contained};
use crate::export::arguments::{self, Arguments};
use crate::export::{capsule, device};
use crate::handover::{ConsumerRequest, Outcome};
use crate::hold::{Borrowing, GuardOf, keep_for_good};
use crate::vtable::{Exports, Vtable};

/// The keyword and the line of text that the draft from before `max_version` adds.
const DRAFT: [&str; 2] = [
    ", version=None",
    "\nversion: the draft's form of max_version, 100 * major + 10 * minor",
];

/// What `help()` shows, and before the line `--` what `inspect.signature` reads.
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

/// The C functions of a class, each of which knows its table.
pub(crate) struct Functions {
    dlpack: ffi::PyCFunctionFastWithKeywords,
    device: ffi::PyCFunction,
    draft: bool,
}

impl Functions {
    /// With `draft`, `__dlpack_info__` too, and the keyword `version`.
    pub(crate) fn of<T: Exports>(draft: bool) -> Self {
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

    /// Makes them methods of the class, while PyO3 is making it.
    pub(crate) fn install(&self, class: &Bound<'_, PyType>) -> PyResult<()> {
        arguments::prepare(class.py())?;
        let doc = CString::new(dlpack_doc(self.draft)).expect("no zero byte");
        let call = ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: self.dlpack,
        };
        let flags = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
        define(class, c"__dlpack__", call, flags, keep_for_good(doc))?;
        let call = ffi::PyMethodDefPointer {
            PyCFunction: self.device,
        };
        define(
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
            define(
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

/// Gives a class a method, which replaces one of that name.
pub(crate) fn define(
    class: &Bound<'_, PyType>,
    name: &'static CStr,
    call: ffi::PyMethodDefPointer,
    flags: c_int,
    doc: &'static CStr,
) -> PyResult<()> {
    let definition = keep_for_good(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: call,
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    });
    let definition = ptr::from_ref(definition).cast_mut();
    // SAFETY: a class, and a definition that lives for ever and is only read.
    let method = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), definition) };
    // SAFETY: a new reference, or null with an exception.
    let method = unsafe { Bound::from_owned_ptr_or_err(class.py(), method) }?;
    class.setattr(name.to_str().expect("ASCII"), method)
}

/// The same, unless the class has one of its own.
pub(crate) fn add(
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
    define(class, name, call, flags, doc)
}

/// The method that runs. PyO3's own wrapper would cost as much again as the export itself.
unsafe extern "C" fn dlpack<T: Exports, const DRAFT: bool>(
    object: *mut PyObject,
    values: *const *mut PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python passes an object of this class, and the arguments of this very call.
    unsafe { dlpack_of::<GuardOf<T>, DRAFT>(object, values, positional, names, Vtable::of::<T>()) }
}

/// # Safety
///
/// The thread is attached, the object is one of the class, and the arguments are those of a call.
unsafe extern "C" fn dlpack_of<G: Send + 'static, const DRAFT: bool>(
    object: *mut PyObject,
    values: *const *mut PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut PyObject,
    class: &Vtable<G>,
) -> *mut PyObject {
    // SAFETY: passed on to the caller.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: passed on to the caller.
    let arguments = unsafe { Arguments::new(py, values, positional, names) };
    let plain = arguments.are_plain();
    let mut other = Outcome::None;
    let exported = if plain {
        // SAFETY: passed on to the caller.
        unsafe { (class.export)(object, ConsumerRequest::Default, &mut other) }
    } else {
        match contained(py, || arguments.request(DRAFT)) {
            // SAFETY: passed on to the caller.
            Ok(request) => unsafe {
                (class.export)(object, ConsumerRequest::With(&request), &mut other)
            },
            Err(Raised) => None,
        }
    };
    match (exported, other) {
        (Some((tensor, end)), _) => {
            // SAFETY: it was given right above, to nobody else, for that destructor.
            let capsule = unsafe { capsule::keep(py, tensor, end) };
            capsule.unwrap_or(ptr::null_mut())
        }
        (None, Outcome::Tensor(tensor)) => answer(py, || capsule::wrap(py, tensor)),
        (None, _) => ptr::null_mut(),
    }
}

/// Of a class whose types say where the data is: nothing has to be borrowed, or can fail.
unsafe extern "C" fn dlpack_device_of_host(_: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    arguments::cpu()
}

/// Of a class that knows without being described, nor borrowed: [`Tensor`](crate::Tensor).
unsafe extern "C" fn dlpack_device_as_known<T: Exports>(
    object: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python calls a method attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: an object, which the caller keeps.
    let object = unsafe { Borrowed::from_ptr(py, object) };
    // SAFETY: Python passes an object of this class.
    let object = unsafe { object.cast_unchecked::<T>() };
    // SAFETY: the value is not used after this function, whose caller keeps the object.
    let shared = unsafe { T::Frozen::share(&object) };
    let known = const { T::EXTRAS.device }.zip(shared);
    // What is frozen can always be shared.
    known.map_or(ptr::null_mut(), |(device, (value, _))| {
        in_python(py, device(value))
    })
}

/// A device as Python names it, or null with an exception.
#[inline(always)]
fn in_python(_: Python<'_>, device: Device) -> *mut PyObject {
    if device == Device::CPU {
        return arguments::cpu();
    }
    let (kind, id) = (device.device_type.0, device.device_id);
    // SAFETY: attached; two integers, as the format says. Null stands for an exception.
    unsafe { ffi::Py_BuildValue(c"ii".as_ptr(), kind, id) }
}

unsafe extern "C" fn dlpack_device<T: Exports>(
    object: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python passes an object of this class.
    unsafe { dlpack_device_of(object, Vtable::of::<T>()) }
}

/// # Safety
///
/// The thread is attached, and the object is one of the class.
unsafe extern "C" fn dlpack_device_of<G: Send + 'static>(
    object: *mut PyObject,
    class: &Vtable<G>,
) -> *mut PyObject {
    // SAFETY: passed on to the caller.
    let py = unsafe { Python::assume_attached() };
    answer(py, || {
        // SAFETY: passed on to the caller.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: passed on to the caller.
        let device = unsafe { device(&object, class) }?;
        Ok(in_python(py, device))
    })
}

unsafe extern "C" fn dlpack_info(_: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: Python calls a method attached; null stands for an exception.
    unsafe { ffi::PyLong_FromLongLong(arguments::draft_number(Version::CURRENT)) }
}
