//! Threads, contexts, streams and events, identified by their numbers in the record of calls.

use std::collections::BTreeSet;

use super::graph::Node;
use super::{Outcome, Second};

/// The API that assigned the numbers: CUDA or HIP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    Cuda,
    Hip,
}

/// What is known of a thread: what it has waited for, and what is current on it.
#[derive(Clone, Copy, Default)]
pub(super) struct Thread {
    pub(super) last: Option<Node>,
    pub(super) context: u64,
    pub(super) device: u64,
    pub(super) mode: u64,
}

/// A context of CUDA's, or a device of HIP's.
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) of: Of,
    pub(super) handle: u64,
    pub(super) device: u64,
    /// A green one belongs to its device's primary context.
    pub(super) green: bool,
    pub(super) primary: bool,
    pub(super) retained: u64,
    pub(super) gone: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    Legacy,
    /// That of this thread.
    Own(u64),
    Blocking,
    NonBlocking,
}

#[derive(Clone)]
pub(super) struct Stream {
    pub(super) of: Of,
    /// Its number in `contexts`.
    pub(super) context: usize,
    pub(super) sort: Sort,
    /// 0 for one that every context has.
    pub(super) handle: u64,
    pub(super) last: Option<Node>,
    /// The number of its capture.
    pub(super) capture: Option<usize>,
    pub(super) gone: bool,
}

impl Stream {
    pub(super) fn blocks(&self) -> bool {
        matches!(self.sort, Sort::Own(_) | Sort::Blocking)
    }
}

pub(super) struct Event {
    pub(super) of: Of,
    pub(super) context: usize,
    pub(super) moment: Moment,
    /// The stream that it was recorded on.
    pub(super) stream: Option<usize>,
    pub(super) gone: bool,
    pub(super) timed: bool,
}

/// When an event happens.
#[derive(Clone)]
pub(super) enum Moment {
    Always,
    After(Node),
    /// When these steps of a capture are done.
    Inside(usize, BTreeSet<usize>),
}

const INVALID_CONTEXT: i32 = 201;
pub(super) const INVALID_HANDLE: i32 = 400;
const GONE: i32 = 709;

impl Second {
    pub(super) fn thread(&mut self, thread: u64) -> &mut Thread {
        self.threads.entry(thread).or_default()
    }

    /// Makes the thread wait for these nodes.
    pub(super) fn thread_waits(&mut self, thread: u64, nodes: &[Node]) {
        let last = self.thread(thread).last;
        let node = self.graph.add(nodes.iter().copied().chain(last));
        self.thread(thread).last = Some(node);
    }

    /// Makes every thread wait for all threads.
    pub(super) fn all_threads_wait(&mut self) {
        let lasts: Vec<_> = self.threads.values().filter_map(|one| one.last).collect();
        let node = self.graph.add(lasts);
        for one in self.threads.values_mut() {
            one.last = Some(node);
        }
    }

    pub(super) fn misuse(&mut self, what: &str) {
        self.wrong.push(what.to_owned());
    }

    // Contexts.

    pub(super) fn context_by(&self, handle: u64) -> Option<usize> {
        let mut all = self.contexts.iter();
        all.rposition(|one| one.of == Of::Cuda && one.handle == handle && !one.gone)
    }

    /// The number of what is current, by the API that asks.
    pub(super) fn current(&mut self, of: Of, thread: u64) -> Result<usize, i32> {
        let Thread {
            context, device, ..
        } = *self.thread(thread);
        match of {
            Of::Hip => {
                let mut all = self.contexts.iter();
                all.position(|one| one.of == Of::Hip && one.device == device)
                    .ok_or(101)
            }
            Of::Cuda if context == 0 => Err(INVALID_CONTEXT),
            Of::Cuda => self.context_by(context).ok_or(GONE),
        }
    }

    /// Whether `context` is `of` itself or a green context of it.
    pub(super) fn is_part(&self, context: usize, of: usize) -> bool {
        let (one, other) = (&self.contexts[context], &self.contexts[of]);
        let green = one.green && other.primary && other.of == one.of;
        context == of || (green && one.device == other.device)
    }

    pub(super) fn are_related(&self, one: usize, other: usize) -> bool {
        let (green, both) = (self.contexts[one].green, self.contexts[other].green);
        let siblings = green && both && self.contexts[one].device == self.contexts[other].device;
        siblings || self.is_part(one, other) || self.is_part(other, one)
    }

    pub(super) fn primary(&self, device: u64) -> Option<usize> {
        let mut all = self.contexts.iter();
        all.rposition(|one| one.primary && one.of == Of::Cuda && one.device == device && !one.gone)
    }

