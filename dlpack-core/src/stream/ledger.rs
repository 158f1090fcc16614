//! Which stream this thread exported from last without order: what the exchange table tells.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::cell::RefCell;
use std::thread_local;

use crate::Device;
use crate::stream::{Queue, rules::producer};

/// The streams of tensors that were exported from this thread without order, while these live.
struct Entry {
    device: Device,
    stream: Queue,
    alive: Weak<()>,
}

thread_local! {
    static LEDGER: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Remembers the stream of an export that nobody ordered, until the result is dropped.
pub(crate) fn remember(device: Device, queue: Option<Queue>) -> Option<Arc<()>> {
    let stream = producer(device, queue)?;
    let token = Arc::new(());
    let entry = Entry {
        device,
        stream,
        alive: Arc::downgrade(&token),
    };
    // Not on a thread that is being torn down: whoever asks there gets the default stream.
    let _ = LEDGER.try_with(|list| {
        let mut list = list.borrow_mut();
        list.retain(|one| one.device != device && one.alive.strong_count() > 0);
        list.push(entry);
    });
    Some(token)
}

/// The stream that the tensor was written on which this thread exported last from a device, without order, if that
/// tensor still lives; the default stream otherwise (XAP-25).
///
/// The handle is the owner's, and so it is given out only while the owner has to keep it alive.
#[must_use]
pub fn current_stream(device: Device) -> usize {
    LEDGER
        .try_with(|list| {
            list.borrow()
                .iter()
                .find(|one| one.device == device && one.alive.strong_count() > 0)
                // The default streams of other contexts have no number of their own.
                .filter(|one| one.stream.context().is_none() || one.stream.handle > 2)
                .map(|one| one.stream.handle)
        })
        .ok()
        .flatten()
        .unwrap_or(0)
}
