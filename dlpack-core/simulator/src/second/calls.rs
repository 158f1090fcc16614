//! What each call in the record means.

use super::captures::{CAPTURED_EVENT, UNSUPPORTED};
use super::graph::Node;
use super::memory::Deed;
use super::things::{Context, Event, INVALID_HANDLE, Moment, Of, Sort};
use super::{Outcome, Second};
use crate::record::Call;

const NOT_READY: i32 = 600;
pub(super) const NOT_SUPPORTED: i32 = 801;

/// The API of a function, and the part of its name that both APIs share.
fn name(entry: &str) -> Option<(Of, &str)> {
    let (of, name) = match (entry.strip_prefix("cu"), entry.strip_prefix("hip")) {
        (Some(name), _) => (Of::Cuda, name),
        (_, Some(name)) => (Of::Hip, name),
        (None, None) => return None,
    };
    let name = name.split_once("_v").map_or(name, |(name, _)| name);
    Some((
        of,
        name.trim_end_matches("WithFlags")
            .trim_end_matches("WithPriority"),
    ))
}

impl Second {
    /// What it should have given; none of those of which nothing is said here.
    pub(super) fn call(&mut self, call: &Call) -> Option<Outcome> {
        if self.is_switched("hand-over") && !call.entry.starts_with("sim") {
            self.all_threads_wait();
        }
        let Some((of, name)) = name(&call.entry) else {
            self.control(call);
            return (call.entry == "sim_kernel").then(|| self.kernel(call));
        };
        // Every thread of which anything was heard waits where all wait.
        self.thread(call.thread);
        let place = || call.places.last().copied().unwrap_or(0);
        let given = |at: usize| call.arguments.get(at).copied().unwrap_or(0);
        let outcome = match name {
            "StreamGetCtx" | "StreamGetId" | "StreamGetFlags" if of == Of::Cuda => {
                let stream = self.stream(of, call.thread, given(0));
                let asked = stream.and_then(|stream| self.ask(Some(stream), UNSUPPORTED));
                // What it says then is known to the first oracle.
                return asked.is_err().then_some(asked);
            }
            _ if name.starts_with("Ctx") || name.contains("Device") || name == "GreenCtxCreate" => {
                return self.about_contexts(of, name, call);
            }
            _ if name.starts_with("Mem") || name.ends_with("Free") || name.contains("lloc") => {
                return self.about_memory(of, name, call);
            }
            "FreeAsync" => return self.about_memory(of, name, call),
            _ if name.starts_with("Event") => return self.about_events(of, name, call),
            "GreenCtxStreamCreate" => self.context_by(given(0)).ok_or(201).map(|context| {
                self.new_stream(of, context, given(1), place());
            }),
            "StreamCreate" => self.current(of, call.thread).and_then(|context| {
                let known = given(0) < 2;
                known
                    .then(|| self.new_stream(of, context, given(0), place()))
                    .ok_or(1)
            }),
            "ThreadExchangeStreamCaptureMode" => {
                let (wanted, before) =
                    (call.places.first().copied(), self.thread(call.thread).mode);
                match wanted {
                    Some(mode @ 0..=2) => {
                        self.thread(call.thread).mode = mode;
                        match place() == before {
                            true => Ok(()),
                            false => Err(-1),
                        }
                    }
                    _ => Err(1),
                }
            }
            "GraphInstantiate" => self.instantiate(given(0), place(), {
                call.entry.ends_with("WithFlags") && given(1) & 1 != 0
            }),
            "GraphLaunch" => self
                .stream(of, call.thread, given(1))
                .and_then(|stream| self.launch(call.thread, given(0), stream)),
            "GraphDestroy" => self.destroy_graph(of, call.thread, given(0), false),
            "GraphExecDestroy" => self.destroy_graph(of, call.thread, given(0), true),
            "GraphRetainUserObject" => {
                self.hold(given(0));
                return None;
            }
            _ if name.starts_with("Stream") => {
                let stream = self.stream(of, call.thread, given(0));
                return stream.map_or_else(
                    |code| Some(Err(code)),
                    |stream| self.about_stream(of, name, stream, call),
                );
            }
            _ => return None,
        };
        Some(outcome)
    }

    fn new_stream(&mut self, of: Of, context: usize, flags: u64, handle: u64) {
        let sort = match flags {
            0 => Sort::Blocking,
            _ => Sort::NonBlocking,
        };
        self.add_stream(of, context, sort, handle);
    }

    /// What a test does beside the drivers' calls.
    fn control(&mut self, call: &Call) {
        let given = |at: usize| call.arguments.get(at).copied().unwrap_or(0);
        match &*call.entry {
            "sim_reset" => {
                self.devices = given(0);
                for device in 0..self.devices {
                    self.open(Of::Hip, device, device, true);
                }
            }
            // A context that an earlier world has left.
            "sim_retained" => {
                let context = self.open(Of::Cuda, given(1), given(0), true);
                self.contexts[context].retained = given(2);
            }
            "sim_called_by_destructor" => self.misuse("a destructor that calls the driver"),
            "sim_hand_over" => {
                self.thread(call.thread);
                self.all_threads_wait();
            }
            "sim_host" => self.host_touches(call.thread, given(0), given(1), given(2) == 0),
            other => {
                if let Some(what) = other.strip_prefix("switch ") {
                    self.switch(what, given(0) != 0);
                }
            }
        }
    }

