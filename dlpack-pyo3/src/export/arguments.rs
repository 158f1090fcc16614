//! Parses the arguments of `__dlpack__`, with a fast path for the usual ones.
#![expect(unsafe_code, reason = "reads the arguments of a C call")]

use core::{hint::assert_unchecked, marker::PhantomData, mem::forget};
use std::borrow::Cow;

use dlpack_core::{Device, DeviceType, ExportRequest, Version};
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError};
use pyo3::exceptions::{PyUnicodeEncodeError, PyValueError};
use pyo3::types::{PyBool, PyString, PyTuple};
use pyo3::{ffi, prelude::*};

use crate::error::{OrRaise, Raised, bail, fail, raise_pyo3_error, show_object};
use crate::export::set_once::SetOnce;
use crate::keepalive::attached;

/// The keywords: the most frequent one first, the one of the draft before DLPack 1.0 last.
const KEYWORDS: [&str; 5] = ["max_version", "dl_device", "copy", "stream", "version"];

/// The keywords as interned strings, in the order of `KEYWORDS`. The names of a call are nearly always these very objects.
static INTERNED: [SetOnce<ffi::PyObject>; KEYWORDS.len()] =
    [const { SetOnce::new() }; KEYWORDS.len()];

/// The integers 0 to 3, of which CPython has one object each.
static SMALL_INTEGERS: [SetOnce<ffi::PyObject>; 4] = [const { SetOnce::new() }; 4];

/// `(1, 0)`, the device type and index of the CPU: nearly always the result of `__dlpack_device__`.
static CPU_TUPLE: SetOnce<ffi::PyObject> = SetOnce::new();

/// A new reference to `(1, 0)`.
#[inline]
pub(crate) fn cpu_tuple() -> *mut ffi::PyObject {
    let cpu = CPU_TUPLE.get();
    // SAFETY: `prepare_constants` stored the object and never releases it; only methods of classes that were prepared call this.
    unsafe { ffi::Py_INCREF(cpu) };
    cpu
}

/// Stores the objects that are compared by address. Called before a method that reads them is installed.
pub(crate) fn prepare_constants(py: Python<'_>) -> PyResult<()> {
    /// Leaks the reference, unless another object was stored first.
    fn store_reference(place: &SetOnce<ffi::PyObject>, object: Bound<'_, PyAny>) {
        if place.set(object.as_ptr()).is_ok() {
            forget(object);
        }
    }

    attached::check_interpreter(py).or_fetch(py)?;
    attached::install_hooks(py);
    for (name, place) in KEYWORDS.iter().zip(&INTERNED) {
        store_reference(place, PyString::intern(py, name).into_any());
    }
    let cpu = (Device::CPU.device_type.0, Device::CPU.device_id);
    store_reference(&CPU_TUPLE, cpu.into_pyobject(py)?.into_any());
    for (number, place) in SMALL_INTEGERS.iter().enumerate() {
        store_reference(place, number.into_pyobject(py)?.into_any());
    }
    Ok(())
}

/// The arguments of a vectorcall.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a, 'py> {
    py: Python<'py>,
    values: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    call: PhantomData<&'a ()>,
}

