//! Owners of an exported object and its borrow, and their release on any thread.
#![expect(unsafe_code, reason = "changes reference counts on any thread")]

use core::ops::{Deref, DerefMut};
use core::{ffi::c_void, mem::ManuallyDrop, ptr::NonNull};

use dlpack_core::{Managed, binding::release_nested};
use pyo3::pyclass::boolean_struct::False;
use pyo3::{PyClass, PyClassGuard, PyClassGuardMut, ffi, prelude::*};

use crate::keepalive::attached::is_attached;
use crate::keepalive::{borrowing::AnyBorrowGuard, pending::PendingException};

/// Keeps an object alive, and its contents borrowed, for an export.
pub trait ExportOwner: Send + 'static {
    /// Ends the borrow and releases the object.
    ///
    /// # Safety
    ///
    /// The thread is attached.
    unsafe fn release_attached(self);

    /// Converts into the one type that can own objects of all classes.
    fn into_any(self, py: Python<'_>) -> ObjectGuard<AnyBorrowGuard>;
}

/// A reference to an object together with a guard that borrows its contents.
///
/// The guard is dropped first, which needs no interpreter; releasing the object does. For a frozen class the guard is `()`.
pub struct ObjectGuard<G> {
    guard: ManuallyDrop<G>,
    object: NonNull<ffi::PyObject>,
}

// SAFETY: the guard may be dropped on any thread (`G: Send`). The object is used, and released, only on a thread that is attached.
unsafe impl<G: Send> Send for ObjectGuard<G> {}

// SAFETY: a shared reference gives access to the object only on a thread that is attached, like `Py`. No code uses the guard through
// a shared reference.
unsafe impl<G: Send> Sync for ObjectGuard<G> {}

impl<G> ObjectGuard<G> {
    /// Takes a new reference to `object`. `guard` borrows the contents of that object.
    #[inline]
    pub(crate) fn new(guard: G, object: &Bound<'_, PyAny>) -> Self {
        let object = object.as_ptr();
        // SAFETY: `object` is a `Bound`: this thread is attached, and the object is alive.
        unsafe { ffi::Py_INCREF(object) };
        Self {
            guard: ManuallyDrop::new(guard),
            // SAFETY: the pointer of a `Bound` is not null.
            object: unsafe { NonNull::new_unchecked(object) },
        }
    }

    /// The object that is kept alive.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> Borrowed<'_, 'py, PyAny> {
        // SAFETY: attached, as `py` shows; `self` owns a reference to the object.
        unsafe { Borrowed::from_ptr(py, self.object.as_ptr()) }
    }
}

impl<G: Send + Into<AnyBorrowGuard> + 'static> ExportOwner for ObjectGuard<G> {
    #[inline]
    unsafe fn release_attached(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is in `ManuallyDrop`, so the guard is dropped once; the object that it borrows from is still alive.
        unsafe { ManuallyDrop::drop(&mut this.guard) };
        // SAFETY: attached, by this function's contract; the reference is the one that `new` took.
        unsafe { release_attached_reference(this.object) };
    }

    fn into_any(self, _: Python<'_>) -> ObjectGuard<AnyBorrowGuard> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is in `ManuallyDrop`, so the guard is taken once.
        let guard = unsafe { ManuallyDrop::take(&mut this.guard) };
        ObjectGuard {
            guard: ManuallyDrop::new(guard.into()),
            object: this.object,
        }
    }
}

/// The last use may end on any thread, attached to the interpreter or not.
// CAP-13
impl<G> Drop for ObjectGuard<G> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: dropped once, here; the object that the guard borrows from is still alive.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
        // SAFETY: `self` owns the reference, which `new` took, and does not use it again.
        unsafe { release_reference(self.object) };
    }
}

/// One of PyO3's borrow guards, which holds a pointer to its object.
pub trait PyBorrowGuard: Send + 'static {
    /// The object that the guard borrows from.
    fn object(&self, py: Python<'_>) -> NonNull<ffi::PyObject>;
}

impl<T: PyClass + Sync> PyBorrowGuard for PyClassGuard<'static, T> {
    #[inline]
    fn object(&self, py: Python<'_>) -> NonNull<ffi::PyObject> {
        let Ok(object) = self.into_pyobject(py);
        object_pointer(&object)
    }
}

impl<T: PyClass<Frozen = False> + Send + Sync> PyBorrowGuard for PyClassGuardMut<'static, T> {
    #[inline]
    fn object(&self, py: Python<'_>) -> NonNull<ffi::PyObject> {
        let Ok(object) = self.into_pyobject(py);
        object_pointer(&object)
    }
}

#[inline]
fn object_pointer<T>(object: &Bound<'_, T>) -> NonNull<ffi::PyObject> {
    // SAFETY: the pointer of a `Bound` is not null.
    unsafe { NonNull::new_unchecked(object.as_ptr()) }
}

/// A reference to an object, together with PyO3's guard, which also stores the object's address. A third of the size of
/// [`ObjectGuard`] with a type-erased guard, but compiled for each class.
pub struct CompactObjectGuard<P: PyBorrowGuard>(ManuallyDrop<P>);

impl<P: PyBorrowGuard> CompactObjectGuard<P> {
    /// Takes a new reference to the object that `guard` borrows from.
    #[inline]
    pub(crate) fn new(guard: P, py: Python<'_>) -> Self {
        // SAFETY: attached, as `py` shows; an object that is borrowed is alive.
        unsafe { ffi::Py_INCREF(guard.object(py).as_ptr()) };
        Self(ManuallyDrop::new(guard))
    }

