//! How the collector sleeps while it has nothing to do, so that no owner that becomes ready stays unnoticed.
//!
//! Both sides exchange the mark, and neither stores it. If the collector's exchange comes later than that of
//! [`wake`](Sleep::wake), it reads what that has written and so sees what there is to do; if it comes earlier, `wake` reads the
//! mark and unparks the collector. A store would not read, and both could miss each other. So the collector does not take its
//! mark back when it works: then a wake unparks it without need, which the next sleep notices.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::statics;

#[cfg(all(test, loom))]
mod models;

/// Whether a thread sleeps or is about to, and no other has woken it since.
pub(super) struct Sleep {
    asleep: AtomicBool,
}

statics! {
    static SLEEP: Sleep = Sleep {
        asleep: AtomicBool::new(false),
    };
}

/// That of the collector.
pub(super) fn collectors_sleep() -> &'static Sleep {
    &SLEEP
}

impl Sleep {
    /// Blocks until `is_busy`. `park` blocks until another thread unparks this one, which that thread does if
    /// [`wake`](Self::wake) says so.
    pub(super) fn until(&self, is_busy: impl Fn() -> bool, mut park: impl FnMut()) {
        self.asleep.swap(true, Ordering::Acquire);
        while !is_busy() && self.asleep.load(Ordering::Relaxed) {
            park();
        }
    }

    /// Whether the caller has to unpark the thread that sleeps. Called after something was added that it has to see.
    pub(super) fn wake(&self) -> bool {
        self.asleep.swap(false, Ordering::Release)
    }
}
