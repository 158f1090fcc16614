//! How a thread waits for a device: without Python, so that other threads have it meanwhile.
#![expect(unsafe_code, reason = "lets go of the interpreter around a wait")]

use core::cell::Cell;
use core::hint::black_box;
use core::mem::{forget, transmute};
use core::sync::atomic::{AtomicBool, Ordering};
use std::thread_local;

use dlpack_core::binding::around_blocking;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::hold::held::attached;

/// Whether this is built for the stable ABI, which hides what a class is made of, and of threads says little.
const STABLE_ABI: bool = size_of::<ffi::PyTypeObject>() == 0;

/// Whether the stable ABI can be asked if this thread is attached.
static CAN_BE_ASKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static SURE: Cell<bool> = const { Cell::new(false) };
}

/// From now on whoever waits lets go. Called before anything can be exported, and before we wait ourselves.
pub(crate) fn prepare(py: Python<'_>) {
    // Before that it told of the thread that is attached, whichever that is.
    CAN_BE_ASKED.store(py.version_info() >= (3, 12), Ordering::Relaxed);
    around_blocking(aside);
}

/// Says that this thread is attached while `body` runs, which may wait and does not let go by itself: where Python
/// cannot be asked, nobody else knows.
#[inline(always)]
pub(crate) fn while_attached<R>(_: Python<'_>, body: impl FnOnce() -> R) -> R {
    struct Back(bool);

    impl Drop for Back {
        fn drop(&mut self) {
            SURE.set(self.0);
        }
    }

    let _back = STABLE_ABI.then(|| Back(SURE.replace(true)));
    body()
}

/// Whether this thread is attached for certain, to an interpreter that somebody else may want.
fn may_let_go() -> bool {
    let attached = if !STABLE_ABI {
        attached()
    } else if CAN_BE_ASKED.load(Ordering::Relaxed) {
        // SAFETY: always allowed; null where this thread is not attached.
        !unsafe { ffi::PyThreadState_GetDict() }.is_null()
    } else {
        SURE.get()
    };
    // While it ends there is only one thread left to it (CAP-14).
    // SAFETY: always allowed.
    attached && unsafe { ffi::Py_IsInitialized() } != 0
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

/// Halts the thread that drops it.
struct Halt;

impl Drop for Halt {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}
