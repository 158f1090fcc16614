//! Captures: what may not be done meanwhile, what it breaks, and the graph that comes of them.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::Node;
use super::memory::Deed;
use super::things::{Moment, Of, Sort, Stream};
use super::{Outcome, Second};

pub(super) const UNSUPPORTED: i32 = 900;
const INVALIDATED: i32 = 901;
const MERGE: i32 = 902;
const UNMATCHED: i32 = 903;
const UNJOINED: i32 = 904;
const ISOLATION: i32 = 905;
pub(super) const IMPLICIT: i32 = 906;
pub(super) const CAPTURED_EVENT: i32 = 907;
const WRONG_THREAD: i32 = 908;
const GLOBAL: u64 = 0;
const RELAXED: u64 = 2;

pub(super) struct Capture {
    origin: usize,
    thread: u64,
    mode: u64,
    pub(super) broken: bool,
    over: bool,
    steps: Vec<Step>,
    /// By stream: the steps that its next one comes behind.
    fronts: BTreeMap<usize, BTreeSet<usize>>,
    pub(super) allocated: BTreeSet<u64>,
}

/// A step of a capture, and those before it.
#[derive(Clone)]
pub(super) struct Step {
    after: BTreeSet<usize>,
    deed: Deed,
}

/// A graph.
#[derive(Clone, Default)]
pub(super) struct Captured {
    steps: Vec<Step>,
    /// Whether a launch frees what the one before has left.
    frees: bool,
    holds: bool,
    last: Option<Node>,
}

/// Where the next step on a stream belongs.
pub(super) enum Spot {
    Now(Node),
    Inside(usize),
}

impl Second {
    /// Breaks these captures and says so, or all is well.
    fn breaking(&mut self, captures: &BTreeSet<usize>, code: i32) -> Outcome {
        for &capture in captures {
            self.captures[capture].broken = true;
        }
        match captures.is_empty() {
            true => Ok(()),
            false => Err(code),
        }
    }

    fn capturing(&self, wanted: impl Fn(&Stream) -> bool) -> BTreeSet<usize> {
        let all = self.streams.iter().filter(|one| wanted(one));
        all.filter_map(|one| one.capture).collect()
    }

    /// Captures in the way of a legacy stream: of streams that it would wait for; in HIP, of such streams of any device.
    fn beside_legacy(&self, context: usize) -> BTreeSet<usize> {
        let hip = self.contexts[context].of == Of::Hip;
        self.capturing(|one| {
            let near = one.context == context || (hip && one.of == Of::Hip);
            near && one.blocks()
        })
    }

    /// What may make others wait is not for a thread that captures, nor for one beside a global capture, unless it said
    /// that it knows what it does.
    pub(super) fn allow(&mut self, thread: u64) -> Outcome {
        let mode = self.thread(thread).mode;
        let forbids = |one: &Capture| {
            let own = one.thread == thread && one.mode != RELAXED;
            let going = !one.over && !one.broken;
            going && (own || (one.mode == GLOBAL && mode == GLOBAL))
        };
        if mode == RELAXED {
            return Ok(());
        }
        let all = self.captures.iter().enumerate();
        let found = all.filter(|(_, one)| forbids(one)).map(|(at, _)| at);
        let found = found.collect();
        self.breaking(&found, UNSUPPORTED)
    }

    /// A step on a stream.
    pub(super) fn spot(&mut self, thread: u64, stream: usize) -> Result<Spot, i32> {
        if let Some(capture) = self.streams[stream].capture {
            return match self.captures[capture].broken {
                true => Err(INVALIDATED),
                false => Ok(Spot::Inside(capture)),
            };
        }
        let Stream { context, sort, .. } = self.streams[stream];
        if sort == Sort::Legacy {
            let others = self.beside_legacy(context);
            self.breaking(&others, IMPLICIT)?;
        }
        let mut before: Vec<Node> = self.streams[stream].last.into_iter().collect();
        before.extend(self.thread(thread).last);
        if !self.ignores("legacy") {
            match sort {
                Sort::Legacy => {
                    before.extend(self.ends(|one| one.context == context && one.blocks()));
                }
                Sort::Own(_) | Sort::Blocking => before
                    .extend(self.ends(|one| one.context == context && one.sort == Sort::Legacy)),
                Sort::NonBlocking => {}
            }
        }
        let node = self.graph.add(before);
        self.streams[stream].last = Some(node);
        Ok(Spot::Now(node))
    }

    /// Does a deed as a step on a stream, now or at each launch.
    pub(super) fn step(&mut self, thread: u64, stream: usize, deed: Deed) -> Outcome {
        match self.spot(thread, stream)? {
            Spot::Now(node) => self.done(node, deed),
            Spot::Inside(capture) => {
                self.write_down(capture, stream, deed);
                Ok(())
            }
        }
    }

    pub(super) fn write_down(&mut self, capture: usize, stream: usize, deed: Deed) {
        let capture = &mut self.captures[capture];
        let front = capture.fronts.entry(stream).or_default();
        let after = core::mem::replace(front, BTreeSet::from([capture.steps.len()]));
        capture.steps.push(Step { after, deed });
    }

