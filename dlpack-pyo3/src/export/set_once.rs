//! A pointer that is set once, by the first thread. Loom checks this file: `cargo xtask models`.

use core::ptr::null_mut;

use crate::sync::atomic::{AtomicPtr, Ordering};

#[cfg(all(test, loom))]
#[path = "set_once/models.rs"]
mod models;

/// A pointer to an object that is never freed, or null.
pub(crate) struct SetOnce<T>(AtomicPtr<T>);

impl<T> SetOnce<T> {
    #[cfg(not(all(test, loom)))]
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// Sets the pointer, or returns `object` if it was set before. In both cases this thread then sees the object behind the
    /// pointer as the thread that set it created it.
    pub(crate) fn set(&self, object: *mut T) -> Result<(), *mut T> {
        let (success, failure) = (Ordering::Release, Ordering::Acquire);
        let set = self
            .0
            .compare_exchange(null_mut(), object, success, failure);
        set.map(drop).map_err(|_| object)
    }

    /// The pointer, or null. Its address may be compared on any thread. The object may be used after a call of [`SetOnce::set`]
    /// on this thread, or on one that this thread has synchronized with.
    #[inline]
    pub(crate) fn get(&self) -> *mut T {
        self.0.load(Ordering::Relaxed)
    }
}
