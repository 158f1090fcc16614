//! DLPack's C exchange table: does what `__dlpack__` does, without a Python call.
//!
//! Each class has one table, which consumers look up on the type and cache. This module has the functions of our tables, and
//! the lookup of the tables of other libraries:
//!
//! ```text
//! class ── __dlpack_c_exchange_api__ ──▶ table ── from_object ──▶ an owning tensor, like that of `__dlpack__`
//!                                          ├── borrow ───────▶ a view whose shape is stored in the object (`Layout`)
//!                                          ├── to_object ────▶ an object that owns a tensor; on an error the caller keeps it
//!                                          └── allocate, current_stream
//! ```
//!
//! | file | job |
//! |---|---|
//! | this file | the functions of our table |
//! | `foreign` | creates objects and allocates memory by the tables of other libraries |
//! | `lookup` | finds and checks the table of any class, and recognizes our own |
#![expect(unsafe_code, reason = "implements a table of C functions")]

pub(crate) mod foreign;
pub(crate) mod lookup;

use core::ffi::{c_char, c_int, c_void};
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use std::{panic::catch_unwind, sync::OnceLock};

use dlpack_core::abi::{
    DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackSetError, DLTensor,
};
use dlpack_core::binding::{
    Offer, check_aligned, current_stream as work_stream, lists, text, zeroed_like,
};
use dlpack_core::{DataType, Device, DeviceType, Error, FromDLPack, Managed, Version};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::types::{PyCapsule, PyType};
use pyo3::{PyClass, ffi, prelude::*, pyclass_init::PyClassInitializer};

use crate::error::{OrRaise, Raised, bail, catch_panics, fail};
use crate::exchange::lookup::{NAME, OwnTable, capsule_context};
use crate::handover::{ConsumerRequest, Outcome};
use crate::keepalive::{ContentsBorrow, borrow_contents, leak_static};
use crate::vtable::{Exports, Vtable};

/// The C function of the table that creates an object from a tensor.
pub(crate) type ToPyObject =
    unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut c_void) -> c_int;

/// Creates an object of a class from a tensor.
type CreateObject = for<'py> fn(Python<'py>, Managed) -> PyResult<Bound<'py, PyAny>>;

impl OwnTable {
    /// Creates the table of a class. `import` creates objects from tensors.
    // XAP-05
    pub(crate) fn for_class<T: Exports>(import: ToPyObject) -> Self {
        let version = Version::CURRENT.into();
        let api = DLPackExchangeAPI {
            header: DLPackExchangeAPIHeader {
                version,
                prev_api: ptr::null_mut(),
            },
            managed_tensor_allocator: Some(allocate_tensor),
            managed_tensor_from_py_object_no_sync: Some(from_object::<T>),
            managed_tensor_to_py_object_no_sync: Some(import),
            // XAP-08: null unless the shape lies in the object and the class is frozen. A consumer that lets other code run
            // still has the pointers when that code changes an object that is not frozen.
            dltensor_from_py_object_no_sync: const {
                if T::EXTRAS.lists.is_some() && T::Frozen::FROZEN {
                    Some(borrow_tensor::<T>)
                } else {
                    None
                }
            },
            current_work_stream: Some(current_stream),
        };
        let device = known_device::<T>;
        Self {
            api,
            device,
            class: 0,
        }
    }

    /// Leaks the table, and also stores its address in the class under the older attribute name.
    // XAP-04
    pub(crate) fn install_on_class<'py>(
        mut self,
        class: &Bound<'py, PyType>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.class = class.as_ptr().addr();
        let table = NonNull::from(leak_static(self));
        class.setattr("__c_dlpack_exchange_api__", table.addr().get())?;
        // SAFETY: the table and the name live for the rest of the process, and the capsule has no destructor.
        let capsule = unsafe { PyCapsule::new_with_pointer(class.py(), table.cast(), NAME) }?;
        capsule.set_context(capsule_context())?;
        Ok(capsule)
    }
}

fn known_device<T: Exports>(object: &Bound<'_, PyAny>) -> Option<Device> {
    if T::EXTRAS.facts.is_on_host() {
        return Some(Device::CPU);
    }
    device_of(object, Vtable::of::<T>())
}

