//! The collector: the thread that drops deferred owners when their consumers are done.
//!
//! An export drops no owner, because the owner's `Drop` may take a lock that the exporting thread holds. A deleter drops only
//! its own owner, for the same reason. So another thread has to query events, even if no further export is made.
//! It is started with the first deferred owner. The drivers offer no alternative: both can call a function on the host
//! as a step of a stream, but a capture would record that step.
//!
//! The collector queries events, which breaks no capture, and records none. While owners wait for events, it examines them
//! after [`SHORTEST`], then after twice as long each time, up to [`LONGEST`]; otherwise it sleeps until an owner is deferred.
//! It ignores owners without an event: to find the end of their work it would record whole contexts, which breaks captures.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::OnceLock;
use std::thread::{Builder, Thread, current, park, sleep};

use crate::stream::deferred::{is_busy, sweep_owners};
use crate::stream::sleep::collectors_sleep;
use crate::{device::StreamApi, error::check_memory};

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(100);

static ENABLED: AtomicBool = AtomicBool::new(true);
static THREAD: OnceLock<Thread> = OnceLock::new();

/// Enables or disables the thread that drops owners when their consumers are done. It is enabled by default.
///
/// While it is disabled, only [`collect`](super::collect) drops them. Disable it in programs that must not start a thread, or
/// that choose the thread on which owners are dropped.
///
/// ```
/// dlpack_core::stream::collect_in_background(false);
/// ```
pub fn collect_in_background(on: bool) {
    ENABLED.store(on, Ordering::SeqCst);
    if on && is_busy() {
        wake_collector();
    }
}

/// Starts the collector, or wakes it. Never blocks.
pub(super) fn wake_collector() {
    if cfg!(all(test, loom)) || !ENABLED.load(Ordering::SeqCst) {
        return;
    }
    match THREAD.get() {
        None => start_collector(),
        Some(thread) if collectors_sleep().end_sleep() => thread.unpark(),
        Some(_) => {}
    }
}

/// Starts the thread. A failure loses no owner, because `collect` drops owners too.
#[cold]
fn start_collector() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if STARTED.swap(true, Ordering::SeqCst) {
        return;
    }
    // The standard library aborts if it has no memory for a thread's bookkeeping, so check for more than that first.
    let thread = check_memory(1 << 16).ok().and_then(|()| {
        let thread = Builder::new().name("dlpack-collector".into());
        thread.spawn(run_collector).ok()
    });
    if thread.is_none() {
        STARTED.store(false, Ordering::SeqCst);
    }
}

fn run_collector() {
    // Set before the first sweep, so that an owner deferred after that sweep wakes this thread.
    drop(THREAD.set(current()));
    let mut pause = SHORTEST;
    loop {
        let has_work = || is_busy() && ENABLED.load(Ordering::SeqCst);
        collectors_sleep().sleep_until(has_work, || {
            park();
            pause = SHORTEST;
        });
        sleep(pause);
        pause = LONGEST.min(pause * 2);
        if ENABLED.load(Ordering::SeqCst) {
            sweep_all();
        }
    }
}

/// Runs one sweep of the collector, for both drivers.
#[doc(hidden)]
pub fn sweep_all() {
    [StreamApi::Cuda, StreamApi::Hip]
        .into_iter()
        .for_each(sweep_owners);
}
