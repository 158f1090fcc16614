//! Events: a stream's clock at one moment, for others to wait for.
//!
//! Modelled: an event belongs to the context that was current when it was made, and is recorded on streams of that
//! context alone (400 else); any stream may wait for it. Each wait takes the last record before it. An event that was
//! never recorded is complete. An event recorded on a capturing stream is a captured event, which nobody can wait for
//! on the host (907); a stream that waits for it joins the capture. `cuCtxRecordEvent` records what all streams of the
//! context have begun, and invalidates a capture on any of them (900).
//! In HIP, to ask for an event breaks the capture of the stream that it was recorded on, though that was before (907): older
//! versions do so. With the switch `lax-captures` it is allowed.
//! Events are made with flags: one for other processes must not take the time, and between events that do not take it,
//! or were not recorded, there is none (400).
//! An event of a green context's stream may be made in its primary context, whose record has the work of its green ones.
//! Our reading: a query finds the work finished, since there is no time here, and the thread then knows it; a dead
//! handle gives 400 and is a fault. Waits with CU_EVENT_WAIT_EXTERNAL are not there (801).

use crate::capture::CaptureId;
use crate::clock::Clock;
use crate::codes::{Answer, Code};
use crate::stream::{Kind, Place};
use crate::world::{Api, HostId, World};

/// `CU_EVENT_DISABLE_TIMING` and `CU_EVENT_INTERPROCESS`, as in HIP.
const NO_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

pub(crate) struct Event {
    pub(crate) api: Api,
    flags: u32,
    pub(crate) context: usize,
    pub(crate) state: State,
    /// The number of the stream that it was recorded on last.
    recorded_on: usize,
    pub(crate) destroyed: bool,
}

#[derive(Clone)]
pub(crate) enum State {
    Never,
    Recorded(Clock),
    /// With the clock of the capture's branches.
    Captured(CaptureId, Clock),
}

impl World {
    pub(crate) fn create_event(&mut self, api: Api, host: HostId, flags: u32) -> Answer<usize> {
        let context = self.current(api, host)?;
        if flags > 7 || (flags & INTERPROCESS != 0 && flags & NO_TIMING == 0) {
            return Err(Code::INVALID_VALUE);
        }
        let handle = self.new_handle();
        let event = Event {
            api,
            flags,
            context,
            state: State::Never,
            recorded_on: 0,
            destroyed: false,
        };
        self.events.insert(handle, event);
        Ok(handle)
    }

    fn event(&mut self, api: Api, handle: usize) -> Answer<&mut Event> {
        let problem = match self.events.get(&handle) {
            Some(event) if event.api == api && !event.destroyed => None,
            Some(event) if event.api == api => Some("use of a destroyed event"),
            _ => Some("use of an unknown event"),
        };
        if let Some(problem) = problem {
            self.fault(format!("{problem}: {handle:#x}"));
        }
        match self.events.get_mut(&handle) {
            Some(event) if problem.is_none() => Ok(event),
            _ => Err(Code::INVALID_HANDLE),
        }
    }

    /// The time between two events; there is none here.
    pub(crate) fn elapsed(&mut self, api: Api, events: [usize; 2]) -> Answer {
        for event in events {
            let event = self.event(api, event)?;
            if event.flags & NO_TIMING != 0 || !matches!(event.state, State::Recorded(_)) {
                return Err(Code::INVALID_HANDLE);
            }
        }
        Ok(())
    }

    pub(crate) fn destroy_event(&mut self, api: Api, host: HostId, handle: usize) -> Answer {
        self.current(api, host)?;
        self.event(api, handle)?.destroyed = true;
        Ok(())
    }

    pub(crate) fn record(&mut self, api: Api, host: HostId, event: usize, stream: usize) -> Answer {
        let id = self.stream(api, host, stream)?;
        let context = self.streams[&id.0].context;
        let made_in = self.event(api, event)?.context;
        if self.root(made_in) != self.root(context) {
            return Err(Code::INVALID_HANDLE);
        }
        let state = match self.place(host, id)? {
            Place::Running(_) if self.is_switched("ignore-record") => State::Never,
            Place::Running(stamp) => State::Recorded(stamp.known),
            Place::Captured(capture, branch) => {
                State::Captured(capture, self.captured(capture).next(branch).known)
            }
        };
        let recorded_on = self.streams[&id.0].id;
        let event = self.event(api, event)?;
        (event.state, event.recorded_on) = (state, recorded_on);
        Ok(())
    }

