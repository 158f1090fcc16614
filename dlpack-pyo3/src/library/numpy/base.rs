//! The base object of a NumPy array over a Rust value. It holds the value, which is dropped with the last view of the array.
//!
//! ```text
//! ndarray ── base ──▶ object with the value in it
//! ```
//!
//! The class is not visited by the garbage collector, because the value may be of any Rust type.
#![expect(unsafe_code, reason = "stores a Rust value in a Python object")]

use core::any::TypeId;
use core::mem::{forget, needs_drop};
use core::panic::AssertUnwindSafe;
use core::{ffi::c_void, marker::PhantomData};
use std::panic::catch_unwind;

use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::{prelude::*, sync::PyOnceLock, types::PyType};

use crate::error::{OrRaise, Raised};
use crate::keepalive::PendingException;
use crate::values;

/// The head of an object. The value follows it, at the first address that is aligned for the type of the value.
#[repr(C)]
struct ValueHeader {
    head: ffi::PyVarObject,
    /// `None` if there is no value, or if it needs no drop.
    functions: Option<&'static ValueFunctions>,
}

/// Functions of an object that depend on the type of its value.
struct ValueFunctions {
    drop_value: unsafe fn(*mut PyObject),
    type_id: fn() -> TypeId,
}

/// A Python object that holds a `T`. No other code has a reference to it.
pub(super) struct ValueObject<'py, T>(Bound<'py, PyAny>, PhantomData<T>);

/// The address of an object's value.
fn address_of_value<T>(object: *mut PyObject) -> *mut T {
    let start = object
        .wrapping_byte_add(size_of::<ValueHeader>())
        .cast::<u8>();
    let padding = start.addr().wrapping_neg() % align_of::<T>();
    start.wrapping_byte_add(padding).cast()
}

/// The value in a [`ValueObject`], if its type is `T`; `None` for any other object. `T` is a type that needs a drop: only objects of such
/// values know their type.
pub(crate) fn value_of<'a, T: Send + Sync + 'static>(
    object: &'a Bound<'_, PyAny>,
) -> Option<&'a T> {
    let class = CLASS.get(object.py())?;
    if object.get_type_ptr().cast() != class.as_ptr() {
        return None;
    }
    // SAFETY: an object of the class, which begins with this struct.
    let functions = unsafe { (*object.as_ptr().cast::<ValueHeader>()).functions }?;
    let is_one = (functions.type_id)() == TypeId::of::<T>();
    // SAFETY: the object holds a `T`. After it became the base of an array, nothing makes an exclusive reference to it.
    is_one.then(|| unsafe { &*address_of_value::<T>(object.as_ptr()) })
}

impl<'py, T: Send + 'static> ValueObject<'py, T> {
    const FUNCTIONS: &'static ValueFunctions = &ValueFunctions {
        // SAFETY: only `dealloc_value` calls this, once, with an object that holds a `T` which is not used any more.
        drop_value: |object| unsafe { address_of_value::<T>(object).drop_in_place() },
        type_id: TypeId::of::<T>,
    };

    /// Moves a value into a new object. If there is no memory for the object, the value is dropped.
    pub(super) fn new(py: Python<'py>, value: T) -> Result<Self, Raised> {
        let bytes = size_of::<T>().saturating_add(align_of::<T>() - 1);
        let Some(object) = allocate_object(py, bytes) else {
            // The value's `Drop` must not see the exception.
            let _pending = PendingException::save_current();
            drop(value);
            return Err(Raised);
        };
        // SAFETY: the address is aligned, `bytes` bytes follow the header, and no other code has the object.
        unsafe { address_of_value::<T>(object.as_ptr()).write(value) };
        if needs_drop::<T>() {
            // SAFETY: an object of `value_class`, which begins with this struct; no other code has it.
            unsafe { (*object.as_ptr().cast::<ValueHeader>()).functions = Some(Self::FUNCTIONS) };
        }
        Ok(Self(object, PhantomData))
    }

    /// The value, which stays at its address until the object is freed.
    ///
    /// # Safety
    ///
    /// The object outlives the reference, the reference is not used after `into_value`, and this is called once.
    pub(super) unsafe fn value_mut<'a>(&self) -> &'a mut T {
        // SAFETY: `new` wrote the value; by this function's contract it lives for `'a`, and no other reference to it is made.
        unsafe { &mut *address_of_value::<T>(self.0.as_ptr()) }
    }

    /// The value, moved out of the object.
    pub(super) fn into_value(self) -> T {
        // SAFETY: an object of `value_class`, which begins with this struct; no other code has it.
        unsafe { (*self.0.as_ptr().cast::<ValueHeader>()).functions = None };
        // SAFETY: `new` wrote the value. It is not dropped with the object, and not used there any more.
        unsafe { address_of_value::<T>(self.0.as_ptr()).read() }
    }

    pub(super) fn into_any(self) -> Bound<'py, PyAny> {
        self.0
    }
}

/// A new object with `bytes` bytes behind its header; `None` with an exception.
fn allocate_object(py: Python<'_>, bytes: usize) -> Option<Bound<'_, PyAny>> {
    let class = value_class(py).or_raise(py).ok()?;
    // A type may exceed `isize::MAX` together with its alignment. CPython refuses the size.
    let bytes = Py_ssize_t::try_from(bytes).unwrap_or(Py_ssize_t::MAX);
    // SAFETY: a class; its objects may have any number of items behind them, of one byte each.
    let object = unsafe { ffi::PyType_GenericAlloc(class.as_type_ptr(), bytes) };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_opt(py, object) }
}

/// The class of these objects, after the first was made.
static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn value_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let make = || {
        let slots = [(
            ffi::Py_tp_dealloc,
            dealloc_value as ffi::destructor as *mut c_void,
        )];
        // SAFETY: the function has the type of its slot, and is for objects that begin with a `ValueHeader`.
        unsafe { values::new_class::<ValueHeader>(py, c"dlpack_pyo3.Value", 1, 0, &slots) }
    };
    values::get_or_make(&CLASS, py, make).map(|class| class.bind(py))
}

unsafe extern "C" fn dealloc_value(object: *mut PyObject) {
    // SAFETY: CPython deallocates an object of the class, which begins with this struct.
    let functions = unsafe { (*object.cast::<ValueHeader>()).functions };
    if let Some(functions) = functions {
        let _pending = PendingException::save_current();
        // SAFETY: the object holds a value, and is deallocated once.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe {
            (functions.drop_value)(object)
        }));
        // The payload's own `Drop` could panic.
        forget(dropped);
    }
    // SAFETY: an object, whose memory is not freed yet.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: this function frees an object without a garbage collector's header; it is not used afterwards.
    unsafe { ffi::PyObject_Free(object.cast()) };
    // SAFETY: the object held a reference to its class, which was made at run time.
    unsafe { ffi::Py_DECREF(class.cast()) };
}
