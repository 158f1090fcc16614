//! The number of deferred owners, and its limit.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::EXISTING;
use super::lists::{OPEN, lock_lists, read_counts};
use crate::{Error, stream::process::is_forked};

/// The limits for [`OPEN`]: the number of owners, and the number of their bytes.
static LIMIT: [AtomicUsize; 2] = [AtomicUsize::new(1 << 20), AtomicUsize::new(usize::MAX)];

/// Limits how many owners, and how many bytes of theirs, may wait in the process for consumers with streams that were not
/// named again. The default is 2²⁰ owners and any number of bytes. At the limit, an export that the host does not wait for
/// fails ([`Error::TooManyWait`]), until [`collect`](crate::stream::collect) has freed some.
///
/// Memory that two owners share counts twice, so only the program knows a suitable limit for bytes.
///
/// ```
/// dlpack_core::stream::limit(1 << 20, 8 << 30);
/// ```
pub fn limit(owners: usize, bytes: usize) {
    LIMIT[0].store(owners, Ordering::Relaxed);
    LIMIT[1].store(bytes, Ordering::Relaxed);
}

/// Returns an error if the limit is reached.
pub(in crate::stream) fn check_limit() -> Result<(), Error> {
    let ([owners, bytes], limit) = (read_counts(&OPEN), read_counts(&LIMIT));
    match owners < limit[0] && bytes < limit[1] {
        true => Ok(()),
        false => Err(Error::TooManyWait { owners, bytes }),
    }
}

/// How many owners are kept for dropped tensors, because their consumers may still be at work.
///
/// ```
/// let kept = dlpack_core::stream::retained();
/// assert_eq!((kept.owners, kept.bytes), (0, 0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Retained {
    /// The number of owners that are kept.
    pub owners: usize,
    /// The number of bytes that their tensors reach. Memory that two tensors share counts twice.
    pub bytes: usize,
    /// The number of these owners that only an export to the same stream or [`collect`](crate::stream::collect) can free, because
    /// the end of their consumers' work is not known.
    pub open: usize,
    /// The number of these owners that a graph holds ([`captured`]).
    pub captured: usize,
    /// The number of further owners that a thread is dropping now, or for which it is querying the driver.
    pub in_progress: usize,
}

/// Returns counts of the owners that are kept for dropped tensors, because their consumers may still be at work.
///
/// ```
/// assert_eq!(dlpack_core::stream::retained(), Default::default());
/// ```
#[must_use]
pub fn retained() -> Retained {
    if is_forked() {
        return Retained::default();
    }
    let lists = lock_lists();
    let all = || lists.owners_outside_graphs().chain(&lists.graphs);
    let graphs = lists.graphs.iter().filter(|one| one.is_in_graph());
    Retained {
        owners: all().count(),
        bytes: all().fold(0, |sum, one| sum.saturating_add(one.pending.bytes)),
        open: lists.open.iter().map(|(_, owners)| owners.len()).sum(),
        captured: graphs.count(),
        in_progress: EXISTING
            .load(Ordering::SeqCst)
            .saturating_sub(all().count()),
    }
}

/// Returns how many owners are kept because their data was read in a capture: a graph may be launched long after its
/// consumer has dropped the tensor.
///
/// When such a graph and everything made from it are destroyed, its owners wait only for their consumers, and are
/// dropped by [`collect`](crate::stream::collect). CUDA before 11.3 cannot tell when a graph is gone; then they stay until
/// [`release_captured`](crate::stream::release_captured).
///
/// ```
/// assert_eq!(dlpack_core::stream::captured(), 0);
/// ```
#[must_use]
pub fn captured() -> usize {
    retained().captured
}
