//! Loom models of [`Counted`]: the value is dropped once and after every use, whichever reference is dropped last.
#![expect(unsafe_code, reason = "uses the value as its references do")]

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::{model, thread};

use super::Counted;

/// A value with accesses that loom tracks: a read and a drop that are not ordered are an error.
struct Value {
    cell: UnsafeCell<u32>,
    drops: Arc<AtomicUsize>,
}

// SAFETY: the cell is only read while the value is shared.
unsafe impl Sync for Value {}

impl Value {
    fn new() -> (Counted<Self>, Arc<AtomicUsize>) {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = Self {
            cell: UnsafeCell::new(7),
            drops: drops.clone(),
        };
        let first = Counted::new(value).map_err(|(_, bytes)| bytes);
        (first.expect("memory"), drops)
    }

    fn read(&self) {
        // SAFETY: nothing writes before the drop, which loom checks.
        assert_eq!(self.cell.with(|value| unsafe { *value }), 7);
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: nothing reads any more, which loom checks.
        self.cell.with_mut(|value| unsafe { *value = 0 });
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_value_is_dropped_once_after_all_uses() {
    model(|| {
        let (first, drops) = Value::new();
        let (second, third) = (first.clone(), first.clone());
        let reader = thread::spawn(move || second.read());
        let cloner = thread::spawn(move || {
            let fourth = third.clone();
            drop(third.erase_type());
            fourth.read();
        });
        drop(first);
        reader.join().expect("no panic");
        cloner.join().expect("no panic");
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_hold_that_c_keeps_ends_the_value_like_any_other() {
    model(|| {
        let (first, drops) = Value::new();
        let second = first.clone();
        let driver = thread::spawn(move || {
            second.read();
            let raw = second.into_raw();
            // SAFETY: `into_raw` returned the pointer, and it is converted once.
            drop(unsafe { Counted::from_raw(raw) });
        });
        first.read();
        drop(first);
        driver.join().expect("no panic");
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_value_is_taken_after_the_uses_of_all_other_holds() {
    model(|| {
        let (first, drops) = Value::new();
        let second = first.clone();
        let reader = thread::spawn(move || second.read());
        match first.into_value() {
            // SAFETY: no other reference is left, which loom checks.
            Ok(value) => value.cell.with_mut(|value| unsafe { *value = 8 }),
            Err(first) => first.read(),
        }
        reader.join().expect("no panic");
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

/// `into_value` on two threads at once returns the value to at most one of them, and the value is dropped once.
#[test]
fn a_value_is_taken_at_most_once() {
    model(|| {
        let (first, drops) = Value::new();
        let second = first.clone();
        let other = thread::spawn(move || second.into_value().is_ok());
        let ours = first.into_value().is_ok();
        let theirs = other.join().expect("no panic");
        assert!(!(ours && theirs));
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}
