//! DLPack's C exchange table: what `__dlpack__` does, without a Python call.
//!
//! A class carries one table, which consumers find on the type and keep; here are its functions, and how we find the
//! tables of others:
//!
//! ```text
//! class ── __dlpack_c_exchange_api__ ──▶ table ── from_object ──▶ an owning tensor, as `__dlpack__` gives
//!                                          ├── borrow ───────▶ a view that lies in the object (`Layout`)
//!                                          ├── to_object ────▶ an object made of a tensor, or its caller has it back
//!                                          └── allocate, current_stream
//! ```
//!
//! | file | job |
//! |---|---|
//! | this one | the functions of our table |
//! | `lookup` | the table of any class, checked before it is used, and what marks one of ours |
#![expect(unsafe_code, reason = "implements a table of C functions")]

pub(crate) mod lookup;

use core::ffi::{c_char, c_int, c_void};
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use std::panic::catch_unwind;

use dlpack_core::abi::{
    DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackSetError, DLTensor,
};
use dlpack_core::binding::{
    Offer, aligned, current_stream as work_stream, lists, text, zeroed_like,
};
use dlpack_core::{DataType, Device, DeviceType, Error, FromDLPack, Managed, Version};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::types::{PyCapsule, PyType};
use pyo3::{PyClass, ffi, prelude::*, pyclass_init::PyClassInitializer};

use crate::error::{OrRaise, Raised, bail, contained};
use crate::exchange::lookup::{NAME, OwnTable, mark};
use crate::handover::{ConsumerRequest, Outcome};
use crate::hold::{Borrowing, share};
use crate::vtable::{Exports, Vtable};
use crate::{export, hold::keep_for_good};

/// The C function of the table that does it.
pub(crate) type ToPyObject =
    unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut c_void) -> c_int;

/// How a class makes an object of a tensor.
type ToObject = for<'py> fn(Python<'py>, Managed) -> PyResult<Bound<'py, PyAny>>;

impl OwnTable {
    /// The table of a class.
    // XAP-05
    pub(crate) fn of<T: Exports>(import: ToPyObject) -> Self {
        let version = Version::CURRENT.into();
        let api = DLPackExchangeAPI {
            header: DLPackExchangeAPIHeader {
                version,
                prev_api: ptr::null_mut(),
            },
            managed_tensor_allocator: Some(allocate),
            managed_tensor_from_py_object_no_sync: Some(from_object::<T>),
            managed_tensor_to_py_object_no_sync: Some(import),
            // XAP-08: null where it would have nothing to point to, or nothing that stays: a consumer that lets others
            // run still has the pointers when they change an object that is not frozen.
            dltensor_from_py_object_no_sync: const {
                if T::EXTRAS.lists.is_some() && T::Frozen::FROZEN {
                    Some(borrow::<T>)
                } else {
                    None
                }
            },
            current_work_stream: Some(current_stream),
        };
        let device = device::<T>;
        Self {
            api,
            device,
            class: 0,
        }
    }

    /// Keeps it for ever, and gives the class its address under the old name too.
    // XAP-04
    pub(crate) fn install<'py>(
        mut self,
        class: &Bound<'py, PyType>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.class = class.as_ptr().addr();
        let table = NonNull::from(keep_for_good(self));
        class.setattr("__c_dlpack_exchange_api__", table.addr().get())?;
        // SAFETY: the table lives for ever, and so does the name; there is nothing to destroy.
        let capsule = unsafe { PyCapsule::new_with_pointer(class.py(), table.cast(), NAME) }?;
        capsule.set_context(mark())?;
        Ok(capsule)
    }
}

fn device<T: Exports>(object: &Bound<'_, PyAny>) -> Option<Device> {
    if T::EXTRAS.facts.is_on_host() {
        return Some(Device::CPU);
    }
    device_of(object, Vtable::of::<T>())
}

#[inline(never)]
fn device_of<G: Send + 'static>(object: &Bound<'_, PyAny>, class: &Vtable<G>) -> Option<Device> {
    if !class.has(object) {
        return None;
    }
    let py = object.py();
    // SAFETY: that is what was asked.
    let device = contained(py, || unsafe { export::device(object, class) });
    // On the long way it fails again.
    device.map_err(|raised| raised.forget(py)).ok()
}

/// Runs a function of the table: 0 and a result, or -1 and an exception.
///
/// # Safety
///
/// `out` is a place for the result, or null.
// XAP-09
#[inline(always)]
unsafe fn outcome<R>(
    py: Python<'_>,
    out: *mut R,
    body: impl FnOnce() -> Result<R, Raised>,
) -> c_int {
    let body = || {
        if out.is_null() {
            bail!(py, PyValueError: "the exchange table was given no place for its result");
        }
        // SAFETY: it is not null, so a place for the result by the caller's contract.
        body().map(|result| unsafe { out.write(result) })
    };
    if contained(py, body).is_ok() { 0 } else { -1 }
}

