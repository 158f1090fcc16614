//! Whether this thread is attached to the interpreter, and detaching while it waits for a device, so that other threads can run
//! Python code.
//!
//! CPython is asked every time. A flag of our own would be wrong as soon as code that we call detaches.
#![expect(
    unsafe_code,
    reason = "reads thread states, and detaches from the interpreter"
)]

use core::mem::{forget, transmute};
use core::ptr::{null_mut, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use core::{ffi::c_void, hint::black_box};

use dlpack_core::binding::{around_blocking, around_deleters, device_of, wait_for_producer};
use dlpack_core::{DeviceType, Error, Managed};
use pyo3::{exceptions::PyImportError, ffi, prelude::*};

use crate::capi::{STABLE_ABI, address_of, interpreter_id};
use crate::error::{HaltThread, Raised, bail, discard_error};
use crate::keepalive::pending::PendingException;

/// The address of `_PyThreadState_UncheckedGet`, which every CPython exports but no stable ABI declares. Null until it is
/// looked up.
static UNCHECKED_GET: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Whether `PyThreadState_GetDict` of the stable ABI can tell if this thread is attached. Before Python 3.12 it answers for
/// whichever thread is attached.
static STABLE_ABI_ANSWERS: AtomicBool = AtomicBool::new(false);

/// Finds a way to tell whether a thread is attached. From then on, blocking waits detach, and deleters of other libraries run without
/// the exception that is pending. Called before a tensor can be exported or imported, and before our own waits.
#[inline]
pub(crate) fn install_hooks(py: Python<'_>) {
    static IS_ENABLED: AtomicBool = AtomicBool::new(false);

    if !IS_ENABLED.load(Ordering::Relaxed) {
        let is_final = find_thread_state_function(py);
        around_blocking(wait_detached);
        // SAFETY: the hook calls its argument once. C functions do not unwind.
        unsafe { around_deleters(release_without_exception) };
        IS_ENABLED.store(is_final, Ordering::Relaxed);
    }
}

/// Looks for the function by which [`is_attached`] can tell. Without it, waits do not detach. Returns whether the result is final: it
/// is if the function was found, and if this Python has no `ctypes`.
#[cold]
#[inline(never)]
fn find_thread_state_function(py: Python<'_>) -> bool {
    // The version is read last, because PyO3 parses `sys.version` for it.
    let answers = STABLE_ABI && py.version_info() >= (3, 12);
    STABLE_ABI_ANSWERS.store(answers, Ordering::Relaxed);
    if !STABLE_ABI || answers {
        return true;
    }
    match address_of(py, "_PyThreadState_UncheckedGet") {
        Ok(address) => {
            UNCHECKED_GET.store(with_exposed_provenance_mut(address), Ordering::Relaxed);
            true
        }
        Err(error) => {
            let is_absent = error.is_instance_of::<PyImportError>(py);
            discard_error(py, error);
            is_absent
        }
    }
}

/// Raises `ImportError` in a sub-interpreter. Called before any object of an interpreter is kept alive.
///
/// The last use of an export may end on any thread, also after the interpreter of its object has ended. A thread without a
/// state of its own can only attach to the main interpreter, and then releases the object there, which crashes now and then.
/// Before Python 3.12, `PyGILState_GetThisThreadState` returns the thread state of the main interpreter only: in a
/// sub-interpreter [`is_attached`] would return `false`, and attaching would wait for a lock that this thread holds.
#[inline]
pub(crate) fn check_interpreter(py: Python<'_>) -> Result<(), Raised> {
    if may_keep_objects(py) {
        return Ok(());
    }
    bail!(py, PyImportError:
        "arrays cannot be exchanged in a sub-interpreter, because they may be released after it has ended: import the module \
         in the main interpreter, or in a process of its own")
}

/// Whether [`check_interpreter`] raises nothing.
///
/// One process may import a module in several interpreters: if they share the lock of the main one, neither CPython nor PyO3
/// prevents that. So the interpreter is checked each time.
#[inline]
pub(crate) fn may_keep_objects(py: Python<'_>) -> bool {
    interpreter_id(py) == 0
}

/// Waits until the CPU may read a tensor. Only managed memory is both readable by the CPU and written on a stream.
#[inline]
pub(crate) fn wait_until_readable(py: Python<'_>, tensor: &Managed) -> Result<(), Error> {
    if device_of(tensor).device_type == DeviceType::CUDA_MANAGED {
        install_hooks(py);
        wait_for_producer(tensor)?;
    }
    Ok(())
}

/// Whether this thread is certainly attached; `false` if that is unknown.
///
/// Cheaper than `PyGILState_Ensure` and `PyGILState_Release`, which look up the thread state twice and count.
#[inline]
pub(crate) fn is_attached() -> bool {
    if STABLE_ABI && STABLE_ABI_ANSWERS.load(Ordering::Relaxed) {
        // SAFETY: may be called on any thread; returns null if this thread is not attached.
        return !unsafe { ffi::PyThreadState_GetDict() }.is_null();
    }
    // Outside of the stable ABI, this import provides `PyThreadState_GetUnchecked`, and shadows the function below.
    #[allow(
        unused_imports,
        clippy::wildcard_imports,
        reason = "PyO3's declaration, if this build has one"
    )]
    use pyo3::ffi::compat::*;

    // SAFETY: may be called on any thread. Returns null if no thread is attached (from Python 3.12 on: if this one is not).
    let current = unsafe { PyThreadState_GetUnchecked() };
    if current.is_null() {
        return false;
    }
    // Before Python 3.12, `current` is the state of whichever thread is attached. This thread's own state, if it has one, is
    // never attached by another thread, so equality means that this thread is attached.
    // SAFETY: may be called on any thread.
    let own = unsafe { ffi::PyGILState_GetThisThreadState() };
    current == own
}

