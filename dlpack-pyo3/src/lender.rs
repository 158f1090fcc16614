//! What a buffer holds on to: an object that has nothing but a buffer over the memory of another, whose lists are in it.
//!
//! The garbage collector sees the object that it keeps, so a cycle through a `memoryview` is collected:
//!
//! ```text
//! obj ──▶ its __dict__ ──▶ memoryview ──▶ lender ──▶ obj
//! ```
//!
//! Nothing is cleared here. A lender keeps its object as a tuple keeps its items, for as long as it lives; and whoever holds
//! it by a buffer can be cleared, since Python gives a buffer back before it lets go of the lender. So memory is never
//! released under a buffer.
#![expect(unsafe_code, reason = "fills and releases structs of Python's")]

mod records;

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use core::{mem::offset_of, slice};
use std::panic::catch_unwind;

use dlpack_core::{DataType, Descriptor, Device, Managed, TensorRef};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::{prelude::*, sync::PyOnceLock, types::PyType};

use crate::capi::{
    ANY_CONTIGUOUS, C_CONTIGUOUS, F_CONTIGUOUS, FORMAT, ND, PyBuffer, STRIDES, WRITABLE,
};
use crate::error::{OrRaise, Raised, bail, catch_panics};
use crate::keepalive::{AnyBorrowGuard, ExportOwner, ObjectGuard, PendingException};

/// An object with a buffer: as many of them as are asked for, which share its lists.
#[repr(C)]
struct Lender {
    head: ffi::PyVarObject,
    /// The object that `kept` keeps, for the garbage collector; null where it keeps none, and before it is filled.
    seen: *mut PyObject,
    lent: Lent,
    /// The extents and then the strides, which are in bytes here: one of each an axis.
    lists: [Py_ssize_t; 0],
}

struct Lent {
    kept: Kept,
    /// The format of records, to which the buffer points; that of numbers is a constant.
    #[expect(dead_code, reason = "held for the buffer")]
    format: Option<String>,
    /// As who wants all gets it.
    buffer: PyBuffer,
}

impl Lent {
    /// Whether the items lie one after another; column by column, or row by row.
    fn is_packed(&self, column_major: bool) -> bool {
        let PyBuffer {
            shape,
            strides,
            ndim,
            itemsize,
            ..
        } = self.buffer;
        let rank = usize::try_from(ndim).unwrap_or(0);
        // SAFETY: the lists of this very lender, one number an axis.
        let [shape, strides] =
            [shape, strides].map(|list| unsafe { slice::from_raw_parts(list, rank) });
        let mut next = itemsize;
        let follows = |(&extent, &stride): (&Py_ssize_t, &Py_ssize_t)| {
            let follows = extent == 1 || stride == next;
            next = next.saturating_mul(extent);
            follows
        };
        let mut axes = shape.iter().zip(strides);
        shape.contains(&0)
            || if column_major {
                axes.all(follows)
            } else {
                axes.rev().all(follows)
            }
    }
}

/// What keeps the memory.
pub(crate) enum Kept {
    /// An object, and a borrow of its contents. This is its one reference that a lender holds.
    Object(ObjectGuard<AnyBorrowGuard>),
    Tensor(Managed),
    /// A list of records, which nothing else has.
    Records(Box<dyn Send>),
}

/// What is to be lent.
pub(crate) struct Source<'a> {
    dtype: DataType,
    device: Device,
    shape: &'a [i64],
    strides: &'a [i64],
    data: *const u8,
    len: usize,
    read_only: bool,
}

/// Both say it in the same words.
macro_rules! source_of {
    ($it:expr) => {
        Source {
            dtype: $it.dtype(),
            device: $it.device(),
            shape: $it.shape(),
            strides: $it.strides(),
            data: $it.as_ptr(),
            len: $it.len_bytes(),
            read_only: $it.is_read_only(),
        }
    };
}

impl<'a> Source<'a> {
    pub(crate) fn of_descriptor(descriptor: &'a Descriptor<'_>) -> Self {
        source_of!(descriptor)
    }

