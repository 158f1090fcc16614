//! The object behind each buffer: it exports buffers over the memory of another object or a tensor, and holds their shape and strides.
//!
//! The garbage collector sees the object that a lender keeps alive, so a cycle through a `memoryview` is collected:
//!
//! ```text
//! obj ──▶ its __dict__ ──▶ memoryview ──▶ lender ──▶ obj
//! ```
//!
//! A lender has no `tp_clear`: it keeps its object for as long as it lives, as a tuple keeps its items. The collector breaks
//! such a cycle at another object. If that object holds a buffer, it releases the buffer before its reference to the lender, so
//! memory is never released under a buffer.
#![expect(unsafe_code, reason = "fills and releases structs of CPython")]

mod records;
mod wrapper;

pub(crate) use wrapper::Wrapper;

use core::ffi::{CStr, c_int, c_long, c_void};
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use core::{mem::MaybeUninit, mem::offset_of, slice};
use std::panic::catch_unwind;

use dlpack_core::{DataType, Managed, TensorRef};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::types::PyType;
use pyo3::{prelude::*, sync::PyOnceLock};

use crate::capi::{
    ANY_CONTIGUOUS, C_CONTIGUOUS, F_CONTIGUOUS, FORMAT, GetBuffer, ND, PyBuffer, STRIDES, WRITABLE,
};
use crate::error::{OrRaise, Raised, bail, catch_panics};
use crate::keepalive::{AnyBorrowGuard, ExportOwner, ObjectGuard, PendingException};
use crate::values;

/// A Python object that exports any number of buffers, which share its shape and strides.
#[repr(C)]
struct Lender {
    head: ffi::PyVarObject,
    /// The object that `owner` keeps alive, for the garbage collector; null if there is none, and until the lender is filled.
    traversed: *mut PyObject,
    lent: LentBuffer,
    /// Written when the lender is filled.
    owner: MaybeUninit<MemoryOwner>,
    /// The shape, followed by the byte strides.
    lists: [Py_ssize_t; 0],
}

/// The buffer that a lender exports.
struct LentBuffer {
    /// The format of records, to which the buffer points; that of numbers is a constant.
    format: Option<String>,
    /// The answer to a request with all flags.
    buffer: PyBuffer,
}

/// The owner of a lender's memory.
pub(crate) enum MemoryOwner {
    /// An object, and a borrow of its contents. A lender holds one reference to it, this one.
    Object(ObjectGuard<AnyBorrowGuard>),
    Tensor(Managed),
    /// A list of records that no other code has.
    Records(Box<dyn Send>),
}

/// The address of a lender's shape and strides.
fn lists_of(lender: *mut PyObject) -> *mut Py_ssize_t {
    lender.wrapping_byte_add(offset_of!(Lender, lists)).cast()
}

/// A new lender that has no owner yet. It must be filled before it is dropped.
pub(crate) struct UnfilledLender<'py>(Bound<'py, PyAny>);

impl<'py> UnfilledLender<'py> {
    /// Allocates a lender for the memory of a tensor, if a buffer can describe it.
    pub(crate) fn of_tensor(py: Python<'py>, tensor: &TensorRef<'_>) -> Result<Self, Raised> {
        let dtype = tensor.dtype();
        if !tensor.device().device_type.is_host_readable() {
            let device = tensor.device();
            bail!(py, PyBufferError: "the data is on {device}, and a buffer can only describe host memory");
        }
        let Some((format, itemsize)) = format_of(dtype, true) else {
            bail!(py, PyBufferError: "the buffer protocol has no format for {dtype}; use DLPack");
        };
        let lent = LentBuffer {
            format: None,
            buffer: PyBuffer {
                buf: tensor.as_ptr().cast_mut().cast(),
                len: to_ssize(tensor.len_bytes()),
                itemsize,
                readonly: tensor.is_read_only().into(),
                format: format.as_ptr().cast_mut(),
                ..PyBuffer::EMPTY
            },
        };
        Self::allocate(py, tensor.shape(), tensor.strides(), lent)
    }