    /// Drops the guard and releases the object.
    ///
    /// # Safety
    ///
    /// The thread is attached, and the guard is not used afterwards.
    #[inline]
    unsafe fn release_object(&mut self) {
        // SAFETY: attached, by this function's contract.
        let object = self.0.object(unsafe { Python::assume_attached() });
        // SAFETY: dropped once, by this function's contract; the object that the guard borrows from is still alive.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        // SAFETY: attached, by this function's contract; the reference is the one that `new` took.
        unsafe { release_attached_reference(object) };
    }
}

impl<P: PyBorrowGuard> ExportOwner for CompactObjectGuard<P> {
    #[inline]
    unsafe fn release_attached(self) {
        // SAFETY: attached, by this function's contract; the value is in `ManuallyDrop` and not used again.
        unsafe { ManuallyDrop::new(self).release_object() };
    }

    fn into_any(self, py: Python<'_>) -> ObjectGuard<AnyBorrowGuard> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is in `ManuallyDrop`, so the guard is taken once.
        let guard = unsafe { ManuallyDrop::take(&mut this.0) };
        let object = guard.object(py);
        ObjectGuard {
            guard: ManuallyDrop::new(guard.into()),
            object,
        }
    }
}

/// Drops the guard while attached too, unlike [`ObjectGuard`]: the object's address is read from the guard, which needs a
/// `Python`.
impl<P: PyBorrowGuard> Drop for CompactObjectGuard<P> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `run_attached` attaches this thread; a value is dropped once.
        run_attached(|| unsafe { self.release_object() });
    }
}

/// Whether this build has the global interpreter lock. Then only one thread at a time is attached, and no other thread changes
/// a reference count between a read and an update. Objects of free-threaded builds have more fields than a count and a class.
const HAS_GIL: bool = size_of::<ffi::PyObject>() == 2 * size_of::<usize>();

/// Releases a reference on any thread.
///
/// # Safety
///
/// The caller owns the reference, and does not use it afterwards.
#[inline]
unsafe fn release_reference(object: NonNull<ffi::PyObject>) {
    // SAFETY: `run_attached` attaches this thread; the caller owns the reference, by this function's contract.
    run_attached(move || unsafe { release_attached_reference(object) });
}

/// Runs `body` attached to the interpreter, on any thread; does nothing after interpreter shutdown.
// CAP-14
#[inline]
pub(super) fn run_attached(body: impl FnOnce()) {
    if is_attached() {
        body();
    } else {
        attach_and_run(body);
    }
}

/// Releases a reference on a thread that is attached.
///
/// # Safety
///
/// The thread is attached. The caller owns the reference, and does not use it afterwards.
#[inline]
pub(super) unsafe fn release_attached_reference(object: NonNull<ffi::PyObject>) {
    // SAFETY: attached, and the caller's reference keeps the object alive.
    if HAS_GIL && unsafe { ffi::Py_REFCNT(object.as_ptr()) } > 1 {
        // This cannot run the object's destructor, so a pending exception needs no care.
        // SAFETY: attached; the caller owns this reference.
        unsafe { ffi::Py_DECREF(object.as_ptr()) };
    } else {
        // SAFETY: same contract as this function's: attached, and the caller owns the reference.
        unsafe { release_last_reference(object) };
    }
}

/// Releases a reference that may be the last one, so that the object's destructor may run arbitrary code.
///
/// The object may own the last reference to a tensor of another object, which is then released too, and so on. In a long chain,
/// the object is queued.
///
/// # Safety
///
/// The thread is attached. The caller owns the reference, and does not use it afterwards.
#[inline(never)]
unsafe fn release_last_reference(object: NonNull<ffi::PyObject>) {
    let release = |object: *mut c_void| {
        // The call that runs the queue need not be attached.
        run_attached(|| {
            let _pending = PendingException::save_current();
            // SAFETY: attached; the reference is that of the caller, which does not use it afterwards.
            unsafe { ffi::Py_DECREF(object.cast()) };
        });
    };
    // SAFETY: the function may be called on any thread, with a reference that the caller owns. C code does not unwind.
    unsafe { release_nested(object.as_ptr().cast(), release) };
}

/// Attaches this thread, and runs `body`; does nothing after interpreter shutdown.
#[cold]
#[inline(never)]
fn attach_and_run(body: impl FnOnce()) {
    // SAFETY: may be called at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return;
    }
    // `Python::attach` panics or hangs during interpreter shutdown, and dropping a `Py<T>` would defer the release until a
    // thread attaches (CAP-28).
    // SAFETY: the interpreter is initialized. A thread that attaches during shutdown is ended or halted by CPython.
    let state = unsafe { ffi::PyGILState_Ensure() };
    body();
    // SAFETY: `state` is the result of the matching `PyGILState_Ensure`.
    unsafe { ffi::PyGILState_Release(state) };
}

/// Hides a pending exception from the deleter of a tensor: CPython may drop the object that owns it while one is pending.
#[derive(Debug)]
pub(crate) struct ExceptionSafeTensor(ManuallyDrop<Managed>);

impl ExceptionSafeTensor {
    pub(crate) fn new(tensor: Managed) -> Self {
        Self(ManuallyDrop::new(tensor))
    }

    pub(crate) fn into_inner(self) -> Managed {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is in `ManuallyDrop`, so the tensor is taken once.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl Deref for ExceptionSafeTensor {
    type Target = Managed;

    fn deref(&self) -> &Managed {
        &self.0
    }
}

impl DerefMut for ExceptionSafeTensor {
    fn deref_mut(&mut self) -> &mut Managed {
        &mut self.0
    }
}

impl Drop for ExceptionSafeTensor {
    fn drop(&mut self) {
        let _pending = is_attached().then(PendingException::save_current);
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