    pub(crate) fn of_tensor(tensor: &TensorRef<'a>) -> Self {
        source_of!(tensor)
    }
}

/// Where the lists of such an object are.
fn lists(object: *mut PyObject) -> *mut Py_ssize_t {
    object.wrapping_byte_add(offset_of!(Lender, lists)).cast()
}

/// A lender whose lists are there, and that keeps nothing yet: it has to be filled.
pub(crate) struct Place<'py> {
    lender: Bound<'py, PyAny>,
    buffer: PyBuffer,
    format: Option<String>,
}

impl<'py> Place<'py> {
    /// Room for a lender of this memory, if a buffer can say what it is.
    pub(crate) fn new(py: Python<'py>, source: &Source<'_>) -> Result<Self, Raised> {
        let (dtype, device) = (source.dtype, source.device);
        if !device.device_type.is_host_readable() {
            bail!(py, PyBufferError: "the data is on {device}, and a buffer can only describe host memory");
        }
        let Some((format, itemsize)) = format_of(dtype) else {
            bail!(py, PyBufferError: "the buffer protocol has no format for {dtype}; use DLPack");
        };
        Self::allocate(py, source, format.as_ptr(), itemsize)
    }

    /// Allocates a lender whose strides are in items of this size.
    fn allocate(
        py: Python<'py>,
        source: &Source<'_>,
        format: *const c_char,
        itemsize: Py_ssize_t,
    ) -> Result<Self, Raised> {
        let rank = source.shape.len();
        let class = lender_class(py).or_raise(py)?;
        // SAFETY: a class that was made for this, whose objects have room for so many numbers.
        let lender = unsafe { ffi::PyType_GenericAlloc(class.as_type_ptr(), 2 * size(rank)) };
        if lender.is_null() {
            return Err(Raised);
        }
        // SAFETY: zeros, of which nobody knows yet but the garbage collector, which does not look at them.
        let lists = unsafe { slice::from_raw_parts_mut(lists(lender), 2 * rank) };
        let (shape, strides) = lists.split_at_mut(rank);
        for (place, &extent) in shape.iter_mut().zip(source.shape) {
            *place = size(extent);
        }
        for (place, &stride) in strides.iter_mut().zip(source.strides) {
            // That of an axis with one item may be any number, and is not used.
            *place = size(stride).wrapping_mul(itemsize);
        }
        let mut buf = source.data.cast_mut().cast();
        if source.len == 0 {
            // Nothing is there to be read, but some readers do not take null.
            buf = NonNull::<u64>::dangling().as_ptr().cast();
        }
        let buffer = PyBuffer {
            buf,
            obj: ptr::null_mut(),
            len: size(source.len),
            itemsize,
            readonly: source.read_only.into(),
            ndim: c_int::try_from(rank).expect("at most 64 axes"),
            format: format.cast_mut(),
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            suboffsets: ptr::null_mut(),
            internal: ptr::null_mut(),
        };
        // SAFETY: a new reference.
        let lender = unsafe { Bound::from_owned_ptr(py, lender) };
        Ok(Self {
            lender,
            buffer,
            format: None,
        })
    }

    /// The lender, with what keeps the memory.
    pub(crate) fn put(self, kept: Kept) -> Bound<'py, PyAny> {
        let Self {
            lender,
            buffer,
            format,
        } = self;
        let object = lender.as_ptr().cast::<Lender>();
        let seen = match &kept {
            Kept::Object(held) => held.object(lender.py()).as_ptr(),
            Kept::Tensor(_) | Kept::Records(_) => ptr::null_mut(),
        };
        // SAFETY: so large is an object of that class.
        let place = unsafe { &raw mut (*object).lent };
        // SAFETY: as above, and nobody but the garbage collector knows of it yet.
        unsafe {
            place.write(Lent {
                kept,
                format,
                buffer,
            })
        };
        // SAFETY: as above. What is seen is kept from here on until the collector is told to look away.
        unsafe { (*object).seen = seen };
        lender
    }
}

/// Whether an object of ours was ever asked for a buffer.
pub(crate) fn is_there(py: Python<'_>) -> bool {
    CLASS.get(py).is_some()
}