impl<'a, 'py> Arguments<'a, 'py> {
    /// Wraps the arguments that CPython passes to the C function.
    ///
    /// # Safety
    ///
    /// The arguments are those of a vectorcall, which runs for all of `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(
        py: Python<'py>,
        values: *const *mut ffi::PyObject,
        positional: ffi::Py_ssize_t,
        names: *mut ffi::PyObject,
    ) -> Self {
        Self {
            py,
            values,
            positional,
            names,
            call: PhantomData,
        }
    }

    /// The names of the keyword arguments, if there are any.
    #[inline(always)]
    fn keyword_names(&self) -> Option<Borrowed<'a, 'py, PyTuple>> {
        // SAFETY: null or a valid object, which the caller of the method keeps alive for `'a`.
        let names = unsafe { Borrowed::from_ptr_or_opt(self.py, self.names) }?;
        // SAFETY: the keyword names of a vectorcall are a tuple of strings.
        Some(unsafe { names.cast_unchecked::<PyTuple>() })
    }

    /// The names of all arguments, if all are keyword arguments.
    #[inline(always)]
    fn names_of_all(&self) -> Option<Borrowed<'a, 'py, PyTuple>> {
        self.keyword_names().filter(|_| self.positional == 0)
    }

    /// The value of the keyword argument at this index. Only called without positional arguments.
    #[inline(always)]
    fn keyword_value(&self, index: usize) -> Borrowed<'a, 'py, PyAny> {
        // SAFETY: there is one value for each name, `index` is that of a name, and there are no positional values before them.
        let value = unsafe { self.values.add(index) };
        // SAFETY: `value` points into the array of values.
        let value = unsafe { value.read() };
        // SAFETY: CPython passes no null values.
        unsafe { assert_unchecked(!value.is_null()) };
        // SAFETY: a valid object, which the caller of the method keeps alive for `'a`.
        unsafe { Borrowed::from_ptr(self.py, value) }
    }

    /// Whether the only argument is a `max_version` that nearly all consumers pass, which means [`ExportRequest::versioned`].
    #[inline(always)]
    pub(crate) fn are_only_common_version(&self) -> bool {
        let Some(names) = self.names_of_all() else {
            return false;
        };
        let mut names = names.iter_borrowed();
        names.len() == 1
            && names.next().is_some_and(|name| is_keyword(0, name))
            && is_common_version(self.keyword_value(0))
    }

    /// Whether there is a `max_version` as above, and all other arguments are `None`.
    #[inline(always)]
    pub(crate) fn are_default(&self) -> bool {
        let Some(names) = self.names_of_all() else {
            return false;
        };
        let mut versioned = false;
        for (index, name) in names.iter_borrowed().enumerate() {
            let value = self.keyword_value(index);
            if is_keyword(0, name) {
                if !is_common_version(value) {
                    return false;
                }
                versioned = true;
            } else if !value.is_none() || !(1..4).any(|keyword| is_keyword(keyword, name)) {
                return false;
            }
        }
        versioned
    }

    /// Parses the arguments. `draft` adds the keyword `version` of the draft from before `max_version`.
    // INF-02 to INF-07
    pub(crate) fn parse_request(&self, draft: bool) -> Result<ExportRequest, Raised> {
        let Self { py, positional, .. } = *self;
        let mut request = ExportRequest::default();
        if positional != 0 {
            bail!(py, PyTypeError: "__dlpack__() takes keyword arguments only, but {positional} positional ones were given");
        }
        let Some(names) = self.keyword_names() else {
            return Ok(request);
        };
        let (mut version, mut version_of_draft) = (None, None);
        for (index, name) in names.iter_borrowed().enumerate() {
            let name = name.cast::<PyString>().map_err(PyErr::from).or_raise(py)?;
            let known = INTERNED
                .iter()
                .position(|known| known.get() == name.as_ptr());
            let name = match known {
                Some(index) => KEYWORDS[index].into(),
                None => keyword_text(&name)?,
            };
            let value = Some(self.keyword_value(index)).filter(|value| !value.is_none());
            match &*name {
                "max_version" => version = value,
                "stream" => request.stream = value.map(parse_stream).transpose()?,
                "dl_device" => request.dl_device = value.map(parse_dl_device).transpose()?,
                "copy" => request.copy = value.map(parse_copy).transpose()?,
                "version" if draft => version_of_draft = value,
                _ => bail!(py, PyTypeError:
                    "__dlpack__() got an unexpected keyword argument '{name}'"),
            }
        }
        request.max_version = match (version, version_of_draft) {
            (None, None) => None,
            (Some(value), None) => Some(parse_max_version(value)?),
            (None, Some(value)) => parse_draft_version(value)?,
            // INF-07
            (Some(_), Some(_)) => {
                bail!(py, PyValueError: "`version` is the draft's form of `max_version`: give one of them")
            }
        };
        Ok(request)
    }
}

