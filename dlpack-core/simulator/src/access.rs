//! Accesses: what a step does to memory, and whether an earlier access was ordered before it.

use crate::clock::Line;
use crate::codes::{Answer, Code};
use crate::graph::Step;
use crate::raw;
use crate::stream::{Place, Stamp};
use crate::world::World;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessKind {
    Read,
    Write,
    Allocate,
    Free,
}

impl AccessKind {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Allocate => "allocation",
            Self::Free => "free",
        }
    }
}

pub(crate) struct Access {
    kind: AccessKind,
    from: usize,
    to: usize,
    line: Line,
    step: u64,
    label: &'static str,
}

/// The two ends of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) bytes: usize,
}

/// What a step does to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Touch {
        address: usize,
        bytes: usize,
        write: bool,
    },
    Copy(Copied),
    Fill {
        to: usize,
        value: u8,
        bytes: usize,
    },
    Allocate {
        address: usize,
    },
    Free {
        address: usize,
    },
}

impl World {
    /// Does a step's work, or writes it into the capture that the step belongs to.
    pub(crate) fn put(&mut self, place: Place, label: &'static str, work: Work) -> Answer {
        match place {
            Place::Running(stamp) => self.run(&stamp, label, &work),
            Place::Captured(capture, branch) => {
                let capture = self.captured(capture);
                let stamp = capture.next(branch);
                capture.steps.push(Step { stamp, label, work });
                Ok(())
            }
        }
    }

    pub(crate) fn run(&mut self, stamp: &Stamp, label: &'static str, work: &Work) -> Answer {
        match *work {
            Work::Touch {
                address,
                bytes,
                write,
            } => {
                let kind = if write {
                    AccessKind::Write
                } else {
                    AccessKind::Read
                };
                self.touch(stamp, address, bytes, kind, label)
            }
            Work::Copy(Copied { to, from, bytes }) => {
                let (from_known, to_known) = (self.block(from), self.block(to));
                let (from_known, to_known) = (from_known.is_some(), to_known.is_some());
                if from_known {
                    self.touch(stamp, from, bytes, AccessKind::Read, label)?;
                }
                if to_known {
                    self.touch(stamp, to, bytes, AccessKind::Write, label)?;
                }
                if !to_known {
                    self.expect_copy(stamp, Copied { to, from, bytes }, label);
                }
                raw::copy(from, to, bytes);
                Ok(())
            }
            Work::Fill { to, value, bytes } => {
                self.touch(stamp, to, bytes, AccessKind::Write, label)?;
                raw::fill(to, value, bytes);
                Ok(())
            }
            Work::Allocate { address } => {
                let block = self.blocks.get_mut(&address).ok_or(Code::INVALID_VALUE)?;
                // A graph allocates the same block at each launch; what came before was another life of it.
                block.freed = false;
                block.accesses.clear();
                let bytes = block.bytes;
                self.touch(stamp, address, bytes, AccessKind::Allocate, label)
            }
            Work::Free { address } => {
                let bytes = self.blocks.get(&address).ok_or(Code::INVALID_VALUE)?.bytes;
                self.touch(stamp, address, bytes, AccessKind::Free, label)?;
                raw::fill(address, 0xDD, bytes);
                if let Some(block) = self.blocks.get_mut(&address) {
                    block.freed = true;
                }
                Ok(())
            }
        }
    }

    /// Compares an access with all earlier ones, and remembers it.
    pub(crate) fn touch(
        &mut self,
        stamp: &Stamp,
        address: usize,
        bytes: usize,
        kind: AccessKind,
        label: &'static str,
    ) -> Answer {
        let who = |line: Line, kind: AccessKind, label: &str| {
            format!("{} by {} ({label})", kind.name(), self.name(line))
        };
        let here = who(stamp.line, kind, label);
        let Some(block) = self.block(address) else {
            self.fault(format!(
                "{here} of memory that was not allocated: {address:#x}"
            ));
            return Err(Code::INVALID_VALUE);
        };
        let start = block.start;
        let (from, to) = (address - start, address - start + bytes);
        if to > block.bytes {
            let size = block.bytes;
            self.fault(format!("{here} of bytes {from}..{to} in a block of {size}"));
            return Err(Code::INVALID_VALUE);
        }
        let mut faults = Vec::new();
        let mut blamed = Vec::new();
        // The last access of a line stands for its earlier ones.
        for earlier in block.accesses.iter().rev() {
            let overlap = earlier.from < to && from < earlier.to;
            let both_read = earlier.kind == AccessKind::Read && kind == AccessKind::Read;
            if !overlap || both_read || blamed.contains(&earlier.line) {
                continue;
            }
            let there = who(earlier.line, earlier.kind, earlier.label);
            let ordered = stamp.known.step(earlier.line) >= earlier.step;
            let bytes = format!("bytes {from}..{to} of the block at {start:#x}");
            if !ordered {
                faults.push(format!(
                    "race: {here} and {there} in {bytes}, and neither waits for the other"
                ));
            } else if earlier.kind == AccessKind::Free {
                faults.push(format!("use after free: {here} after {there} in {bytes}"));
            } else {
                continue;
            }
            blamed.push(earlier.line);
        }
        self.faults.append(&mut faults);
        let access = Access {
            kind,
            from,
            to,
            line: stamp.line,
            step: stamp.step,
            label,
        };
        if let Some(block) = self.blocks.get_mut(&start) {
            // An access that is ordered after this one is ordered after the same line's earlier ones.
            block.accesses.retain(|old| {
                (old.line, old.kind, old.from, old.to)
                    != (access.line, access.kind, access.from, access.to)
            });
            block.accesses.push(access);
        }
        Ok(())
    }
}
