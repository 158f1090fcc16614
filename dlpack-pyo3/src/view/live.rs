//! The views that are alive on each thread, to detect an argument that is written and overlaps another argument of the call.
//!
//! Without a promise such an overlap is memory-safe, but a loop that reads what it has written gives wrong results. The
//! arguments of a call are extracted one after another on one thread. So each thread has two lists, one of views that read and
//! one of views that write, and takes no lock. A view may be dropped on another thread than its own: it owns a slot, in memory
//! that is never freed, and its drop only marks the slot as free.
//!
//! ```text
//! thread ──> ThreadSlots ─┬─ reading ──> [slot, slot, ..]     a new `View` is compared with the slots of `writing`,
//!                         └─ writing ──> [slot, ..]           a new `ViewMut` with both
//!                                           ▲
//! View ────────────────────────────── Registration            its drop, on any thread, frees the slot
//! ```
//!
//! The fast path is a function with one `View`: as long as nothing is written on its thread, each call reuses the slot of the
//! previous call ([`LastSlot`]).

use core::cell::{Cell, RefCell};

use dlpack_core::Error;
use dlpack_core::binding::Span;

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, shared_static};

#[cfg(all(test, loom))]
#[path = "live/models.rs"]
mod models;

/// A registered view: unregistered on drop.
#[derive(Debug)]
pub(super) struct Registration(Option<&'static Slot>);

impl Registration {
    /// For a view that may overlap others.
    pub(super) const NONE: Self = Self(None);

    /// Registers a view on this thread.
    ///
    /// # Errors
    ///
    /// [`Error::Borrowed`] if a registered view may share a byte with it, and one of the two writes; [`Error::OutOfMemory`].
    #[inline(always)]
    pub(super) fn register(span: &Span, writes: bool) -> Result<Self, Error> {
        let last = if writes { None } else { LAST.get().0 };
        if let Some(slot) = last.filter(|slot| !slot.is_used()) {
            slot.set_span(span);
            return Ok(Self(Some(slot)));
        }
        match register_in_lists(span, writes) {
            Ok(slot) => Ok(Self(slot)),
            Err(refused) => Err(refused.into()),
        }
    }
}

impl Drop for Registration {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            // Orders the reads through this view before the writes of a view that is created after this one. The slot itself
            // publishes no data.
            slot.is_used.store(false, Ordering::Release);
        }
    }
}

/// The slot that was used last for a view that reads, if no view that writes has been added since. The list of this thread
/// contains this slot even if it is free, so it can be reused without reading the lists.
#[derive(Clone, Copy)]
struct LastSlot(Option<&'static Slot>);

#[inline(never)]
fn register_in_lists(span: &Span, writes: bool) -> Result<Option<&'static Slot>, RegisterError> {
    // Cleared first, as the lists are about to change.
    LAST.set(LastSlot(None));
    // A thread that is ending has no lists any more. No argument is extracted there.
    let slot = ROWS.try_with(|rows| match rows.try_borrow_mut() {
        Ok(mut rows) => {
            let slot = rows.register_view(span, writes)?;
            if rows.writing.len == 0 {
                LAST.set(LastSlot(Some(slot)));
            }
            Ok(Some(slot))
        }
        Err(_) => Ok(None),
    });
    slot.unwrap_or(Ok(None))
}

/// Why a view is refused. An [`Error`] is too large to be returned in registers.
#[derive(Clone, Copy)]
enum RegisterError {
    Overlap,
    OutOfMemory,
}

impl From<RegisterError> for Error {
    #[cold]
    fn from(refused: RegisterError) -> Self {
        match refused {
            RegisterError::Overlap => Self::Borrowed,
            RegisterError::OutOfMemory => Self::OutOfMemory {
                bytes: size_of::<Slot>(),
            },
        }
    }
}

/// The span of a view. The numbers are only written by the thread that has the slot in its list, while no view owns the slot.
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
    fn set_span(&self, span: &Span) {
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

/// The two lists of a thread.
#[derive(Debug)]
struct ThreadSlots {
    reading: SlotList,
    writing: SlotList,
}

impl ThreadSlots {
    fn register_view(&mut self, span: &Span, writes: bool) -> Result<&'static Slot, RegisterError> {
        if self.writing.overlaps_any(span) || (writes && self.reading.overlaps_any(span)) {
            return Err(RegisterError::Overlap);
        }
        let row = if writes {
            &mut self.writing
        } else {
            &mut self.reading
        };
        row.take_slot(span)
    }
}

/// A list of slots. Those from `len` on are free; some of the others may be free too.
#[derive(Debug)]
struct SlotList {
    slots: Vec<&'static Slot>,
    len: usize,
}

impl SlotList {
    const fn new() -> Self {
        Self {
            slots: Vec::new(),
            len: 0,
        }
    }

    /// Shortens the list by the free slots at its end.
    #[inline]
    fn drop_free_tail(&mut self) {
        while self.len > 0 && !self.slots[self.len - 1].is_used() {
            self.len -= 1;
        }
    }

    /// Whether a view of the list may share a byte with this span.
    #[inline]
    fn overlaps_any(&mut self, span: &Span) -> bool {
        self.drop_free_tail();
        self.len > 0 && self.has_overlap(span)
    }

    #[cold]
    fn has_overlap(&self, span: &Span) -> bool {
        let mut used = self.slots[..self.len].iter().filter(|slot| slot.is_used());
        used.any(|slot| slot.span().may_share_bytes(span))
    }

    #[inline]
    fn take_slot(&mut self, span: &Span) -> Result<&'static Slot, RegisterError> {
        self.drop_free_tail();
        let slot = match self.slots.get(self.len) {
            Some(slot) => *slot,
            None => self.make_space()?,
        };
        slot.set_span(span);
        self.len += 1;
        Ok(slot)
    }

    /// Moves the free slots to the end of the list, and doubles the list if less than half of it is free. Returns the first
    /// free slot.
    #[cold]
    fn make_space(&mut self) -> Result<&'static Slot, RegisterError> {
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
        reserved.map_err(|_| RegisterError::OutOfMemory)?;
        if let Ok(mut spare) = SPARE.try_lock() {
            take_free(&mut spare, more, &mut self.slots);
        }
        if self.len == self.slots.len() {
            let mut slots = Vec::new();
            let reserved = slots.try_reserve_exact(more);
            reserved.map_err(|_| RegisterError::OutOfMemory)?;
            slots.resize_with(more, Slot::default);
            self.slots.extend(&*slots.leak());
        }
        Ok(self.slots[self.len])
    }
}

/// Moves up to `most` free slots to a list that has capacity for them.
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
    /// The slots of threads that have ended; views may still own some of them.
    static SPARE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
}

thread_local! {
    // It has no destructor, so it can be accessed as long as the thread runs.
    static LAST: Cell<LastSlot> = const { Cell::new(LastSlot(None)) };
    static ROWS: RefCell<ThreadSlots> = const {
        RefCell::new(ThreadSlots { reading: SlotList::new(), writing: SlotList::new() })
    };
}

impl Drop for ThreadSlots {
    fn drop(&mut self) {
        LAST.set(LastSlot(None));
        // If the list is locked (in a forked child) or cannot grow, the slots are leaked.
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
