//! [`Alive`]: counts the values that live, and remembers where each was dropped.

use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::hash::DefaultHasher;
use std::sync::{Mutex, PoisonError};

use pyo3::pyfunction;

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static DROPS: Mutex<Vec<(u64, Option<bool>)>> = Mutex::new(Vec::new());
/// So that a loop of a million exports does not fill memory.
const REMEMBERED: usize = 10_000;

/// A field of every class here: alive for as long as the class's value.
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
        // Not waited for: in a forked child nobody may be left to unlock it.
        if let Ok(mut drops) = DROPS.try_lock() {
            if drops.len() < REMEMBERED && drops.try_reserve(1).is_ok() {
                drops.push((thread_id(), attached()));
            }
        }
    }
}

/// Whether this thread may use Python; unknown under the stable ABI, which cannot tell.
#[cfg(feature = "own-abi")]
#[expect(unsafe_code, reason = "asks the interpreter without being attached")]
fn attached() -> Option<bool> {
    // SAFETY: it only reads the thread's own state, and may be called from any thread at any time.
    Some(unsafe { pyo3::ffi::PyGILState_Check() } != 0)
}

#[cfg(not(feature = "own-abi"))]
fn attached() -> Option<bool> {
    None
}

/// How many values of the classes here live.
#[pyfunction]
pub(crate) fn alive() -> usize {
    ALIVE.load(Ordering::SeqCst)
}

/// The thread that dropped each value since the last call, and whether it was attached to Python.
#[pyfunction]
pub(crate) fn drops() -> Vec<(u64, Option<bool>)> {
    core::mem::take(&mut *DROPS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The number by which `drops` names this thread.
#[pyfunction]
pub(crate) fn thread_id() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::thread::current().id().hash(&mut hasher);
    hasher.finish()
}