    /// `cuCtxRecordEvent`: all that the context's streams have begun.
    pub(crate) fn record_context(&mut self, host: HostId, context: usize, event: usize) -> Answer {
        if self
            .device_of(context)
            .is_none_or(|(api, _)| api != Api::Cuda)
        {
            return Err(Code::INVALID_CONTEXT);
        }
        let made_in = self.event(Api::Cuda, event)?.context;
        if self.root(made_in) != self.root(context) {
            return Err(Code::INVALID_HANDLE);
        }
        let captures = self.captures_where(|stream| self.is_within(stream.context, context));
        if !captures.is_empty() {
            for capture in captures {
                self.invalidate(capture);
            }
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        if self.is_switched("ignore-ctx-record") {
            return Ok(());
        }
        let host = self.host(host).line;
        let mut all = self.clock(host).clone();
        for line in self.lines_of(|stream| self.is_within(stream.context, context)) {
            all.join(self.clock(line));
        }
        self.event(Api::Cuda, event)?.state = State::Recorded(all);
        Ok(())
    }

    pub(crate) fn wait(
        &mut self,
        api: Api,
        host: HostId,
        stream: usize,
        event: usize,
        flags: u32,
    ) -> Answer {
        if flags != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let id = self.stream(api, host, stream)?;
        let state = self.event(api, event)?.state.clone();
        match (self.streams[&id.0].capture, state) {
            (Some(capture), State::Never) => self.branch(capture, id).map(drop),
            (Some(capture), State::Recorded(_)) => {
                self.branch(capture, id)?;
                self.invalidate(capture);
                Err(Code::CAPTURE_ISOLATION)
            }
            (Some(capture), State::Captured(other, known)) => {
                let branch = self.branch(capture, id)?;
                if capture == other {
                    self.captured(capture).branches[branch].join(&known);
                    return Ok(());
                }
                self.invalidate(capture);
                let Some(other) = self.active(other) else {
                    return Err(Code::CAPTURE_ISOLATION);
                };
                self.invalidate(other);
                Err(Code::CAPTURE_MERGE)
            }
            (None, State::Never) => self.place(host, id).map(drop),
            (None, State::Recorded(known)) => {
                let place = self.place(host, id)?;
                if let (Place::Running(stamp), false) = (place, self.is_switched("ignore-wait")) {
                    self.clock(stamp.line).join(&known);
                }
                Ok(())
            }
            (None, State::Captured(capture, known)) => {
                if self.streams[&id.0].kind == Kind::Legacy {
                    self.invalidate(capture);
                    return Err(Code::CAPTURE_IMPLICIT);
                }
                self.adopt(capture, id, known)
            }
        }
    }

    /// What the host finds when it asks for an event's state. With the switch `slow` it has happened only if the host knows
    /// that from somewhere else: the device takes as long as it likes.
    pub(crate) fn query_event(&mut self, api: Api, host: HostId, event: usize) -> Answer {
        self.current(api, host)?;
        let Event {
            state, recorded_on, ..
        } = self.event(api, event)?;
        let (state, recorded_on) = (state.clone(), *recorded_on);
        if api == Api::Hip && !self.is_switched("lax-captures") {
            let captures = self.captures_where(|stream| stream.id == recorded_on);
            if !captures.is_empty() {
                for capture in captures {
                    self.invalidate(capture);
                }
                return Err(Code::CAPTURED_EVENT);
            }
        }
        let (State::Recorded(known), true) = (state, self.is_switched("slow")) else {
            return match self.is_switched("ignore-query") {
                true => self.refuse_unsafe(host),
                false => self.synchronize_event(api, host, event),
            };
        };
        self.refuse_unsafe(host)?;
        let line = self.host(host).line;
        if self.clock(line).covers(&known) {
            Ok(())
        } else {
            Err(Code::NOT_READY)
        }
    }

    /// What the host finds when it waits for an event.
    pub(crate) fn synchronize_event(&mut self, api: Api, host: HostId, event: usize) -> Answer {
        self.current(api, host)?;
        match self.event(api, event)?.state.clone() {
            State::Never => self.refuse_unsafe(host),
            State::Recorded(known) => {
                self.refuse_unsafe(host)?;
                if !self.is_switched("ignore-event-synchronize") {
                    let host = self.host(host).line;
                    self.clock(host).join(&known);
                }
                Ok(())
            }
            State::Captured(capture, _) => {
                self.invalidate(capture);
                Err(Code::CAPTURED_EVENT)
            }
        }
    }
}