/// The tensor that the object behind a buffer keeps, if that is a lender of ours which keeps one; what is asked may be any object.
/// It is there as long as the object.
pub(crate) fn tensor_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Managed> {
    let class = CLASS.get(object.py())?;
    if object.get_type_ptr().cast() != class.as_ptr() {
        return None;
    }
    // SAFETY: an object of the class, which was filled before anybody had it, and is never changed.
    let lender = unsafe { &*object.as_ptr().cast::<Lender>() };
    match &lender.lent.kept {
        Kept::Tensor(tensor) => Some(tensor),
        Kept::Object(_) | Kept::Records(_) => None,
    }
}

/// A number of a tensor as Python's C functions take it.
fn size(number: impl TryInto<Py_ssize_t>) -> Py_ssize_t {
    let number = number.try_into().ok();
    number.expect("no more than memory has, which was checked when it was described")
}

/// The class of lenders, once there is one.
static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Made of C functions: PyO3 gives no class of the stable ABI of 3.10 a buffer, though each Python takes the slots.
fn lender_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    const GET: c_int = 1;

    let make = || {
        let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
        let mut slots = [
            slot(GET, get as Get as *mut c_void),
            slot(
                ffi::Py_tp_dealloc,
                dealloc as ffi::destructor as *mut c_void,
            ),
            slot(
                ffi::Py_tp_traverse,
                traverse as ffi::traverseproc as *mut c_void,
            ),
            slot(0, ptr::null_mut()),
        ];
        let flags = ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION
            | ffi::Py_TPFLAGS_HAVE_GC;
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

type Get = unsafe extern "C" fn(*mut PyObject, *mut PyBuffer, c_int) -> c_int;

/// Shows the garbage collector what a lender has references to: its class, and the object that it keeps.
unsafe extern "C" fn traverse(
    object: *mut PyObject,
    visit: ffi::visitproc,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the collector passes an object of the class.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: each object of a class that was made at run time holds a reference to it.
    let status = unsafe { visit(class.cast(), argument) };
    if status != 0 {
        return status;
    }
    // SAFETY: an object of the class; null until it is filled.
    let seen = unsafe { (*object.cast::<Lender>()).seen };
    if seen.is_null() {
        return 0;
    }
    // SAFETY: the lender holds one reference to it.
    unsafe { visit(seen, argument) }
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: an object with a garbage collector's header, which nobody has any more.
    unsafe { ffi::PyObject_GC_UnTrack(object.cast()) };
    let _pending = PendingException::save_current();
    // SAFETY: an object of the class.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: as above.
    let place = unsafe { &raw mut (*object.cast::<Lender>()).lent };
    // SAFETY: `put` put it there.
    let Lent { kept, .. } = unsafe { place.read() };
    core::mem::forget(catch_unwind(AssertUnwindSafe(|| match kept {
        // SAFETY: an object dies attached.
        Kept::Object(held) => unsafe { held.release_attached() },
        Kept::Tensor(tensor) => drop(tensor),
        Kept::Records(records) => drop(records),
    })));
    // SAFETY: how an object with such a header is freed.
    unsafe { ffi::PyObject_GC_Del(object.cast()) };
    // SAFETY: each object of a class that was made at run time holds a reference to it.
    unsafe { ffi::Py_DECREF(class.cast()) };
}

unsafe extern "C" fn get(object: *mut PyObject, view: *mut PyBuffer, flags: c_int) -> c_int {
    // SAFETY: Python asks for a buffer attached.
    let py = unsafe { Python::assume_attached() };
    let fill = || {
        if view.is_null() {
            bail!(py, PyBufferError: "expected a `Py_buffer` to fill, found NULL");
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
    if catch_panics(py, fill).is_ok() {
        0
    } else {
        -1
    }
}

fn fill(py: Python<'_>, lent: &Lent, flags: c_int) -> Result<PyBuffer, Raised> {
    let wants = |what: c_int| flags & what == what;
    let rows = || lent.is_packed(false);
    let columns = || lent.is_packed(true);
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
