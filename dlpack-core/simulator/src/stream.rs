//! Streams: which one a handle means, and what each step on it waits for without being asked.
//!
//! Modelled: CUDA's handles 0 and 1 are the legacy stream and 2 the calling thread's own stream, both in the calling
//! thread's current context; HIP's handle 0 is the legacy stream of the current device. Every step waits for what the
//! calling thread waited for before. "When an action is taken in the legacy stream such as a kernel launch or
//! cudaStreamWaitEvent(), the legacy stream first waits on all blocking streams, the action is queued in the legacy
//! stream, and then all blocking streams wait on the legacy stream." Per-thread streams are blocking ones. A stream may
//! be destroyed while work runs on it; the handle is then dead, or with the switch `reuse-handles` the next stream's. Its id is
//! no other stream's.
//! HIP captures process-wide: a default stream cannot be used while a blocking stream of any device captures, and to wait
//! for one device breaks the captures of all.
//! Our reading: recording an event and synchronizing are such actions too. The use of a dead or unknown handle is
//! undefined behaviour: here it is a fault and gives 400.

use crate::capture::CaptureId;
use crate::clock::{Clock, Line};
use crate::codes::{Answer, Code};
use crate::world::{Api, HostId, World};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StreamId(pub(crate) usize);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Legacy,
    PerThread,
    Blocking,
    NonBlocking,
}

pub(crate) struct Stream {
    /// What `cuStreamGetId` says.
    pub(crate) id: usize,
    pub(crate) api: Api,
    pub(crate) context: usize,
    pub(crate) line: Line,
    pub(crate) kind: Kind,
    pub(crate) capture: Option<CaptureId>,
    pub(crate) destroyed: bool,
}

impl Stream {
    /// Whether the program made it, and its handle is its number.
    pub(crate) fn is_made(&self) -> bool {
        matches!(self.kind, Kind::Blocking | Kind::NonBlocking)
    }

    pub(crate) fn is_blocking(&self) -> bool {
        matches!(self.kind, Kind::Blocking | Kind::PerThread)
    }
}

/// A step of a line, and what was finished before it.
#[derive(Clone)]
pub(crate) struct Stamp {
    pub(crate) line: Line,
    pub(crate) step: u64,
    pub(crate) known: Clock,
}

/// Where a step on a stream goes.
pub(crate) enum Place {
    Running(Stamp),
    /// Into a capture, as its branch of this number.
    Captured(CaptureId, usize),
}

impl World {
    pub(crate) fn add_stream(
        &mut self,
        api: Api,
        context: usize,
        kind: Kind,
        name: Option<String>,
    ) -> StreamId {
        let id = self.new_handle();
        let reusable = self.is_switched("reuse-handles");
        let old = self
            .streams
            .iter()
            .find(|(_, old)| reusable && old.destroyed && old.is_made() && old.capture.is_none());
        let handle = old.map_or(id, |(handle, _)| *handle);
        // What the old one has begun goes on.
        if let Some(old) = self.streams.remove(&handle) {
            self.streams.insert(id, old);
        }
        let line = self.new_line(name.unwrap_or_else(|| format!("stream {handle:#x}")));
        let stream = Stream {
            id,
            api,
            context,
            line,
            kind,
            capture: None,
            destroyed: false,
        };
        self.streams.insert(handle, stream);
        StreamId(handle)
    }

    pub(crate) fn create_stream(&mut self, api: Api, host: HostId, flags: u32) -> Answer<usize> {
        let context = self.current(api, host)?;
        self.create_stream_in(api, context, flags)
    }

    pub(crate) fn create_stream_in(
        &mut self,
        api: Api,
        context: usize,
        flags: u32,
    ) -> Answer<usize> {
        let kind = match flags {
            0 => Kind::Blocking,
            1 => Kind::NonBlocking,
            _ => return Err(Code::INVALID_VALUE),
        };
        Ok(self.add_stream(api, context, kind, None).0)
    }

    /// The flags that a stream of this kind is made with.
    pub(crate) fn stream_flags(&mut self, api: Api, host: HostId, handle: usize) -> Answer<u32> {
        let id = self.stream_to_ask(api, host, handle)?;
        Ok(u32::from(self.streams[&id.0].kind == Kind::NonBlocking))
    }

