//! The views that are alive on each thread, so that an array that is written overlaps no other argument of its call.
//!
//! Without a promise such an overlap is no danger to memory, but a loop that reads what it has written gives other numbers. A
//! call extracts its arguments one after another on one thread. So each thread has two lists of its own, of the views that
//! read and of those that write, and no lock is taken. A view of a thread may be dropped on another one: a view has a slot,
//! in memory that is never freed, and its drop does no more than to mark the slot as free.
//!
//! ```text
//! thread ──> Rows ─┬─ reading ──> [slot, slot, ..]     a new `View` is compared with the slots of `writing`,
//!                  └─ writing ──> [slot, ..]           a new `ViewMut` with both
//!                                    ▲
//! View ─────────────────────────── Registration       its drop, on any thread, frees the slot
//! ```
//!
//! A function of one `View` is called in the fewest instructions: as long as nothing is written on its thread, each call uses
//! the slot of the call before ([`Last`]).

use core::cell::{Cell, RefCell};

use dlpack_core::Error;
use dlpack_core::binding::Span;

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, shared_static};

#[cfg(all(test, loom))]
#[path = "live/models.rs"]
mod models;

/// A view that is alive, until this is dropped.
#[derive(Debug)]
pub(super) struct Registration(Option<&'static Slot>);

impl Registration {
    /// Of a view that may overlap others.
    pub(super) const NONE: Self = Self(None);

    /// Adds a view to those that are alive on this thread.
    ///
    /// # Errors
    ///
    /// [`Error::Borrowed`] if one of them may share a byte with it, and one of the two writes; [`Error::OutOfMemory`].
    #[inline(always)]
    pub(super) fn of(span: &Span, writes: bool) -> Result<Self, Error> {
        let last = if writes { None } else { LAST.get().0 };
        if let Some(slot) = last.filter(|slot| !slot.is_used()) {
            slot.fill(span);
            return Ok(Self(Some(slot)));
        }
        match add(span, writes) {
            Ok(slot) => Ok(Self(slot)),
            Err(refused) => Err(refused.into()),
        }
    }
}

impl Drop for Registration {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            // The thread that reuses the slot reads nothing that this one has written.
            slot.is_used.store(false, Ordering::Release);
        }
    }
}

/// The slot in the list of this thread that was used last for a view that reads, if no view that writes was added since. The
/// list has this slot also where it is free, so it can be used again without a look at the lists.
#[derive(Clone, Copy)]
struct Last(Option<&'static Slot>);

#[inline(never)]
fn add(span: &Span, writes: bool) -> Result<Option<&'static Slot>, Refused> {
    // The lists are about to change.
    LAST.set(Last(None));
    // A thread that is about to end has no lists any more. No argument is extracted there.
    let slot = ROWS.try_with(|rows| match rows.try_borrow_mut() {
        Ok(mut rows) => {
            let slot = rows.add(span, writes)?;
            if rows.writing.len == 0 {
                LAST.set(Last(Some(slot)));
            }
            Ok(Some(slot))
        }
        Err(_) => Ok(None),
    });
    slot.unwrap_or(Ok(None))
}

/// Why a view has no slot: an [`Error`] is too large to be passed in registers.
#[derive(Clone, Copy)]
enum Refused {
    Overlap,
    OutOfMemory,
}

impl From<Refused> for Error {
    #[cold]
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Overlap => Self::Borrowed,
            Refused::OutOfMemory => Self::OutOfMemory {
                bytes: size_of::<Slot>(),
            },
        }
    }
}

/// The span of a view. The numbers are written by the one thread whose list has the slot, while no view has it.
#[derive(Default, Debug)]
struct Slot {
    is_used: AtomicBool,
    start: AtomicUsize,
    end: AtomicUsize,
    step: AtomicUsize,
    width: AtomicUsize,
}

impl Slot {
    #[inline]
    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    #[inline]
    fn fill(&self, span: &Span) {
        self.start.store(span.start, Ordering::Relaxed);
        self.end.store(span.end, Ordering::Relaxed);
        self.step.store(span.step, Ordering::Relaxed);
        self.width.store(span.width, Ordering::Relaxed);
        self.is_used.store(true, Ordering::Relaxed);
    }