    fn kernel(&mut self, call: &Call) -> Outcome {
        let [api, stream, address, bytes, write] = call.arguments[..] else {
            return Err(-1);
        };
        let of = if api == 0 { Of::Cuda } else { Of::Hip };
        let deed = match write {
            0 => Deed::Read(address, bytes),
            _ => Deed::Write(address, bytes),
        };
        let stream = self.stream(of, call.thread, stream)?;
        self.expect_access(stream, address);
        self.step(call.thread, stream, deed)
    }

    fn open(&mut self, of: Of, handle: u64, device: u64, primary: bool) -> usize {
        self.add_context(Context {
            of,
            handle,
            device,
            green: false,
            primary,
            retained: 0,
            gone: false,
        })
    }

    fn about_contexts(&mut self, of: Of, name: &str, call: &Call) -> Option<Outcome> {
        let (thread, place) = (call.thread, call.places.last().copied().unwrap_or(0));
        let given = |at: usize| call.arguments.get(at).copied().unwrap_or(0);
        let device =
            |second: &Self, device: u64| (device < second.devices).then_some(()).ok_or(101);
        Some(match name {
            "DevicePrimaryCtxRetain" => device(self, given(0)).map(|()| {
                let known = self.primary(given(0));
                let context = known.unwrap_or_else(|| self.open(of, place, given(0), true));
                // A green one may have been there first.
                self.contexts[context].handle = place;
                self.contexts[context].retained += 1;
            }),
            "DevicePrimaryCtxRelease" => device(self, given(0)).and_then(|()| {
                let known = self
                    .primary(given(0))
                    .filter(|&at| self.contexts[at].retained > 0);
                let at = known.ok_or(201)?;
                self.contexts[at].retained -= 1;
                if self.contexts[at].retained == 0 {
                    self.end_context(at);
                }
                Ok(())
            }),
            "CtxCreate" => {
                let which = call.arguments.last().copied().unwrap_or(0);
                device(self, which).map(|()| {
                    self.open(of, place, which, false);
                    self.thread(thread).context = place;
                })
            }
            "GreenCtxCreate" => device(self, given(1)).map(|()| {
                let known = self.primary(given(1));
                let primary = known.unwrap_or_else(|| self.open(of, u64::MAX, given(1), true));
                self.contexts[primary].retained += 1;
                let green = self.open(of, place, given(1), false);
                self.contexts[green].green = true;
            }),
            "CtxDestroy" => {
                let found = self
                    .context_by(given(0))
                    .filter(|&at| !self.contexts[at].primary);
                found.ok_or(201).map(|at| {
                    self.end_context(at);
                    if self.thread(thread).context == given(0) {
                        self.thread(thread).context = 0;
                    }
                })
            }
            "CtxSetCurrent" => match (given(0), self.context_by(given(0))) {
                (1.., None) => Err(201),
                (handle, found) => {
                    let green = found.is_some_and(|at| self.contexts[at].green);
                    let elsewhere = |(id, one): (&u64, &super::things::Thread)| {
                        *id != thread && one.context == handle
                    };
                    if green && self.threads.iter().any(elsewhere) {
                        self.misuse("a green context is current twice");
                    }
                    self.thread(thread).context = handle;
                    Ok(())
                }
            },
            "SetDevice" => device(self, given(0)).map(|()| self.thread(thread).device = given(0)),
            "CtxEnablePeerAccess" | "CtxDisablePeerAccess" => {
                let (on, other) = (name == "CtxEnablePeerAccess", self.context_by(given(0)));
                match (on, given(1)) {
                    (true, 1..) => Err(1),
                    _ => self.peer(of, thread, other, on),
                }
            }
            "DeviceEnablePeerAccess" => device(self, given(0)).and_then(|()| {
                let mut all = self.contexts.iter();
                let other = all.position(|one| one.of == of && one.device == given(0));
                match given(1) {
                    0 => self.peer(of, thread, other, true),
                    _ => Err(1),
                }
            }),
            "CtxSynchronize" | "DeviceSynchronize" => {
                let context = match self.current(of, thread) {
                    Ok(context) => context,
                    Err(code) => return Some(Err(code)),
                };
                self.whole(context)
                    .and_then(|()| self.allow(thread))
                    .map(|()| {
                        if !self.ignores("synchronize-all") {
                            let over: Vec<_> = self
                                .ends(|one| self.is_part(one.context, context))
                                .collect();
                            self.thread_waits(thread, &over);
                        }
                    })
            }
            "CtxRecordEvent" if self.is_switched("no-ctx-record-event") => Err(NOT_SUPPORTED),
            "CtxRecordEvent" => self.record_whole(thread, given(0), given(1)),
            _ => return None,
        })
    }

