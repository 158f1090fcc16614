//! Blocks of memory, the accesses to them, and whether a path leads from the earlier access to the later one.

use super::graph::Node;
use super::things::Of;
use super::{Outcome, Second};

/// How memory was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Plain,
    Managed,
    Pinned,
    /// In the order of a stream.
    Ordered,
}

pub(super) struct Block {
    pub(super) of: Of,
    bytes: u64,
    context: usize,
    pub(super) way: Way,
    freed: bool,
    touched: Vec<Touch>,
}

struct Touch {
    from: u64,
    to: u64,
    reads: bool,
    frees: bool,
    node: Node,
    call: usize,
}

/// A copy to memory that no driver gave out, which the host has to wait for.
pub(super) struct Pending {
    from: u64,
    to: u64,
    node: Node,
}

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    Read(u64, u64),
    Write(u64, u64),
    /// To, from, bytes.
    Copy(u64, u64, u64),
    Allocate(u64),
    Free(u64),
}

impl Second {
    pub(super) fn add_block(&mut self, start: u64, bytes: u64, context: usize, way: Way) {
        let of = self.contexts[context].of;
        self.blocks.insert(
            start,
            Block {
                of,
                bytes,
                context,
                way,
                freed: false,
                touched: Vec::new(),
            },
        );
    }

    /// The start of the block that an address is in.
    pub(super) fn block(&self, address: u64) -> Option<u64> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        (address < start + block.bytes).then_some(*start)
    }

    /// Notes it if a kernel on a stream does not reach its memory.
    pub(super) fn expect_access(&mut self, stream: usize, address: u64) {
        let Some(block) = self.block(address).map(|start| &self.blocks[&start]) else {
            return;
        };
        let everywhere = matches!(block.way, Way::Managed | Way::Pinned);
        if !everywhere && !self.has_access(self.streams[stream].context, block.context) {
            self.misuse("memory of a device to which there is no access");
        }
    }

    /// Does a deed at a moment.
    pub(super) fn done(&mut self, node: Node, deed: Deed) -> Outcome {
        match deed {
            Deed::Read(address, bytes) => self.touch(node, address, bytes, true, false),
            Deed::Write(address, bytes) => self.touch(node, address, bytes, false, false),
            Deed::Copy(to, from, bytes) => {
                if self.block(from).is_some() {
                    self.touch(node, from, bytes, true, false)?;
                }
                if self.block(to).is_some() {
                    return self.touch(node, to, bytes, false, false);
                }
                let (from, to) = (to, to + bytes);
                self.copies.retain(|old| old.to <= from || to <= old.from);
                self.copies.push(Pending { from, to, node });
                Ok(())
            }
            Deed::Allocate(start) => {
                // A graph's block begins anew with each launch.
                let block = self.blocks.get_mut(&start).ok_or(1)?;
                block.freed = false;
                block.touched.clear();
                let bytes = block.bytes;
                self.touch(node, start, bytes, false, false)
            }
            Deed::Free(start) => {
                let block = self.blocks.get_mut(&start).ok_or(1)?;
                block.freed = true;
                let bytes = block.bytes;
                self.touch(node, start, bytes, false, true)
            }
        }
    }

    fn touch(&mut self, node: Node, address: u64, bytes: u64, reads: bool, frees: bool) -> Outcome {
        let Some(start) = self.block(address) else {
            self.misuse("memory that is not there");
            return Err(1);
        };
        let Some(block) = self.blocks.get_mut(&start) else {
            return Err(1);
        };
        let (from, to) = (address - start, address - start + bytes);
        if to > block.bytes {
            self.misuse("bytes behind the end of a block");
            return Err(1);
        }
        let touches = |old: &&Touch| old.from < to && from < old.to && !(old.reads && reads);
        let others: Vec<_> = block.touched.iter().filter(touches).collect();
        let nodes: Vec<_> = others.iter().map(|old| old.node).collect();
        let ordered = self.graph.leading(&nodes, node);
        for (old, ordered) in others.iter().zip(ordered) {
            if !ordered || old.frees {
                self.wrong.push(format!(
                    "no path from call {} (ordered: {ordered}, a free: {}) in block {start:#x}",
                    old.call, old.frees
                ));
            }
        }
        block.touched.push(Touch {
            from,
            to,
            reads,
            frees,
            node,
            call: self.read - 1,
        });
        Ok(())
    }

    /// The host itself reads or writes.
    pub(super) fn host_touches(&mut self, thread: u64, address: u64, bytes: u64, reads: bool) {
        self.thread_waits(thread, &[]);
        let Some(node) = self.thread(thread).last else {
            return;
        };
        if self.block(address).is_some() {
            // What is wrong is noted already.
            let _ = self.touch(node, address, bytes, reads, false);
            return;
        }
        let (from, to) = (address, address + bytes);
        let mut near = self
            .copies
            .iter()
            .filter(|one| one.from < to && from < one.to);
        if near.any(|one| !self.graph.leads(one.node, node)) {
            self.misuse("the host does not wait for a copy");
        }
    }

    /// Whether this allocates what is still there from a launch before.
    pub(super) fn is_left_over(&self, deed: &Deed) -> bool {
        let Deed::Allocate(start) = deed else {
            return false;
        };
        let block = self.blocks.get(start);
        block.is_some_and(|block| !block.freed && !block.touched.is_empty())
    }

    /// How the block was allocated that a free names, if it can be freed.
    pub(super) fn living(&mut self, of: Of, start: u64) -> Result<Way, i32> {
        let block = self.blocks.get(&start);
        match block.filter(|block| block.of == of && !block.freed) {
            Some(block) => Ok(block.way),
            None => {
                self.misuse("a free of what is not there");
                Err(1)
            }
        }
    }

    /// Whether the host waits for the device where it frees: it may, for memory of the device.
    fn waits_for_device(&self, of: Of, way: Way) -> bool {
        match way {
            Way::Plain | Way::Managed => !self.is_switched("free-at-once"),
            Way::Pinned | Way::Ordered => of == Of::Hip,
        }
    }

    pub(super) fn free_on_host(&mut self, of: Of, thread: u64, start: u64, way: Way) -> Outcome {
        let device = self.contexts[self.blocks[&start].context].device;
        let mut over = Vec::new();
        if self.waits_for_device(of, way) {
            let there = |context: usize| {
                let context = &self.contexts[context];
                context.of == of && context.device == device
            };
            over.extend(self.ends(|one| there(one.context)));
        }
        self.thread_waits(thread, &over);
        match self.thread(thread).last {
            Some(node) => self.done(node, Deed::Free(start)),
            None => Ok(()),
        }
    }

    pub(super) fn free_all_of(&mut self, context: usize, node: Node) {
        let left =
            |block: &Block| block.context == context && !block.freed && block.way != Way::Ordered;
        let all = self.blocks.iter().filter(|(_, block)| left(block));
        let starts: Vec<u64> = all.map(|(start, _)| *start).collect();
        for start in starts {
            // What is wrong is noted.
            let _ = self.done(node, Deed::Free(start));
        }
    }
}