    /// Allocates a lender for a buffer, and writes shape and strides. The given strides are in items.
    #[inline(always)]
    fn allocate(
        py: Python<'py>,
        shape: &[i64],
        strides: &[i64],
        lent: LentBuffer,
    ) -> Result<Self, Raised> {
        let rank = shape.len();
        let class = lender_class(py).or_raise(py)?;
        // SAFETY: the class of lenders; its objects have space for as many numbers as are requested.
        let lender = unsafe { ffi::PyType_GenericAlloc(class.as_type_ptr(), 2 * to_ssize(rank)) };
        if lender.is_null() {
            return Err(Raised);
        }
        // SAFETY: `2 * rank` zeros in a new object. Only the garbage collector has it besides, and `traverse` does not read them.
        let lists = unsafe { slice::from_raw_parts_mut(lists_of(lender), 2 * rank) };
        let (extents, steps) = lists.split_at_mut(rank);
        for (place, &extent) in extents.iter_mut().zip(shape) {
            *place = to_ssize(extent);
        }
        for (place, &stride) in steps.iter_mut().zip(strides) {
            // The stride of an axis of size 1 may be any number, and is not used.
            *place = to_ssize(stride).wrapping_mul(lent.buffer.itemsize);
        }
        let is_empty = lent.buffer.len == 0;
        // Some consumers refuse null, even if there is nothing to read.
        let not_null = NonNull::<u64>::dangling().as_ptr().cast();
        let buffer = PyBuffer {
            buf: if is_empty { not_null } else { lent.buffer.buf },
            ndim: c_int::try_from(rank).expect("at most 64 axes"),
            shape: extents.as_mut_ptr(),
            strides: steps.as_mut_ptr(),
            ..lent.buffer
        };
        // SAFETY: an object of the class of lenders has a field of this type.
        let place = unsafe { &raw mut (*lender.cast::<Lender>()).lent };
        // SAFETY: a field of a new object. Only the garbage collector has it besides, and `traverse` does not read it.
        unsafe { place.write(LentBuffer { buffer, ..lent }) };
        // SAFETY: a new reference.
        Ok(Self(unsafe { Bound::from_owned_ptr(py, lender) }))
    }

    /// The lender, filled with the owner of its memory.
    pub(crate) fn fill_with(self, owner: MemoryOwner) -> Bound<'py, PyAny> {
        let Self(lender) = self;
        let object = lender.as_ptr().cast::<Lender>();
        let traversed = match &owner {
            MemoryOwner::Object(guard) => guard.object(lender.py()).as_ptr(),
            MemoryOwner::Tensor(_) | MemoryOwner::Records(_) => ptr::null_mut(),
        };
        // SAFETY: a field of a new object. Only the garbage collector has it besides, and `traverse` does not read it.
        unsafe { (*object).owner = MaybeUninit::new(owner) };
        // SAFETY: a field of the same object. The owner keeps `traversed` alive until `dealloc` untracks the lender.
        unsafe { (*object).traversed = traversed };
        lender
    }
}

/// The tensor that owns the memory of a lender; `None` for any other object, and for a lender with another owner.
pub(crate) fn tensor_of_lender<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Managed> {
    let class = CLASS.get(object.py())?;
    if object.get_type_ptr().cast() != class.as_ptr() {
        return None;
    }
    // SAFETY: an object of the class of lenders, which was filled before other code got it, and does not change.
    let lender = unsafe { &*object.as_ptr().cast::<Lender>() };
    // SAFETY: a lender is filled before other code gets it.
    match unsafe { lender.owner.assume_init_ref() } {
        MemoryOwner::Tensor(tensor) => Some(tensor),
        MemoryOwner::Object(_) | MemoryOwner::Records(_) => None,
    }
}