    fn span(&self) -> Span {
        Span {
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
            step: self.step.load(Ordering::Relaxed),
            width: self.width.load(Ordering::Relaxed),
        }
    }
}

/// The lists of a thread.
#[derive(Debug)]
struct Rows {
    reading: Row,
    writing: Row,
}

impl Rows {
    fn add(&mut self, span: &Span, writes: bool) -> Result<&'static Slot, Refused> {
        if self.writing.overlaps(span) || (writes && self.reading.overlaps(span)) {
            return Err(Refused::Overlap);
        }
        let row = if writes {
            &mut self.writing
        } else {
            &mut self.reading
        };
        row.add(span)
    }
}

/// Slots; those from `len` on are free, and of the others some may be.
#[derive(Debug)]
struct Row {
    slots: Vec<&'static Slot>,
    len: usize,
}

impl Row {
    const fn new() -> Self {
        Self {
            slots: Vec::new(),
            len: 0,
        }
    }

    /// Forgets the last slots, as long as they are free.
    #[inline]
    fn trim(&mut self) {
        while self.len > 0 && !self.slots[self.len - 1].is_used() {
            self.len -= 1;
        }
    }

    /// Whether a view of the list may share a byte with this one.
    #[inline]
    fn overlaps(&mut self, span: &Span) -> bool {
        self.trim();
        self.len > 0 && self.any_overlaps(span)
    }

    #[cold]
    fn any_overlaps(&self, span: &Span) -> bool {
        let mut used = self.slots[..self.len].iter().filter(|slot| slot.is_used());
        used.any(|slot| slot.span().may_share_bytes(span))
    }

    #[inline]
    fn add(&mut self, span: &Span) -> Result<&'static Slot, Refused> {
        self.trim();
        let slot = match self.slots.get(self.len) {
            Some(slot) => *slot,
            None => self.make_space()?,
        };
        slot.fill(span);
        self.len += 1;
        Ok(slot)
    }

    /// Moves the free slots to the end of the list, and if these are few, adds as many as there are. Gives the first of them.
    #[cold]
    fn make_space(&mut self) -> Result<&'static Slot, Refused> {
        self.len = 0;
        for at in 0..self.slots.len() {
            if self.slots[at].is_used() {
                self.slots.swap(self.len, at);
                self.len += 1;
            }
        }
        if self.len * 2 < self.slots.len() {
            return Ok(self.slots[self.len]);
        }
        let more = self.slots.len().max(8);
        let reserved = self.slots.try_reserve(more);
        reserved.map_err(|_| Refused::OutOfMemory)?;
        if let Ok(mut spare) = SPARE.try_lock() {
            take_free(&mut spare, more, &mut self.slots);
        }
        if self.len == self.slots.len() {
            let mut slots = Vec::new();
            let reserved = slots.try_reserve_exact(more);
            reserved.map_err(|_| Refused::OutOfMemory)?;
            slots.resize_with(more, Slot::default);
            self.slots.extend(&*slots.leak());
        }
        Ok(self.slots[self.len])
    }
}

/// Moves free slots from one list to another one that has space for them.
fn take_free(from: &mut Vec<&'static Slot>, most: usize, to: &mut Vec<&'static Slot>) {
    let mut at = from.len();
    let wanted = to.len() + most;
    while at > 0 && to.len() < wanted {
        at -= 1;
        if !from[at].is_used() {
            to.push(from.swap_remove(at));
        }
    }
}

shared_static! {
    /// The slots of threads that have ended; of some the views are still alive.
    static SPARE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
}

thread_local! {
    // It has no destructor, so it is there as long as the thread.
    static LAST: Cell<Last> = const { Cell::new(Last(None)) };
    static ROWS: RefCell<Rows> = const {
        RefCell::new(Rows { reading: Row::new(), writing: Row::new() })
    };
}

impl Drop for Rows {
    fn drop(&mut self) {
        LAST.set(Last(None));
        // Where the list is locked, as in a child that was forked meanwhile, or cannot grow, the slots are lost.
        let Ok(mut spare) = SPARE.try_lock() else {
            return;
        };
        for row in [&self.reading, &self.writing] {
            if spare.try_reserve(row.slots.len()).is_ok() {
                spare.extend(&row.slots);
            }
        }
    }
}
