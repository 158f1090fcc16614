//! Copies: which memory they read and write, and whether the host waits for them.
//!
//! Modelled: a copy moves its bytes at once, in a graph when it is launched; it is a read and a write at its place in
//! the order. Memory that the driver did not allocate is pageable: a copy between it and the device "might be
//! synchronous with respect to host".
//! Our reading: so a copy from pageable memory is done with it when the call returns, since programs rely on that; one
//! to pageable memory may make the host wait, and yet orders nothing. Both kinds stay out of captures (900).

use crate::access::{AccessKind, Copied, Work};
use crate::clock::Line;
use crate::codes::{Answer, Code};
use crate::stream::{Place, Stamp, StreamId};
use crate::world::{Api, HostId, World};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    ToHost,
    ToDevice,
}

/// A copy to pageable memory, which the host must wait for before it looks there.
pub(crate) struct Pending {
    from: usize,
    to: usize,
    line: Line,
    step: u64,
    label: &'static str,
}

impl World {
    /// Remembers a copy to pageable memory, in place of earlier ones to the same memory: the program may have used it
    /// for something else in between.
    pub(crate) fn expect_copy(&mut self, stamp: &Stamp, copy: Copied, label: &'static str) {
        let (from, to) = (copy.to, copy.to + copy.bytes);
        self.pending.retain(|old| old.to <= from || to <= old.from);
        self.pending.push(Pending {
            from,
            to,
            line: stamp.line,
            step: stamp.step,
            label,
        });
    }

    /// An access of the calling thread itself. Of memory that no driver allocated, only copies to it are known.
    pub(crate) fn touch_on_host(
        &mut self,
        host: HostId,
        address: usize,
        bytes: usize,
        write: bool,
    ) {
        let line = self.host(host).line;
        let stamp = self.step(line);
        if self.block(address).is_some() {
            let kind = if write {
                AccessKind::Write
            } else {
                AccessKind::Read
            };
            // What goes wrong is in the list of faults.
            let _ = self.touch(&stamp, address, bytes, kind, "the program");
            return;
        }
        let overlaps = |copy: &&Pending| copy.from < address + bytes && address < copy.to;
        let late = self
            .pending
            .iter()
            .filter(overlaps)
            .find(|copy| stamp.known.step(copy.line) < copy.step);
        if let Some(copy) = late {
            let (stream, label) = (self.name(copy.line), copy.label);
            let host = self.name(line);
            self.fault(format!(
                "race: access by {host} to memory that {label} on {stream} still writes"
            ));
        }
    }

    /// A copy between two blocks.
    pub(crate) fn copy_on_device(
        &mut self,
        api: Api,
        host: HostId,
        stream: usize,
        copy: Copied,
        label: &'static str,
    ) -> Answer {
        for address in [copy.to, copy.from] {
            if self.block(address).is_none() && copy.bytes > 0 {
                self.fault(format!(
                    "{label} of memory that was not allocated: {address:#x}"
                ));
                return Err(Code::INVALID_VALUE);
            }
        }
        self.work(api, host, stream, Work::Copy(copy), label)
    }

    /// A copy to or from the host, of which one side may be pageable. `waits`: the host goes on when it is done.
    pub(crate) fn copy_with_host(
        &mut self,
        api: Api,
        host: HostId,
        stream: usize,
        copy: Copied,
        direction: Direction,
        label: &'static str,
    ) -> Answer {
        let (device, pageable) = match direction {
            Direction::ToHost => (copy.from, self.block(copy.to).is_none()),
            Direction::ToDevice => (copy.to, self.block(copy.from).is_none()),
        };
        if self.block(device).is_none() && copy.bytes > 0 {
            self.fault(format!(
                "{label} of memory that was not allocated: {device:#x}"
            ));
            return Err(Code::INVALID_VALUE);
        }
        let id = self.stream(api, host, stream)?;
        let place = self.place(host, id)?;
        match place {
            Place::Captured(capture, _) if pageable => {
                self.invalidate(capture);
                return Err(Code::CAPTURE_UNSUPPORTED);
            }
            _ => self.put(place, label, Work::Copy(copy))?,
        }
        Ok(())
    }

    /// A copy by a call that returns when it is done, on the legacy stream.
    pub(crate) fn copy_and_wait(
        &mut self,
        api: Api,
        host: HostId,
        copy: Copied,
        direction: Direction,
        label: &'static str,
    ) -> Answer {
        self.current(api, host)?;
        self.refuse_unsafe(host)?;
        self.copy_with_host(api, host, 0, copy, direction, label)?;
        let legacy = self.stream(api, host, 0)?;
        self.join_stream(host, legacy);
        Ok(())
    }

    fn join_stream(&mut self, host: HostId, id: StreamId) {
        let (host, line) = (self.host(host).line, self.streams[&id.0].line);
        self.join(host, line);
    }
}
