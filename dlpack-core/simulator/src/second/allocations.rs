//! What those calls mean that allocate, free, copy and fill.

use super::calls::NOT_SUPPORTED;
use super::captures::Spot;
use super::memory::{Deed, Way};
use super::things::Of;
use super::{Outcome, Second};
use crate::record::Call;

impl Second {
    pub(super) fn about_memory(&mut self, of: Of, name: &str, call: &Call) -> Option<Outcome> {
        let (thread, place) = (call.thread, call.places.last().copied().unwrap_or(0));
        let given = |at: usize| call.arguments.get(at).copied().unwrap_or(0);
        let bytes = given(0);
        let new = |way: Way| (way, bytes, place);
        let (way, bytes, start) = match name {
            "MemAlloc" | "Malloc" => new(Way::Plain),
            "MemAllocManaged" | "MallocManaged" => new(Way::Managed),
            "MemHostAlloc" | "MemAllocHost" | "HostMalloc" => new(Way::Pinned),
            "MemAllocAsync" | "MallocAsync" => {
                return Some(self.allocate_in_order(of, thread, [bytes, given(1), place]));
            }
            "MemFree" | "Free" => return Some(self.free(of, thread, given(0), false)),
            "MemFreeHost" | "HostFree" => return Some(self.free(of, thread, given(0), true)),
            "MemFreeAsync" | "FreeAsync" => {
                return Some(self.free_in_order(of, thread, given(0), given(1)));
            }
            _ => return self.about_copies(of, name, call),
        };
        Some(self.current(of, thread).and_then(|context| {
            if bytes == 0 {
                return Err(1);
            }
            self.allow(thread)?;
            self.add_block(start, bytes, context, way);
            Ok(())
        }))
    }

    fn allocate_in_order(&mut self, of: Of, thread: u64, call: [u64; 3]) -> Outcome {
        let [bytes, stream, start] = call;
        let stream = self.stream(of, thread, stream)?;
        if self.is_switched("no-memory-pools") {
            return Err(NOT_SUPPORTED);
        }
        if bytes == 0 {
            return Ok(());
        }
        let spot = self.spot(thread, stream)?;
        self.add_block(start, bytes, self.streams[stream].context, Way::Ordered);
        match spot {
            Spot::Now(node) => self.done(node, Deed::Allocate(start)),
            Spot::Inside(capture) => {
                self.captures[capture].allocated.insert(start);
                self.write_down(capture, stream, Deed::Allocate(start));
                Ok(())
            }
        }
    }

    fn free(&mut self, of: Of, thread: u64, start: u64, pinned: bool) -> Outcome {
        self.current(of, thread)?;
        if start == 0 {
            return Ok(());
        }
        let way = self.living(of, start)?;
        if (way == Way::Pinned) != pinned {
            return Err(1);
        }
        self.allow(thread)?;
        self.free_on_host(of, thread, start, way)
    }

    fn free_in_order(&mut self, of: Of, thread: u64, start: u64, stream: u64) -> Outcome {
        let stream = self.stream(of, thread, stream)?;
        if start == 0 {
            return Ok(());
        }
        if !matches!(self.living(of, start)?, Way::Plain | Way::Ordered) {
            return Err(1);
        }
        match self.spot(thread, stream)? {
            Spot::Now(node) => self.done(node, Deed::Free(start)),
            // A graph frees what it has allocated.
            Spot::Inside(capture) if self.captures[capture].allocated.contains(&start) => {
                self.write_down(capture, stream, Deed::Free(start));
                Ok(())
            }
            Spot::Inside(_) => Err(1),
        }
    }

    fn about_copies(&mut self, of: Of, name: &str, call: &Call) -> Option<Outcome> {
        let given = |at: usize| call.arguments.get(at).copied().unwrap_or(0);
        // Which side is the device's, and on which stream; those without one wait.
        let (devices, deed, stream) = match name {
            "MemcpyHtoDAsync" | "MemcpyHtoD" => (
                vec![given(0)],
                Deed::Copy(given(0), given(1), given(2)),
                given(3),
            ),
            "MemcpyDtoHAsync" | "MemcpyDtoH" => (
                vec![given(1)],
                Deed::Copy(given(0), given(1), given(2)),
                given(3),
            ),
            "MemcpyDtoDAsync" | "MemcpyDtoD" => (
                vec![given(0), given(1)],
                Deed::Copy(given(0), given(1), given(2)),
                given(3),
            ),
            "MemcpyPeerAsync" => (
                vec![given(0), given(2)],
                Deed::Copy(given(0), given(2), given(4)),
                given(5),
            ),
            // The byte is not in the record.
            "MemsetD8Async" | "MemsetD8" => (vec![], Deed::Write(given(0), given(1)), given(2)),
            _ => return None,
        };
        let waits = matches!(name, "MemcpyHtoD" | "MemcpyDtoH");
        Some(self.copies(of, call.thread, &devices, deed, stream, waits))
    }

    fn copies(
        &mut self,
        of: Of,
        thread: u64,
        devices: &[u64],
        deed: Deed,
        stream: u64,
        waits: bool,
    ) -> Outcome {
        if waits {
            self.current(of, thread)?;
            self.allow(thread)?;
        }
        if let Deed::Copy(_, _, 1..) = deed {
            for address in devices {
                if self.block(*address).is_none() {
                    self.misuse("a copy of what is not there");
                    return Err(1);
                }
            }
        }
        let stream = self.stream(of, thread, stream)?;
        if let Deed::Write(address, _) = deed {
            self.expect_access(stream, address);
        }
        let spot = self.spot(thread, stream)?;
        match (spot, deed) {
            (Spot::Inside(capture), Deed::Copy(to, from, _))
                if devices.len() == 1
                    && (self.block(to).is_none() || self.block(from).is_none()) =>
            {
                // The host's own memory stays out of captures.
                self.captures[capture].broken = true;
                return Err(super::captures::UNSUPPORTED);
            }
            (Spot::Inside(capture), deed) => self.write_down(capture, stream, deed),
            (Spot::Now(node), deed) => self.done(node, deed)?,
        }
        if waits {
            let over = self.streams[stream].last;
            self.thread_waits(thread, &over.into_iter().collect::<Vec<_>>());
        }
        Ok(())
    }
}
