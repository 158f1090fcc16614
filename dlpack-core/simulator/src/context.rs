//! Contexts: one primary context per device, others by request, and the one that a thread works in.
//!
//! Modelled: a primary context exists while it is retained, and keeps its handle when it comes back; each thread of
//! the operating system has at most one current context (CUDA) or device (HIP, device 0 at first). The end of a context
//! "destroys and cleans up all resources associated with the context": streams, events and memory, but "will not
//! destroy memory allocations by cuMemAllocAsync". Where it is still current, calls give 709.
//! Our reading: everything that takes a stream or an event, or allocates or frees, gives 201 without a current context,
//! even where the handle would say which context is meant; a context that has ended gives 201 when it is made current.
//! A green context is a part of the primary one with streams of its own, default ones too: "a green context can be current
//! to only one thread at a time".
//! A kernel reaches what was allocated on another device only with peer access, which a context has to another one, in one
//! direction; managed and pinned memory it always reaches, and copies need none.
//! The stack of contexts (push, pop) is left out. HIP has one context per device, which is always there. A machine
//! without devices gives 100 to `cuInit`, `hipInit` and `hipGetDeviceCount` and 101 to others, as the real libraries
//! were seen to.

use std::collections::BTreeMap;

use crate::access::Work;
use crate::clock::Line;
use crate::codes::{Answer, Code};
use crate::memory::MemoryKind;
use crate::stream::{Kind, StreamId};
use crate::world::{Api, HostId, World};

pub(crate) struct Context {
    pub(crate) api: Api,
    pub(crate) device: i32,
    pub(crate) primary: bool,
    /// Of a green context: the primary one that it is a part of.
    pub(crate) part_of: Option<usize>,
    pub(crate) legacy: StreamId,
    pub(crate) per_thread: BTreeMap<HostId, StreamId>,
}

/// The handle of a primary context: always the same, as one process's driver does it.
fn primary_handle(api: Api, device: i32) -> usize {
    let base = match api {
        Api::Cuda => 0x1000,
        Api::Hip => 0x8000,
    };
    base + 0x10 * usize::try_from(device).unwrap_or(0)
}

impl World {
    pub(crate) fn open_context(&mut self, api: Api, device: i32, primary: bool) -> usize {
        let handle = if primary {
            primary_handle(api, device)
        } else {
            self.new_handle()
        };
        let name = format!("the legacy stream of {} context {handle:#x}", api.name());
        let legacy = self.add_stream(api, handle, Kind::Legacy, Some(name));
        let context = Context {
            api,
            device,
            primary,
            part_of: None,
            legacy,
            per_thread: BTreeMap::new(),
        };
        self.contexts.insert(handle, context);
        handle
    }

    pub(crate) fn check_device(&self, device: i32) -> Answer {
        if (0..self.devices).contains(&device) {
            Ok(())
        } else {
            Err(Code::INVALID_DEVICE)
        }
    }

    pub(crate) fn retain_primary(&mut self, device: i32) -> Answer<usize> {
        self.check_device(device)?;
        let handle = primary_handle(Api::Cuda, device);
        if !self.contexts.contains_key(&handle) {
            self.open_context(Api::Cuda, device, true);
        }
        *self.lasting.retained.entry(device).or_default() += 1;
        Ok(handle)
    }

    pub(crate) fn release_primary(&mut self, device: i32) -> Answer {
        self.check_device(device)?;
        let Some(count) = self.lasting.retained.get_mut(&device) else {
            return Err(Code::INVALID_CONTEXT);
        };
        *count -= 1;
        if *count == 0 {
            self.lasting.retained.remove(&device);
            self.end_context(primary_handle(Api::Cuda, device));
        }
        Ok(())
    }

    pub(crate) fn create_context(&mut self, host: HostId, device: i32) -> Answer<usize> {
        self.check_device(device)?;
        let handle = self.open_context(Api::Cuda, device, false);
        // "If a context is already current to the thread, it is supplanted by the newly created context."
        self.host(host).context = handle;
        Ok(handle)
    }

    /// A green context, which retains the primary one. It does not become current to any thread.
    pub(crate) fn create_green(&mut self, device: i32) -> Answer<usize> {
        let primary = self.retain_primary(device)?;
        let handle = self.open_context(Api::Cuda, device, false);
        if let Some(context) = self.contexts.get_mut(&handle) {
            context.part_of = Some(primary);
        }
        Ok(handle)
    }

    /// The context itself, or of a green one the primary one.
    pub(crate) fn root(&self, context: usize) -> usize {
        let known = self.contexts.get(&context);
        known.and_then(|known| known.part_of).unwrap_or(context)
    }

    /// Whether this is the other context, or a green part of it.
    pub(crate) fn is_within(&self, context: usize, other: usize) -> bool {
        context == other || self.root(context) == other
    }

