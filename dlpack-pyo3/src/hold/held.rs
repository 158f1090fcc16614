//! An object that an export holds, given back on whatever thread the last use ends.
#![expect(unsafe_code, reason = "counts references to objects on any thread")]

use core::cell::{Cell, RefCell};
use core::ops::{Deref, DerefMut};
use core::{mem::ManuallyDrop, ptr::NonNull};
use std::thread_local;

use dlpack_core::Managed;
use pyo3::pyclass::boolean_struct::False;
use pyo3::{PyClass, PyClassGuard, PyClassGuardMut, ffi, prelude::*};

use crate::hold::{attached::attached, borrowing::AnyGuard};

/// What keeps an object and a borrow of its contents for an export.
pub trait Owner: Send + 'static {
    /// Ends the borrow and gives back the object.
    ///
    /// # Safety
    ///
    /// The thread is attached.
    unsafe fn release_attached(self);

    /// The same owner, of a type that is the same for all classes.
    fn into_any(self, py: Python<'_>) -> Held<AnyGuard>;
}

/// An object together with a borrow of its contents.
///
/// The borrow ends first, and that needs no interpreter; giving back the object does. A frozen class has
/// nothing to borrow, and its guard compiles to nothing.
pub struct Held<G> {
    guard: ManuallyDrop<G>,
    object: NonNull<ffi::PyObject>,
}

// SAFETY: the guard may be dropped on any thread (`Send`), and the object is only given back, attached.
unsafe impl<G: Send> Send for Held<G> {}

impl<G> Held<G> {
    /// Takes a reference to `object`, whose contents `guard` borrows.
    #[inline]
    pub(crate) fn new(guard: G, object: &Bound<'_, PyAny>) -> Self {
        let object = object.as_ptr();
        // SAFETY: attached, and alive since the caller has it.
        unsafe { ffi::Py_INCREF(object) };
        Self {
            guard: ManuallyDrop::new(guard),
            // SAFETY: an object is somewhere.
            object: unsafe { NonNull::new_unchecked(object) },
        }
    }

    /// The object.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> Borrowed<'_, 'py, PyAny> {
        // SAFETY: attached, and alive for as long as this is.
        unsafe { Borrowed::from_ptr(py, self.object.as_ptr()) }
    }
}

impl<G: Send + Into<AnyGuard> + 'static> Owner for Held<G> {
    #[inline]
    unsafe fn release_attached(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, so this is the one drop; the object is still alive.
        unsafe { ManuallyDrop::drop(&mut this.guard) };
        // SAFETY: attached, by the caller's contract; the reference is the one that `new` took.
        unsafe { give_back_attached(this.object) };
    }

    fn into_any(self, _: Python<'_>) -> Held<AnyGuard> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, so the guard is taken once.
        let guard = unsafe { ManuallyDrop::take(&mut this.guard) };
        Held {
            guard: ManuallyDrop::new(guard.into()),
            object: this.object,
        }
    }
}

/// On whatever thread a consumer's last use ends, with the interpreter's lock or without.
// CAP-13
impl<G> Drop for Held<G> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the one drop; the object that it borrows from is still alive.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
        // SAFETY: the reference is the one that `new` took.
        unsafe { give_back(self.object) };
    }
}

/// A guard of PyO3's.
pub trait Lends: Send + 'static {
    /// The object that it borrows.
    fn object(&self, py: Python<'_>) -> NonNull<ffi::PyObject>;
}

impl<T: PyClass + Sync> Lends for PyClassGuard<'static, T> {
    #[inline]
    fn object(&self, py: Python<'_>) -> NonNull<ffi::PyObject> {
        let Ok(object) = self.into_pyobject(py);
        pointer(&object)
    }
}

impl<T: PyClass<Frozen = False> + Send + Sync> Lends for PyClassGuardMut<'static, T> {
    #[inline]
    fn object(&self, py: Python<'_>) -> NonNull<ffi::PyObject> {
        let Ok(object) = self.into_pyobject(py);
        pointer(&object)
    }
}

