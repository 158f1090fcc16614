//! Stream capture: steps that are written down to be launched later, and what may not happen meanwhile.
//!
//! Modelled, after cuda.h and the programming guide:
//! - A stream that waits for an event of a capture joins it, and its steps become a branch. The legacy stream must not:
//!   906. A capturing stream that waits for an event recorded outside: 905; for one of another capture: 902.
//! - Asking for the state of a capturing stream, of its context or its device, or waiting for them: 900.
//! - "Potentially unsafe" calls (allocating, freeing, synchronizing, querying) give 900 in a thread of mode global
//!   while it captures itself, unless relaxed, or any thread captures globally; in a thread of mode thread-local while
//!   it captures itself, unless relaxed. In a relaxed thread they are allowed.
//! - "When an invalid operation is attempted during stream capture, any associated capture graphs are invalidated":
//!   further steps on their streams give 901, and so does the end of the capture.
//! - Asking a capturing stream of CUDA for anything but its capture (its context, flags or number) is refused and breaks
//!   the capture: 900; of a legacy stream beside a blocking capture: 906. No manual says so, but NVIDIA's CCCL does, of
//!   most of them. With the switch `lax-captures` it is allowed. The sources of HIP allow it.
//! - What a capturing stream depends on can be asked, and added to what another stream of the same capture depends on.
//! - The end comes on the stream where the capture began (903), on the same thread unless relaxed (908), with all
//!   branches joined (904). Asking whether the legacy stream captures gives 906 beside a blocking capture, and
//!   invalidates nothing.
//!
//! Our reading: 900 for a capture that begins on the legacy stream, 401 where a capture begins twice or ends without
//! beginning; 903 and 908 leave the capture as it is, 904 ends it; an event of a capture that has ended gives 907 to
//! any stream that waits for it. Destroying a capturing stream invalidates the capture.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::{Clock, Line};
use crate::codes::{Answer, Code};
use crate::graph::{Graph, Step};
use crate::stream::{Kind, Stamp, Stream, StreamId};
use crate::world::{Api, HostId, World};

const GLOBAL: i32 = 0;
const RELAXED: i32 = 2;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CaptureId(pub(crate) usize);

pub(crate) struct Capture {
    origin: StreamId,
    mode: i32,
    host: HostId,
    invalidated: bool,
    ended: bool,
    /// What each branch waits for within the capture; the lines in these clocks are the numbers of branches.
    pub(crate) branches: Vec<Clock>,
    members: BTreeMap<StreamId, usize>,
    pub(crate) steps: Vec<Step>,
    /// Memory that this capture allocates, by its address.
    pub(crate) allocated: BTreeSet<usize>,
    /// The handle of the graph that it becomes, and what that holds.
    pub(crate) graph: usize,
    pub(crate) objects: Vec<usize>,
}

impl Capture {
    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }

    /// One more step of a branch.
    pub(crate) fn next(&mut self, branch: usize) -> Stamp {
        let line = Line(branch);
        let step = self.branches[branch].tick(line);
        Stamp {
            line,
            step,
            known: self.branches[branch].clone(),
        }
    }
}

impl World {
    pub(crate) fn captured(&mut self, id: CaptureId) -> &mut Capture {
        self.captures
            .get_mut(&id)
            .expect("a capture stays in the table when it ends")
    }

    /// The captures that any of these streams takes part in.
    pub(crate) fn captures_where(&self, wanted: impl Fn(&Stream) -> bool) -> BTreeSet<CaptureId> {
        self.streams
            .values()
            .filter(|stream| wanted(stream))
            .filter_map(|stream| stream.capture)
            .collect()
    }

    /// The captures that the default stream of a context would have to wait for; of HIP, in every place.
    pub(crate) fn captures_beside(&self, context: usize) -> BTreeSet<CaptureId> {
        let hip = self
            .device_of(context)
            .is_some_and(|(api, _)| api == Api::Hip);
        self.captures_where(|stream| {
            let near = stream.context == context || (hip && stream.api == Api::Hip);
            near && stream.is_blocking()
        })
    }

    pub(crate) fn active(&self, id: CaptureId) -> Option<CaptureId> {
        let capture = &self.captures[&id];
        (!capture.ended && !capture.invalidated).then_some(id)
    }

    pub(crate) fn invalidate(&mut self, id: CaptureId) {
        self.captured(id).invalidated = true;
    }