/// The object that a consumer passed, if it is one of this class: anything can carry our table, since
/// Python lets a class borrow another's attributes.
///
/// # Safety
///
/// `object` is a Python object, or null.
// XAP-12
unsafe fn checked<'a, 'py, G: Send + 'static>(
    py: Python<'py>,
    object: *mut ffi::PyObject,
    class: &Vtable<G>,
) -> Result<Borrowed<'a, 'py, PyAny>, Raised> {
    // SAFETY: passed on to the caller.
    let Some(object) = (unsafe { Borrowed::from_ptr_or_opt(py, object) }) else {
        bail!(py, PyTypeError: "the exchange table was given no object");
    };
    if class.has(&object) {
        return Ok(object);
    }
    let (ours, found) = (class.name, object.get_type());
    bail!(py, PyTypeError: "this exchange table is for objects of `{ours}`, and was given one of {found}")
}

/// An owning tensor, as `__dlpack__` would give it.
// XAP-14, XAP-15
unsafe extern "C" fn from_object<T: Exports>(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    let object: *mut ffi::PyObject = object.cast();
    // SAFETY: passed on.
    unsafe { from_object_of(object, out, Vtable::of::<T>()) }
}

/// # Safety
///
/// The arguments are those of `managed_tensor_from_py_object_no_sync`, and the thread is attached.
#[inline(never)]
unsafe extern "C" fn from_object_of<G: Send + 'static>(
    object: *mut ffi::PyObject,
    out: *mut *mut DLManagedTensorVersioned,
    class: &Vtable<G>,
) -> c_int {
    // SAFETY: passed on to the caller.
    let py = unsafe { Python::assume_attached() };
    let export = || {
        // SAFETY: a consumer passes an object.
        let object = unsafe { checked(py, object, class) }?;
        let mut other = Outcome::None;
        // SAFETY: the thread is attached, and `checked` found an object of this class.
        let kept =
            unsafe { (class.export)(object.as_ptr(), ConsumerRequest::Unordered, &mut other) };
        match (kept, other) {
            (Some((tensor, _)), _) => Ok(tensor.as_ptr()),
            (None, Outcome::Tensor(tensor)) => Ok(tensor.into_raw().as_ptr()),
            (None, _) => Err(Raised),
        }
    };
    // SAFETY: a consumer passes a place for the result.
    unsafe { outcome(py, out, export) }
}

/// A tensor that borrows everything, until control returns to Python.
// XAP-19
unsafe extern "C" fn borrow<T: Exports>(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: the caller of the table is attached (XAP-11).
    let py = unsafe { Python::assume_attached() };
    let lend = || {
        // SAFETY: a consumer passes an object.
        let object = unsafe { checked(py, object.cast(), Vtable::of::<T>()) }?;
        // SAFETY: that is what was checked.
        let object = unsafe { object.cast_unchecked::<T>() };
        // SAFETY: the consumer keeps the object, and its class is frozen: there is nothing to borrow.
        let (value, _) = unsafe { share(&object) }?;
        let lists = lists(value);
        let it = value.describe().or_raise(py)?;
        let bare = bare(it.as_ptr(), it.byte_offset(), it.device(), it.dtype());
        let described = (it.shape(), it.strides());
        with_lists(py, bare, lists, described, it.is_read_only())
    };
    // SAFETY: a consumer passes a place for the result.
    unsafe { outcome(py, out, lend) }
}

/// A tensor without lists.
fn bare(data: *const u8, byte_offset: u64, device: Device, dtype: DataType) -> DLTensor {
    DLTensor {
        data: data.cast_mut().cast(),
        device: device.into(),
        ndim: 0,
        dtype: dtype.into(),
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset,
    }
}

/// A tensor with the lists that lie in the object, if they say what was described.
fn with_lists(
    py: Python<'_>,
    bare: DLTensor,
    lists: Option<(&[i64], &[i64])>,
    described: (&[i64], &[i64]),
    read_only: bool,
) -> Result<DLTensor, Raised> {
    if read_only {
        // XAP-20: a bare tensor cannot say so.
        bail!(py, PyBufferError: "the data is read-only, which a borrowed tensor cannot say; ask for an owning one");
    }
    let Some((shape, strides)) = lists.filter(|lists| *lists == described) else {
        bail!(py, PyBufferError: "shape and strides do not lie in the object as they are exported; ask for an owning tensor");
    };
    if shape.is_empty() {
        return Ok(bare);
    }
    Ok(DLTensor {
        ndim: i32::try_from(shape.len()).expect("at most 64 axes"),
        shape: shape.as_ptr().cast_mut(),
        strides: strides.as_ptr().cast_mut(),
        ..bare
    })
}