#[inline]
fn pointer<T>(object: &Bound<'_, T>) -> NonNull<ffi::PyObject> {
    // SAFETY: an object is somewhere.
    unsafe { NonNull::new_unchecked(object.as_ptr()) }
}

/// An object and its borrow by the guard alone, which knows both: a third of what [`Held`] takes with a guard of any class,
/// but compiled for each.
pub struct Lent<P: Lends>(ManuallyDrop<P>);

impl<P: Lends> Lent<P> {
    /// Takes a reference to the object that is borrowed.
    #[inline]
    pub(crate) fn new(guard: P, py: Python<'_>) -> Self {
        // SAFETY: attached, and alive since it is borrowed.
        unsafe { ffi::Py_INCREF(guard.object(py).as_ptr()) };
        Self(ManuallyDrop::new(guard))
    }

    /// # Safety
    ///
    /// The thread is attached, and the guard is not used afterwards.
    #[inline]
    unsafe fn end(&mut self) {
        // SAFETY: passed on to the caller.
        let object = self.0.object(unsafe { Python::assume_attached() });
        // SAFETY: its one drop; the object is still alive.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        // SAFETY: attached; the reference is the one that `new` took.
        unsafe { give_back_attached(object) };
    }
}

impl<P: Lends> Owner for Lent<P> {
    #[inline]
    unsafe fn release_attached(self) {
        // SAFETY: attached, by the caller's contract; what is in `ManuallyDrop` is not used again.
        unsafe { ManuallyDrop::new(self).end() };
    }

    fn into_any(self, py: Python<'_>) -> Held<AnyGuard> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, so the guard is taken once.
        let guard = unsafe { ManuallyDrop::take(&mut this.0) };
        let object = guard.object(py);
        Held {
            guard: ManuallyDrop::new(guard.into()),
            object,
        }
    }
}

/// As that of [`Held`], but all of it attached: the guard is asked for its object before it ends.
impl<P: Lends> Drop for Lent<P> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: attached, and the one drop.
        while_attached(|| unsafe { self.end() });
    }
}

/// Whether only one thread at a time is attached: then nobody else changes a count that was just read. Builds without
/// that lock keep more in an object than a count and its class.
const ONE_AT_A_TIME: bool = size_of::<ffi::PyObject>() == 2 * size_of::<usize>();

/// Gives back a reference, on any thread.
///
/// # Safety
///
/// The reference is the caller's to give.
#[inline]
unsafe fn give_back(object: NonNull<ffi::PyObject>) {
    // SAFETY: attached; the rest is passed on to the caller.
    while_attached(move || unsafe { give_back_attached(object) });
}

/// Does what needs an interpreter on any thread; nothing where there is none any more.
// CAP-14
#[inline]
pub(super) fn while_attached(body: impl FnOnce()) {
    if attached() {
        body();
    } else {
        from_outside(body);
    }
}

/// [`give_back`] on a thread that is attached.
///
/// # Safety
///
/// As [`give_back`], and the thread is attached.
#[inline]
pub(super) unsafe fn give_back_attached(object: NonNull<ffi::PyObject>) {
    // SAFETY: attached, and alive, since there is a reference to give.
    if ONE_AT_A_TIME && unsafe { ffi::Py_REFCNT(object.as_ptr()) } > 1 {
        // Nothing is run by this, so no exception can get in the way.
        // SAFETY: as above.
        unsafe { ffi::Py_DECREF(object.as_ptr()) };
    } else {
        // SAFETY: passed on to the caller.
        unsafe { give_back_last(object) };
    }
}