/// The text of a keyword that is not one of the interned strings.
#[cold]
fn keyword_text<'a>(name: &'a Bound<'_, PyString>) -> Result<Cow<'a, str>, Raised> {
    let py = name.py();
    match name.to_cow() {
        // A name that is not valid Unicode cannot be a keyword of ours.
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(py) => Ok("?".into()),
        name => name.or_raise(py),
    }
}

/// Whether a name is the interned string of this keyword. Compares addresses.
#[inline(always)]
fn is_keyword(index: usize, name: Borrowed<'_, '_, PyAny>) -> bool {
    INTERNED[index].get() == name.as_ptr()
}

/// Whether this is a `max_version` from `(1, 0)` to `(1, 3)`, compared by the addresses of its integers.
#[inline(always)]
fn is_common_version(value: Borrowed<'_, '_, PyAny>) -> bool {
    // Not `cast_exact`, which counts a reference in its error.
    if !value.is_exact_instance_of::<PyTuple>() {
        return false;
    }
    // SAFETY: a tuple, as was checked.
    let tuple = unsafe { value.cast_unchecked::<PyTuple>() };
    let mut items = tuple.iter_borrowed();
    if items.len() != 2 {
        return false;
    }
    let (Some(major), Some(minor)) = (items.next(), items.next()) else {
        return false;
    };
    let known = |number: &SetOnce<_>, is: Borrowed<'_, '_, PyAny>| number.get() == is.as_ptr();
    known(&SMALL_INTEGERS[1], major) && SMALL_INTEGERS.iter().any(|number| known(number, minor))
}

/// An integer, or an object with `__index__`; a value that does not fit becomes `i64::MIN` or `i64::MAX`.
fn parse_integer(value: Borrowed<'_, '_, PyAny>, what: &str) -> Result<i64, Raised> {
    let py = value.py();
    value.extract::<i64>().or_else(|error| {
        let too_large = error.is_instance_of::<PyOverflowError>(py);
        let other = error.is_instance_of::<PyTypeError>(py);
        let raised = raise_pyo3_error(py, error);
        if !too_large && !other {
            return Err(raised);
        }
        raised.clear_exception(py);
        if other {
            return Err(not_an_integer(value, what));
        }
        // The object itself may have no `<`.
        // SAFETY: attached, as `py` shows; a live object.
        let index = unsafe { ffi::PyNumber_Index(value.as_ptr()) };
        // SAFETY: a new reference, or null with an exception.
        let index = unsafe { Bound::from_owned_ptr_or_opt(py, index) }.ok_or(Raised)?;
        let is_negative = index.lt(0).or_raise(py)?;
        Ok(if is_negative { i64::MIN } else { i64::MAX })
    })
}

fn not_an_integer(value: Borrowed<'_, '_, PyAny>, what: &str) -> Raised {
    let found = value.get_type();
    fail!(value.py(), PyTypeError: "{what} is an int or None, found {found}")
}

fn out_of_range(value: Borrowed<'_, '_, PyAny>, what: &str) -> Raised {
    match show_object(&value) {
        Ok(found) => fail!(value.py(), PyValueError: "{what} is out of range: {found}"),
        Err(raised) => raised,
    }
}

fn parse_stream(value: Borrowed<'_, '_, PyAny>) -> Result<i64, Raised> {
    // `bool` is a subclass of `int`, but a stream that is a `bool` is a mistake (STC-13).
    if value.is_instance_of::<PyBool>() {
        return Err(not_an_integer(value, "stream"));
    }
    match parse_integer(value, "stream")? {
        // What values become that do not fit. Neither is a stream handle.
        i64::MIN | i64::MAX => Err(out_of_range(value, "stream")),
        stream => Ok(stream),
    }
}

