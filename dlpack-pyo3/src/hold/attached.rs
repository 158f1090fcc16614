//! Whether this thread is attached to the interpreter, and how it waits for a device: without Python, so that other
//! threads have it meanwhile.
//!
//! Python itself is asked: a remark of ours would be wrong as soon as code that we call lets go.
#![expect(unsafe_code, reason = "asks, and lets go of, the interpreter")]

use core::mem::{forget, transmute};
use core::ptr::{null_mut, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use core::{ffi::c_void, hint::black_box};

use dlpack_core::binding::{around_blocking, device_of, settle};
use dlpack_core::{DeviceType, Error, Managed};
use pyo3::{exceptions::PyImportError, ffi, prelude::*};

use crate::error::{Halt, Raised, bail};
use crate::hidden::{address_of, interpreter_id};

/// Whether this is built for the stable ABI, which hides what a class is made of, and of threads says little.
const STABLE_ABI: bool = size_of::<ffi::PyTypeObject>() == 0;

/// `_PyThreadState_UncheckedGet`, which is in every Python, but in no stable ABI; null until it is found.
static CURRENT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Whether the stable ABI answers too. Before Python 3.12 it tells of the thread that is attached, whichever that is.
static STABLE_ABI_ANSWERS: AtomicBool = AtomicBool::new(false);

/// Finds out how to ask; from now on whoever waits lets go. Called before anything can be exported, and before we wait
/// ourselves.
pub(crate) fn prepare(py: Python<'_>) {
    let answers = py.version_info() >= (3, 12);
    STABLE_ABI_ANSWERS.store(STABLE_ABI && answers, Ordering::Relaxed);
    if STABLE_ABI && !answers && CURRENT.load(Ordering::Relaxed).is_null() {
        // Where it is not found, nobody lets go of the interpreter.
        let address = address_of(py, "_PyThreadState_UncheckedGet").unwrap_or(0);
        CURRENT.store(with_exposed_provenance_mut(address), Ordering::Relaxed);
    }
    around_blocking(aside);
}

/// Refuses an interpreter in which nobody can tell whether a thread is attached. Called before anything of it is held.
///
/// Before Python 3.12, `PyGILState_GetThisThreadState` gives the thread's state of the main interpreter alone. So in another
/// one [`attached`] would say no, and who then attaches waits for the lock that this very thread holds.
#[inline]
pub(crate) fn check_interpreter(py: Python<'_>) -> Result<(), Raised> {
    // A module is used in one interpreter: PyO3 refuses to be imported in a second one.
    static IS_FINE: AtomicBool = AtomicBool::new(false);

    if IS_FINE.load(Ordering::Relaxed) {
        return Ok(());
    }
    if py.version_info() < (3, 12) && interpreter_id(py) != 0 {
        bail!(py, PyImportError:
            "arrays cannot be exchanged in a sub-interpreter of Python 3.11 or older, which cannot say there whether a thread \
             may use it: import the module in the main interpreter, or in a process of its own");
    }
    IS_FINE.store(true, Ordering::Relaxed);
    Ok(())
}

/// Waits until the processor may read a tensor. Only managed memory is read by it and written on a stream.
#[inline]
pub(crate) fn readable(py: Python<'_>, tensor: &Managed) -> Result<(), Error> {
    if device_of(tensor).device_type == DeviceType::CUDA_MANAGED {
        prepare(py);
        settle(tensor)?;
    }
    Ok(())
}

/// Whether this thread is attached for certain; `false` where that is not known.
///
/// `PyGILState_Ensure` and `PyGILState_Release` would look for the thread's state twice, and count.
#[inline]
pub(crate) fn attached() -> bool {
    // Wins over the function below where PyO3 has it: everywhere but in the stable ABI.
    #[allow(unused_imports, clippy::wildcard_imports, reason = "as it says")]
    use pyo3::ffi::compat::*;

    // SAFETY: always allowed; null where no thread, or from Python 3.12 on: where this one, is not attached.
    let current = unsafe { PyThreadState_GetUnchecked() };
    if current.is_null() {
        return false;
    }
    // Until Python 3.12 it is the state of whichever thread is attached. This one has a state of its own, if any,
    // which no other thread ever attaches.
    // SAFETY: always allowed.
    let own = unsafe { ffi::PyGILState_GetThisThreadState() };
    current == own
}

#[allow(dead_code, non_snake_case, reason = "stands in where PyO3 has none")]
unsafe fn PyThreadState_GetUnchecked() -> *mut ffi::PyThreadState {
    type Current = unsafe extern "C" fn() -> *mut ffi::PyThreadState;

    let function = CURRENT.load(Ordering::Relaxed);
    if function.is_null() {
        return null_mut();
    }
    // SAFETY: `prepare` put the address of such a function there.
    let function = unsafe { transmute::<*mut c_void, Current>(function) };
    // SAFETY: always allowed.
    unsafe { function() }
}

/// Whether this thread is attached for certain, to an interpreter that somebody else may want. Who is about to wait has
/// the time to ask in a slower way.
fn may_let_go() -> bool {
    let attached = if STABLE_ABI_ANSWERS.load(Ordering::Relaxed) {
        // SAFETY: always allowed; null where this thread is not attached.
        !unsafe { ffi::PyThreadState_GetDict() }.is_null()
    } else {
        attached()
    };
    // While it ends there is only one thread left to it (CAP-14).
    // SAFETY: always allowed.
    attached && unsafe { ffi::Py_IsInitialized() } != 0
}

/// Makes a wait. It uses nothing of Python; an exception that is pending stays with the thread's state.
// CAP-16
fn aside(wait: &mut dyn FnMut()) {
    if !may_let_go() {
        return wait();
    }
    // SAFETY: attached.
    let _detached = Detached(unsafe { ffi::PyEval_SaveThread() });
    wait();
}

/// This thread while it is not attached.
struct Detached(*mut ffi::PyThreadState);

impl Drop for Detached {
    fn drop(&mut self) {
        type Plain = unsafe extern "C" fn(*mut ffi::PyThreadState);
        type Unwinding = unsafe extern "C-unwind" fn(*mut ffi::PyThreadState);

        // Before Python 3.14 a thread that comes back too late is ended where it is, by unwinding. PyO3 halts it
        // instead, as newer Pythons do, but in its version 0.28 not in this function.
        let restore: Plain = black_box(ffi::PyEval_RestoreThread);
        // SAFETY: the same function; only what may happen in it is told to the compiler.
        let restore = unsafe { transmute::<Plain, Unwinding>(restore) };
        let halt = Halt;
        // SAFETY: the state that `aside` took from this very thread.
        unsafe { restore(self.0) };
        forget(halt);
    }
}