    /// The context and the green context of a stream, as `cuStreamGetCtx_v2` tells them.
    pub(crate) fn contexts_of(&self, context: usize) -> (usize, usize) {
        let root = self.root(context);
        (root, if root == context { 0 } else { context })
    }

    pub(crate) fn destroy_context(&mut self, host: HostId, handle: usize) -> Answer {
        match self.contexts.get(&handle) {
            Some(context) if context.api == Api::Cuda && !context.primary => {}
            _ => return Err(Code::INVALID_CONTEXT),
        }
        self.end_context(handle);
        // "If ctx is current to the calling thread then ctx will also be popped from the current thread's context
        // stack."
        if self.host(host).context == handle {
            self.host(host).context = 0;
        }
        Ok(())
    }

    fn end_context(&mut self, handle: usize) {
        // The primary context of HIP lasts for ever, so what is ended here is CUDA's.
        let Some(context) = self.contexts.remove(&handle) else {
            return;
        };
        for stream in self.streams.values_mut() {
            if stream.context == handle {
                stream.destroyed = true;
            }
        }
        for event in self.events.values_mut() {
            if event.context == handle {
                event.destroyed = true;
            }
        }
        let line = self.streams[&context.legacy.0].line;
        for earlier in self.lines_of(|stream| stream.context == handle) {
            self.join(line, earlier);
        }
        let left: Vec<_> = self
            .blocks
            .values()
            .filter(|block| block.context == handle && !block.freed)
            .filter(|block| block.kind != MemoryKind::Ordered)
            .map(|block| block.start)
            .collect();
        for address in left {
            let stamp = self.step(line);
            // What goes wrong is in the list of faults.
            let _ = self.run(&stamp, "the end of the context", &Work::Free { address });
        }
    }

    /// The lines of the streams that are asked for.
    pub(crate) fn lines_of(&self, wanted: impl Fn(&crate::stream::Stream) -> bool) -> Vec<Line> {
        self.streams
            .values()
            .filter(|stream| wanted(stream))
            .map(|stream| stream.line)
            .collect()
    }

    pub(crate) fn set_current(&mut self, host: HostId, handle: usize) -> Answer {
        let known = self.contexts.get(&handle);
        if handle != 0 && known.is_none_or(|context| context.api != Api::Cuda) {
            return Err(Code::INVALID_CONTEXT);
        }
        let green = known.is_some_and(|context| context.part_of.is_some());
        let mut others = self.hosts.iter().filter(|(id, _)| **id != host);
        if green && others.any(|(_, other)| other.context == handle) {
            self.fault(format!(
                "green context {handle:#x} is current to a second thread"
            ));
        }
        self.host(host).context = handle;
        Ok(())
    }

    /// The context that the calling thread works in.
    pub(crate) fn current(&mut self, api: Api, host: HostId) -> Answer<usize> {
        let handle = match api {
            Api::Cuda => self.host(host).context,
            Api::Hip => {
                let device = self.host(host).device;
                self.check_device(device)?;
                primary_handle(api, device)
            }
        };
        if handle == 0 {
            Err(Code::INVALID_CONTEXT)
        } else if self.contexts.contains_key(&handle) {
            Ok(handle)
        } else {
            Err(Code::CONTEXT_IS_DESTROYED)
        }
    }

    /// Lets the current context, or HIP device, reach the memory of another one, or not.
    pub(crate) fn set_peer(&mut self, api: Api, host: HostId, peer: usize, on: bool) -> Answer {
        let current = self.current(api, host)?;
        let (own, other) = (self.device_of(current), self.device_of(peer));
        if own == other || other.is_none_or(|(of, _)| of != api) {
            return Err(Code::INVALID_CONTEXT);
        }
        let pair = (self.root(current), self.root(peer));
        match (on, on == self.peers.contains(&pair)) {
            (true, true) => return Err(Code::PEER_ALREADY),
            (false, true) => return Err(Code::PEER_NOT_ENABLED),
            (true, false) => self.peers.insert(pair),
            (false, false) => self.peers.remove(&pair),
        };
        Ok(())
    }

    /// Whether a kernel on a stream of this context reaches memory that was allocated in the other one.
    pub(crate) fn reaches(&self, context: usize, owner: usize) -> bool {
        let pair = (self.root(context), self.root(owner));
        let same_device = self.device_of(context) == self.device_of(owner);
        let of_other_api =
            self.device_of(context).map(|of| of.0) != self.device_of(owner).map(|of| of.0);
        same_device || of_other_api || self.peers.contains(&pair)
    }

    /// The handle in `contexts` of a device of HIP.
    pub(crate) fn hip_device(&self, device: i32) -> Answer<usize> {
        self.check_device(device)?;
        Ok(primary_handle(Api::Hip, device))
    }

    pub(crate) fn device_of(&self, context: usize) -> Option<(Api, i32)> {
        self.contexts
            .get(&context)
            .map(|context| (context.api, context.device))
    }
}
