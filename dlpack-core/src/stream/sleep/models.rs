//! Loom models of the collector's sleep: a sleeping thread sees all work that was added before it was woken. A lost wake leaves
//! it parked for ever, which loom reports as a deadlock.

use alloc::sync::Arc;

use loom::{model, thread};

use super::*;
use crate::sync::{Mutex, atomic::AtomicUsize};

struct CollectorModel {
    sleep: SleepState,
    /// A flag without a lock, like the one for graphs that are gone.
    mark: AtomicBool,
    /// A count without a lock.
    added: AtomicUsize,
    /// A count behind a lock, like the lists of owners.
    owners: Mutex<usize>,
}

impl CollectorModel {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            sleep: SleepState {
                asleep: AtomicBool::new(false),
            },
            mark: AtomicBool::new(false),
            added: AtomicUsize::new(0),
            owners: Mutex::new(0),
        })
    }

    fn owners(&self) -> usize {
        *self.owners.lock().expect("no panic")
    }

    fn wake(&self, collector: &thread::Thread) {
        if self.sleep.end_sleep() {
            collector.unpark();
        }
    }
}

#[test]
fn a_mark_without_a_lock_is_seen() {
    model(|| {
        let shared = CollectorModel::new();
        let collector = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let is_busy = || shared.mark.load(Ordering::Relaxed);
                while !is_busy() {
                    shared.sleep.sleep_until(is_busy, thread::park);
                }
            }
        });
        shared.mark.store(true, Ordering::Relaxed);
        shared.wake(collector.thread());
        collector.join().expect("no panic");
    });
}

#[test]
fn owners_of_two_threads_are_seen() {
    model(|| {
        let shared = CollectorModel::new();
        let collector = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let mut seen = 0;
                while seen < 2 {
                    shared
                        .sleep
                        .sleep_until(|| shared.owners() > 0, thread::park);
                    let mut owners = shared.owners.lock().expect("no panic");
                    seen += core::mem::take(&mut *owners);
                }
            }
        });
        let sleeper = collector.thread().clone();
        let add = move |shared: &CollectorModel, sleeper: &thread::Thread| {
            *shared.owners.lock().expect("no panic") += 1;
            shared.wake(sleeper);
        };
        let other = thread::spawn({
            let (shared, sleeper) = (Arc::clone(&shared), sleeper.clone());
            move || add(&shared, &sleeper)
        });
        add(&shared, &sleeper);
        other.join().expect("no panic");
        collector.join().expect("no panic");
    });
}

/// The collector sleeps, works, and sleeps again: a wake that comes while it works is not lost.
#[test]
fn a_wake_beside_work_is_not_lost() {
    model(|| {
        let shared = CollectorModel::new();
        let collector = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let mut seen = 0;
                while seen < 2 {
                    let added = || shared.added.load(Ordering::Relaxed);
                    shared.sleep.sleep_until(|| added() > seen, thread::park);
                    seen = added();
                }
            }
        });
        for _ in 0..2 {
            shared.added.fetch_add(1, Ordering::Relaxed);
            shared.wake(collector.thread());
        }
        collector.join().expect("no panic");
    });
}
