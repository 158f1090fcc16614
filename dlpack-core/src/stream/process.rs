//! Whether this process is a forked child. A child can use neither the driver that its parent initialized, nor locks that
//! another thread of its parent held at the `fork`.

use core::sync::atomic::{AtomicU32, Ordering};

/// The ID of the process that initialized a driver or deferred an owner; 0 before that.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Makes children of this process, from now on, leave the driver and deferred owners alone.
pub(super) fn remember_process() {
    let process = std::process::id();
    // A failure means that a process is remembered already.
    let _ = FIRST.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether this is a forked child of a remembered process.
pub(super) fn is_forked() -> bool {
    let first = FIRST.load(Ordering::Relaxed);
    first != 0 && first != std::process::id()
}