    pub(super) fn begin_capture(&mut self, thread: u64, stream: usize, mode: u64) -> Outcome {
        if mode > RELAXED {
            return Err(1);
        }
        if self.streams[stream].sort == Sort::Legacy {
            return Err(UNSUPPORTED);
        }
        if self.streams[stream].capture.is_some() {
            return Err(401);
        }
        self.streams[stream].capture = Some(self.captures.len());
        self.captures.push(Capture {
            origin: stream,
            thread,
            mode,
            broken: false,
            over: false,
            steps: Vec::new(),
            fronts: BTreeMap::new(),
            allocated: BTreeSet::new(),
        });
        Ok(())
    }

    pub(super) fn end_capture(&mut self, thread: u64, stream: usize, graph: u64) -> Outcome {
        let at = self.streams[stream].capture.ok_or(401)?;
        let capture = &mut self.captures[at];
        if capture.origin != stream {
            return Err(UNMATCHED);
        }
        if capture.mode != RELAXED && capture.thread != thread {
            return Err(WRONG_THREAD);
        }
        capture.over = true;
        for one in &mut self.streams {
            one.capture = one.capture.filter(|&own| own != at);
        }
        if capture.broken {
            return Err(INVALIDATED);
        }
        // Each step has to lead to the end of the stream where it all began.
        let mut ways: Vec<usize> = capture
            .fronts
            .get(&stream)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let mut joined = BTreeSet::new();
        while let Some(step) = ways.pop() {
            if joined.insert(step) {
                ways.extend(&capture.steps[step].after);
            }
        }
        if joined.len() < capture.steps.len() {
            return Err(UNJOINED);
        }
        let steps = core::mem::take(&mut capture.steps);
        let holds = self.holding.contains(&graph);
        self.graphs.insert(
            graph,
            Captured {
                steps,
                holds,
                ..Captured::default()
            },
        );
        Ok(())
    }

    /// What a stream says when it is asked, and a legacy stream beside a capture refuses to say.
    pub(super) fn state(&self, stream: usize) -> Result<u64, i32> {
        let Stream {
            context,
            sort,
            capture,
            ..
        } = self.streams[stream];
        if sort == Sort::Legacy && !self.beside_legacy(context).is_empty() {
            return Err(IMPLICIT);
        }
        Ok(capture.map_or(0, |at| 1 + u64::from(self.captures[at].broken)))
    }

    /// Nothing but whether it captures may be asked of a stream while it does; in HIP nothing of its events either.
    pub(super) fn ask(&mut self, stream: Option<usize>, code: i32) -> Outcome {
        let Some(stream) = stream.filter(|_| !self.is_switched("lax-captures")) else {
            return Ok(());
        };
        let Stream {
            context,
            sort,
            capture,
            ..
        } = self.streams[stream];
        if sort == Sort::Legacy && code != CAPTURED_EVENT {
            let beside = self.beside_legacy(context);
            return self.breaking(&beside, IMPLICIT);
        }
        self.breaking(&capture.into_iter().collect(), code)
    }

    /// A list of what the next step on a capturing stream comes behind.
    pub(super) fn give_out(&mut self, stream: usize, list: u64) {
        let capture = self.streams[stream].capture;
        let front = capture.and_then(|at| self.captures[at].fronts.get(&stream).cloned());
        let found = capture.zip(front);
        self.lists.extend(found.map(|found| (list, found)));
    }

    /// The next step on the stream comes behind those of a list as well.
    pub(super) fn add_steps(&mut self, stream: usize, arguments: &[u64]) -> Outcome {
        let at = self.streams[stream].capture.ok_or(401)?;
        if self.captures[at].broken {
            return Err(INVALIDATED);
        }
        let list = arguments.get(1).and_then(|list| self.lists.get(list));
        let (of, steps) = list.cloned().ok_or(1)?;
        if of != at || arguments[2..] != [1, 0] {
            return self.breaking(&BTreeSet::from([at]), 1);
        }
        if !self.ignores("wait") {
            let front = self.captures[at].fronts.entry(stream).or_default();
            front.extend(steps);
        }
        Ok(())
    }

    /// What an event stands for that is recorded on a stream.
    pub(super) fn moment(&mut self, thread: u64, stream: usize) -> Result<Moment, i32> {
        Ok(match self.spot(thread, stream)? {
            Spot::Now(_) if self.ignores("record") => Moment::Always,
            Spot::Now(node) => Moment::After(node),
            Spot::Inside(capture) => {
                let front = self.captures[capture].fronts.get(&stream);
                Moment::Inside(capture, front.cloned().unwrap_or_default())
            }
        })
    }