/// Converts a number of a tensor for functions of CPython.
fn to_ssize(number: impl TryInto<Py_ssize_t>) -> Py_ssize_t {
    let number = number.try_into().ok();
    number.expect("no more than memory has, which was checked when it was described")
}

/// The class of lenders, after the first was made.
static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The class of lenders. With the stable ABI of 3.10, PyO3 cannot give a class a buffer, though each Python accepts the slots.
fn lender_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    const GET_BUFFER: c_int = 1;

    let make = || {
        let slots = [
            (GET_BUFFER, export_buffer as GetBuffer as *mut c_void),
            (
                ffi::Py_tp_dealloc,
                dealloc as ffi::destructor as *mut c_void,
            ),
            (
                ffi::Py_tp_traverse,
                traverse as ffi::traverseproc as *mut c_void,
            ),
        ];
        let (name, itemsize) = (c"dlpack_pyo3.Buffer", size_of::<Py_ssize_t>());
        let flags = ffi::Py_TPFLAGS_HAVE_GC;
        // SAFETY: each function has the type of its slot, and is for objects that begin with a `Lender`.
        unsafe { values::new_class::<Lender>(py, name, itemsize, flags, &slots) }
    };
    values::get_or_make(&CLASS, py, make).map(|class| class.bind(py))
}

/// Shows the garbage collector the references of a lender: its class, and the object that it keeps alive.
unsafe extern "C" fn traverse(
    object: *mut PyObject,
    visit: ffi::visitproc,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the collector passes a live object.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: an object holds a reference to its class if that was made at run time.
    let status = unsafe { visit(class.cast(), argument) };
    if status != 0 {
        return status;
    }
    // SAFETY: the collector passes an object of the class of lenders; the field is null until the lender is filled.
    let traversed = unsafe { (*object.cast::<Lender>()).traversed };
    if traversed.is_null() {
        return 0;
    }
    // SAFETY: the owner in the lender holds one reference to it.
    unsafe { visit(traversed, argument) }
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: an object that the garbage collector tracks, and to which there is no reference any more.
    unsafe { ffi::PyObject_GC_UnTrack(object.cast()) };
    let _pending = PendingException::save_current();
    // SAFETY: an object, whose memory is not freed yet.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: an object of the class of lenders, to which there is no reference any more.
    let lender = unsafe { &mut *object.cast::<Lender>() };
    lender.lent.format = None;
    // SAFETY: `fill_with` wrote the owner, and it is not used afterwards.
    let owner = unsafe { lender.owner.assume_init_read() };
    core::mem::forget(catch_unwind(AssertUnwindSafe(|| match owner {
        // SAFETY: CPython deallocates objects attached.
        MemoryOwner::Object(guard) => unsafe { guard.release_attached() },
        MemoryOwner::Tensor(tensor) => drop(tensor),
        MemoryOwner::Records(records) => drop(records),
    })));
    // SAFETY: an object with a garbage collector's header is freed by this function; it is not used afterwards.
    unsafe { ffi::PyObject_GC_Del(object.cast()) };
    // SAFETY: the object held a reference to its class, which was made at run time.
    unsafe { ffi::Py_DECREF(class.cast()) };
}

/// Fills a buffer with what the flags request.
unsafe extern "C" fn export_buffer(
    object: *mut PyObject,
    view: *mut PyBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: CPython requests buffers attached.
    let py = unsafe { Python::assume_attached() };
    let fill = || {
        if view.is_null() {
            bail!(py, PyBufferError: "expected a `Py_buffer` to fill, found NULL");
        }
        // After a failure the protocol demands null here.
        // SAFETY: not null, so it is the caller's buffer, which is valid for writes.
        unsafe { (*view).obj = ptr::null_mut() };
        // SAFETY: an object of the class of lenders, which the caller keeps alive.
        let lender = unsafe { &*object.cast::<Lender>() };
        let requested = lender.lent.buffer_for(py, flags)?;
        // SAFETY: attached, and a live object.
        unsafe { ffi::Py_INCREF(object) };
        // A buffer holds a reference to its exporter.
        let filled = PyBuffer {
            obj: object,
            ..requested
        };
        // SAFETY: not null, so it is the caller's buffer, which is valid for writes.
        unsafe { view.write(filled) };
        Ok(())
    };
    if catch_panics(py, fill).is_ok() {
        0
    } else {
        -1
    }
}

