//! Python's own buffer protocol over what a class exports: `memoryview(obj)`, `bytes(obj)`, `file.write(obj)`.
//!
//! From Python 3.12 on, a class of any kind lends buffers by a method. Before, only the struct of a class in C can say how,
//! which the stable ABI hides; those of 3.10 and 3.11 will never change again, so the place is known. Both ways end in
//! an object of one more class, which keeps the tensor until the last buffer is given back:
//!
//! ```text
//! memoryview(obj) ──▶ __buffer__, or the slot ──▶ tensor, as `__dlpack__` gives it ──▶ Lender ──▶ Py_buffer
//! ```
#![expect(unsafe_code, reason = "fills and releases structs of Python's")]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use core::{mem::offset_of, slice};
use std::panic::catch_unwind;

use dlpack_core::{DataType, Managed};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::{intern, prelude::*, sync::PyOnceLock, types::PyType};

use crate::error::{OrRaise, Raised, answer, bail, contained};
use crate::export::method::add;
use crate::hidden::{
    ANY_CONTIGUOUS, C_CONTIGUOUS, F_CONTIGUOUS, FORMAT, ND, PyBuffer, STRIDES, WRITABLE,
    class_attribute, get_buffer,
};
use crate::hold::Pending;
use crate::import::from_dlpack;

const BUFFER: &CStr = c"__buffer__($self, flags, /)
--

A memoryview of this object's data, which it shares.";