#[inline(never)]
fn device_of(object: &Bound<'_, PyAny>, class: &Vtable) -> Option<Device> {
    if !class.is_instance(object) {
        return None;
    }
    let py = object.py();
    // SAFETY: `is_instance` found an instance of the class.
    let device = catch_panics(py, || unsafe { (class.device)(object) });
    // The caller then exports the object on the general path, which raises the error again.
    device.map_err(|raised| raised.clear_exception(py)).ok()
}

/// Runs the body of a function of the table: returns 0 and writes the result, or returns -1 with an exception.
///
/// # Safety
///
/// `out` is valid for writes, or null.
// XAP-09
#[inline(always)]
unsafe fn finish_call<R>(
    py: Python<'_>,
    out: *mut R,
    body: impl FnOnce() -> Result<R, Raised>,
) -> c_int {
    let body = || {
        if out.is_null() {
            bail!(py, PyValueError: "the exchange table expected a pointer for its result, found NULL");
        }
        // SAFETY: `out` is not null, so it is valid for writes by this function's contract.
        body().map(|result| unsafe { out.write(result) })
    };
    if catch_panics(py, body).is_ok() {
        0
    } else {
        -1
    }
}

/// The object that a consumer passed, if it is an instance of the class. Other objects can carry our table too, as Python code
/// can copy the attributes of a class.
///
/// # Safety
///
/// `object` is a valid Python object, or null.
// XAP-12
#[inline(always)]
unsafe fn check_instance<'a, 'py>(
    py: Python<'py>,
    object: *mut ffi::PyObject,
    class: &Vtable,
) -> Result<Borrowed<'a, 'py, PyAny>, Raised> {
    // SAFETY: a valid object or null, by this function's contract.
    let object = unsafe { Borrowed::from_ptr_or_opt(py, object) };
    match object {
        Some(object) if class.is_instance(&object) => Ok(object),
        _ => Err(raise_not_an_instance(py, object, class)),
    }
}

/// Not inlined, since the function above is inlined into each class's `borrow_tensor`.
#[cold]
#[inline(never)]
fn raise_not_an_instance(
    py: Python<'_>,
    object: Option<Borrowed<'_, '_, PyAny>>,
    class: &Vtable,
) -> Raised {
    let Some(object) = object else {
        return fail!(py, PyTypeError: "the exchange table expected an object, found NULL");
    };
    let (ours, found) = (class.name, object.get_type());
    fail!(py, PyTypeError: "this exchange table is for objects of `{ours}`, found one of {found}")
}

/// Exports an object as an owning tensor, like `__dlpack__`.
// XAP-14, XAP-15
unsafe extern "C" fn from_object<T: Exports>(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    let object: *mut ffi::PyObject = object.cast();
    // SAFETY: consumers call the table attached (XAP-11), with the arguments of `managed_tensor_from_py_object_no_sync`.
    unsafe { from_object_of(object, out, Vtable::of::<T>()) }
}

/// Exports an object of a class as an owning tensor.
///
/// # Safety
///
/// The arguments are those of `managed_tensor_from_py_object_no_sync`, and the thread is attached.
#[inline(never)]
unsafe extern "C" fn from_object_of(
    object: *mut ffi::PyObject,
    out: *mut *mut DLManagedTensorVersioned,
    class: &Vtable,
) -> c_int {
    // SAFETY: attached, by this function's contract.
    let py = unsafe { Python::assume_attached() };
    let export = || {
        // SAFETY: a consumer passes a valid object or null.
        let object = unsafe { check_instance(py, object, class) }?;
        let mut outcome = Outcome::None;
        // SAFETY: the thread is attached, and `check_instance` found an instance of the class.
        let kept =
            unsafe { (class.export)(object.as_ptr(), ConsumerRequest::Unordered, &mut outcome) };
        if let Some((tensor, _)) = kept {
            outcome.forget_none();
            return Ok(tensor.as_ptr());
        }
        match outcome {
            Outcome::Tensor(tensor) => Ok(tensor.into_raw().as_ptr()),
            _ => Err(Raised),
        }
    };
    // SAFETY: `out` is valid for writes or null, by this function's contract.
    unsafe { finish_call(py, out, export) }
}