    pub(super) fn add_context(&mut self, context: Context) -> usize {
        self.contexts.push(context);
        self.contexts.len() - 1
    }

    /// Destroys the context with its streams, events and memory, except memory that was allocated in stream order.
    pub(super) fn end_context(&mut self, context: usize) {
        self.contexts[context].gone = true;
        for stream in self.streams.iter_mut().filter(|one| one.context == context) {
            stream.gone = true;
        }
        for event in self.events.values_mut() {
            event.gone |= event.context == context;
        }
        let over: Vec<_> = self.ends(|one| one.context == context).collect();
        let node = self.graph.add(over);
        self.free_all_of(context, node);
    }

    /// The context whose memory it is, and which has access to others': of a green one, the primary one.
    fn regular(&self, context: usize) -> usize {
        let Context { green, device, .. } = self.contexts[context];
        let primary = self.primary(device).filter(|_| green);
        primary.unwrap_or(context)
    }

    /// The current context reaches another one's memory from now on, or no more.
    pub(super) fn peer(&mut self, of: Of, thread: u64, other: Option<usize>, on: bool) -> Outcome {
        let own = self.current(of, thread)?;
        let other = other.filter(|&other| self.contexts[other].device != self.contexts[own].device);
        let pair = (
            self.regular(own),
            self.regular(other.ok_or(INVALID_CONTEXT)?),
        );
        match (on, self.peers.contains(&pair)) {
            (true, true) => Err(704),
            (false, false) => Err(705),
            (true, false) => {
                self.peers.insert(pair);
                Ok(())
            }
            (false, true) => {
                self.peers.remove(&pair);
                Ok(())
            }
        }
    }

    /// Whether a kernel of one context reaches what was allocated on a device by another.
    pub(super) fn has_access(&self, one: usize, owner: usize) -> bool {
        let (own, other) = (&self.contexts[one], &self.contexts[owner]);
        let pair = (self.regular(one), self.regular(owner));
        own.device == other.device || own.of != other.of || self.peers.contains(&pair)
    }

    // Streams.

    /// The last moments of these streams.
    pub(super) fn ends(&self, wanted: impl Fn(&Stream) -> bool) -> impl Iterator<Item = Node> {
        let all = self.streams.iter().filter(move |one| wanted(one));
        all.filter_map(|one| one.last)
    }

    fn special(&mut self, context: usize, sort: Sort) -> usize {
        let mut all = self.streams.iter();
        let found = all.position(|one| one.context == context && one.sort == sort);
        let of = self.contexts[context].of;
        found.unwrap_or_else(|| self.add_stream(of, context, sort, 0))
    }

    pub(super) fn add_stream(&mut self, of: Of, context: usize, sort: Sort, handle: u64) -> usize {
        self.streams.push(Stream {
            of,
            context,
            sort,
            handle,
            last: None,
            capture: None,
            gone: false,
        });
        self.streams.len() - 1
    }

    pub(super) fn stream(&mut self, of: Of, thread: u64, handle: u64) -> Result<usize, i32> {
        let current = self.current(of, thread)?;
        match (of, handle) {
            (_, 0) | (Of::Cuda, 1) => return Ok(self.special(current, Sort::Legacy)),
            (Of::Cuda, 2) => return Ok(self.special(current, Sort::Own(thread))),
            _ => {}
        }
        // A handle may have been that of another stream before.
        let mut all = self.streams.iter();
        let found = all.rposition(|one| one.of == of && one.handle == handle);
        match found.filter(|&found| !self.streams[found].gone) {
            Some(found) => Ok(found),
            None => {
                self.misuse("a stream that is not there");
                Err(INVALID_HANDLE)
            }
        }
    }

    // Events.

    pub(super) fn event(&mut self, of: Of, handle: u64) -> Result<&mut Event, i32> {
        let known = self.events.get(&handle);
        if known.is_none_or(|event| event.of != of || event.gone) {
            self.misuse("an event that is not there");
            return Err(INVALID_HANDLE);
        }
        self.events.get_mut(&handle).ok_or(INVALID_HANDLE)
    }

    /// The thread waits for an event, or finds that it has happened.
    pub(super) fn meet(&mut self, thread: u64, moment: &Moment) -> Outcome {
        match moment {
            Moment::Always => self.allow(thread),
            Moment::After(node) => {
                self.allow(thread)?;
                self.thread_waits(thread, &[*node]);
                Ok(())
            }
            Moment::Inside(capture, _) => {
                self.captures[*capture].broken = true;
                Err(super::captures::CAPTURED_EVENT)
            }
        }
    }
}
