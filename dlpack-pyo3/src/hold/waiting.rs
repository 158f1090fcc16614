//! How a thread waits for a device: without Python, so that other threads have it meanwhile.
#![expect(unsafe_code, reason = "lets go of the interpreter around a wait")]

use core::hint::black_box;
use core::mem::{forget, transmute};

use dlpack_core::binding::around_blocking;
use pyo3::{ffi, prelude::*};

use crate::error::Halt;
use crate::hold::attached::{self, attached_by_any_account};

/// From now on whoever waits lets go. Called before anything can be exported, and before we wait ourselves.
pub(crate) fn prepare(py: Python<'_>) {
    attached::prepare(py);
    around_blocking(aside);
}

/// Whether this thread is attached for certain, to an interpreter that somebody else may want.
fn may_let_go() -> bool {
    // While it ends there is only one thread left to it (CAP-14).
    // SAFETY: always allowed.
    attached_by_any_account() && unsafe { ffi::Py_IsInitialized() } != 0
}

/// Makes a wait. It uses nothing of Python; an exception that is pending stays with the thread's state (CAP-16).
fn aside(wait: &mut dyn FnMut()) {
    if !may_let_go() {
        return wait();
    }
    let _detached = Detached::new();
    wait();
}

/// This thread while it is not attached.
struct Detached(*mut ffi::PyThreadState);

impl Detached {
    /// Only called on an attached thread.
    fn new() -> Self {
        // SAFETY: attached.
        Self(unsafe { ffi::PyEval_SaveThread() })
    }
}

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
        // SAFETY: the state that `new` took from this very thread.
        unsafe { restore(self.0) };
        forget(halt);
    }
}
