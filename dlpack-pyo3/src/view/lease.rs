//! Which memory the views with a promise lend as plain slices.
//!
//! A promise speaks of everybody but these views: no two of them may share memory that one of them writes. A table keeps
//! them apart, as the same array can be two arguments of one call, or of calls on two threads.

use dlpack_core::Error;
use dlpack_core::binding::Span;

use crate::view::table::{self, Interface};

/// The memory of a view with a promise, until this is dropped, which needs no Python.
#[derive(Debug)]
pub(super) struct Lease {
    table: &'static Interface,
    token: u64,
}

impl Lease {
    /// Takes the elements of an array.
    ///
    /// # Errors
    ///
    /// [`Error::Borrowed`] if another view with a promise, of any extension module in this process, may share a byte with it,
    /// and one of the two writes; [`Error::NoLeaseTable`]; [`Error::OutOfMemory`].
    pub(super) fn take(span: &Span, writes: bool) -> Result<Self, Error> {
        let table = table::of_process()?;
        let token = table.take(span, writes)?;
        Ok(Self { table, token })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.table.give_back(self.token);
    }
}