/// Lets the objects of a class lend buffers, while PyO3 is making it.
pub(super) fn install(class: &Bound<'_, PyType>) -> PyResult<()> {
    if class.py().version_info() >= (3, 12) {
        let call = ffi::PyMethodDefPointer {
            PyCFunction: buffer,
        };
        return add(class, c"__buffer__", call, ffi::METH_O, BUFFER);
    }
    // Of another Python than CPython, an object is larger.
    if size_of::<PyObject>() == 2 * size_of::<usize>() {
        set_slot(class)?;
    }
    Ok(())
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
fn set_slot(class: &Bound<'_, PyType>) -> PyResult<()> {
    let head = class.as_type_ptr().cast::<Class>();
    // SAFETY: a class of a Python in which such a struct is at its start.
    let buffers = unsafe { (*head).buffers };
    // SAFETY: a class that was made at run time has its slots in itself. Nobody has an object of it yet.
    let buffers = unsafe { &mut *buffers };
    if buffers.get.is_none() {
        buffers.get = Some(lend);
    }
    for derived in class.call_method0("__subclasses__")?.try_iter()? {
        set_slot(derived?.cast::<PyType>()?)?;
    }
    Ok(())
}

/// The slot. The buffer is that of a lender, which is released with it.
unsafe extern "C" fn lend(object: *mut PyObject, view: *mut PyBuffer, flags: c_int) -> c_int {
    // SAFETY: Python asks for a buffer attached.
    let py = unsafe { Python::assume_attached() };
    let lent = contained(py, || {
        // SAFETY: Python passes an object.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        let lender = lender(&object)?;
        // SAFETY: the place that Python wants filled.
        let status = unsafe { get_buffer(&lender, view, flags) };
        if status == 0 { Ok(()) } else { Err(Raised) }
    });
    if lent.is_ok() { 0 } else { -1 }
}

/// The method.
unsafe extern "C" fn buffer(object: *mut PyObject, _flags: *mut PyObject) -> *mut PyObject {
    // SAFETY: Python calls a method attached.
    let py = unsafe { Python::assume_attached() };
    answer(py, || {
        // SAFETY: Python passes an object.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        let lender = lender(&object)?;
        // What the flags ask for, Python asks of this in turn.
        // SAFETY: an object with a buffer. Null stands for an exception.
        Ok(unsafe { ffi::PyMemoryView_FromObject(lender.as_ptr()) })
    })
}

/// An object that has nothing but a buffer over a tensor: as many as are asked for, which share its lists.
#[repr(C)]
struct Lender {
    head: ffi::PyVarObject,
    lent: Lent,
    /// The extents and then the strides, which are in bytes here: one of each an axis.
    lists: [Py_ssize_t; 0],
}

struct Lent {
    tensor: Managed,
    /// As who wants all gets it.
    buffer: PyBuffer,
}

/// Where the lists of such an object are.
fn lists(object: *mut PyObject) -> *mut Py_ssize_t {
    object.wrapping_byte_add(offset_of!(Lender, lists)).cast()
}

/// A new one, over what an object exports.
fn lender<'py>(object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Raised> {
    let (py, class) = (object.py(), object.get_type());
    if class_attribute(&class, intern!(py, "__dlpack__")).is_none() {
        // As whatever else has a buffer alone it would be asked for that, and so on.
        bail!(py, PyTypeError: "{class} has lost its `__dlpack__`, so its objects have no buffer either");
    }
    let tensor = from_dlpack(object).or_raise(py)?;
    let view = tensor.view();
    let (dtype, device, rank) = (view.dtype(), view.device(), view.shape().len());
    if !device.device_type.is_host_readable() {
        bail!(py, PyBufferError: "the data lies on {device}, which a buffer cannot say");
    }
    let Some((format, itemsize)) = format_of(dtype) else {
        bail!(py, PyBufferError: "the buffer protocol has no format for {dtype}; use DLPack");
    };
    let class = lender_class(py).or_raise(py)?;
    // SAFETY: a class that was made for this, whose objects have room for so many numbers.
    let lender = unsafe { ffi::PyType_GenericAlloc(class.as_type_ptr(), 2 * size(rank)) };
    if lender.is_null() {
        let _pending = Pending::set_aside();
        drop(tensor);
        return Err(Raised);
    }
    // SAFETY: zeros, of which nobody knows yet.
    let lists = unsafe { slice::from_raw_parts_mut(lists(lender), 2 * rank) };
    let (shape, strides) = lists.split_at_mut(rank);
    for (place, &extent) in shape.iter_mut().zip(view.shape()) {
        *place = size(extent);
    }
    for (place, &stride) in strides.iter_mut().zip(view.strides()) {
        // That of an axis with one item may be any number, and is not used.
        *place = size(stride).wrapping_mul(itemsize);
    }
    let len = view.len_bytes();
    let mut buf = view.as_ptr().cast_mut().cast();
    if len == 0 {
        // Nothing is there to be read, but some readers do not take null.
        buf = NonNull::<u64>::dangling().as_ptr().cast();
    }
    let buffer = PyBuffer {
        buf,
        obj: ptr::null_mut(),
        len: size(len),
        itemsize,
        readonly: view.is_read_only().into(),
        ndim: c_int::try_from(rank).expect("at most 64 axes"),
        format: format.as_ptr().cast_mut(),
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        suboffsets: ptr::null_mut(),
        internal: ptr::null_mut(),
    };
    let lent = Lent { tensor, buffer };
    // SAFETY: so large is an object of that class.
    let place = unsafe { &raw mut (*lender.cast::<Lender>()).lent };
    // SAFETY: as above, and nobody knows of it yet.
    unsafe { place.write(lent) };
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, lender) })
}

/// A number of a tensor as Python's C functions take it.
fn size(number: impl TryInto<Py_ssize_t>) -> Py_ssize_t {
    let number = number.try_into().ok();
    number.expect("no more than memory has, which was checked when it was described")
}

/// Made of C functions: PyO3 gives no class of the stable ABI of 3.10 a buffer, though each Python takes the slots.
fn lender_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    const GET: c_int = 1;
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

    let make = || {
        let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
        let mut slots = [
            slot(GET, get as Get as *mut c_void),
            slot(
                ffi::Py_tp_dealloc,
                dealloc as ffi::destructor as *mut c_void,
            ),
            slot(0, ptr::null_mut()),
        ];
        let flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
        let mut spec = ffi::PyType_Spec {
            name: c"dlpack_pyo3.Buffer".as_ptr(),
            basicsize: c_int::try_from(size_of::<Lender>()).expect("some words"),
            itemsize: size_of::<Py_ssize_t>().try_into().expect("a word"),
            flags: c_uint::try_from(flags).expect("in the lower half"),
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: a list of slots that ends with a zero, and functions of their types.
        let class = unsafe { ffi::PyType_FromSpec(&raw mut spec) };
        // SAFETY: a new reference, or null with an exception.
        let class = unsafe { Bound::from_owned_ptr_or_err(py, class) }?;
        Ok::<_, PyErr>(class.cast_into::<PyType>()?.unbind())
    };
    CLASS.get_or_try_init(py, make).map(|class| class.bind(py))
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    let _pending = Pending::set_aside();
    // SAFETY: an object of the class, which nobody has any more.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: as above.
    let place = unsafe { &raw mut (*object.cast::<Lender>()).lent };
    // SAFETY: `lender` put it there.
    let lent = unsafe { place.read() };
    core::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(lent))));
    // SAFETY: how an object of a class without a garbage collector's header is freed.
    unsafe { ffi::PyObject_Free(object.cast()) };
    // SAFETY: each object of a class that was made at run time holds a reference to it.
    unsafe { ffi::Py_DECREF(class.cast()) };
}