    /// A stream waits for an event.
    pub(super) fn stream_waits(&mut self, thread: u64, stream: usize, moment: Moment) -> Outcome {
        let Some(own) = self.streams[stream].capture else {
            return self.outsider_waits(thread, stream, moment);
        };
        if self.captures[own].broken {
            return Err(INVALIDATED);
        }
        match moment {
            Moment::Always => Ok(()),
            Moment::After(_) => self.breaking(&BTreeSet::from([own]), ISOLATION),
            Moment::Inside(other, steps) if other == own => {
                let fronts = &mut self.captures[own].fronts;
                fronts.entry(stream).or_default().extend(steps);
                Ok(())
            }
            Moment::Inside(other, _) => {
                let Capture { broken, over, .. } = self.captures[other];
                match broken || over {
                    true => self.breaking(&BTreeSet::from([own]), ISOLATION),
                    false => self.breaking(&BTreeSet::from([own, other]), MERGE),
                }
            }
        }
    }

    /// The same where the stream does not capture.
    fn outsider_waits(&mut self, thread: u64, stream: usize, moment: Moment) -> Outcome {
        match moment {
            Moment::Always => self.spot(thread, stream).map(drop),
            Moment::After(event) => {
                if let (Spot::Now(node), false) = (self.spot(thread, stream)?, self.ignores("wait"))
                {
                    self.streams[stream].last = Some(self.graph.add([node, event]));
                }
                Ok(())
            }
            Moment::Inside(capture, _) if self.streams[stream].sort == Sort::Legacy => {
                self.breaking(&BTreeSet::from([capture]), IMPLICIT)
            }
            Moment::Inside(capture, _) if self.captures[capture].over => Err(CAPTURED_EVENT),
            Moment::Inside(capture, _) if self.captures[capture].broken => Err(INVALIDATED),
            Moment::Inside(capture, steps) => {
                self.captures[capture].fronts.insert(stream, steps);
                self.streams[stream].capture = Some(capture);
                Ok(())
            }
        }
    }

    /// The host waits for a stream, or finds it idle.
    pub(super) fn meet_stream(&mut self, thread: u64, stream: usize) -> Outcome {
        let own = self.streams[stream].capture.into_iter().collect();
        self.breaking(&own, UNSUPPORTED)?;
        self.allow(thread)?;
        let spot = self.spot(thread, stream)?;
        if let (Spot::Now(node), false) = (spot, self.ignores("stream-synchronize")) {
            self.thread_waits(thread, &[node]);
        }
        Ok(())
    }

    /// A whole context must not be queried while a stream of it captures; a device of HIP, while any stream does.
    pub(super) fn whole(&mut self, context: usize) -> Outcome {
        let hip = self.contexts[context].of == Of::Hip;
        let found = self.capturing(|one| {
            (hip && one.of == Of::Hip) || (!hip && self.is_part(one.context, context))
        });
        self.breaking(&found, UNSUPPORTED)
    }

    pub(super) fn instantiate(&mut self, graph: u64, executable: u64, frees: bool) -> Outcome {
        let graph = self.graphs.get(&graph).ok_or(1)?;
        let executable_graph = Captured {
            frees,
            ..graph.clone()
        };
        self.executables.insert(executable, executable_graph);
        Ok(())
    }

    pub(super) fn launch(&mut self, thread: u64, executable: u64, stream: usize) -> Outcome {
        let graph = self.executables.get(&executable).ok_or(1)?.clone();
        let left_over = |step: &Step| self.is_left_over(&step.deed);
        if !graph.frees && graph.steps.iter().any(left_over) {
            return Err(1);
        }
        let Spot::Now(begin) = self.spot(thread, stream)? else {
            return Err(801);
        };
        let begin = self.graph.add([begin].into_iter().chain(graph.last));
        let mut nodes: Vec<Node> = Vec::new();
        for step in graph.steps {
            let before = step.after.iter().map(|&at| nodes[at]);
            let node = self.graph.add(before.chain([begin]).collect::<Vec<_>>());
            nodes.push(node);
            self.done(node, step.deed)?;
        }
        let end = self.graph.add(nodes.into_iter().chain([begin]));
        self.streams[stream].last = Some(end);
        if let Some(graph) = self.executables.get_mut(&executable) {
            graph.last = Some(end);
        }
        Ok(())
    }

    /// What the graph held is let go when its launches are over, which the thread sees; in HIP at once.
    pub(super) fn destroy_graph(
        &mut self,
        of: Of,
        thread: u64,
        handle: u64,
        executable: bool,
    ) -> Outcome {
        let graphs = match executable {
            true => &mut self.executables,
            false => &mut self.graphs,
        };
        let graph = graphs.remove(&handle).ok_or(1)?;
        let last = graph.last.filter(|_| graph.holds && of == Of::Cuda);
        self.ending.extend(last);
        self.see_ends(thread);
        Ok(())
    }

    /// On a slow device no call sees the end of a launch unless it waits for it.
    pub(super) fn see_ends(&mut self, thread: u64) {
        if !self.is_switched("slow") && !self.ending.is_empty() {
            let over = core::mem::take(&mut self.ending);
            self.thread_waits(thread, &over);
        }
    }

    /// A graph, or a capture that becomes one, holds objects from now on.
    pub(super) fn hold(&mut self, handle: u64) {
        self.holding.insert(handle);
        if let Some(graph) = self.graphs.get_mut(&handle) {
            graph.holds = true;
        }
    }
}
