//! The lists of deferred owners, sorted by what they wait for, and how many there are.
//!
//! No driver is called and no owner is dropped here. Where a list cannot grow, the owner is leaked: its memory may still be in use.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem::{forget, take};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::PoisonError;

use super::Waiting;
use crate::device::StreamApi;
use crate::memory::counted::Counted;
use crate::stream::release::Release;
use crate::stream::visit::Event;
use crate::sync::{Mutex, MutexGuard, statics};

/// Deferred owners, by what they wait for.
pub(super) struct Lists {
    /// For a stream or a context to be recorded: one group for each, sorted by key.
    pub(super) open: Vec<Group>,
    /// For an event.
    pub(super) recorded: Vec<(Counted<Event>, Vec<Waiting>)>,
    /// For another attempt: what was in the way may be gone.
    pub(super) again: Vec<Waiting>,
    /// For a graph.
    pub(super) graphs: Vec<Waiting>,
    /// For nothing any more: any thread may drop them.
    pub(super) ready: VecDeque<Waiting>,
}

pub(super) type Group = (Key, Vec<Waiting>);
/// The number of an API, and what owners wait for.
pub(super) type Key = (usize, Release);

statics! {
    static LISTS: Mutex<Lists> = Mutex::new(Lists {
        open: Vec::new(),
        recorded: Vec::new(),
        again: Vec::new(),
        graphs: Vec::new(),
        ready: VecDeque::new(),
    });
}

/// How many owners [`Lists::open`] has, and how many bytes of theirs.
pub(super) static OPEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

pub(super) fn read(counts: &[AtomicUsize; 2]) -> [usize; 2] {
    [0, 1].map(|at: usize| counts[at].load(Ordering::Relaxed))
}

fn uncount(owners: &[Waiting]) {
    for one in owners {
        OPEN[0].fetch_sub(1, Ordering::Relaxed);
        OPEN[1].fetch_sub(one.freeing.bytes, Ordering::Relaxed);
    }
}

/// Nothing panics while the lists are locked, and no driver is called.
pub(super) fn lists() -> MutexGuard<'static, Lists> {
    LISTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn push(list: &mut Vec<Waiting>, one: Waiting) {
    match list.try_reserve(1) {
        Ok(()) => list.push(one),
        Err(_) => leak(one),
    }
}

fn leak(mut one: Waiting) {
    forget(one.owner.take());
}

impl Lists {
    /// Adds an owner for which no event is known.
    pub(super) fn add(&mut self, one: Waiting) {
        match one.freeing.release {
            _ if one.is_in_graph() => push(&mut self.graphs, one),
            Release::AfterStream(..) | Release::AfterAll(_) => self.add_open(one),
            _ => push(&mut self.again, one),
        }
    }

    pub(super) fn add_open(&mut self, one: Waiting) {
        let key = one.key();
        let at = match self.open.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => at,
            Err(_) if self.open.try_reserve(1).is_err() => return leak(one),
            Err(at) => {
                self.open.insert(at, (key, Vec::new()));
                at
            }
        };
        OPEN[0].fetch_add(1, Ordering::Relaxed);
        OPEN[1].fetch_add(one.freeing.bytes, Ordering::Relaxed);
        let owners = &mut self.open[at].1;
        match owners.try_reserve(1) {
            Ok(()) => owners.push(one),
            Err(_) => {
                uncount(core::slice::from_ref(&one));
                leak(one);
            }
        }
    }

    /// Removes the owners that wait for this to be recorded.
    pub(super) fn take_open(&mut self, key: Key) -> Vec<Waiting> {
        let found = self.open.binary_search_by_key(&key, |(key, _)| *key);
        let Ok(at) = found else {
            return Vec::new();
        };
        let (_, owners) = self.open.remove(at);
        uncount(&owners);
        owners
    }

    /// Removes all owners of an API that wait for something to be recorded.
    pub(super) fn take_all_open(&mut self, api: StreamApi) -> Vec<Group> {
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
                    uncount(&other.1);
                    other.1.into_iter().for_each(leak);
                }
            }
        }
        taken.iter().for_each(|(_, owners)| uncount(owners));
        taken
    }

    pub(super) fn add_recorded(&mut self, event: &Counted<Event>, one: Waiting) {
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

    pub(super) fn push_recorded(&mut self, event: Counted<Event>, owners: Vec<Waiting>) {
        match self.recorded.try_reserve(1) {
            Ok(()) => self.recorded.push((event, owners)),
            Err(_) => owners.into_iter().for_each(leak),
        }
    }

    pub(super) fn add_ready(&mut self, one: Waiting) {
        match self.ready.try_reserve(1) {
            Ok(()) => self.ready.push_back(one),
            Err(_) => leak(one),
        }
    }

    pub(super) fn take_ready(&mut self, api: StreamApi) -> Option<Waiting> {
        let at = self.ready.iter().position(|one| one.is_of(api))?;
        self.ready.remove(at)
    }

    /// All owners that wait for no graph.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        let open = self.open.iter().flat_map(|(_, owners)| owners);
        let recorded = self.recorded.iter().flat_map(|(_, owners)| owners);
        open.chain(recorded).chain(&self.again).chain(&self.ready)
    }
}