/// Takes the tensor over, or leaves it untouched and raises.
///
/// The object is made by code of the user if there is any. The tensor belongs to those who have it then; after an error
/// to its caller, and to nobody else. That code may have handed the tensor to anybody before it fails or panics. So a
/// plain object is there before it runs, with all the memory that it takes: an answer that takes the tensor away from
/// nobody.
///
/// # Safety
///
/// The arguments are those of `managed_tensor_to_py_object_no_sync`, and the thread is attached.
// XAP-16, XAP-17, XAP-18
unsafe fn to_object(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
    plain: ToObject,
    make: Option<ToObject>,
) -> c_int {
    // SAFETY: the caller of the table is attached (XAP-11).
    let py = unsafe { Python::assume_attached() };
    let import = || {
        let Some(tensor) = NonNull::new(tensor) else {
            bail!(py, PyBufferError: "the exchange table was given no tensor");
        };
        // SAFETY: a consumer passes a valid tensor, and has it back if this fails.
        let offer = unsafe { Offer::of(tensor) }.or_raise(py)?;
        let take = || offer.take().or_raise(py);
        let plain = plain(py, take()?).or_raise(py)?;
        let object = match make {
            None => plain,
            Some(make) => match contained(py, || make(py, take()?).or_raise(py)) {
                Err(Raised) if offer.takers() > 1 => {
                    // It cannot be raised beside a result.
                    PyErr::fetch(py).write_unraisable(py, Some(&plain));
                    plain
                }
                object => object?,
            },
        };
        offer.accept();
        Ok(object.into_ptr().cast())
    };
    // SAFETY: a consumer passes a place for the result.
    unsafe { outcome(py, out, import) }
}

/// The function of a class that is not made of tensors: the object is a plain one.
pub(crate) unsafe extern "C" fn to_plain_object<Plain: Imports>(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { to_object(tensor, out, make::<Plain>, None) }
}

pub(crate) unsafe extern "C" fn to_object_of<T: Imports, Plain: Imports>(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { to_object(tensor, out, make::<Plain>, Some(make::<T>)) }
}

fn make<T: Imports>(py: Python<'_>, tensor: Managed) -> PyResult<Bound<'_, PyAny>> {
    let value = T::from_dlpack(tensor).or_fetch(py)?;
    Ok(Bound::new(py, value)?.into_any())
}

/// A class whose objects can be made of tensors.
#[diagnostic::on_unimplemented(
    message = "objects of `{Self}` cannot be made of tensors",
    label = "the class does not derive `FromDLPack`, or extends another class"
)]
pub trait Imports: FromDLPack + PyClass + Into<PyClassInitializer<Self>> {}

#[diagnostic::do_not_recommend]
impl<T: FromDLPack + PyClass + Into<PyClassInitializer<T>>> Imports for T {}

/// Memory of our own, for whoever asks, without the interpreter.
// XAP-21, XAP-22, XAP-23
unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: DLPackSetError,
) -> c_int {
    let allocated = catch_unwind(AssertUnwindSafe(|| {
        let lacks = |what| (c"ValueError", Ok(what));
        let failed = |error: Error| match error {
            Error::OutOfMemory { .. } => (c"MemoryError", Err(error)),
            _ => (c"BufferError", Err(error)),
        };
        let prototype = NonNull::new(prototype);
        let prototype = prototype.ok_or(lacks(c"the allocator was given no prototype"))?;
        let out = NonNull::new(out);
        let out = out.ok_or(lacks(c"the allocator was given no place for its result"))?;
        aligned(prototype).map_err(failed)?;
        // SAFETY: a consumer passes a prototype.
        let prototype = unsafe { prototype.as_ref() };
        // SAFETY: passed on to the caller.
        let tensor = unsafe { zeroed_like(prototype) }.map_err(failed)?;
        // SAFETY: a consumer passes a place for the result.
        unsafe { out.write(tensor.into_raw().as_ptr()) };
        Ok(())
    }));
    let unforeseen = |_| {
        let words = c"the allocator failed in an unforeseen way";
        Err((c"RuntimeError", Ok(words)))
    };
    let Err((kind, words)) = allocated.unwrap_or_else(unforeseen) else {
        return 0;
    };
    if let Some(set_error) = set_error {
        let words = words.map_err(|error| text(format_args!("{error}\0")));
        let message: *const c_char = match &words {
            Ok(words) => words.as_ptr(),
            Err(Ok(words)) => words.as_ptr().cast(),
            Err(Err(_)) => c"there is no memory for the reason".as_ptr(),
        };
        let kind: *const c_char = kind.as_ptr();
        // SAFETY: the function and its context belong together; the strings outlive the call.
        unsafe { set_error(context, kind, message) };
    }
    -1
}

/// The stream that the tensors of this thread are written on; null where there are no streams.
// XAP-24, XAP-25, XAP-26
unsafe extern "C" fn current_stream(kind: i32, id: i32, out: *mut *mut c_void) -> c_int {
    let stream = work_stream(Device::new(DeviceType(kind), id));
    if !out.is_null() {
        // SAFETY: a place for the result.
        unsafe { out.write(ptr::without_provenance_mut(stream)) };
    }
    0
}
