//! Leases: the memory that views with a promise borrow as plain slices.
//!
//! A promise covers all code except these views: no two of them may share memory if one of them writes. A table of leases
//! ensures that, because one array can be passed twice to one call, or to calls on two threads.

use dlpack_core::Error;
use dlpack_core::binding::Span;

use crate::view::table::{self, LeaseInterface};

/// The memory of a view with a promise; released on drop, without Python.
#[derive(Debug)]
pub(super) struct Lease {
    table: &'static LeaseInterface,
    token: u64,
}

impl Lease {
    /// Leases the elements of an array.
    ///
    /// # Errors
    ///
    /// [`Error::Borrowed`] if another view with a promise, of any extension module in this process, may share a byte with it,
    /// and one of the two writes; [`Error::NoLeaseTable`]; [`Error::OutOfMemory`].
    pub(super) fn new(span: &Span, writes: bool) -> Result<Self, Error> {
        let table = table::process_table()?;
        let token = table.take_lease(span, writes)?;
        Ok(Self { table, token })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.table.release_lease(self.token);
    }
}
