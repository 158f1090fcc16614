//! The second oracle: it reads the record of calls, and says what was ordered, by another way than the first.
//!
//! The first (all files beside this one) carries a vector clock along with each line of work and compares clocks when memory
//! is touched. This one draws what waits for what as a graph, and looks for a path between each two accesses that
//! touch the same bytes; and it says anew which call breaks which capture, and with what code. It imports nothing of
//! the first but the record, so that a rule which one of them has read wrongly is one that they disagree about. That is a
//! fault too, which begins with `disagreement`.
//!
//! | file | job |
//! |---|---|
//! | `graph` | nodes, and paths between them |
//! | `things` | threads, contexts, streams and events, by the numbers in the record |
//! | `captures` | what may not be done while streams capture, and what becomes of captures |
//! | `memory` | blocks, accesses, and which of them are ordered |
//! | `calls`, `allocations` | what each call means |
//!
//! The switches of `sim_switch` that change what a driver does are in the record as well. With `deaf` the second oracle
//! does not hear of them, nor of failures that a test asked for, and with `misread-..` it alone leaves that out: so either
//! can be given a rule that is wrong, and a test sees that the other notices.

mod allocations;
mod calls;
mod captures;
mod graph;
mod memory;
mod things;

use std::collections::{BTreeMap, BTreeSet};

use crate::record::Call;

/// What a call should have given: nothing, or a code.
type Outcome = Result<(), i32>;

#[derive(Default)]
pub(crate) struct Second {
    graph: graph::Graph,
    devices: u64,
    threads: BTreeMap<u64, things::Thread>,
    contexts: Vec<things::Context>,
    streams: Vec<things::Stream>,
    events: BTreeMap<u64, things::Event>,
    captures: Vec<captures::Capture>,
    /// By their addresses: lists of steps, and their captures.
    lists: BTreeMap<u64, (usize, BTreeSet<usize>)>,
    graphs: BTreeMap<u64, captures::Captured>,
    executables: BTreeMap<u64, captures::Captured>,
    /// Graphs that hold objects of the user's.
    holding: BTreeSet<u64>,
    /// The last launches of destroyed streams that no call has seen to be complete.
    ending: Vec<graph::Node>,
    blocks: BTreeMap<u64, memory::Block>,
    /// Copies to memory that no driver gave out.
    copies: Vec<memory::Pending>,
    /// By their places in `contexts`: the contexts with kernels that reach the memory of another context.
    peers: BTreeSet<(usize, usize)>,
    switches: BTreeSet<String>,
    /// What went wrong in the call that is being read.
    wrong: Vec<String>,
    read: usize,
    faults: usize,
    disagreements: Vec<String>,
}

impl Second {
    /// Reads what was called since it last read; all that it sees otherwise than the first.
    pub(crate) fn read(&mut self, record: &[Call]) -> &[String] {
        for call in &record[self.read..] {
            let number = self.read;
            self.read += 1;
            self.wrong.clear();
            let outcome = match call.planned && !self.is_switched("deaf") {
                true => None,
                false => self.call(call),
            };
            if !call.entry.starts_with("s") {
                self.see_ends(call.thread);
            }
            let words = || {
                let Call {
                    thread,
                    entry,
                    arguments,
                    places,
                    ..
                } = call;
                format!("call {number}, {entry} {arguments:x?} {places:x?} by thread {thread}")
            };
            let expected = outcome.map(|outcome| outcome.err().unwrap_or(0));
            if expected.is_some_and(|expected| expected != call.code) {
                self.disagreements.push(format!(
                    "disagreement: {} gives {}, and by the second oracle {expected:?}",
                    words(),
                    call.code
                ));
            }
            let found = call.faults > self.faults;
            self.faults = call.faults;
            if found == self.wrong.is_empty() {
                let also = match found {
                    true => "the first oracle alone sees a fault".to_owned(),
                    false => format!("the second oracle alone sees {:?}", self.wrong),
                };
                self.disagreements
                    .push(format!("disagreement: {}: {also}", words()));
            }
        }
        &self.disagreements
    }

    fn is_switched(&self, what: &str) -> bool {
        self.switches.contains(what)
    }

    /// Whether a call of this kind orders nothing: the driver is made so, or this oracle.
    fn ignores(&self, what: &str) -> bool {
        let told = !self.is_switched("deaf") && self.is_switched(&format!("ignore-{what}"));
        told || self.is_switched(&format!("misread-{what}"))
    }

    fn switch(&mut self, what: &str, on: bool) {
        if on {
            self.switches.insert(what.to_owned());
        } else {
            self.switches.remove(what);
        }
    }
}