#[allow(dead_code, non_snake_case, reason = "used if PyO3 has no declaration")]
unsafe fn PyThreadState_GetUnchecked() -> *mut ffi::PyThreadState {
    type Current = unsafe extern "C" fn() -> *mut ffi::PyThreadState;

    let function = UNCHECKED_GET.load(Ordering::Relaxed);
    if function.is_null() {
        return null_mut();
    }
    // SAFETY: `install_hooks` stored the address of a function with this signature.
    let function = unsafe { transmute::<*mut c_void, Current>(function) };
    // SAFETY: may be called on any thread.
    unsafe { function() }
}

/// Whether this thread is certainly attached, and other threads may need the interpreter.
fn may_detach() -> bool {
    // During interpreter shutdown no other thread needs the interpreter (CAP-14).
    // SAFETY: may be called at any time.
    is_attached() && unsafe { ffi::Py_IsInitialized() } != 0
}

/// Runs `wait` detached from the interpreter. `wait` does not use Python; a pending exception stays in the thread state.
// CAP-16
fn wait_detached(wait: &mut dyn FnMut()) {
    if !may_detach() {
        return wait();
    }
    // SAFETY: `may_detach` found that this thread is attached.
    let _detached = DetachedThread(unsafe { ffi::PyEval_SaveThread() });
    wait();
}

/// Calls `release(context)`, a deleter of another library, which may run Python code.
///
/// # Safety
///
/// `release` may be called once with `context`.
// CAP-16, CAP-17
unsafe fn release_without_exception(context: *mut c_void, release: unsafe fn(*mut c_void)) {
    let _pending = is_attached().then(PendingException::save_current);
    // SAFETY: same contract as this function's.
    unsafe { release(context) };
}

/// Detaches this thread for as long as the value lives.
struct DetachedThread(*mut ffi::PyThreadState);

impl Drop for DetachedThread {
    fn drop(&mut self) {
        type Plain = unsafe extern "C" fn(*mut ffi::PyThreadState);
        type Unwinding = unsafe extern "C-unwind" fn(*mut ffi::PyThreadState);

        // Before Python 3.14, CPython ends a thread that attaches too late (after shutdown) by unwinding it. PyO3 halts it
        // instead, as newer Pythons do, but PyO3 0.28 does not do so in this function. `HaltThread` does it here.
        let restore: Plain = black_box(ffi::PyEval_RestoreThread);
        // SAFETY: the same function; the ABI only tells the compiler that it may unwind.
        let restore = unsafe { transmute::<Plain, Unwinding>(restore) };
        let halt = HaltThread;
        // SAFETY: the state that `PyEval_SaveThread` returned on this thread.
        unsafe { restore(self.0) };
        forget(halt);
    }
}
