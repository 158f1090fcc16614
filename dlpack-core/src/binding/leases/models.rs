//! Loom models of the lease table: memory that one thread writes is not lent to another, and consecutive uses by different
//! threads are ordered.
#![expect(unsafe_code, reason = "uses memory as the holder of a lease does")]

use alloc::sync::Arc;
use alloc::vec::Vec;

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::{model, thread};

use super::{LeaseTable, Leases, TableLock};
use crate::layout::span::Span;

struct Lock(Mutex<Leases>);

impl TableLock for Lock {
    fn with<R>(&self, change: impl FnOnce(&mut Leases) -> R) -> Option<R> {
        Some(change(&mut self.0.lock().expect("no panic")))
    }
}

/// A table, and two numbers that views lend. Loom checks the accesses to them for data races.
struct Memory {
    table: LeaseTable<Lock>,
    numbers: [UnsafeCell<u32>; 2],
}

// SAFETY: the numbers are only accessed under a lease, and loom checks that this excludes data races.
unsafe impl Sync for Memory {}

impl Memory {
    fn new() -> Arc<Self> {
        let table = LeaseTable::new(Lock(Mutex::new(Leases::new())));
        let numbers = [0; 2].map(UnsafeCell::new);
        Arc::new(Self { table, numbers })
    }

    /// Takes a lease of these numbers, uses them, and returns the lease. Returns whether the lease was granted.
    fn use_numbers(&self, first: usize, count: usize, writes: bool) -> bool {
        let span = Span::new(64 + first, &[count as i64], &[1], 1, 1);
        let Ok(token) = self.table.take(span, writes) else {
            return false;
        };
        for number in &self.numbers[first..][..count] {
            if writes {
                // SAFETY: the lease allows writes, which loom checks.
                number.with_mut(|number| unsafe { *number += 1 });
            } else {
                // SAFETY: the lease allows reads, which loom checks.
                number.with(|number| assert!(unsafe { *number } < 3));
            }
        }
        self.table.give_back(token);
        true
    }

    fn leases(&self) -> usize {
        self.table.lock.0.lock().expect("no panic").len()
    }
}

/// Runs these uses on one thread each. Returns which leases were granted.
fn at_once(uses: &[(usize, usize, bool)]) -> Vec<bool> {
    let memory = Memory::new();
    let threads: Vec<_> = uses
        .iter()
        .map(|&(first, count, writes)| {
            let memory = memory.clone();
            thread::spawn(move || memory.use_numbers(first, count, writes))
        })
        .collect();
    let joined = threads.into_iter().map(|thread| thread.join());
    let done = joined.map(|done| done.expect("no panic")).collect();
    assert_eq!(memory.leases(), 0);
    done
}

#[test]
fn a_writer_never_meets_another_view() {
    model(|| assert!(at_once(&[(0, 2, true), (1, 1, true)]).contains(&true)));
    model(|| assert!(at_once(&[(0, 2, true), (0, 1, false)]).contains(&true)));
}

#[test]
fn views_that_do_not_conflict_are_never_refused() {
    model(|| assert_eq!(at_once(&[(0, 1, true), (1, 1, true)]), [true, true]));
    model(|| assert_eq!(at_once(&[(0, 2, false), (0, 1, false)]), [true, true]));
}
