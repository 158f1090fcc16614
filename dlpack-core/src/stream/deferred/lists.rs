//! The lists of deferred owners, sorted by the condition that they wait for, and the counts of owners.
//!
//! This file calls no driver and drops no owner. Where a list cannot grow, the owner is leaked: its memory may be in use.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem::{forget, take};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::PoisonError;

use super::DeferredOwner;
use crate::device::StreamApi;
use crate::memory::counted::Counted;
use crate::stream::release::Release;
use crate::stream::session::Event;
use crate::sync::{Mutex, MutexGuard, statics};

/// Deferred owners, grouped by the condition that they wait for.
pub(super) struct DeferredLists {
    /// Owners that wait for a stream or a context to be recorded: one group for each, sorted by key.
    pub(super) open: Vec<OpenGroup>,
    /// Owners that wait for an event.
    pub(super) recorded: Vec<(Counted<Event>, Vec<DeferredOwner>)>,
    /// Owners that wait for another attempt: the obstacle may be gone by then.
    pub(super) again: Vec<DeferredOwner>,
    /// Owners that wait for a graph to be gone.
    pub(super) graphs: Vec<DeferredOwner>,
    /// Owners that wait for nothing any more: any thread may drop them.
    pub(super) ready: VecDeque<DeferredOwner>,
}

pub(super) type OpenGroup = (OpenKey, Vec<DeferredOwner>);
/// The number of an API, and the condition that owners wait for.
pub(super) type OpenKey = (usize, Release);

statics! {
    static LISTS: Mutex<DeferredLists> = Mutex::new(DeferredLists {
        open: Vec::new(),
        recorded: Vec::new(),
        again: Vec::new(),
        graphs: Vec::new(),
        ready: VecDeque::new(),
    });
}

/// The number of owners in [`DeferredLists::open`], and the number of their bytes.
pub(super) static OPEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

pub(super) fn read_counts(counts: &[AtomicUsize; 2]) -> [usize; 2] {
    [0, 1].map(|at: usize| counts[at].load(Ordering::Relaxed))
}

#[inline(never)]
fn subtract_counts(owners: &[DeferredOwner]) {
    for one in owners {
        OPEN[0].fetch_sub(1, Ordering::Relaxed);
        OPEN[1].fetch_sub(one.pending.bytes, Ordering::Relaxed);
    }
}

/// Locks the lists. No code panics or calls a driver while they are locked.
#[inline(never)]
pub(super) fn lock_lists() -> MutexGuard<'static, DeferredLists> {
    LISTS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline(never)]
fn push(list: &mut Vec<DeferredOwner>, one: DeferredOwner) {
    match list.try_reserve(1) {
        Ok(()) => list.push(one),
        Err(_) => leak_owner(one),
    }
}

#[inline(never)]
fn leak_owner(mut one: DeferredOwner) {
    forget(one.owner.take());
}

impl DeferredLists {
    /// Adds an owner for which no event is known.
    #[inline(never)]
    pub(super) fn add_owner(&mut self, one: DeferredOwner) {
        match one.pending.release {
            _ if one.is_in_graph() => push(&mut self.graphs, one),
            Release::AfterStream(..) | Release::AfterAll(_) => self.add_open(one),
            _ => push(&mut self.again, one),
        }
    }

    #[inline(never)]
    pub(super) fn add_open(&mut self, one: DeferredOwner) {
        let key = one.list_key();
        let at = match self.open.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => at,
            Err(_) if self.open.try_reserve(1).is_err() => return leak_owner(one),
            Err(at) => {
                self.open.insert(at, (key, Vec::new()));
                at
            }
        };
        OPEN[0].fetch_add(1, Ordering::Relaxed);
        OPEN[1].fetch_add(one.pending.bytes, Ordering::Relaxed);
        let owners = &mut self.open[at].1;
        match owners.try_reserve(1) {
            Ok(()) => owners.push(one),
            Err(_) => {
                subtract_counts(core::slice::from_ref(&one));
                leak_owner(one);
            }
        }
    }

    /// Removes the owners that wait for this stream or context to be recorded.
    #[inline(never)]
    pub(super) fn take_open(&mut self, key: OpenKey) -> Vec<DeferredOwner> {
        let found = self.open.binary_search_by_key(&key, |(key, _)| *key);
        let Ok(at) = found else {
            return Vec::new();
        };
        let (_, owners) = self.open.remove(at);
        subtract_counts(&owners);
        owners
    }

    /// Removes all owners of an API that wait for a stream or context to be recorded.
    #[inline(never)]
    pub(super) fn take_all_open(&mut self, api: StreamApi) -> Vec<OpenGroup> {
        let mut taken = take(&mut self.open);
        let mut at = 0;
        while at < taken.len() {
            if taken[at].0.0 == api as usize {
                at += 1;
                continue;
            }
            let other = taken.remove(at);
            match self.open.try_reserve(1) {
                Ok(()) => self.open.push(other),
                Err(_) => {
                    subtract_counts(&other.1);
                    other.1.into_iter().for_each(leak_owner);
                }
            }
        }
        taken.iter().for_each(|(_, owners)| subtract_counts(owners));
        taken
    }

    #[inline(never)]
    pub(super) fn add_recorded(&mut self, event: &Counted<Event>, one: DeferredOwner) {
        if let Some((last, owners)) = self.recorded.last_mut() {
            if last.ptr_eq(event) {
                return push(owners, one);
            }
        }
        let mut owners = Vec::new();
        push(&mut owners, one);
        if !owners.is_empty() {
            self.push_recorded(event.clone(), owners);
        }
    }

    #[inline(never)]
    pub(super) fn push_recorded(&mut self, event: Counted<Event>, owners: Vec<DeferredOwner>) {
        match self.recorded.try_reserve(1) {
            Ok(()) => self.recorded.push((event, owners)),
            Err(_) => owners.into_iter().for_each(leak_owner),
        }
    }

    #[inline(never)]
    pub(super) fn add_ready(&mut self, one: DeferredOwner) {
        match self.ready.try_reserve(1) {
            Ok(()) => self.ready.push_back(one),
            Err(_) => leak_owner(one),
        }
    }

    #[inline(never)]
    pub(super) fn take_ready(&mut self, api: StreamApi) -> Option<DeferredOwner> {
        let at = self.ready.iter().position(|one| one.is_of(api))?;
        self.ready.remove(at)
    }

    /// All owners that do not wait for a graph.
    pub(super) fn owners_outside_graphs(&self) -> impl Iterator<Item = &DeferredOwner> {
        let open = self.open.iter().flat_map(|(_, owners)| owners);
        let recorded = self.recorded.iter().flat_map(|(_, owners)| owners);
        open.chain(recorded).chain(&self.again).chain(&self.ready)
    }
}
