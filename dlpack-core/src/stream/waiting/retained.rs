//! How many owners are deferred, and how many there may be.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::lists::{OPEN, lists, read};
use super::{EXISTING, is_forked};
use crate::Error;

/// How many owners of [`OPEN`] there may be, and how many bytes of theirs.
static LIMIT: [AtomicUsize; 2] = [AtomicUsize::new(1 << 20), AtomicUsize::new(usize::MAX)];

/// How many owners, and how many bytes of theirs, may wait for consumers whose streams nobody has named again, in the whole
/// process. Unsaid it is 2²⁰ owners, and any number of bytes. An export to a device's stream fails where there are as many
/// ([`Error::TooManyWait`]), until [`collect`] has freed some.
///
/// Memory that two owners share counts twice, so for bytes only the program knows a limit.
///
/// ```
/// dlpack_core::stream::limit(1 << 20, 8 << 30);
/// ```
pub fn limit(owners: usize, bytes: usize) {
    LIMIT[0].store(owners, Ordering::Relaxed);
    LIMIT[1].store(bytes, Ordering::Relaxed);
}

/// That there are fewer.
pub(in crate::stream) fn has_room() -> Result<(), Error> {
    let ([owners, bytes], limit) = (read(&OPEN), read(&LIMIT));
    match owners < limit[0] && bytes < limit[1] {
        true => Ok(()),
        false => Err(Error::TooManyWait { owners, bytes }),
    }
}

/// What is kept of tensors that were dropped, as their consumers may still be at work.
///
/// ```
/// let kept = dlpack_core::stream::retained();
/// assert_eq!((kept.owners, kept.bytes), (0, 0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Retained {
    /// All owners that are kept.
    pub owners: usize,
    /// How many bytes of memory their tensors reach; what two of them share counts twice.
    pub bytes: usize,
    /// Those of them that only an export to the same stream or [`collect`] can free: the end of their consumers' work is
    /// not known.
    pub open: usize,
    /// Those of them that a graph holds ([`captured`]).
    pub captured: usize,
    /// Further owners, which some thread is dropping at this moment or asks the driver about.
    pub in_progress: usize,
}

/// What is kept of tensors that were dropped, as their consumers may still be at work.
///
/// ```
/// assert_eq!(dlpack_core::stream::retained(), Default::default());
/// ```
#[must_use]
pub fn retained() -> Retained {
    if is_forked() {
        return Retained::default();
    }
    let lists = lists();
    let all = || lists.waiting().chain(&lists.graphs);
    let graphs = lists.graphs.iter().filter(|one| one.is_in_graph());
    Retained {
        owners: all().count(),
        bytes: all().fold(0, |sum, one| sum.saturating_add(one.freeing.bytes)),
        open: lists.open.iter().map(|(_, owners)| owners.len()).sum(),
        captured: graphs.count(),
        in_progress: EXISTING
            .load(Ordering::SeqCst)
            .saturating_sub(all().count()),
    }
}

/// How many owners are kept because their data was read in a capture: a graph may be launched long after its consumer
/// has let go of the tensor.
///
/// When such a graph is destroyed, and everything that was made of it, its owners wait for their consumers alone, and are
/// dropped by [`collect`]. CUDA before 11.3 cannot tell; then they stay until [`release_captured`].
///
/// ```
/// assert_eq!(dlpack_core::stream::captured(), 0);
/// ```
#[must_use]
pub fn captured() -> usize {
    retained().captured
}