/// The two items of a tuple.
fn parse_pair<'a, 'py>(
    value: Borrowed<'a, 'py, PyAny>,
    what: &str,
) -> Result<(Borrowed<'a, 'py, PyAny>, Borrowed<'a, 'py, PyAny>), Raised> {
    let (py, found) = (value.py(), value.get_type());
    let Ok(tuple) = value.cast::<PyTuple>() else {
        bail!(py, PyTypeError: "{what} is a tuple of two integers or None, found {found}");
    };
    if tuple.len() != 2 {
        bail!(py, PyTypeError: "{what} is a tuple of two integers, found {} items", tuple.len());
    }
    let item = |index| {
        // SAFETY: `index` is less than 2, and the tuple has two items.
        let item = unsafe { ffi::PyTuple_GetItem(tuple.as_ptr(), index) };
        // SAFETY: an item of a tuple that lives for `'a` and is immutable.
        unsafe { Borrowed::from_ptr(py, item) }
    };
    Ok((item(0), item(1)))
}

fn parse_max_version(value: Borrowed<'_, '_, PyAny>) -> Result<Version, Raised> {
    let (major, minor) = parse_pair(value, "max_version")?;
    let number = |number| {
        let found = parse_integer(number, "a part of max_version")?;
        // A number that does not fit means a version newer than any that exists.
        Ok((found >= 0).then(|| u32::try_from(found).unwrap_or(u32::MAX)))
    };
    match (number(major)?, number(minor)?) {
        (Some(major), Some(minor)) => Ok(Version::new(major, minor)),
        _ => Err(out_of_range(value, "max_version")),
    }
}

fn parse_dl_device(value: Borrowed<'_, '_, PyAny>) -> Result<Device, Raised> {
    let (kind, id) = parse_pair(value, "dl_device")?;
    let number = |number| Ok(i32::try_from(parse_integer(number, "a part of dl_device")?));
    match (number(kind)?, number(id)?) {
        (Ok(kind), Ok(id)) => Ok(Device::new(DeviceType(kind), id)),
        // No such device exists (ERR-02).
        _ => bail!(value.py(), PyBufferError: "there is no device {}", show_object(&value)?),
    }
}

pub(crate) fn parse_copy(value: Borrowed<'_, '_, PyAny>) -> Result<bool, Raised> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(value.is_true());
    }
    let (py, class) = (value.py(), value.get_type());
    // `numpy.bool` is not a subclass of `bool`.
    let is = |name: PyResult<Bound<'_, PyString>>, known| name.is_ok_and(|name| name == known);
    if is(class.module(), "numpy") && (is(class.name(), "bool") || is(class.name(), "bool_")) {
        return value.is_truthy().or_raise(py);
    }
    Err(fail!(py, PyTypeError: "copy is True, False or None, found {class}"))
}

/// Parses a version of the draft (60 for 0.6, 130 for 1.3); `None` stands for the legacy struct.
fn parse_draft_version(value: Borrowed<'_, '_, PyAny>) -> Result<Option<Version>, Raised> {
    match parse_integer(value, "version")? {
        ..=60 => Ok(None),
        // INF-04: the struct of these drafts was never released, and such a consumer would misread the legacy struct.
        found @ 61..=99 => {
            let newest = draft_number(Version::CURRENT);
            bail!(value.py(), PyBufferError:
                "version {found} is a draft that was never released; supported are 60 and older, and 100 to {newest}")
        }
        found => {
            let major = u32::try_from(found / 100).unwrap_or(u32::MAX);
            let minor = u32::try_from(found / 10 % 10).unwrap_or(0);
            Ok(Some(Version::new(major, minor)))
        }
    }
}

/// The number of a version in the draft's form: 130 for 1.3.
pub(crate) fn draft_number(version: Version) -> i64 {
    i64::from(version.major) * 100 + i64::from(version.minor) * 10
}