    fn record_whole(&mut self, thread: u64, context: u64, event: u64) -> Outcome {
        let context = self.context_by(context).ok_or(201)?;
        let made_in = self.event(Of::Cuda, event)?.context;
        if !self.are_related(made_in, context) {
            return Err(INVALID_HANDLE);
        }
        self.whole(context)?;
        if !self.ignores("ctx-record") {
            let mut before: Vec<Node> = self.thread(thread).last.into_iter().collect();
            before.extend(self.ends(|one| self.is_part(one.context, context)));
            let node = self.graph.join(before);
            self.event(Of::Cuda, event)?.moment = Moment::After(node);
        }
        Ok(())
    }

    fn about_events(&mut self, of: Of, name: &str, call: &Call) -> Option<Outcome> {
        let (thread, place) = (call.thread, call.places.last().copied().unwrap_or(0));
        let given = |at: usize| call.arguments.get(at).copied().unwrap_or(0);
        let current = self.current(of, thread);
        Some(match name {
            "EventCreate" => current.and_then(|context| {
                let event = Event {
                    of,
                    context,
                    moment: Moment::Always,
                    stream: None,
                    gone: false,
                    timed: given(0) & 2 == 0,
                };
                // What other processes see takes no time.
                if given(0) >= 8 || (event.timed && given(0) & 4 != 0) {
                    return Err(1);
                }
                self.events.insert(place, event);
                Ok(())
            }),
            "EventElapsedTime" => (0..2).try_for_each(|at| {
                let event = self.event(of, given(at))?;
                let recorded = matches!(event.moment, Moment::After(_));
                (event.timed && recorded)
                    .then_some(())
                    .ok_or(INVALID_HANDLE)
            }),
            "EventDestroy" => current
                .and_then(|_| self.event(of, given(0)))
                .map(|event| event.gone = true),
            "EventRecord" => self.stream(of, thread, given(1)).and_then(|stream| {
                let made_in = self.event(of, given(0))?.context;
                if !self.are_related(made_in, self.streams[stream].context) {
                    return Err(INVALID_HANDLE);
                }
                let moment = self.moment(thread, stream)?;
                self.event(of, given(0))
                    .map(|event| (event.moment, event.stream) = (moment, Some(stream)))
            }),
            "EventSynchronize" | "EventQuery" => current.and_then(|_| {
                let event = self.event(of, given(0))?;
                let (moment, stream) = (event.moment.clone(), event.stream);
                if of == Of::Hip && name == "EventQuery" {
                    self.ask(stream, CAPTURED_EVENT)?;
                }
                self.meet_event(thread, &moment, name == "EventQuery")
            }),
            _ => return None,
        })
    }

    fn meet_event(&mut self, thread: u64, moment: &Moment, asks: bool) -> Outcome {
        let Moment::After(node) = *moment else {
            // To ask for what has not been recorded is to ask for what is over, whatever the driver leaves out.
            return self.meet(thread, moment);
        };
        if asks && self.is_switched("slow") {
            self.allow(thread)?;
            let last = self.thread(thread).last;
            let known = last.is_some_and(|last| self.graph.is_over(node, last));
            return known.then_some(()).ok_or(NOT_READY);
        }
        let ignored = if asks { "query" } else { "event-synchronize" };
        match self.ignores(ignored) {
            true => self.allow(thread),
            false => self.meet(thread, moment),
        }
    }

    fn about_stream(&mut self, of: Of, name: &str, stream: usize, call: &Call) -> Option<Outcome> {
        let thread = call.thread;
        let given = |at: usize| call.arguments.get(at).copied().unwrap_or(0);
        Some(match name {
            "StreamDestroy" if matches!(self.streams[stream].sort, Sort::Legacy | Sort::Own(_)) => {
                Err(INVALID_HANDLE)
            }
            "StreamDestroy" => {
                self.streams[stream].gone = true;
                if let Some(capture) = self.streams[stream].capture {
                    self.captures[capture].broken = true;
                }
                Ok(())
            }
            "StreamSynchronize" | "StreamQuery" => self.meet_stream(thread, stream),
            "StreamWaitEvent" if given(2) != 0 => Err(NOT_SUPPORTED),
            "StreamWaitEvent" => self
                .event(of, given(1))
                .map(|event| event.moment.clone())
                .and_then(|moment| self.stream_waits(thread, stream, moment)),
            "StreamBeginCapture" => self.begin_capture(thread, stream, given(1)),
            "StreamEndCapture" => {
                let graph = call.places.last().copied().unwrap_or(0);
                self.end_capture(thread, stream, graph)
            }
            "StreamUpdateCaptureDependencies" => self.add_steps(stream, &call.arguments),
            "StreamIsCapturing" | "StreamGetCaptureInfo" => {
                if let [.., list, 1] = call.places[..] {
                    self.give_out(stream, list);
                }
                self.state(stream)
                    .and_then(|state| match call.places.first() {
                        Some(told) if *told == state => Ok(()),
                        _ => Err(-1),
                    })
            }
            _ => return None,
        })
    }
}
