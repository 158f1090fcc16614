//! The owner behind an import of a NumPy array: what keeps its memory alive and in place, released on any thread.
#![expect(unsafe_code, reason = "changes reference counts on any thread")]

use core::ptr::NonNull;

use dlpack_core::Error;
use pyo3::{ffi, prelude::*};

use crate::capi::has_buffer;
use crate::error::{OrRaise, Raised, discard_if_concerns_object};
use crate::keepalive::BufferKeepalive;
use crate::keepalive::guard::{release_attached_reference, run_attached};

/// Keeps the memory of an array alive and in place, by two references to the array or to the base that owns the memory.
///
/// `array.resize(..)` frees the memory unless the array has more than two references: NumPy attributes two of them to the
/// caller (its variable and the stack). In `list.pop().resize(..)` the caller has only one, so a single reference of ours would
/// not prevent it. (On Python 3.14 the stack borrows its references, and NumPy 2.5 refuses to resize an array with two or more.)
/// NumPy offers no other way to lock an array, and does not count exported buffers.
///
/// A base that is no array, such as a `bytearray` or a mapped file, may free its memory while the array lives: NumPy requests its
/// buffer, but `numpy.ndarray(.., buffer=base)` releases it at once. A buffer of our own prevents that.
pub(crate) enum ArrayKeepalive {
    Array(#[expect(dead_code, reason = "held for its `Drop`")] ArrayReferences),
    Based(#[expect(dead_code, reason = "held for its `Drop`")] Boxed<BasedArray>),
}

/// A value in the heap, created by [`try_box`]. `Box::new` would abort the process if there is no memory.
pub(crate) type Boxed<T> = Box<[T; 1]>;

/// Moves a value to the heap; `None` if there is no memory.
fn try_box<T>(value: T) -> Option<Boxed<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(1).ok()?;
    list.push(value);
    list.try_into().ok()
}

/// The last array before a base that is no array, a buffer of that base, and what keeps the memory of the array behind the base, if
/// there is one. All are kept: only the base knows whether the memory really belongs to that array.
pub(crate) struct BasedArray {
    #[expect(dead_code, reason = "held for its `Drop`")]
    array: ArrayReferences,
    base: BufferKeepalive,
    owner: Option<ArrayKeepalive>,
}

impl BasedArray {
    /// Takes two references to `array`, and a buffer of its base, unless the base refuses one.
    ///
    /// # Errors
    ///
    /// If there is no memory, or an interrupt arrives while the base is asked.
    #[cold]
    pub(crate) fn new(
        array: &Bound<'_, PyAny>,
        base: &Bound<'_, PyAny>,
    ) -> Result<Boxed<Self>, Raised> {
        let py = base.py();
        let based = try_box(Self {
            array: ArrayReferences::new(array),
            base: BufferKeepalive::new(),
            owner: None,
        });
        let bytes = size_of::<Self>();
        let mut based = based.ok_or(Error::OutOfMemory { bytes }).or_raise(py)?;
        if has_buffer(base) {
            if let Err(raised) = based[0].base.fill_from(base) {
                let error = raised.take_exception(py);
                discard_if_concerns_object(py, error).or_raise(py)?;
            }
        }
        Ok(based)
    }

    /// The object that exports the buffer of the base.
    pub(crate) fn exporter<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.base.exporter(py)
    }
}

impl ArrayKeepalive {
    /// Takes two references to `array`.
    #[inline(always)]
    pub(crate) fn of_array(array: &Bound<'_, PyAny>) -> Self {
        Self::Array(ArrayReferences::new(array))
    }

    /// Whether the memory belongs to a base that is no array.
    pub(crate) fn is_based(&self) -> bool {
        matches!(self, Self::Based(_))
    }

    /// Keeps an array with a base, and `owner`, which keeps the array behind the base.
    pub(crate) fn of_based(mut based: Boxed<BasedArray>, owner: Option<Self>) -> Self {
        based[0].owner = owner;
        Self::Based(based)
    }
}

/// Two references to an array.
pub(crate) struct ArrayReferences(NonNull<ffi::PyObject>);

// SAFETY: the references are used for nothing but their release, which attaches to the interpreter first.
unsafe impl Send for ArrayReferences {}

impl ArrayReferences {
    #[inline(always)]
    fn new(array: &Bound<'_, PyAny>) -> Self {
        let array = array.as_ptr();
        // SAFETY: `array` is a `Bound`: this thread is attached, and the object is alive.
        unsafe { ffi::Py_INCREF(array) };
        // SAFETY: `array` is a `Bound`: this thread is attached, and the object is alive.
        unsafe { ffi::Py_INCREF(array) };
        // SAFETY: the pointer of a `Bound` is not null.
        Self(unsafe { NonNull::new_unchecked(array) })
    }
}

/// The last use may end on any thread, attached to the interpreter or not.
// CAP-13
impl Drop for ArrayReferences {
    #[inline(always)]
    fn drop(&mut self) {
        let array = self.0;
        run_attached(|| {
            // SAFETY: attached; this is one of the two references that `new` took, and the other one keeps the array alive.
            unsafe { ffi::Py_DECREF(array.as_ptr()) };
            // SAFETY: attached; this is the second of the two references that `new` took.
            unsafe { release_attached_reference(array) };
        });
    }
}
