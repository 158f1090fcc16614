//! How the collector sleeps while it has no work, without missing an owner that becomes ready.
//!
//! Both threads swap the flag instead of storing it. If the collector's swap comes after that of
//! [`end_sleep`](SleepState::end_sleep), it reads the value that `end_sleep` wrote, and so sees the new work. If it comes before,
//! `end_sleep` reads the flag and unparks the collector. With a plain store, which reads nothing, both could miss
//! each other. The collector does not clear its flag when it works. So a wake during its work unparks it without need, and its
//! next `park` returns at once.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::statics;

#[cfg(all(test, loom))]
mod models;

/// Whether a thread sleeps or is about to sleep, and no other thread has woken it since.
pub(super) struct SleepState {
    asleep: AtomicBool,
}

statics! {
    static SLEEP: SleepState = SleepState {
        asleep: AtomicBool::new(false),
    };
}

/// The collector's sleep state.
pub(super) fn collectors_sleep() -> &'static SleepState {
    &SLEEP
}

impl SleepState {
    /// Blocks until `is_busy` returns `true` or another thread calls [`end_sleep`](Self::end_sleep). `park` blocks until
    /// another thread unparks this one, which that thread does if `end_sleep` returns `true`.
    pub(super) fn sleep_until(&self, is_busy: impl Fn() -> bool, mut park: impl FnMut()) {
        self.asleep.swap(true, Ordering::Acquire);
        while !is_busy() && self.asleep.load(Ordering::Relaxed) {
            park();
        }
    }

    /// Whether the caller must unpark the sleeping thread. Call it after adding work that this thread has to see.
    pub(super) fn end_sleep(&self) -> bool {
        self.asleep.swap(false, Ordering::Release)
    }
}
