//! The table of arrays that are lent as plain slices. It refuses a lease if the array shares a byte with another leased array and
//! one of the two may be written.
//!
//! This file contains no lock: the binding supplies it. So the loom models can supply a lock of loom.

use alloc::vec::Vec;

use crate::{Error, layout::span::Span};

#[cfg(all(test, loom))]
mod models;

/// The lock around the [`Leases`] of a [`LeaseTable`].
pub trait TableLock {
    /// Takes the lock and calls `change` with the list. Returns `None`, without calling it, if the lock is unavailable.
    fn with<R>(&self, change: impl FnOnce(&mut Leases) -> R) -> Option<R>;
}

/// The leases that have been taken and not returned.
#[derive(Debug, Default)]
pub struct Leases {
    entries: Vec<LeaseEntry>,
    last_token: u64,
}

#[derive(Debug)]
struct LeaseEntry {
    token: u64,
    span: Span,
    writes: bool,
}

impl Leases {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
            last_token: 0,
        }
    }

    /// The number of leases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no leases.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a lease and returns the token that [`remove`](Self::remove) takes.
    ///
    /// # Errors
    ///
    /// [`Error::Borrowed`] if another lease may share a byte with the new one and one of the two writes;
    /// [`Error::OutOfMemory`].
    pub fn insert(&mut self, span: Span, writes: bool) -> Result<u64, Error> {
        let conflicts =
            |entry: &LeaseEntry| (entry.writes || writes) && entry.span.may_share_bytes(&span);
        if self.entries.iter().any(conflicts) {
            return Err(Error::Borrowed);
        }
        let bytes = size_of::<LeaseEntry>();
        let reserved = self.entries.try_reserve(1);
        reserved.map_err(|_| Error::OutOfMemory { bytes })?;
        self.last_token += 1;
        self.entries.push(LeaseEntry {
            token: self.last_token,
            span,
            writes,
        });
        Ok(self.last_token)
    }

    /// Removes the lease with this token. Returns whether there was one.
    pub fn remove(&mut self, token: u64) -> bool {
        // The newest lease is usually returned first.
        let found = self.entries.iter().rposition(|entry| entry.token == token);
        found.map(|at| self.entries.swap_remove(at)).is_some()
    }
}

/// [`Leases`] behind a lock.
#[derive(Debug)]
pub struct LeaseTable<L> {
    lock: L,
}

impl<L: TableLock> LeaseTable<L> {
    /// A table with its list behind this lock.
    pub const fn new(lock: L) -> Self {
        Self { lock }
    }

    /// Adds a lease and returns its token, like [`Leases::insert`].
    ///
    /// # Errors
    ///
    /// Those of [`Leases::insert`], and [`Error::NoLeaseTable`] if the lock is unavailable.
    pub fn take(&self, span: Span, writes: bool) -> Result<u64, Error> {
        let taken = self.lock.with(|leases| leases.insert(span, writes));
        let why = "the lock of their table was not released in time";
        taken.unwrap_or(Err(Error::NoLeaseTable { why }))
    }

    /// Removes a lease. If the lock is unavailable, the lease stays, and its memory is never lent again.
    pub fn give_back(&self, token: u64) {
        self.lock.with(|leases| leases.remove(token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};

    /// A lock for a single thread, which can be made to fail.
    #[derive(Default)]
    struct Single {
        leases: RefCell<Leases>,
        fails: Cell<bool>,
    }

    impl TableLock for Single {
        fn with<R>(&self, change: impl FnOnce(&mut Leases) -> R) -> Option<R> {
            (!self.fails.get()).then(|| change(&mut self.leases.borrow_mut()))
        }
    }

    fn bytes(start: usize, count: i64) -> Span {
        Span::new(start, &[count], &[1], 1, 1)
    }

    #[test]
    fn one_writer_or_many_readers() {
        let table = LeaseTable::new(Single::default());
        let first = table.take(bytes(100, 10), false).unwrap();
        let second = table.take(bytes(105, 10), false).unwrap();
        assert_ne!(first, second);
        let refused = Err(Error::Borrowed);
        assert_eq!(table.take(bytes(109, 1), true), refused);
        table.give_back(first);
        assert_eq!(table.take(bytes(109, 1), true), refused);
        table.give_back(second);
        assert!(table.lock.leases.borrow().is_empty());
        let writer = table.take(bytes(109, 1), true).unwrap();
        assert!(!table.lock.leases.borrow().is_empty());
        assert_eq!(table.take(bytes(109, 1), false), refused);
        assert_eq!(table.take(bytes(109, 1), true), refused);
        // The adjacent byte is free.
        table.take(bytes(110, 1), true).unwrap();
        assert_eq!(table.lock.leases.borrow().len(), 2);
        table.give_back(writer);
        assert_eq!(table.lock.leases.borrow().len(), 1);
    }

    #[test]
    fn a_refused_lease_and_an_unknown_token_change_nothing() {
        let mut leases = Leases::new();
        let token = leases.insert(bytes(100, 10), true).unwrap();
        assert_eq!(leases.insert(bytes(100, 1), true), Err(Error::Borrowed));
        assert!(!leases.remove(token + 1));
        assert_eq!(leases.len(), 1);
        assert!(leases.remove(token) && !leases.remove(token));
        assert!(leases.is_empty());
        // A token is never reused.
        assert!(leases.insert(bytes(100, 1), true).unwrap() > token);
    }

    #[test]
    fn a_lock_that_cannot_be_had_refuses() {
        let table = LeaseTable::new(Single::default());
        let token = table.take(bytes(100, 1), true).unwrap();
        table.lock.fails.set(true);
        assert!(matches!(
            table.take(bytes(500, 1), true),
            Err(Error::NoLeaseTable { .. })
        ));
        table.give_back(token);
        table.lock.fails.set(false);
        assert_eq!(table.lock.leases.borrow().len(), 1);
    }
}
