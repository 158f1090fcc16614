//! The buffer protocol for exported classes: `memoryview(obj)`, `bytes(obj)`, `file.write(obj)`.
//!
//! From Python 3.12 on, any class can define the method `__buffer__`. Before, a buffer needs a slot in the class's struct, which
//! the stable ABI hides. The structs of 3.10 and 3.11 will not change any more, so the offset of the slot is known. Method and
//! slot both create a lender, which keeps the memory alive until its last buffer is released:
//!
//! ```text
//! memoryview(obj) ──▶ __buffer__, or the slot ──▶ described and borrowed, as for an export ──▶ Lender ──▶ Py_buffer
//!                                                  └── no plain host memory ──▶ import a tensor ──▶─┘
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

use crate::capi::{GetBuffer, PyBuffer, class_attribute, get_buffer};
use crate::class::{define_unless_own, tensors::ExportsTensors};
use crate::error::{OrRaise, Raised, bail, catch_into_null, catch_panics};
use crate::handover::{ConsumerRequest, Outcome};
use crate::import::import_from_own_class;
use crate::keepalive::{ExportOwner, ObjectGuard, PendingException, borrow_contents};
use crate::lender::{MemoryOwner, UnfilledLender};
use crate::vtable::{Exports, Vtable};

const BUFFER: &CStr = c"__buffer__($self, flags, /)
--

A memoryview of this object's data, which it shares.";

/// The C functions by which objects of a class export buffers.
pub(super) struct BufferFunctions {
    slot: GetBuffer,
    method: ffi::PyCFunction,
}

impl BufferFunctions {
    /// The functions of a class that exports tensors.
    pub(super) fn for_tensor<T: Exports>() -> Self {
        Self {
            slot: get_tensor_buffer::<T>,
            method: tensor_memoryview::<T>,
        }
    }

    /// The functions of a class that has one list of records and does not export a tensor itself.
    pub(super) fn for_records<T: ExportsTensors>() -> Self {
        Self {
            slot: get_records_buffer::<T>,
            method: records_memoryview::<T>,
        }
    }

    /// Adds the method or the slot to the class, while PyO3 creates it. `over` names the attributes that are replaced.
    pub(super) fn define_on(&self, class: &Bound<'_, PyType>, over: &[&str]) -> PyResult<()> {
        if class.py().version_info() >= (3, 12) {
            let call = ffi::PyMethodDefPointer {
                PyCFunction: self.method,
            };
            return define_unless_own(class, c"__buffer__", call, ffi::METH_O, BUFFER, over);
        }
        let placeholder = intern!(class.py(), "__buffer__");
        if over.contains(&"__buffer__") && class.hasattr(placeholder)? {
            // These versions of Python have no such method; it is there for type stubs.
            class.delattr(placeholder)?;
        }
        // Objects of other implementations than CPython have a larger head.
        if size_of::<PyObject>() == 2 * size_of::<usize>() {
            set_buffer_slot(class, self.slot)?;
        }
        Ok(())
    }
}

/// `PyTypeObject` of Python 3.10 and 3.11, up to the slots for buffers.
#[repr(C)]
struct TypeFields {
    head: ffi::PyVarObject,
    name: *const c_char,
    sizes: [Py_ssize_t; 2],
    others: [*mut c_void; 14],
    buffers: *mut BufferProcs,
}

/// `PyBufferProcs`
#[repr(C)]
struct BufferProcs {
    get_buffer: Option<GetBuffer>,
    release_buffer: Option<ReleaseBuffer>,
}

type ReleaseBuffer = unsafe extern "C" fn(*mut PyObject, *mut PyBuffer);

/// Sets the slot in a class and in the classes that derive from it already, such as the variants of an enum. A slot that the user
/// defined stays.
fn set_buffer_slot(class: &Bound<'_, PyType>, slot: GetBuffer) -> PyResult<()> {
    let head = class.as_type_ptr().cast::<TypeFields>();
    // SAFETY: classes of Python 3.10 and 3.11 begin with this struct.
    let buffers = unsafe { (*head).buffers };
    // SAFETY: a class that was made at run time contains its slots. It is being created, so no other code uses them.
    let buffers = unsafe { &mut *buffers };
    if buffers.get_buffer.is_none() {
        buffers.get_buffer = Some(slot);
    }
    for derived in class.call_method0("__subclasses__")?.try_iter()? {
        set_buffer_slot(derived?.cast::<PyType>()?, slot)?;
    }
    Ok(())
}

/// Creates the lender for the memory of an object of one class.
type CreateLender = for<'py> fn(&Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Raised>;

/// Fills a buffer with that of a new lender, which is released with it.
///
/// # Safety
///
/// The thread is attached, the object is of the class that `create_lender` is for, and `view` is null or valid for writes.
unsafe fn get_buffer_of_lender(
    object: *mut PyObject,
    view: *mut PyBuffer,
    flags: c_int,
    create_lender: CreateLender,
) -> c_int {
    // SAFETY: attached, by this function's contract.
    let py = unsafe { Python::assume_attached() };
    let filled = catch_panics(py, || {
        // SAFETY: a live object, by this function's contract.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        let lender = create_lender(&object)?;
        // SAFETY: CPython passes a buffer that it does not move, which a lender checks for null.
        let status = unsafe { get_buffer(&lender, view, flags) };
        if status == 0 { Ok(()) } else { Err(Raised) }
    });
    if filled.is_ok() { 0 } else { -1 }
}

