//! Imports through Python's buffer protocol, for objects without DLPack: `bytes`, `array.array`, `mmap`.
#![expect(
    unsafe_code,
    reason = "reads structs of Python's, and keeps the memory that they describe"
)]

use core::ffi::{CStr, c_char};
use core::slice;

use dlpack_core::binding::{Strided, keep_strided};
use dlpack_core::{DataType, Managed};
use pyo3::exceptions::PyBufferError;
use pyo3::{prelude::*, types::PyMemoryView};

use crate::capi::{PyBuffer, has_buffer};
use crate::error::{OrRaise, Raised, bail, raise_core_error};
use crate::import::numpy::{array_behind, keepalive_of_array};
use crate::import::root::keep_by_root;
use crate::keepalive::{ArrayKeepalive, BufferKeepalive};

/// Imports the buffer of an object, which is held until the tensor is released. Returns `None` if the object has no buffer.
pub(super) fn of_buffer(object: &Bound<'_, PyAny>) -> PyResult<Option<Managed>> {
    import_buffer(object, false)
}

/// Imports the buffer of an object. A contiguous buffer with a format of no data type of DLPack is imported as bytes. Returns `None`
/// if the object has no buffer.
#[cold]
pub(crate) fn bytes_of_buffer(object: &Bound<'_, PyAny>) -> PyResult<Option<Managed>> {
    import_buffer(object, true)
}

/// Keeps the memory of a buffer.
struct BufferOwner {
    buffer: BufferKeepalive,
    /// If a NumPy array exports it.
    array: Option<ArrayKeepalive>,
}

impl BufferOwner {
    /// Requests the buffer of an object. It may be that of an array, passed on by a `memoryview` or a `PickleBuffer`. Returns whether the
    /// memory may be that of another object.
    fn request_buffer(&mut self, object: &Bound<'_, PyAny>) -> Result<bool, Raised> {
        self.buffer.fill_from(object)?;
        let Some(array) = self.find_array(object)? else {
            let exporter = self.buffer.exporter(object.py());
            return Ok(exporter.is_some_and(|exporter| {
                !exporter.is(object) || exporter.is_exact_instance_of::<PyMemoryView>()
            }));
        };
        let keepalive = keepalive_of_array(&array)?;
        let is_based = keepalive.is_based();
        self.array = Some(keepalive);
        if object.is_exact_instance_of::<PyMemoryView>() {
            // It passes on a buffer that it has held since it was made.
            return Ok(is_based);
        }
        // The array may have got other memory before it was kept.
        self.buffer = BufferKeepalive::new();
        self.buffer.fill_from(object)?;
        // A method `__buffer__` may return the buffer of another array now.
        if let Some(again) = self.find_array(object)?.filter(|again| !again.is(&array)) {
            self.array = Some(keepalive_of_array(&again)?);
        }
        Ok(is_based)
    }

    /// The array behind the buffer of an object.
    fn find_array<'py>(
        &self,
        object: &Bound<'py, PyAny>,
    ) -> Result<Option<Bound<'py, PyAny>>, Raised> {
        let exporter = self.buffer.exporter(object.py());
        exporter.map_or(Ok(None), |exporter| array_behind(object, &exporter))
    }
}

fn import_buffer(object: &Bound<'_, PyAny>, may_be_bytes: bool) -> PyResult<Option<Managed>> {
    if !has_buffer(object) {
        return Ok(None);
    }
    let py = object.py();
    let failed = |error| raise_core_error(py, &error);
    let mut may_have_root = false;
    let owner = BufferOwner {
        buffer: BufferKeepalive::new(),
        array: None,
    };
    // SAFETY: the object keeps its memory until the buffer is released, which happens when the owner is dropped. All other writes
    // there come from Python.
    let tensor = unsafe {
        keep_strided(
            owner,
            |owner| {
                may_have_root = owner.request_buffer(object)?;
                describe_buffer(py, owner.buffer.view(), may_be_bytes)
            },
            failed,
        )
    };
    let tensor = tensor.or_fetch(py)?;
    Ok(Some(if may_have_root {
        keep_by_root(tensor, object)?
    } else {
        tensor
    }))
}