/// The same, where the object may go, and run code of anybody's.
///
/// It may be the last to hold a tensor of another object, which goes too, and so on: as many as Python code likes, while
/// the stack has an end. Deep inside, objects wait for the outermost call on this thread.
///
/// # Safety
///
/// As [`give_back_attached`].
#[inline(never)]
unsafe fn give_back_last(object: NonNull<ffi::PyObject>) {
    const DEEPEST: usize = 16;
    thread_local! {
        static DEPTH: Cell<usize> = const { Cell::new(0) };
        static WAITING: RefCell<Vec<NonNull<ffi::PyObject>>> = const { RefCell::new(Vec::new()) };
    }
    // Without memory, or where the thread ends, none can wait.
    let wait = |waiting: &RefCell<Vec<_>>| {
        let mut waiting = waiting.borrow_mut();
        waiting.try_reserve(1).map(|()| waiting.push(object))
    };
    let depth = DEPTH.get();
    if depth >= DEEPEST && matches!(WAITING.try_with(wait), Ok(Ok(()))) {
        return;
    }
    let _pending = Pending::set_aside();
    DEPTH.set(depth + 1);
    let mut next = Some(object);
    while let Some(object) = next {
        // SAFETY: attached, and the caller's to give, or a caller's on this thread that left it to wait.
        unsafe { ffi::Py_DECREF(object.as_ptr()) };
        let waiting = (depth == 0).then(|| WAITING.try_with(|waiting| waiting.borrow_mut().pop()));
        next = waiting.and_then(Result::ok).flatten();
    }
    DEPTH.set(depth);
}

/// The same on a thread that may not be attached.
#[cold]
#[inline(never)]
fn from_outside(body: impl FnOnce()) {
    // SAFETY: always allowed.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return;
    }
    // Not `Python::attach`, which panics or hangs while the interpreter shuts down, and not a mere
    // drop of a `Py<T>`: PyO3 would park the reference until somebody attaches (CAP-28).
    // SAFETY: there is an interpreter; a thread that comes too late is halted here, as by CPython.
    let state = unsafe { ffi::PyGILState_Ensure() };
    body();
    // SAFETY: `state` is what the matching call gave.
    unsafe { ffi::PyGILState_Release(state) };
}

/// A tensor of whoever. Python may drop the object around it while an exception is on its way, of which its deleter shall see
/// nothing.
#[derive(Debug)]
pub(crate) struct Quiet(ManuallyDrop<Managed>);

impl Quiet {
    pub(crate) fn new(tensor: Managed) -> Self {
        Self(ManuallyDrop::new(tensor))
    }

    pub(crate) fn into_inner(self) -> Managed {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, so it is taken once.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl Deref for Quiet {
    type Target = Managed;

    fn deref(&self) -> &Managed {
        &self.0
    }
}

impl DerefMut for Quiet {
    fn deref_mut(&mut self) -> &mut Managed {
        &mut self.0
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _pending = attached().then(Pending::set_aside);
        // SAFETY: its one drop.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

/// An exception that is on its way through this thread while we do something else.
// CAP-16, CAP-17
pub(crate) struct Pending(Option<[*mut ffi::PyObject; 3]>);

impl Pending {
    /// Only called on an attached thread.
    #[inline]
    pub(crate) fn set_aside() -> Self {
        // SAFETY: attached.
        if unsafe { ffi::PyErr_Occurred() }.is_null() {
            return Self(None);
        }
        let mut parts = [core::ptr::null_mut(); 3];
        let [kind, value, trace] = &mut parts;
        #[allow(deprecated, reason = "the stable ABI of 3.10 has nothing newer")]
        // SAFETY: attached, and three places to write to.
        unsafe {
            ffi::PyErr_Fetch(kind, value, trace)
        };
        Self(Some(parts))
    }
}

impl Drop for Pending {
    #[inline]
    fn drop(&mut self) {
        if let Some([kind, value, trace]) = self.0 {
            #[allow(deprecated, reason = "as in `set_aside`")]
            // SAFETY: attached still, and what `PyErr_Fetch` gave.
            unsafe {
                ffi::PyErr_Restore(kind, value, trace)
            };
        }
    }
}
