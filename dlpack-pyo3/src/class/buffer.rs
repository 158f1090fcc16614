//! Python's own buffer protocol over what a class exports: `memoryview(obj)`, `bytes(obj)`, `file.write(obj)`.
//!
//! From Python 3.12 on, a class of any kind lends buffers by a method. Before, only the struct of a class in C can say how,
//! which the stable ABI hides; those of 3.10 and 3.11 will never change again, so the place is known. Both ways end in
//! an object of one more class, which keeps the memory until the last buffer is given back:
//!
//! ```text
//! memoryview(obj) ──▶ __buffer__, or the slot ──▶ described, and borrowed, as for an export ──▶ Lender ──▶ Py_buffer
//!                                                  └── no plain memory of the host ──▶ tensor ──▶─┘
//! ```
#![expect(
    unsafe_code,
    reason = "defines slots and methods, which are C functions"
)]

use core::ffi::{CStr, c_char, c_int, c_void};

use dlpack_core::binding::unordered_stream;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::{PyClass, intern, prelude::*, types::PyType};

use crate::capi::{PyBuffer, class_attribute, get_buffer};
use crate::class::tensors::ExportsTensors;
use crate::error::{OrRaise, Raised, bail, catch_into_null, catch_panics};
use crate::export::method::define_default_method;
use crate::handover::{ConsumerRequest, Outcome};
use crate::import::from_dlpack;
use crate::keepalive::{
    BorrowGuardOf, ExportOwner, ObjectGuard, PendingException, borrow_contents,
};
use crate::lender::{Kept, Place, Source};
use crate::vtable::{Exports, Vtable};

const BUFFER: &CStr = c"__buffer__($self, flags, /)
--

A memoryview of this object's data, which it shares.";

/// The C functions by which a class lends buffers, each of which knows its table.
pub(super) struct Functions {
    lend: Get,
    buffer: ffi::PyCFunction,
}

impl Functions {
    pub(super) fn of<T: Exports>() -> Self {
        Self {
            lend: lend::<T>,
            buffer: buffer::<T>,
        }
    }

    /// Those of a class that has one list of records and is no tensor.
    pub(super) fn of_records<T: ExportsTensors>() -> Self {
        Self {
            lend: lend_records::<T>,
            buffer: buffer_of_records::<T>,
        }
    }

    /// Lets the objects of a class lend buffers, while PyO3 is making it.
    pub(super) fn install(&self, class: &Bound<'_, PyType>) -> PyResult<()> {
        if class.py().version_info() >= (3, 12) {
            let call = ffi::PyMethodDefPointer {
                PyCFunction: self.buffer,
            };
            return define_default_method(class, c"__buffer__", call, ffi::METH_O, BUFFER);
        }
        // Of another Python than CPython, an object is larger.
        if size_of::<PyObject>() == 2 * size_of::<usize>() {
            set_slot(class, self.lend)?;
        }
        Ok(())
    }
}

/// `PyTypeObject` of Python 3.10 and 3.11, as far as it is used here.
#[repr(C)]
struct Class {
    head: ffi::PyVarObject,
    name: *const c_char,
    sizes: [Py_ssize_t; 2],
    others: [*mut c_void; 14],
    buffers: *mut BufferProcs,
}

/// `PyBufferProcs`
#[repr(C)]
struct BufferProcs {
    get: Option<Get>,
    release: Option<Release>,
}

type Get = unsafe extern "C" fn(*mut PyObject, *mut PyBuffer, c_int) -> c_int;
type Release = unsafe extern "C" fn(*mut PyObject, *mut PyBuffer);

/// Of a class and of those that derive from it already, as the variants of an enum do. A slot of the user's own stays.
fn set_slot(class: &Bound<'_, PyType>, lend: Get) -> PyResult<()> {
    let head = class.as_type_ptr().cast::<Class>();
    // SAFETY: a class of a Python in which such a struct is at its start.
    let buffers = unsafe { (*head).buffers };
    // SAFETY: a class that was made at run time has its slots in itself. Nobody has an object of it yet.
    let buffers = unsafe { &mut *buffers };
    if buffers.get.is_none() {
        buffers.get = Some(lend);
    }
    for derived in class.call_method0("__subclasses__")?.try_iter()? {
        set_slot(derived?.cast::<PyType>()?, lend)?;
    }
    Ok(())
}

/// The slot. The buffer is that of a lender, which is released with it.
unsafe extern "C" fn lend<T: Exports>(
    object: *mut PyObject,
    view: *mut PyBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: Python asks an object for a buffer attached, and passes the place that it wants filled.
    unsafe {
        lend_of(object, view, flags, |object| {
            lender::<BorrowGuardOf<T>>(object, Vtable::of::<T>())
        })
    }
}

/// What lends the memory of an object.
type Lend = for<'py> fn(&Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Raised>;

