//! Memory: blocks, the accesses to them, and what a free waits for.
//!
//! Modelled: an access is ordered after another, or races with it if they overlap and one of them writes. Memory that
//! is allocated in stream order "must not be accessed until the allocation operation completes"; freed in stream order,
//! it "must not be accessed after stream execution reaches the free", so that either is a write of the whole block on
//! the stream. `cuMemFree` "will not perform any implicit synchronization" for stream-ordered memory.
//! Our reading: a pool may have to grow, so to allocate from it outside of a capture is as unsafe beside one as any allocation.
//! For other memory `cuMemFree` waits for all work of the device, where the manual says that it "may
//! perform implicit synchronization", or with the switch `free-at-once` for nothing; `cuMemFreeHost`, of which it says nothing, waits for nothing; HIP's `hipFree` and
//! `hipHostFree` wait for the device, whatever they free. Stream-ordered memory of no bytes is address 0, which may be freed. Freed bytes
//! become 0xDD, and no address is used again in the process.

use crate::access::{Access, Work};
use crate::codes::{Answer, Code};
use crate::raw;
use crate::stream::Place;
use crate::world::{Api, HostId, World};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryKind {
    Plain,
    /// Allocated in stream order.
    Ordered,
    Managed,
    Pinned,
}

pub(crate) struct Block {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    pub(crate) api: Api,
    pub(crate) context: usize,
    device: i32,
    pub(crate) kind: MemoryKind,
    pub(crate) freed: bool,
    pub(crate) accesses: Vec<Access>,
}

impl Block {
    /// Whether anything has happened to it; a block of a graph is not there before the first launch.
    pub(crate) fn is_used(&self) -> bool {
        !self.accesses.is_empty()
    }
}

impl World {
    /// The block that an address lies in.
    pub(crate) fn block(&self, address: usize) -> Option<&Block> {
        let (_, block) = self.blocks.range(..=address).next_back()?;
        (address - block.start < block.bytes).then_some(block)
    }

    fn add_block(&mut self, context: usize, bytes: usize, kind: MemoryKind) -> Answer<usize> {
        let (api, device) = self.device_of(context).ok_or(Code::INVALID_CONTEXT)?;
        let start = raw::allocate(bytes).ok_or(Code::OUT_OF_MEMORY)?;
        let block = Block {
            start,
            bytes,
            api,
            context,
            device,
            kind,
            freed: false,
            accesses: Vec::new(),
        };
        self.blocks.insert(start, block);
        Ok(start)
    }

    pub(crate) fn allocate(
        &mut self,
        api: Api,
        host: HostId,
        bytes: usize,
        kind: MemoryKind,
    ) -> Answer<usize> {
        let context = self.current(api, host)?;
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.refuse_unsafe(host)?;
        self.add_block(context, bytes, kind)
    }

    pub(crate) fn allocate_ordered(
        &mut self,
        api: Api,
        host: HostId,
        bytes: usize,
        stream: usize,
        label: &'static str,
    ) -> Answer<usize> {
        let id = self.stream(api, host, stream)?;
        if self.is_switched("no-memory-pools") {
            return Err(Code::NOT_SUPPORTED);
        }
        if bytes == 0 {
            return Ok(0);
        }
        let place = self.place(host, id)?;
        if matches!(place, Place::Running(_)) {
            self.refuse_unsafe(host)?;
        }
        let context = self.streams[&id.0].context;
        let address = self.add_block(context, bytes, MemoryKind::Ordered)?;
        if let Place::Captured(capture, _) = place {
            self.captured(capture).allocated.insert(address);
        }
        self.put(place, label, Work::Allocate { address })?;
        Ok(address)
    }

    /// The start of a live block, for a free.
    fn live(&mut self, api: Api, address: usize) -> Answer<MemoryKind> {
        let problem = match self.blocks.get(&address) {
            Some(block) if block.api != api => "free of memory of the other driver",
            Some(block) if block.freed => "free of memory that is already freed",
            Some(block) => return Ok(block.kind),
            None => "free of an address that was not allocated",
        };
        self.fault(format!("{problem}: {address:#x}"));
        Err(Code::INVALID_VALUE)
    }

    pub(crate) fn free_ordered(
        &mut self,
        api: Api,
        host: HostId,
        address: usize,
        stream: usize,
        label: &'static str,
    ) -> Answer {
        let id = self.stream(api, host, stream)?;
        if address == 0 {
            return Ok(());
        }
        if !matches!(
            self.live(api, address)?,
            MemoryKind::Plain | MemoryKind::Ordered
        ) {
            return Err(Code::INVALID_VALUE);
        }
        let place = self.place(host, id)?;
        if let Place::Captured(capture, _) = place {
            // A free node takes what the same graph allocated, and nothing else.
            if !self.captured(capture).allocated.contains(&address) {
                return Err(Code::INVALID_VALUE);
            }
        }
        self.put(place, label, Work::Free { address })
    }

    /// Whether a free of this address waits for the device.
    pub(crate) fn free_waits(&self, address: usize) -> bool {
        self.blocks
            .get(&address)
            .is_some_and(|block| match block.kind {
                MemoryKind::Plain | MemoryKind::Managed if self.is_switched("free-at-once") => {
                    false
                }
                MemoryKind::Plain | MemoryKind::Managed => true,
                MemoryKind::Pinned | MemoryKind::Ordered => block.api == Api::Hip,
            })
    }

    pub(crate) fn free(
        &mut self,
        api: Api,
        host: HostId,
        address: usize,
        pinned: bool,
        label: &'static str,
    ) -> Answer {
        self.current(api, host)?;
        if address == 0 {
            return Ok(());
        }
        if (self.live(api, address)? == MemoryKind::Pinned) != pinned {
            return Err(Code::INVALID_VALUE);
        }
        self.refuse_unsafe(host)?;
        let line = self.host(host).line;
        if self.free_waits(address) {
            let device = self.blocks[&address].device;
            let contexts: Vec<_> = self
                .contexts
                .iter()
                .filter(|(_, context)| context.api == api && context.device == device)
                .map(|(handle, _)| *handle)
                .collect();
            for earlier in self.lines_of(|stream| contexts.contains(&stream.context)) {
                self.join(line, earlier);
            }
        }
        let stamp = self.step(line);
        self.run(&stamp, label, &Work::Free { address })
    }

    /// A kernel that does not reach its memory breaks its context for good.
    fn expect_reach(&mut self, context: usize, address: usize) {
        let on_device =
            |block: &&Block| matches!(block.kind, MemoryKind::Plain | MemoryKind::Ordered);
        let Some(owner) = self
            .block(address)
            .filter(on_device)
            .map(|block| block.context)
        else {
            return;
        };
        if !self.reaches(context, owner) {
            self.fault(format!(
                "a kernel of context {context:#x} has no peer access to {address:#x}"
            ));
        }
    }

    /// A step on a stream.
    pub(crate) fn work(
        &mut self,
        api: Api,
        host: HostId,
        stream: usize,
        work: Work,
        label: &'static str,
    ) -> Answer {
        let id = self.stream(api, host, stream)?;
        if let Work::Touch { address, .. } | Work::Fill { to: address, .. } = work {
            self.expect_reach(self.streams[&id.0].context, address);
        }
        let place = self.place(host, id)?;
        self.put(place, label, work)
    }
}
