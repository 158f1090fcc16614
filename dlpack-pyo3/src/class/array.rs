//! `__array__`: NumPy calls it on an object without a buffer, or with a data type that buffers cannot describe.
#![expect(unsafe_code, reason = "defines a method, which is a C function")]

use core::ffi::{CStr, c_char};
use core::ptr;

use dlpack_core::{Device, DeviceType, Managed};
use pyo3::exceptions::PyValueError;
use pyo3::{ffi, ffi::PyObject, intern, prelude::*, types::PyType};

use crate::error::{OrRaise, Raised, bail, catch_into_null};
use crate::export::arguments::parse_copy;
use crate::{class::define_unless_own, import::import_from_own_class, library, values};

const ARRAY: &CStr = c"__array__($self, /, dtype=None, copy=None)
--

An array of NumPy's over this object's data, as numpy.asarray asks for it.

dtype: the data type of the array; another one than the data's takes a copy
copy: True for a copy, False for an error where one is needed";

/// Defines `__array__` on a class, while PyO3 creates it.
pub(super) fn define_array_method(class: &Bound<'_, PyType>, over: &[&str]) -> PyResult<()> {
    let call = ffi::PyMethodDefPointer {
        PyCFunctionWithKeywords: array_method,
    };
    let flags = ffi::METH_VARARGS | ffi::METH_KEYWORDS;
    define_unless_own(class, c"__array__", call, flags, ARRAY, over)
}

/// A NumPy array over the data that an object exports, and that `import` imports.
pub(super) fn numpy_of<'py>(
    object: &Bound<'py, PyAny>,
    copy: Option<bool>,
    import: fn(&Bound<'py, PyAny>, Option<bool>) -> PyResult<Managed>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    // Checked before the export: an export to a device that NumPy cannot read would wait for that device in vain.
    let device = object.call_method0(intern!(py, "__dlpack_device__"))?;
    let (kind, id) = device.extract()?;
    library::numpy::check_host_readable(py, Device::new(DeviceType(kind), id)).or_fetch(py)?;
    library::numpy::array_over_tensor(py, import(object, copy)?)
}

unsafe extern "C" fn array_method(
    object: *mut PyObject,
    values: *mut PyObject,
    keywords: *mut PyObject,
) -> *mut PyObject {
    struct Names([*const c_char; 3]);
    // SAFETY: the strings are static and are only read.
    unsafe impl Sync for Names {}
    static NAMES: Names = Names([c"dtype".as_ptr(), c"copy".as_ptr(), ptr::null()]);

    // SAFETY: CPython calls methods attached.
    let py = unsafe { Python::assume_attached() };
    catch_into_null(py, || {
        let (mut dtype, mut copy) = (ptr::null_mut::<PyObject>(), ptr::null_mut::<PyObject>());
        let (format, names) = (c"|OO:__array__".as_ptr(), NAMES.0.as_ptr().cast_mut());
        let places = (&raw mut dtype, &raw mut copy);
        // SAFETY: the arguments of this call; `format` and `names` have two entries, and both places are valid for writes.
        let status = unsafe {
            ffi::PyArg_ParseTupleAndKeywords(
                values,
                keywords,
                format,
                names.cast(),
                places.0,
                places.1,
            )
        };
        if status == 0 {
            return Err(Raised);
        }
        let given = |argument| {
            // SAFETY: null, or an argument that the caller keeps alive.
            let argument = unsafe { Bound::from_borrowed_ptr_or_opt(py, argument) };
            argument.filter(|argument| !argument.is_none())
        };
        let copy = given(copy).map(|copy| parse_copy(copy.as_borrowed()));
        let copy = copy.transpose()?;
        // SAFETY: CPython passes a valid object.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // A copy is made below, together with a conversion.
        let export_copy = copy.filter(|copy| !copy);
        let array = numpy_of(&object, export_copy, import_from_own_class).or_raise(py)?;
        let array = convert_array(array, given(dtype), copy)?;
        Ok(array.into_ptr())
    })
}

/// Converts the array to the requested data type, and copies it if that is necessary or requested.
fn convert_array<'py>(
    array: Bound<'py, PyAny>,
    dtype: Option<Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> Result<Bound<'py, PyAny>, Raised> {
    let py = array.py();
    let own = array.getattr(intern!(py, "dtype")).or_raise(py)?;
    let dtype = dtype.unwrap_or_else(|| own.clone());
    let is_same = own.eq(&dtype).or_raise(py)?;
    match copy {
        Some(true) => {}
        _ if is_same => return Ok(array),
        None => {}
        Some(false) => {
            bail!(py, PyValueError: "the data is {own}; as {dtype} it must be copied, and copy=False forbids that")
        }
    }
    let convert = array.getattr(intern!(py, "astype")).or_raise(py)?;
    values::call_one(&convert, dtype.clone()).or_raise(py)
}
