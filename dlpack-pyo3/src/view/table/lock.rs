//! The lock around the list of leases. A thread that forks holds it, so the child inherits a complete list and a free lock.
//!
//! A child inherits all leases: views that the parent keeps exist in the child too. A lease that another thread of the parent had
//! taken is never released in the child, so its memory stays refused there.
#![expect(
    unsafe_code,
    reason = "guards a list by an atomic flag, which a forking thread can release in both processes"
)]

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::{thread, thread_local};

use dlpack_core::binding::{Leases, TableLock};

/// A lock that is held for a few instructions, or during a `fork`. [`std::sync::Mutex`] cannot be released without its guard,
/// which one handler of a fork cannot pass to the next.
#[derive(Debug)]
pub(super) struct ForkSafeLock {
    is_held: AtomicBool,
    leases: UnsafeCell<Leases>,
}

// SAFETY: the list is only accessed between `acquire` and `release`, so by one thread at a time.
unsafe impl Sync for ForkSafeLock {}

/// The lock of this module's table.
pub(super) static LOCK: ForkSafeLock = ForkSafeLock {
    is_held: AtomicBool::new(false),
    leases: UnsafeCell::new(Leases::new()),
};

impl ForkSafeLock {
    /// Returns whether the lock was acquired. A child that was created without the handlers, by a system call, may inherit a lock
    /// that nobody releases, so the wait is limited to about a second.
    fn acquire(&self) -> bool {
        for turn in 0..2000 {
            let acquired =
                self.is_held
                    .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
            match acquired {
                Ok(_) => return true,
                Err(_) if turn < 1000 => thread::yield_now(),
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
        false
    }

    fn release(&self) {
        self.is_held.store(false, Ordering::Release);
    }
}

impl TableLock for &ForkSafeLock {
    fn with<R>(&self, change: impl FnOnce(&mut Leases) -> R) -> Option<R> {
        if !self.acquire() {
            return None;
        }
        // SAFETY: the lock is held, so no other reference to the list exists.
        let outcome = change(unsafe { &mut *self.leases.get() });
        self.release();
        Some(outcome)
    }
}

/// Registers handlers, once, with which each `fork` of this process holds the lock.
///
/// # Errors
///
/// The reason, if the C library has no memory for them.
#[cfg(all(unix, not(target_family = "wasm")))]
pub(super) fn hold_lock_during_forks() -> Result<(), &'static str> {
    use core::ffi::c_int;

    type Handler = unsafe extern "C" fn();

    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<Handler>,
            parent: Option<Handler>,
            child: Option<Handler>,
        ) -> c_int;
    }

    thread_local! {
        /// Whether this thread holds the lock for its `fork`. A second thread that forks meanwhile waits for the lock, but not
        /// for ever, and must not release the lock of the first one.
        static ACQUIRED: Cell<bool> = const { Cell::new(false) };
    }

    unsafe extern "C" fn acquire_before_fork() {
        ACQUIRED.set(LOCK.acquire());
    }

    unsafe extern "C" fn release_after_fork() {
        if ACQUIRED.replace(false) {
            LOCK.release();
        }
    }

    static REGISTERED: AtomicBool = AtomicBool::new(false);

    if REGISTERED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: the handlers may be called by any thread, use no Python, and allocate nothing in the child. CPython never unloads
    // this module.
    let status = unsafe {
        pthread_atfork(
            Some(acquire_before_fork),
            Some(release_after_fork),
            Some(release_after_fork),
        )
    };
    if status != 0 {
        REGISTERED.store(false, Ordering::Relaxed);
        return Err("the C library has no memory to keep it consistent in forked children");
    }
    Ok(())
}

/// This platform has no `fork`.
#[cfg(not(all(unix, not(target_family = "wasm"))))]
pub(super) fn hold_lock_during_forks() -> Result<(), &'static str> {
    Ok(())
}