/// Exports an object as a `DLTensor` that borrows everything, and is valid until control returns to Python.
// XAP-19
unsafe extern "C" fn borrow_tensor<T: Exports>(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: consumers call the table attached (XAP-11).
    let py = unsafe { Python::assume_attached() };
    let lend = || {
        // SAFETY: a consumer passes a valid object or null.
        let object = unsafe { check_instance(py, object.cast(), Vtable::of::<T>()) }?;
        // SAFETY: `check_instance` found an instance of the class.
        let object = unsafe { object.cast_unchecked::<T>() };
        // SAFETY: the consumer keeps the object alive, and its class is frozen, so its contents need no guard.
        let (value, _) = unsafe { borrow_contents(&object) }?;
        let lists = lists(value);
        let described = value.describe();
        let it = (&described).or_raise(py)?;
        if it.stream().is_some() {
            // XAP-25: `current_work_stream` returns the stream of an owned tensor only, since that tensor keeps it alive.
            bail!(py, PyBufferError: "the data is written on a stream, which a borrowed tensor cannot name; request an owned tensor");
        }
        if it.is_made_on_request() {
            bail!(py, PyBufferError: "the tensor is made for each request, so there is nothing to borrow; request an owned tensor");
        }
        if it.dtype().is_padded() {
            // DTY-13
            bail!(py, PyBufferError: "the items are padded to bytes, and a borrowed tensor has no flag for that; request an owned tensor");
        }
        let bare = zero_rank_tensor(it.as_ptr(), it.byte_offset(), it.device(), it.dtype());
        let described = (it.shape(), it.strides());
        with_shape_and_strides(py, bare, lists, described, it.is_read_only())
    };
    // SAFETY: a consumer passes a pointer that is valid for writes, or null.
    unsafe { finish_call(py, out, lend) }
}