unsafe extern "C" fn get(object: *mut PyObject, view: *mut PyBuffer, flags: c_int) -> c_int {
    // SAFETY: Python asks for a buffer attached.
    let py = unsafe { Python::assume_attached() };
    let fill = || {
        if view.is_null() {
            bail!(py, PyBufferError: "there is no buffer to fill");
        }
        // The protocol wants this place null if it fails.
        // SAFETY: the caller passes a buffer.
        unsafe { (*view).obj = ptr::null_mut() };
        // SAFETY: an object of the class, which the caller keeps.
        let lender = unsafe { &*object.cast::<Lender>() };
        let filled = fill(py, &lender.lent, flags)?;
        // SAFETY: attached, and alive.
        unsafe { ffi::Py_INCREF(object) };
        // The buffer holds a reference to its exporter.
        let filled = PyBuffer {
            obj: object,
            ..filled
        };
        // SAFETY: the caller passes a buffer.
        unsafe { view.write(filled) };
        Ok(())
    };
    if contained(py, fill).is_ok() { 0 } else { -1 }
}

fn fill(py: Python<'_>, lent: &Lent, flags: c_int) -> Result<PyBuffer, Raised> {
    let wants = |what: c_int| flags & what == what;
    let rows = || lent.tensor.view().is_contiguous();
    let columns = || lent.tensor.view().is_column_major();
    if lent.buffer.readonly != 0 && flags & WRITABLE != 0 {
        bail!(py, PyBufferError: "the data is read-only, and a writable buffer was asked for");
    }
    if (wants(C_CONTIGUOUS) || !wants(STRIDES)) && !rows() {
        bail!(py, PyBufferError: "the data is not contiguous in row-major order");
    }
    if wants(F_CONTIGUOUS) && !columns() {
        bail!(py, PyBufferError: "the data is not contiguous in column-major order");
    }
    if wants(ANY_CONTIGUOUS) && !rows() && !columns() {
        bail!(py, PyBufferError: "the data is not contiguous");
    }
    let mut buffer = lent.buffer;
    if !wants(FORMAT) {
        buffer.format = ptr::null_mut();
    }
    if buffer.ndim == 0 {
        // The protocol wants no lists where there is no axis.
        (buffer.shape, buffer.strides) = (ptr::null_mut(), ptr::null_mut());
    }
    if !wants(ND) {
        // Bytes, one after another.
        (buffer.shape, buffer.ndim) = (ptr::null_mut(), 1);
    }
    if !wants(STRIDES) {
        buffer.strides = ptr::null_mut();
    }
    Ok(buffer)
}

/// The format of the `struct` module, and the bytes of an item.
fn format_of(dtype: DataType) -> Option<(&'static CStr, Py_ssize_t)> {
    Some(match dtype {
        DataType::BOOL => (c"?", 1),
        DataType::I8 => (c"b", 1),
        DataType::I16 => (c"h", 2),
        DataType::I32 => (c"i", 4),
        DataType::I64 => (c"q", 8),
        DataType::U8 => (c"B", 1),
        DataType::U16 => (c"H", 2),
        DataType::U32 => (c"I", 4),
        DataType::U64 => (c"Q", 8),
        DataType::F16 => (c"e", 2),
        DataType::F32 => (c"f", 4),
        DataType::F64 => (c"d", 8),
        DataType::C64 => (c"Zf", 8),
        DataType::C128 => (c"Zd", 16),
        _ => return None,
    })
}
