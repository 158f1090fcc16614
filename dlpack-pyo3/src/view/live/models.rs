//! Loom models of the slots. A thread of a model has its `ThreadSlots` in a local variable, as loom does not drop a thread's
//! statics before other threads have joined it.
#![expect(unsafe_code, reason = "accesses memory like the owner of a view")]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::{model, thread};

use super::*;

/// A number that views borrow.
struct Number(UnsafeCell<u32>);

// SAFETY: accessed through registered views only; loom checks that this suffices.
unsafe impl Sync for Number {}

impl ThreadSlots {
    fn new() -> Self {
        let [reading, writing] = [SlotList::new(), SlotList::new()];
        Self { reading, writing }
    }

    /// A view of the number, unless another view of this thread overlaps it.
    fn try_view(&mut self, writes: bool) -> Option<Registration> {
        let slot = self.register_view(&Span::new(64, &[1], &[1], 1, 1), writes);
        slot.ok().map(|slot| Registration(Some(slot)))
    }
}

#[test]
fn a_view_that_another_thread_drops_was_read_before_its_array_is_written() {
    model(|| {
        let number = Arc::new(Number(UnsafeCell::new(0)));
        let mut rows = ThreadSlots::new();
        let view = rows.try_view(false).expect("no other view");
        let reader = thread::spawn({
            let number = number.clone();
            move || {
                // SAFETY: nothing writes while the view lives, which loom checks.
                number.0.with(|number| assert_eq!(unsafe { *number }, 0));
                drop(view);
            }
        });
        if let Some(view) = rows.try_view(true) {
            // SAFETY: no other view lives, which loom checks.
            number.0.with_mut(|number| unsafe { *number = 1 });
            drop(view);
        }
        reader.join().expect("no panic");
        assert!(rows.try_view(true).is_some());
    });
}

/// A thread ends before its last view, and leaves its slots to two other threads.
#[test]
fn a_slot_is_not_reused_while_a_view_has_it() {
    model(|| {
        let mut rows = ThreadSlots::new();
        // As many views as there are slots: other threads check the last slot first.
        let mut views: Vec<_> = (0..8).map(|_| rows.try_view(false)).collect();
        let last = views.pop();
        drop((views, rows));
        let heirs = [(); 2].map(|()| {
            thread::spawn(|| {
                let mut rows = ThreadSlots::new();
                let view = rows.try_view(true).expect("no other view of this thread");
                assert!(rows.try_view(false).is_none());
                drop(view);
            })
        });
        drop(last);
        for heir in heirs {
            heir.join().expect("no panic");
        }
    });
}
