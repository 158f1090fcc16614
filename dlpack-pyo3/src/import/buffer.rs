//! Python's buffer protocol as a way in, for what knows no DLPack: `bytes`, `array.array`, `mmap`.
#![expect(
    unsafe_code,
    reason = "reads structs of Python's, and keeps the memory that they describe"
)]

use core::ffi::{CStr, c_char};
use core::slice;

use dlpack_core::binding::{Strided, keep_by_root_of, keep_strided};
use dlpack_core::{DataType, Managed};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::types::{PyList, PyMemoryView};
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::error::{Raised, bail, discard_error, raise_core_error};
use crate::keepalive::{BufferKeepalive, attached};
use crate::lender::{is_there, tensor_of};

/// The tensor over the buffer of an object, which is held until the tensor is released; nothing if it has none.
pub(super) fn of_buffer(object: &Bound<'_, PyAny>) -> PyResult<Option<Managed>> {
    static IS_READY: PyOnceLock<()> = PyOnceLock::new();

    let py = object.py();
    IS_READY.get_or_init(py, || attached::enable_detached_waits(py));
    let failed = |error| raise_core_error(py, &error);
    let describe = |buffer| describe(object, buffer);
    // SAFETY: the object keeps its memory until the buffer is released, which happens as the owner is dropped. What else
    // writes there is Python's.
    let tensor = unsafe { keep_strided(BufferKeepalive::new(), describe, failed) };
    let tensor = match tensor {
        Ok(tensor) => tensor,
        Err(raised) => return none_or(py, raised),
    };
    Ok(Some(match object.cast_exact::<PyMemoryView>() {
        Ok(view) => under_its_root(tensor, view)?,
        Err(_) => tensor,
    }))
}

/// Nothing, if an object refused a buffer because it has none.
#[cold]
fn none_or(py: Python<'_>, raised: Raised) -> PyResult<Option<Managed>> {
    let error = raised.take_exception(py);
    if !error.is_instance_of::<PyTypeError>(py) {
        return Err(error);
    }
    discard_error(py, error);
    Ok(None)
}

/// The tensor over a memoryview: where that shows memory of ours which keeps itself, it is held alone. So what was pickled and
/// came back again and again is no chain.
fn under_its_root(tensor: Managed, view: &Bound<'_, PyMemoryView>) -> PyResult<Managed> {
    if !is_there(view.py()) {
        return Ok(tensor);
    }
    let mut lender = behind(view)?;
    // Behind the buffer of a pickle stands another memoryview. So many, one upon the other, nobody makes.
    for _ in 0..8 {
        let Ok(view) = lender.cast_exact::<PyMemoryView>() else {
            break;
        };
        lender = behind(view)?;
    }
    Ok(match tensor_of(&lender) {
        Some(keeper) => keep_by_root_of(tensor, keeper),
        None => tensor,
    })
}

/// The object whose memory a memoryview shows. From Python 3.12 on a wrapper stands before what a method `__buffer__` gave: it
/// shows that to nobody but the garbage collector.
fn behind<'py>(view: &Bound<'py, PyMemoryView>) -> PyResult<Bound<'py, PyAny>> {
    let py = view.py();
    let lender = view.getattr(intern!(py, "obj"))?;
    if py.version_info() < (3, 12) || lender.get_type().name()? != "_buffer_wrapper" {
        return Ok(lender);
    }
    let collector = py.import(intern!(py, "gc"))?;
    let seen = collector.call_method1(intern!(py, "get_referents"), (&lender,))?;
    for given in seen.cast::<PyList>()?.iter() {
        if given.is_exact_instance_of::<PyMemoryView>() {
            return Ok(given);
        }
    }
    Ok(lender)
}

/// What the buffer of an object says.
#[inline]
fn describe<'a>(
    object: &Bound<'_, PyAny>,
    held: &'a mut BufferKeepalive,
) -> Result<Strided<'a>, Raised> {
    let py = object.py();
    let view = held.fill_from(object)?;
    // SAFETY: null, or a string that lives as long as the buffer.
    let format = unsafe { text_at(view.format) };
    let Some(dtype) = dtype_of(format, view.itemsize) else {
        let (format, bytes) = (format.escape_ascii(), view.itemsize);
        bail!(py, PyBufferError: "no data type of DLPack is a buffer's \"{format}\" of {bytes} bytes");
    };
    let rank = usize::try_from(view.ndim).ok();
    let has_shape = view.ndim == 0 || !view.shape.is_null();
    let Some(rank) = rank.filter(|_| has_shape && view.suboffsets.is_null()) else {
        bail!(py, PyBufferError: "the buffer does not say its shape, or has pointers among its items");
    };
    // SAFETY: one an axis, for as long as the buffer.
    let shape = unsafe { list_at(view.shape, rank) };
    // `ctypes` gives none, though they were asked for.
    let strides = (!view.strides.is_null()).then(|| {
        // SAFETY: as above.
        unsafe { list_at(view.strides, rank) }
    });
    Ok(Strided {
        data: view.buf.cast(),
        shape,
        strides,
        dtype,
        read_only: view.readonly != 0,
    })
}

/// The text of a format; that of bytes where there is none.
///
/// # Safety
///
/// `start` is null, or leads to a string that lives for `'a`.
#[inline]
unsafe fn text_at<'a>(start: *const c_char) -> &'a [u8] {
    if start.is_null() {
        return b"B";
    }
    // SAFETY: passed on to the caller.
    unsafe { CStr::from_ptr(start) }.to_bytes()
}

/// The numbers of a list.
///
/// # Safety
///
/// `start` leads to so many of them, which nobody changes in `'a`, if there are any.
#[inline]
unsafe fn list_at<'a>(start: *const isize, len: usize) -> &'a [isize] {
    if len == 0 {
        return &[];
    }
    // SAFETY: passed on to the caller.
    unsafe { slice::from_raw_parts(start, len) }
}

/// The data type of a format of the `struct` module.
///
/// The letter only says of what kind a number is: how many bytes it has depends on the sign in front of it, and `ctypes`
/// writes the one without regard to the other.
#[inline]
fn dtype_of(format: &[u8], itemsize: isize) -> Option<DataType> {
    const SIGNED: [DataType; 4] = [DataType::I8, DataType::I16, DataType::I32, DataType::I64];
    const UNSIGNED: [DataType; 4] = [DataType::U8, DataType::U16, DataType::U32, DataType::U64];
    const NATIVE: u8 = if cfg!(target_endian = "little") {
        b'<'
    } else {
        b'>'
    };

    let letters = match format {
        [b'@' | b'=' | NATIVE, letters @ ..] => letters,
        // A single byte is in any order.
        [sign, letters @ ..] if itemsize == 1 && b"<>!".contains(sign) => letters,
        letters => letters,
    };
    let of_sizes: &[DataType] = match letters {
        b"?" => &[DataType::BOOL],
        b"b" | b"h" | b"i" | b"l" | b"q" | b"n" => &SIGNED,
        b"B" | b"H" | b"I" | b"L" | b"Q" | b"N" => &UNSIGNED,
        b"e" | b"f" | b"d" => &[DataType::F16, DataType::F32, DataType::F64],
        b"Zf" | b"Zd" | b"F" | b"D" => &[DataType::C64, DataType::C128],
        _ => return None,
    };
    let bits = usize::try_from(itemsize).ok()?.checked_mul(8)?;
    let fits = |dtype: &&DataType| dtype.itemsize_bits() == bits;
    of_sizes.iter().find(fits).copied()
}
