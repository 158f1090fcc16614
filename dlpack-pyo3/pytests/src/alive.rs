//! [`Alive`]: counts live values, and records where each was dropped.

use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::hash::DefaultHasher;
use std::sync::{Mutex, PoisonError};

use pyo3::pyfunction;

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static DROPS: Mutex<Vec<(u64, Option<bool>)>> = Mutex::new(Vec::new());
/// A limit, so that a loop of a million exports does not fill memory.
const REMEMBERED: usize = 10_000;

/// A field of every class in this module, which lives as long as the object.
pub(crate) struct Alive(());

impl Alive {
    pub(crate) fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
        // Without waiting: in a forked child, the thread that would unlock it may not exist.
        if let Ok(mut drops) = DROPS.try_lock() {
            if drops.len() < REMEMBERED && drops.try_reserve(1).is_ok() {
                drops.push((thread_id(), attached()));
            }
        }
    }
}

/// Whether this thread is attached to Python; unknown under the stable ABI, which has no such function.
#[cfg(feature = "own-abi")]
#[expect(unsafe_code, reason = "asks the interpreter without being attached")]
fn attached() -> Option<bool> {
    // SAFETY: the function only reads the thread's own state, and may be called on any thread at any time.
    Some(unsafe { pyo3::ffi::PyGILState_Check() } != 0)
}

#[cfg(not(feature = "own-abi"))]
fn attached() -> Option<bool> {
    None
}

/// The number of live objects of the classes in this module.
#[pyfunction]
pub(crate) fn alive() -> usize {
    ALIVE.load(Ordering::SeqCst)
}

/// The thread that dropped each object since the last call, and whether it was attached to Python.
#[pyfunction]
pub(crate) fn drops() -> Vec<(u64, Option<bool>)> {
    core::mem::take(&mut *DROPS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The number that `drops` uses for this thread.
#[pyfunction]
pub(crate) fn thread_id() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::thread::current().id().hash(&mut hasher);
    hasher.finish()
}