    /// The branch that a capturing stream is.
    pub(crate) fn branch(&mut self, id: CaptureId, stream: StreamId) -> Answer<usize> {
        let capture = self.captured(id);
        if capture.invalidated {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        Ok(capture.members[&stream])
    }

    /// Takes a stream into a capture, since it waits for an event of it.
    pub(crate) fn adopt(&mut self, id: CaptureId, stream: StreamId, known: Clock) -> Answer {
        let capture = self.captured(id);
        if capture.ended {
            return Err(Code::CAPTURED_EVENT);
        }
        if capture.invalidated {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        capture.branches.push(known);
        capture.members.insert(stream, capture.branches.len() - 1);
        self.at(stream).capture = Some(id);
        Ok(())
    }

    pub(crate) fn begin_capture(
        &mut self,
        api: Api,
        host: HostId,
        stream: usize,
        mode: i32,
    ) -> Answer {
        let origin = self.stream(api, host, stream)?;
        if !(GLOBAL..=RELAXED).contains(&mode) {
            return Err(Code::INVALID_VALUE);
        }
        if self.streams[&origin.0].kind == Kind::Legacy {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        if self.streams[&origin.0].capture.is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let id = CaptureId(self.captures.len() + 1);
        let capture = Capture {
            origin,
            mode,
            host,
            invalidated: false,
            ended: false,
            branches: vec![Clock::default()],
            members: BTreeMap::from([(origin, 0)]),
            steps: Vec::new(),
            allocated: BTreeSet::new(),
            graph: self.new_handle(),
            objects: Vec::new(),
        };
        self.captures.insert(id, capture);
        self.at(origin).capture = Some(id);
        Ok(())
    }

    /// The handle of the graph that was captured.
    pub(crate) fn end_capture(&mut self, api: Api, host: HostId, stream: usize) -> Answer<usize> {
        let stream = self.stream(api, host, stream)?;
        let id = self.streams[&stream.0].capture.ok_or(Code::ILLEGAL_STATE)?;
        let capture = self.captured(id);
        if capture.origin != stream {
            return Err(Code::CAPTURE_UNMATCHED);
        }
        if capture.mode != RELAXED && capture.host != host {
            return Err(Code::CAPTURE_WRONG_THREAD);
        }
        capture.ended = true;
        let invalidated = capture.invalidated;
        let joined = capture
            .branches
            .iter()
            .all(|branch| capture.branches[0].covers(branch));
        let steps = core::mem::take(&mut capture.steps);
        let branches = capture.branches.len();
        let (handle, objects) = (capture.graph, core::mem::take(&mut capture.objects));
        for member in self.streams.values_mut() {
            if member.capture == Some(id) {
                member.capture = None;
            }
        }
        let broken = match (invalidated, joined) {
            (true, _) => Some(Code::CAPTURE_INVALIDATED),
            (false, false) => Some(Code::CAPTURE_UNJOINED),
            (false, true) => None,
        };
        if let Some(code) = broken {
            self.let_go(host, Clock::default(), objects)?;
            return Err(code);
        }
        self.graphs
            .insert(handle, Graph::new(steps, branches, objects));
        Ok(handle)
    }

    /// The graph that a capture becomes; 0 where it becomes none.
    pub(crate) fn captured_graph(&self, id: u64) -> usize {
        let id = usize::try_from(id).map(CaptureId);
        let capture = id.ok().and_then(|id| self.captures.get(&id));
        let whole = capture.filter(|capture| !capture.invalidated);
        whole.map_or(0, |capture| capture.graph)
    }

    /// What the next step on a capturing stream depends on, as the address of a list of nodes; 0 where that is nothing.
    pub(crate) fn captured_front(&mut self, api: Api, host: HostId, stream: usize) -> usize {
        let Ok(id) = self.stream(api, host, stream) else {
            return 0;
        };
        let Some(capture) = self.streams[&id.0].capture.and_then(|id| self.active(id)) else {
            return 0;
        };
        let branch = self.captures[&capture].members[&id];
        let known = self.captures[&capture].branches[branch].clone();
        if known == Clock::default() {
            return 0;
        }
        let list = self.new_handle();
        self.fronts.insert(list, (capture, known));
        list
    }

    /// The next step on a capturing stream depends on these nodes as well.
    pub(crate) fn add_dependencies(
        &mut self,
        api: Api,
        host: HostId,
        stream: usize,
        (list, count): (usize, usize),
        flags: u32,
    ) -> Answer {
        let id = self.stream(api, host, stream)?;
        let capture = self.streams[&id.0].capture.ok_or(Code::ILLEGAL_STATE)?;
        let branch = self.branch(capture, id)?;
        let (of, known) = self.fronts.get(&list).ok_or(Code::INVALID_VALUE)?.clone();
        if of != capture || count != 1 || flags != 0 {
            self.invalidate(capture);
            return Err(Code::INVALID_VALUE);
        }
        if !self.is_switched("ignore-wait") {
            self.captured(capture).branches[branch].join(&known);
        }
        Ok(())
    }

    /// Whether a stream captures, as `cuStreamIsCapturing` numbers it, and the number of the capture.
    pub(crate) fn capture_status(
        &mut self,
        api: Api,
        host: HostId,
        stream: usize,
    ) -> Answer<(i32, u64)> {
        let id = self.stream(api, host, stream)?;
        let stream = &self.streams[&id.0];
        let context = stream.context;
        if let (Some(capture), true) = (stream.capture, self.is_switched("refuse-status")) {
            self.invalidate(capture);
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        if stream.kind == Kind::Legacy {
            return if self.captures_beside(context).is_empty() {
                Ok((0, 0))
            } else {
                Err(Code::CAPTURE_IMPLICIT)
            };
        }
        Ok(match stream.capture {
            None => (0, 0),
            Some(capture) if self.captures[&capture].invalidated => (2, capture.0 as u64),
            Some(capture) => (1, capture.0 as u64),
        })
    }

    /// Refuses what a capture forbids to the calling thread, and invalidates the captures that forbid it.
    pub(crate) fn refuse_unsafe(&mut self, host: HostId) -> Answer {
        let mode = self.host(host).mode;
        if mode == RELAXED {
            return Ok(());
        }
        let forbidding: Vec<_> = self
            .captures
            .iter()
            .filter(|(id, _)| self.active(**id).is_some())
            .filter(|(_, capture)| {
                let own = capture.host == host && capture.mode != RELAXED;
                own || (mode == GLOBAL && capture.mode == GLOBAL)
            })
            .map(|(id, _)| *id)
            .collect();
        if forbidding.is_empty() {
            return Ok(());
        }
        for capture in forbidding {
            self.invalidate(capture);
        }
        Err(Code::CAPTURE_UNSUPPORTED)
    }

    /// Sets the calling thread's mode and returns the one before.
    pub(crate) fn exchange_mode(&mut self, host: HostId, mode: i32) -> Answer<i32> {
        if !(GLOBAL..=RELAXED).contains(&mode) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(core::mem::replace(&mut self.host(host).mode, mode))
    }
}
