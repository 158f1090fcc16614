//! Graphs: what a capture wrote down, and its launches.
//!
//! Modelled: a launch is a step of the stream; the branches of the graph begin after it and run beside each other, with
//! the waits that were captured; what follows on the stream waits for all of them. "Each launch is ordered behind both
//! any previous work in the stream and any previous launches of the executable graph." Graph and executable may be
//! destroyed at once, since what was launched goes on. A user object lives as long as a graph holds it.
//! Left out: a launch into a capture (801), nodes that are added by hand, updates.

use crate::access::Work;
use crate::clock::{Clock, Line};
use crate::codes::{Answer, Code};
use crate::stream::{Place, Stamp};
use crate::world::{Api, HostId, World};

/// A step of a capture. The lines in its stamp are the numbers of branches.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) stamp: Stamp,
    pub(crate) label: &'static str,
    pub(crate) work: Work,
}

#[derive(Clone)]
pub(crate) struct Graph {
    steps: Vec<Step>,
    branches: usize,
    /// User objects that the graph holds, one entry for each reference.
    pub(crate) objects: Vec<usize>,
}

impl Graph {
    pub(crate) fn new(steps: Vec<Step>, branches: usize, objects: Vec<usize>) -> Self {
        Self {
            steps,
            branches,
            objects,
        }
    }
}

pub(crate) struct Executable {
    pub(crate) graph: Graph,
    /// Whether a launch frees what the one before left.
    frees: bool,
    /// What had happened at the end of the last launch.
    pub(crate) last: Clock,
}

impl World {
    pub(crate) fn instantiate(&mut self, graph: usize, frees: bool) -> Answer<usize> {
        let graph = self
            .graphs
            .get(&graph)
            .cloned()
            .ok_or(Code::INVALID_VALUE)?;
        for object in &graph.objects {
            self.retain_object(*object, 1)?;
        }
        let handle = self.new_handle();
        let last = Clock::default();
        self.executables
            .insert(handle, Executable { graph, frees, last });
        Ok(handle)
    }

    pub(crate) fn launch(
        &mut self,
        api: Api,
        host: HostId,
        executable: usize,
        stream: usize,
    ) -> Answer {
        let id = self.stream(api, host, stream)?;
        let found = self.executables.get(&executable);
        let found = found.ok_or(Code::INVALID_VALUE)?;
        let (graph, frees, last) = (found.graph.clone(), found.frees, found.last.clone());
        // "If any allocations remain unfreed (from a previous launch) [..], the launch will fail."
        if !frees && graph.steps.iter().any(|step| self.is_left_over(&step.work)) {
            return Err(Code::INVALID_VALUE);
        }
        let Place::Running(begin) = self.place(host, id)? else {
            return Err(Code::NOT_SUPPORTED);
        };
        self.clock(begin.line).join(&last);
        let before = self.clock(begin.line).clone();
        let lines: Vec<_> = (0..graph.branches)
            .map(|branch| {
                let stream = self.name(begin.line).to_owned();
                self.new_line(format!("branch {branch} of a graph on {stream}"))
            })
            .collect();
        for step in graph.steps {
            let mut known = before.clone();
            for (branch, line) in lines.iter().enumerate() {
                known.set(*line, step.stamp.known.step(Line(branch)));
            }
            let stamp = Stamp {
                line: lines[step.stamp.line.0],
                step: step.stamp.step,
                known,
            };
            self.clock(begin.line).set(stamp.line, stamp.step);
            self.run(&stamp, step.label, &step.work)?;
        }
        let after = self.clock(begin.line).clone();
        if let Some(found) = self.executables.get_mut(&executable) {
            found.last = after;
        }
        Ok(())
    }
    /// Whether a step would allocate memory that an earlier launch has allocated and that is not freed.
    fn is_left_over(&self, work: &Work) -> bool {
        match work {
            Work::Allocate { address } => {
                let block = self.blocks.get(address);
                block.is_some_and(|block| !block.freed && block.is_used())
            }
            _ => false,
        }
    }
}