    /// A stream that is asked for its context, flags or number. By the strict reading a capture forbids that in CUDA; the
    /// sources of HIP look at no capture there.
    pub(crate) fn stream_to_ask(
        &mut self,
        api: Api,
        host: HostId,
        handle: usize,
    ) -> Answer<StreamId> {
        let id = self.stream(api, host, handle)?;
        if api == Api::Hip || self.is_switched("lax-captures") {
            return Ok(id);
        }
        let stream = &self.streams[&id.0];
        if stream.kind == Kind::Legacy {
            self.refuse_implicit(stream.context)?;
        } else if let Some(capture) = stream.capture {
            self.invalidate(capture);
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        Ok(id)
    }

    pub(crate) fn destroy_stream(&mut self, api: Api, host: HostId, handle: usize) -> Answer {
        let id = self.stream(api, host, handle)?;
        if !self.streams[&id.0].is_made() {
            return Err(Code::INVALID_HANDLE);
        }
        if let Some(capture) = self.streams[&id.0].capture {
            self.invalidate(capture);
        }
        self.at(id).destroyed = true;
        Ok(())
    }

    pub(crate) fn at(&mut self, id: StreamId) -> &mut Stream {
        self.streams
            .get_mut(&id.0)
            .expect("a stream stays in the table when it is destroyed")
    }

    /// The stream that a handle means to the calling thread.
    pub(crate) fn stream(&mut self, api: Api, host: HostId, handle: usize) -> Answer<StreamId> {
        let current = self.current(api, host)?;
        match (api, handle) {
            (_, 0) | (Api::Cuda, 1) => return Ok(self.contexts[&current].legacy),
            (Api::Cuda, 2) => return Ok(self.per_thread(current, host)),
            _ => {}
        }
        let problem = match self.streams.get(&handle) {
            Some(stream) if stream.api == api && stream.is_made() => {
                if !stream.destroyed {
                    return Ok(StreamId(handle));
                }
                "use of a destroyed stream"
            }
            _ => "use of an unknown stream",
        };
        self.fault(format!("{problem}: {handle:#x}"));
        Err(Code::INVALID_HANDLE)
    }

    fn per_thread(&mut self, context: usize, host: HostId) -> StreamId {
        if let Some(&id) = self.contexts[&context].per_thread.get(&host) {
            return id;
        }
        let line = self.host(host).line;
        let name = format!("the stream of {} in {context:#x}", self.name(line));
        let id = self.add_stream(Api::Cuda, context, Kind::PerThread, Some(name));
        if let Some(context) = self.contexts.get_mut(&context) {
            context.per_thread.insert(host, id);
        }
        id
    }

    /// One more step of a line.
    pub(crate) fn step(&mut self, line: Line) -> Stamp {
        let step = self.clock(line).tick(line);
        let known = self.clock(line).clone();
        Stamp { line, step, known }
    }

    /// The next step on a stream that the calling thread asks for, after all that it has to wait for.
    pub(crate) fn place(&mut self, host: HostId, id: StreamId) -> Answer<Place> {
        let stream = &self.streams[&id.0];
        let (line, kind, context) = (stream.line, stream.kind, stream.context);
        if let Some(capture) = stream.capture {
            let branch = self.branch(capture, id)?;
            return Ok(Place::Captured(capture, branch));
        }
        let host = self.host(host).line;
        self.join(line, host);
        if kind == Kind::Legacy {
            self.refuse_implicit(context)?;
        }
        if self.is_switched("ignore-legacy") {
            return Ok(Place::Running(self.step(line)));
        }
        if kind == Kind::Legacy {
            for earlier in self.lines_of(|other| other.context == context && other.is_blocking()) {
                self.join(line, earlier);
            }
        } else if kind != Kind::NonBlocking {
            let legacy = self.contexts[&context].legacy;
            let legacy = self.streams[&legacy.0].line;
            self.join(line, legacy);
        }
        Ok(Place::Running(self.step(line)))
    }

    /// "The legacy stream is in an unusable state until the blocking stream capture is terminated."
    fn refuse_implicit(&mut self, context: usize) -> Answer {
        let captures = self.captures_beside(context);
        if captures.is_empty() {
            return Ok(());
        }
        for capture in captures {
            self.invalidate(capture);
        }
        Err(Code::CAPTURE_IMPLICIT)
    }

    pub(crate) fn synchronize_stream(&mut self, api: Api, host: HostId, handle: usize) -> Answer {
        let id = self.stream(api, host, handle)?;
        if let Some(capture) = self.streams[&id.0].capture {
            self.invalidate(capture);
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        self.refuse_unsafe(host)?;
        let place = self.place(host, id)?;
        let ignored = self.is_switched("ignore-stream-synchronize");
        if let (Place::Running(stamp), false) = (place, ignored) {
            let host = self.host(host).line;
            self.join(host, stamp.line);
        }
        Ok(())
    }

    /// Waits for all streams of the current context, or in HIP device, unless one of them captures; in HIP, one of any
    /// device.
    pub(crate) fn synchronize_all(&mut self, api: Api, host: HostId) -> Answer {
        let current = self.current(api, host)?;
        let captures = self.captures_where(|stream| {
            stream.api == api && (api == Api::Hip || self.is_within(stream.context, current))
        });
        if !captures.is_empty() {
            for capture in captures {
                self.invalidate(capture);
            }
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        self.refuse_unsafe(host)?;
        if self.is_switched("ignore-synchronize-all") {
            return Ok(());
        }
        let host = self.host(host).line;
        for earlier in self.lines_of(|stream| self.is_within(stream.context, current)) {
            self.join(host, earlier);
        }
        Ok(())
    }
}