/// Describes a buffer.
#[inline]
fn describe_buffer<'a>(
    py: Python<'_>,
    view: &'a PyBuffer,
    may_be_bytes: bool,
) -> Result<Strided<'a>, Raised> {
    // SAFETY: `format` is null or a string that lives as long as the buffer.
    let format = unsafe { text_at(view.format) };
    let rank = usize::try_from(view.ndim).ok();
    let has_shape = view.ndim == 0 || !view.shape.is_null();
    let Some(rank) = rank.filter(|_| has_shape && view.suboffsets.is_null()) else {
        bail!(py, PyBufferError: "the buffer has no shape, or its items are pointers");
    };
    // SAFETY: `shape` has one number for each axis, for as long as the buffer lives.
    let shape = unsafe { list_at(view.shape, rank) };
    // `ctypes` provides no strides, though they are requested.
    let strides = (!view.strides.is_null()).then(|| {
        // SAFETY: `strides` is not null and has one number for each axis, for as long as the buffer lives.
        unsafe { list_at(view.strides, rank) }
    });
    let (dtype, shape, strides) = match dtype_of_format(format, view.itemsize) {
        Some(dtype) => (dtype, shape, strides),
        None if may_be_bytes
            && !has_references(format)
            && is_contiguous(shape, strides, view.itemsize) =>
        {
            (DataType::U8, slice::from_ref(&view.len), None)
        }
        None => {
            let (format, bytes) = (format.escape_ascii(), view.itemsize);
            bail!(py, PyBufferError: "no data type of DLPack is a buffer's \"{format}\" of {bytes} bytes")
        }
    };
    Ok(Strided {
        data: view.buf.cast(),
        shape,
        strides,
        dtype,
        read_only: view.readonly != 0,
    })
}

/// Whether the items of a format contain references to Python objects, which must not be written as bytes.
fn has_references(format: &[u8]) -> bool {
    // The names of fields are between colons. With `ctypes` a name can contain one, but each letter follows a sign.
    let mut formats = format.split(|&letter| letter == b':').step_by(2);
    let mut pairs = format.windows(2);
    formats.any(|format| format.contains(&b'O'))
        || pairs.any(|pair| matches!(pair, [b'<' | b'>' | b'=' | b'@' | b'!', b'O']))
}

/// Whether the items of a buffer are contiguous in C order.
fn is_contiguous(shape: &[isize], strides: Option<&[isize]>, itemsize: isize) -> bool {
    let mut expected = itemsize;
    let mut axes = shape.iter().zip(strides.unwrap_or(&[])).rev();
    let is_expected = axes.all(|(&extent, &stride)| {
        let before = expected;
        expected = expected.wrapping_mul(extent);
        extent == 1 || stride == before
    });
    is_expected || shape.contains(&0)
}

/// The text of a format; the format of bytes if it is null.
///
/// # Safety
///
/// `start` is null, or points to a string that lives for `'a`.
#[inline]
unsafe fn text_at<'a>(start: *const c_char) -> &'a [u8] {
    if start.is_null() {
        return b"B";
    }
    // SAFETY: `start` is not null, so by this function's contract it points to a string that lives for `'a`.
    unsafe { CStr::from_ptr(start) }.to_bytes()
}

/// The numbers of a list, as a slice.
///
/// # Safety
///
/// If `len` is not 0, `start` points to `len` numbers that do not change during `'a`.
#[inline]
unsafe fn list_at<'a>(start: *const isize, len: usize) -> &'a [isize] {
    if len == 0 {
        return &[];
    }
    // SAFETY: `len` is not 0, so by this function's contract `start` points to `len` numbers that do not change.
    unsafe { slice::from_raw_parts(start, len) }
}

/// The data type that a format of the `struct` module describes.
///
/// The size of a long integer depends on the sign before the letter, and `ctypes` writes the letter without regard to the sign. It
/// also writes the letter of a byte for packed structs and unions, which are no numbers: only their size shows that.
#[inline]
fn dtype_of_format(format: &[u8], itemsize: isize) -> Option<DataType> {
    const NATIVE: u8 = if cfg!(target_endian = "little") {
        b'<'
    } else {
        b'>'
    };

    let letters = match format {
        [b'@' | b'=' | NATIVE, letters @ ..] => letters,
        // A single byte has no byte order.
        [sign, letters @ ..] if itemsize == 1 && b"<>!".contains(sign) => letters,
        letters => letters,
    };
    let of_sizes: &[DataType] = match letters {
        b"?" => &[DataType::BOOL],
        b"b" => &[DataType::I8],
        b"B" => &[DataType::U8],
        b"h" => &[DataType::I16],
        b"H" => &[DataType::U16],
        b"i" | b"l" | b"q" | b"n" => &[DataType::I32, DataType::I64],
        b"I" | b"L" | b"Q" | b"N" => &[DataType::U32, DataType::U64],
        b"e" => &[DataType::F16],
        b"f" => &[DataType::F32],
        b"d" => &[DataType::F64],
        b"Zf" | b"F" => &[DataType::C64],
        b"Zd" | b"D" => &[DataType::C128],
        _ => return None,
    };
    let bits = usize::try_from(itemsize).ok()?.checked_mul(8)?;
    let fits = |dtype: &&DataType| dtype.itemsize_bits() == bits;
    of_sizes.iter().find(fits).copied()
}
