//! Loom models of the deferred owners. Each owner is dropped once, by a thread that found its work over, and none stays in a
//! list that no thread examines again.
//!
//! There is no driver here. A constant answer replaces what [`sweep_owners`] queries for one owner. The lists, their locks
//! and the flag of [`graph`](crate::stream::graph) are those of the crate.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use loom::{model, thread};

use super::*;
use crate::stream::graph::release_from_graph;

/// The number of dropped owners, and of those that a sweep found ready. Loom does not model these counts.
#[derive(Clone, Default)]
struct Counts(Arc<[AtomicUsize; 2]>);

impl Counts {
    fn read_counts(&self) -> [usize; 2] {
        [0, 1].map(|at: usize| self.0[at].load(Ordering::Relaxed))
    }
}

struct Owner(Counts);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.0[0].fetch_add(1, Ordering::Relaxed);
    }
}

fn keep_owner(counts: &Counts, graph: Option<Counted>) {
    let pending = PendingRelease::new(Origin::of_device(Device::cuda(0)));
    defer_owner(&pending, None, graph, Owner(counts.clone()));
}

/// Does what `sweep_owners` does when the work of all consumers is over.
fn sweep_finished(counts: &Counts) {
    release_gone_graphs();
    for mut one in take(&mut lock_lists().again) {
        counts.0[1].fetch_add(1, Ordering::Relaxed);
        drop(one.owner.take());
    }
}

/// Does what `sweep_owners` does when the work of all consumers continues.
fn sweep_unfinished() {
    release_gone_graphs();
    let again = take(&mut lock_lists().again);
    again
        .into_iter()
        .for_each(|one| lock_lists().add_owner(one));
}

fn is_empty() -> bool {
    let lists = lock_lists();
    lists.graphs.is_empty() && lists.owners_outside_graphs().count() == 0
}

#[test]
fn an_owner_is_dropped_after_its_graph_is_gone() {
    model(|| {
        let counts = Counts::default();
        let ours = Counted::new(()).map_err(|_| ()).expect("memory");
        let graphs = ours.clone();
        let driver = thread::spawn(move || release_from_graph(graphs.into_raw()));
        let exporter = thread::spawn(sweep_unfinished);
        keep_owner(&counts, Some(ours));
        driver.join().expect("no panic");
        exporter.join().expect("no panic");
        assert_eq!(counts.read_counts(), [0, 0]);
        // A later sweep.
        sweep_finished(&counts);
        assert_eq!(counts.read_counts(), [1, 1]);
        assert!(is_empty());
    });
}

#[test]
fn owners_stay_in_the_list_while_several_threads_work_on_it() {
    model(|| {
        let counts = Counts::default();
        keep_owner(&counts, None);
        let first = thread::spawn({
            let counts = counts.clone();
            move || sweep_finished(&counts)
        });
        let second = thread::spawn(sweep_unfinished);
        keep_owner(&counts, None);
        first.join().expect("no panic");
        second.join().expect("no panic");
        sweep_finished(&counts);
        assert_eq!(counts.read_counts(), [2, 2]);
        assert!(is_empty());
    });
}
