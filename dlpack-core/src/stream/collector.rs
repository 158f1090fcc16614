//! The thread that drops owners whose consumers are done.
//!
//! An export must not: an owner's `Drop` may take a lock that the exporting thread has. A deleter drops its own owner alone, for
//! the same reason. So somebody else looks whether events have happened, and that has to go on where nobody exports any
//! more: a thread, which begins with the first owner that waits. Neither driver offers more: both call functions on the
//! host as a step of a stream, which a capture would take up, and for pools of memory that are not ours.
//!
//! It asks for events, which breaks no capture, and makes none. While owners wait whose end is known it looks after
//! [`SHORTEST`], and each time after twice as long, up to [`LONGEST`]; else it sleeps, and is woken by who keeps an owner. What no
//! event is known of is none of its business: to record contexts would break captures that nobody can see.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread::{Builder, Thread, current, park, sleep};
use std::thread_local;

use crate::stream::waiting::{is_busy, sweep};
use crate::{device::Api, error::room};

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(100);

static ENABLED: AtomicBool = AtomicBool::new(true);
static ASLEEP: AtomicBool = AtomicBool::new(false);
static THREAD: OnceLock<Thread> = OnceLock::new();

/// Whether a thread of ours drops owners when their consumers are done; unsaid, it does.
///
/// Otherwise nobody does but [`collect`](super::collect): for programs that want no thread, or want to choose where owners are dropped.
///
/// ```
/// dlpack_core::stream::collect_in_background(false);
/// ```
pub fn collect_in_background(on: bool) {
    ENABLED.store(on, Ordering::SeqCst);
    if on && is_busy() {
        wake();
    }
}

/// To be called when there is something to look at. Waits for nobody.
pub(super) fn wake() {
    if cfg!(all(test, loom)) || !ENABLED.load(Ordering::SeqCst) {
        return;
    }
    match THREAD.get() {
        None => start(),
        Some(thread) if ASLEEP.swap(false, Ordering::SeqCst) => thread.unpark(),
        Some(_) => {}
    }
}

/// Where there can be no thread, nothing is lost: `collect` does the same.
#[cold]
fn start() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if STARTED.swap(true, Ordering::SeqCst) {
        return;
    }
    // More than the standard library asks for without a way to refuse.
    let thread = room(1 << 16).ok().and_then(|()| {
        let thread = Builder::new().name("dlpack-collector".into());
        thread.spawn(run).ok()
    });
    if thread.is_none() {
        STARTED.store(false, Ordering::SeqCst);
    }
}

fn run() {
    // Before it looks for the first time, so that nobody who comes later is missed.
    drop(THREAD.set(current()));
    let mut pause = SHORTEST;
    loop {
        ASLEEP.store(true, Ordering::SeqCst);
        while !(is_busy() && ENABLED.load(Ordering::SeqCst)) && ASLEEP.load(Ordering::SeqCst) {
            park();
            pause = SHORTEST;
        }
        ASLEEP.store(false, Ordering::SeqCst);
        sleep(pause);
        pause = LONGEST.min(pause * 2);
        if ENABLED.load(Ordering::SeqCst) {
            look();
        }
    }
}

/// What the thread does each time.
#[doc(hidden)]
pub fn look() {
    alone(|| [Api::Cuda, Api::Hip].into_iter().for_each(sweep));
}

/// Does something with what waits while no other thread does, if that can be had. The thread itself may be at it: an owner in
/// its `Drop`.
pub(super) fn alone(body: impl FnOnce()) {
    thread_local! {
        static INSIDE: Cell<bool> = const { Cell::new(false) };
    }
    let inside = |new| {
        INSIDE
            .try_with(|inside| inside.replace(new))
            .unwrap_or(true)
    };
    if inside(true) {
        return body();
    }
    let _alone = wait_for_others();
    body();
    inside(false);
}

/// Waits while another thread works on what waits. Not for one that drops an owner: its `Drop` may need a lock that this thread
/// has, such as Python's GIL. What that thread has taken out of the lists is not seen then.
fn wait_for_others() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    loop {
        match ONE.try_lock() {
            Ok(alone) => return Some(alone),
            Err(TryLockError::Poisoned(alone)) => return Some(alone.into_inner()),
            Err(TryLockError::WouldBlock) if DROPPING.load(Ordering::SeqCst) > 0 => return None,
            Err(TryLockError::WouldBlock) => sleep(Duration::from_micros(50)),
        }
    }
}

/// How many threads are dropping owners that waited.
static DROPPING: AtomicUsize = AtomicUsize::new(0);

/// Drops an owner, which does not panic: nobody [waits](wait_for_others) for that.
pub(super) fn while_dropping(drop_owner: impl FnOnce()) {
    DROPPING.fetch_add(1, Ordering::SeqCst);
    drop_owner();
    DROPPING.fetch_sub(1, Ordering::SeqCst);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::spawn;

    /// Starts what holds the place alone until the sender that it gives is dropped, and waits until it does.
    fn hold(drops: bool) -> std::sync::mpsc::Sender<()> {
        let ((is_in, entered), (leave, may_leave)) = (channel(), channel::<()>());
        spawn(move || {
            alone(|| {
                let wait = || {
                    is_in.send(()).unwrap();
                    let _ = may_leave.recv();
                };
                if drops { while_dropping(wait) } else { wait() }
            });
        });
        entered.recv().unwrap();
        leave
    }

    /// An owner's `Drop` may wait for a lock of the thread that collects, such as the GIL.
    // CAP-13
    #[test]
    fn others_are_waited_for_unless_they_drop_an_owner() {
        for drops in [false, true] {
            let leave = hold(drops);
            let (done, is_done) = channel();
            spawn(move || alone(|| done.send(()).unwrap()));
            let first =
                is_done.recv_timeout(Duration::from_millis(if drops { 10_000 } else { 100 }));
            assert_eq!(first.is_ok(), drops);
            drop(leave);
            assert!(drops || is_done.recv_timeout(Duration::from_secs(10)).is_ok());
        }
    }
}