/// A `DLTensor` without axes.
fn zero_rank_tensor(
    data: *const u8,
    byte_offset: u64,
    device: Device,
    dtype: DataType,
) -> DLTensor {
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

/// Adds the shape and strides that are stored in the object. They must equal the described ones.
fn with_shape_and_strides(
    py: Python<'_>,
    bare: DLTensor,
    lists: Option<(&[i64], &[i64])>,
    described: (&[i64], &[i64]),
    read_only: bool,
) -> Result<DLTensor, Raised> {
    if read_only {
        // XAP-20: a `DLTensor` has no flag for read-only data.
        bail!(py, PyBufferError: "the data is read-only, and a borrowed tensor has no flag for that; request an owned tensor");
    }
    let Some((shape, strides)) = lists.filter(|lists| *lists == described) else {
        bail!(py, PyBufferError: "a borrowed tensor needs its shape and strides stored in the object; request an owned tensor");
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

/// Creates an object that owns the tensor; on an error the tensor stays with the caller, untouched.
///
/// With `make`, user code creates the object, and may hand the tensor on to other code before it fails or panics. The tensor
/// cannot be returned to the caller then. For this case a plain object, with all its memory, is created before user code runs,
/// and becomes the result.
///
/// # Safety
///
/// The arguments are those of `managed_tensor_to_py_object_no_sync`, and the thread is attached.
// XAP-16, XAP-17, XAP-18
unsafe fn to_object(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
    plain: CreateObject,
    make: Option<CreateObject>,
) -> c_int {
    // SAFETY: attached, by this function's contract (XAP-11).
    let py = unsafe { Python::assume_attached() };
    let import = || {
        let Some(tensor) = NonNull::new(tensor) else {
            bail!(py, PyBufferError: "the exchange table expected a tensor, found NULL");
        };
        // SAFETY: a consumer passes a valid tensor, which stays with the consumer if this function fails.
        let offer = unsafe { Offer::of(tensor) }.or_raise(py)?;
        let take = || offer.take().or_raise(py);
        let plain = plain(py, take()?).or_raise(py)?;
        let object = match make {
            None => plain,
            Some(make) => match catch_panics(py, || make(py, take()?).or_raise(py)) {
                Err(Raised) if offer.takers() > 1 => {
                    // The call succeeds, so the exception cannot be raised.
                    PyErr::fetch(py).write_unraisable(py, Some(&plain));
                    plain
                }
                object => object?,
            },
        };
        offer.accept();
        Ok(object.into_ptr().cast())
    };
    // SAFETY: a consumer passes a pointer that is valid for writes, or null.
    unsafe { finish_call(py, out, import) }
}

/// Creates a [`Tensor`](crate::Tensor); set when that class is created.
static CREATE_TENSOR: OnceLock<CreateObject> = OnceLock::new();

/// From now on, tensors that C code imports become objects of `T`, if no class of the user imports them.
pub(crate) fn import_as<T: Imports>() {
    // A class is created once for each process, so the function is set already, or now.
    let _ = CREATE_TENSOR.set(create_object::<T>);
}

/// Creates an object for a tensor that no class of the user imports: a `Tensor` in a module that uses this class, else a `Plain`.
/// So a module that never mentions `Tensor` does not link its methods.
fn create_plain_object<Plain: Imports>(
    py: Python<'_>,
    tensor: Managed,
) -> PyResult<Bound<'_, PyAny>> {
    match CREATE_TENSOR.get() {
        Some(create) => create(py, tensor),
        None => create_object::<Plain>(py, tensor),
    }
}

/// The table's function of a class that does not import tensors: the result is a `Tensor`, or an object of `Plain`.
pub(crate) unsafe extern "C" fn to_plain_object<Plain: Imports>(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: consumers call the table attached (XAP-11), with the arguments of `managed_tensor_to_py_object_no_sync`.
    unsafe { to_object(tensor, out, create_plain_object::<Plain>, None) }
}

pub(crate) unsafe extern "C" fn to_object_of<T: Imports, Plain: Imports>(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: consumers call the table attached (XAP-11), with the arguments of `managed_tensor_to_py_object_no_sync`.
    unsafe {
        to_object(
            tensor,
            out,
            create_plain_object::<Plain>,
            Some(create_object::<T>),
        )
    }
}

fn create_object<T: Imports>(py: Python<'_>, tensor: Managed) -> PyResult<Bound<'_, PyAny>> {
    let value = T::from_dlpack(tensor).or_fetch(py)?;
    Ok(Bound::new(py, value)?.into_any())
}

/// A class with objects that can be created from tensors.
#[diagnostic::on_unimplemented(
    message = "objects of `{Self}` cannot be made from tensors",
    label = "the class does not derive `FromDLPack`, or extends another class"
)]
pub trait Imports: FromDLPack + PyClass + Into<PyClassInitializer<Self>> {}

#[diagnostic::do_not_recommend]
impl<T: FromDLPack + PyClass + Into<PyClassInitializer<T>>> Imports for T {}

/// Allocates zeroed host memory for a consumer. Needs no interpreter.
// XAP-21, XAP-22, XAP-23
unsafe extern "C" fn allocate_tensor(
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
        let prototype =
            prototype.ok_or(lacks(c"the allocator expected a prototype, found NULL"))?;
        let out = NonNull::new(out);
        let out = out.ok_or(lacks(
            c"the allocator expected a pointer for its result, found NULL",
        ))?;
        check_aligned(prototype).map_err(failed)?;
        // SAFETY: a consumer passes a valid prototype; it is not null and aligned, as was checked.
        let prototype = unsafe { prototype.as_ref() };
        // SAFETY: a consumer passes a valid prototype: `shape` points to `ndim` integers.
        let tensor = unsafe { zeroed_like(prototype) }.map_err(failed)?;
        // SAFETY: `out` is not null, so a consumer passes a pointer that is valid for writes.
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
        // SAFETY: the consumer passes the function together with its context; the strings outlive the call.
        unsafe { set_error(context, kind, message) };
    }
    -1
}

/// The stream on which this thread's tensors are written; null on devices without streams.
// XAP-24, XAP-25, XAP-26
unsafe extern "C" fn current_stream(kind: i32, id: i32, out: *mut *mut c_void) -> c_int {
    let stream = work_stream(Device::new(DeviceType(kind), id));
    if !out.is_null() {
        // SAFETY: `out` is not null, so a consumer passes a pointer that is valid for writes.
        unsafe { out.write(ptr::without_provenance_mut(stream)) };
    }
    0
}