/// A memoryview of a new lender; null with an exception.
///
/// # Safety
///
/// The thread is attached, and the object is of the class that `create_lender` is for.
unsafe fn memoryview_of_lender(
    object: *mut PyObject,
    create_lender: CreateLender,
) -> *mut PyObject {
    // SAFETY: attached, by this function's contract.
    let py = unsafe { Python::assume_attached() };
    catch_into_null(py, || {
        // SAFETY: a live object, by this function's contract.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        let lender = create_lender(&object)?;
        // CPython requests what the flags say from the memoryview.
        // SAFETY: attached, and a live object.
        Ok(unsafe { ffi::PyMemoryView_FromObject(lender.as_ptr()) })
    })
}

/// The slot of a class that exports tensors.
unsafe extern "C" fn get_tensor_buffer<T: Exports>(
    object: *mut PyObject,
    view: *mut PyBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: CPython calls slots attached, with an object of the class and a buffer to fill.
    unsafe { get_buffer_of_lender(object, view, flags, lender_of_tensor::<T>) }
}

/// The method `__buffer__` of a class that exports tensors.
unsafe extern "C" fn tensor_memoryview<T: Exports>(
    object: *mut PyObject,
    _flags: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls methods attached, with an object of the class.
    unsafe { memoryview_of_lender(object, lender_of_tensor::<T>) }
}

/// The slot of a class that has records.
unsafe extern "C" fn get_records_buffer<T: ExportsTensors>(
    object: *mut PyObject,
    view: *mut PyBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: CPython calls slots attached, with an object of the class and a buffer to fill.
    unsafe { get_buffer_of_lender(object, view, flags, lender_of_records::<T>) }
}

/// The method `__buffer__` of a class that has records.
unsafe extern "C" fn records_memoryview<T: ExportsTensors>(
    object: *mut PyObject,
    _flags: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls methods attached, with an object of the class.
    unsafe { memoryview_of_lender(object, lender_of_records::<T>) }
}

/// A lender over the records of an object, which stays borrowed as for an export. The buffer is read-only: Rust code may read the
/// records meanwhile.
fn lender_of_records<'py, T: ExportsTensors>(
    object: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>, Raised> {
    let py = object.py();
    let class = object.cast::<T>().map_err(PyErr::from).or_raise(py)?;
    // SAFETY: the guard moves into `ObjectGuard` together with the object; the records are not used after both are dropped.
    let (value, guard) = unsafe { borrow_contents(class) }?;
    let Some(records) = value.records() else {
        bail!(py, PyTypeError: "`{}` has no list of records", <T as PyClass>::NAME);
    };
    let lender = UnfilledLender::of_records(py, &records, true)?;
    let owner = ObjectGuard::new(guard, object).into_any(py);
    Ok(lender.fill_with(MemoryOwner::Object(owner)))
}

/// A lender over the tensor that an object of class `T` exports.
fn lender_of_tensor<'py, T: Exports>(
    object: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>, Raised> {
    create_lender(object, Vtable::of::<T>())
}

#[inline(never)]
fn create_lender<'py>(
    object: &Bound<'py, PyAny>,
    class: &Vtable,
) -> Result<Bound<'py, PyAny>, Raised> {
    let py = object.py();
    let mut outcome = Outcome::NotLent;
    if has_own_dlpack(object, class)? {
        outcome = Outcome::None;
        // SAFETY: attached, and an object of the class. A request for a buffer returns no tensor by its address.
        unsafe { (class.export)(object.as_ptr(), ConsumerRequest::Buffer, &mut outcome) };
    }
    let tensor = match outcome {
        Outcome::None => return Err(Raised),
        Outcome::Lender(lender) => return Ok(lender.into_bound(py)),
        Outcome::Tensor(tensor) if unordered_stream(tensor.view().device()).is_none() => tensor,
        Outcome::Tensor(_) | Outcome::NotLent => {
            import_from_own_class(object, None).or_raise(py)?
        }
    };
    let Ok(lender) = UnfilledLender::of_tensor(py, &tensor.view()) else {
        // The tensor's owner must not see the exception.
        let _pending = PendingException::save_current();
        drop(tensor);
        return Err(Raised);
    };
    Ok(lender.fill_with(MemoryOwner::Tensor(tensor)))
}

/// Whether an object has the `__dlpack__` of the class itself, so that the class's table can export it.
fn has_own_dlpack(object: &Bound<'_, PyAny>, table: &Vtable) -> Result<bool, Raised> {
    let (py, class) = (object.py(), object.get_type());
    let name = intern!(py, "__dlpack__");
    let Some(found) = class_attribute(&class, name) else {
        // An import would request this very buffer, without end.
        bail!(py, PyTypeError: "{class} has lost its `__dlpack__`, so its objects have no buffer either");
    };
    let own = (table.class)(py);
    if class.as_type_ptr() == own {
        return Ok(true);
    }
    // SAFETY: the table returns a class that lives for the rest of the process.
    let own = unsafe { PyType::from_borrowed_type_ptr(py, own) };
    Ok(table.is_instance(object) && class_attribute(&own, name).is_some_and(|own| own.is(&found)))
}