impl LentBuffer {
    /// Size and byte stride of each axis.
    fn axes(&self) -> impl DoubleEndedIterator<Item = (Py_ssize_t, Py_ssize_t)> {
        let rank = usize::try_from(self.buffer.ndim).unwrap_or(0);
        let [shape, strides] = [self.buffer.shape, self.buffer.strides].map(|list| {
            // SAFETY: `allocate` wrote a number for each axis there, in the object that contains `self`. They do not change.
            unsafe { slice::from_raw_parts(list, rank) }
        });
        shape.iter().copied().zip(strides.iter().copied())
    }

    /// Whether the items follow each other, the first of these axes fastest.
    fn is_packed(&self, mut axes: impl Iterator<Item = (Py_ssize_t, Py_ssize_t)>) -> bool {
        let mut packed = self.buffer.itemsize;
        let follows = |(extent, stride): (Py_ssize_t, Py_ssize_t)| {
            let follows = extent == 1 || stride == packed;
            packed = packed.wrapping_mul(extent);
            follows
        };
        self.buffer.len == 0 || axes.all(follows)
    }

    /// The buffer for a request with these flags, without a reference to the lender.
    fn buffer_for(&self, py: Python<'_>, flags: c_int) -> Result<PyBuffer, Raised> {
        let wants = |flag: c_int| flags & flag == flag;
        if self.buffer.readonly != 0 && wants(WRITABLE) {
            bail!(py, PyBufferError: "the data is read-only, and a writable buffer was asked for");
        }
        let is_row_major = || self.is_packed(self.axes().rev());
        let is_column_major = || self.is_packed(self.axes());
        if (wants(C_CONTIGUOUS) || !wants(STRIDES)) && !is_row_major() {
            bail!(py, PyBufferError: "the data is not contiguous in row-major order");
        }
        if wants(F_CONTIGUOUS) && !is_column_major() {
            bail!(py, PyBufferError: "the data is not contiguous in column-major order");
        }
        if wants(ANY_CONTIGUOUS) && !is_row_major() && !is_column_major() {
            bail!(py, PyBufferError: "the data is not contiguous");
        }
        let mut buffer = self.buffer;
        if !wants(FORMAT) {
            buffer.format = ptr::null_mut();
        }
        if buffer.ndim == 0 {
            // The protocol demands null for shape and strides if there is no axis.
            (buffer.shape, buffer.strides) = (ptr::null_mut(), ptr::null_mut());
        }
        if !wants(ND) {
            // The consumer requests contiguous bytes.
            (buffer.shape, buffer.ndim) = (ptr::null_mut(), 1);
        }
        if !wants(STRIDES) {
            buffer.strides = ptr::null_mut();
        }
        Ok(buffer)
    }
}

/// The format in the syntax of the module `struct`, and the bytes of an item: the native format, or else that of standard sizes.
///
/// In the native one, integers of 8 bytes are `long` where that has 8 bytes, as in NumPy: of `q` it makes another class of scalars
/// than `numpy.int64`.
#[inline(always)]
fn format_of(dtype: DataType, is_native: bool) -> Option<(&'static CStr, Py_ssize_t)> {
    let is_long = is_native && size_of::<c_long>() == 8;
    Some(match dtype {
        DataType::I64 if is_long => (c"l", 8),
        DataType::U64 if is_long => (c"L", 8),
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
