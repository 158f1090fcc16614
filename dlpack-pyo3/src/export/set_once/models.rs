//! Loom models of [`SetOnce`].
#![expect(unsafe_code, reason = "reads objects by their addresses")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::{model, thread};

use super::SetOnce;

/// Stands for a Python object that one thread creates and others read.
struct Object(UnsafeCell<u32>);

/// What `prepare_constants` does for one object on each thread, followed by an export that reads it.
fn prepare_and_read(place: &SetOnce<Object>, lost: &AtomicUsize) -> usize {
    let object = Box::new(Object(UnsafeCell::new(0)));
    // SAFETY: no other thread has the object yet, which loom checks.
    object.0.with_mut(|value| unsafe { *value = 7 });
    if let Err(object) = place.set(Box::into_raw(object)) {
        // SAFETY: created above with `Box::into_raw`, and not set, so no other thread has it.
        drop(unsafe { Box::from_raw(object) });
        lost.fetch_add(1, Ordering::Relaxed);
    }
    let object = place.get();
    // SAFETY: the object was set, and is freed after all threads have finished; nothing writes to it in between, which loom
    // checks.
    let value = unsafe { &*object }.0.with(|value| unsafe { *value });
    assert_eq!(value, 7);
    object.addr()
}

#[test]
fn all_threads_use_the_object_that_was_set_first() {
    model(|| {
        let (place, lost) = (Arc::new(SetOnce::new()), Arc::new(AtomicUsize::new(0)));
        let others = [(); 2].map(|()| {
            let (place, lost) = (place.clone(), lost.clone());
            thread::spawn(move || prepare_and_read(&place, &lost))
        });
        let ours = prepare_and_read(&place, &lost);
        for other in others {
            assert_eq!(other.join().expect("no panic"), ours);
        }
        assert_eq!(lost.load(Ordering::Relaxed), 2);
        // SAFETY: one object was set, and all threads that use it have finished.
        drop(unsafe { Box::from_raw(place.get()) });
    });
}