/// # Safety
///
/// The thread is attached; an object, and a place for a buffer. The object is one of the class that `lender` is for.
unsafe fn lend_of(object: *mut PyObject, view: *mut PyBuffer, flags: c_int, lender: Lend) -> c_int {
    // SAFETY: passed on to the caller.
    let py = unsafe { Python::assume_attached() };
    let lent = catch_panics(py, || {
        // SAFETY: passed on to the caller.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        let lender = lender(&object)?;
        // SAFETY: passed on to the caller.
        let status = unsafe { get_buffer(&lender, view, flags) };
        if status == 0 { Ok(()) } else { Err(Raised) }
    });
    if lent.is_ok() { 0 } else { -1 }
}

/// The method.
unsafe extern "C" fn buffer<T: Exports>(
    object: *mut PyObject,
    _flags: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python calls a method of an object attached.
    unsafe {
        buffer_of(object, |object| {
            lender::<BorrowGuardOf<T>>(object, Vtable::of::<T>())
        })
    }
}

/// # Safety
///
/// The thread is attached, and the object is one of the class that `lender` is for.
unsafe fn buffer_of(object: *mut PyObject, lender: Lend) -> *mut PyObject {
    // SAFETY: passed on to the caller.
    let py = unsafe { Python::assume_attached() };
    catch_into_null(py, || {
        // SAFETY: passed on to the caller.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        let lender = lender(&object)?;
        // What the flags ask for, Python asks of this in turn.
        // SAFETY: an object with a buffer. Null stands for an exception.
        Ok(unsafe { ffi::PyMemoryView_FromObject(lender.as_ptr()) })
    })
}

/// The slot of a class that has records.
unsafe extern "C" fn lend_records<T: ExportsTensors>(
    object: *mut PyObject,
    view: *mut PyBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: Python asks an object of the class for a buffer attached, and passes the place that it wants filled.
    unsafe { lend_of(object, view, flags, lender_of_records::<T>) }
}

/// The method of a class that has records.
unsafe extern "C" fn buffer_of_records<T: ExportsTensors>(
    object: *mut PyObject,
    _flags: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python calls a method of an object of the class attached.
    unsafe { buffer_of(object, lender_of_records::<T>) }
}

/// A lender over the records of an object, which stays borrowed as for an export. They cannot be written: Rust code may
/// read them.
fn lender_of_records<'py, T: ExportsTensors>(
    object: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>, Raised> {
    let py = object.py();
    let class = object.cast::<T>().map_err(PyErr::from).or_raise(py)?;
    // SAFETY: the guard goes into `ObjectGuard` together with the object; the records are only read while both are there.
    let (value, guard) = unsafe { borrow_contents(class) }?;
    let Some(records) = value.records() else {
        bail!(py, PyTypeError: "`{}` has no list of records", <T as PyClass>::NAME);
    };
    let place = Place::of_records(py, &records, true)?;
    Ok(place.put(Kept::Object(ObjectGuard::new(guard, object).into_any(py))))
}

/// A lender over what an object exports.
fn lender<'py, G: Send + 'static>(
    object: &Bound<'py, PyAny>,
    class: &Vtable<G>,
) -> Result<Bound<'py, PyAny>, Raised> {
    let py = object.py();
    let mut outcome = Outcome::NotLent;
    if is_plain(object, class)? {
        outcome = Outcome::None;
        // SAFETY: attached; of this class, as was found. No tensor is returned by its address to a request for a buffer.
        unsafe { (class.export)(object.as_ptr(), ConsumerRequest::Buffer, &mut outcome) };
    }
    let tensor = match outcome {
        Outcome::None => return Err(Raised),
        Outcome::Lender(lender) => return Ok(lender.into_bound(py)),
        Outcome::Tensor(tensor) if unordered_stream(tensor.view().device()).is_none() => tensor,
        Outcome::Tensor(_) | Outcome::NotLent => from_dlpack(object).or_raise(py)?,
    };
    let Ok(place) = Place::new(py, &Source::of_tensor(&tensor.view())) else {
        // Its owner shall see nothing of the exception.
        let _pending = PendingException::save_current();
        drop(tensor);
        return Err(Raised);
    };
    Ok(place.put(Kept::Tensor(tensor)))
}

/// Whether an object is exported by the table of its class: it has the class's own `__dlpack__`.
fn is_plain<G: Send + 'static>(
    object: &Bound<'_, PyAny>,
    table: &Vtable<G>,
) -> Result<bool, Raised> {
    let (py, class) = (object.py(), object.get_type());
    let name = intern!(py, "__dlpack__");
    let Some(found) = class_attribute(&class, name) else {
        // As whatever else has a buffer alone it would be asked for that, and so on.
        bail!(py, PyTypeError: "{class} has no `__dlpack__` any more, so its objects have no buffer either");
    };
    let own = (table.class)(py);
    if class.as_type_ptr() == own {
        return Ok(true);
    }
    // SAFETY: a class, which lives as long as its table.
    let own = unsafe { PyType::from_borrowed_type_ptr(py, own) };
    Ok(table.has(object) && class_attribute(&own, name).is_some_and(|own| own.is(&found)))
}
