//! A value that several hold, as in an `Arc`; but where there is no memory for it, that is an error and not the end.
#![expect(unsafe_code, reason = "frees a value behind the last who holds it")]

use alloc::{alloc::alloc, boxed::Box};
#[cfg(feature = "std")]
use core::ffi::c_void;
use core::{alloc::Layout, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use crate::sync::atomic::{AtomicUsize, Ordering};

#[cfg(all(test, loom))]
mod models;

/// A hold on a value; without a type, on one that is only kept.
#[derive(Debug)]
pub(crate) struct Counted<T = ()>(NonNull<Inner<T>>);

/// Begins alike for values of all types.
#[repr(C)]
struct Inner<T> {
    holds: AtomicUsize,
    /// What the last hold does.
    end: unsafe fn(NonNull<Inner<()>>),
    value: T,
}

// SAFETY: `new` takes no value that may not be on any thread, and on several at a time.
unsafe impl<T> Send for Counted<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Counted<T> {}

impl<T: Send + Sync + 'static> Counted<T> {
    /// The first hold. Without memory the value comes back, with the bytes that could not be had.
    pub(crate) fn new(value: T) -> Result<Self, (T, usize)> {
        let layout = Layout::new::<Inner<T>>();
        // SAFETY: the layout has a size, that of a count at least.
        let inner = unsafe { alloc(layout) }.cast::<Inner<T>>();
        let Some(inner) = NonNull::new(inner) else {
            return Err((value, layout.size()));
        };
        let content = Inner {
            holds: AtomicUsize::new(1),
            // SAFETY: only called by `drop`, behind the last hold on this value.
            end: |inner| drop(unsafe { take::<T>(inner) }),
            value,
        };
        // SAFETY: aligned, large enough, and only ours.
        unsafe { inner.write(content) };
        Ok(Self(inner))
    }

    /// A hold that no longer knows the type.
    pub(crate) fn untyped(self) -> Counted {
        Counted(ManuallyDrop::new(self).0.cast())
    }

    /// A hold that C can keep, for [`from_raw`](Counted::from_raw).
    #[cfg(feature = "std")]
    pub(crate) fn into_raw(self) -> *mut c_void {
        ManuallyDrop::new(self).0.as_ptr().cast()
    }

    /// The value, if nobody else has a hold.
    pub(crate) fn into_value(self) -> Result<T, Self> {
        if self.holds() > 1 {
            return Err(self);
        }
        let inner = ManuallyDrop::new(self).0.cast();
        // SAFETY: this was the one hold, of this type, and is not used again.
        Ok(unsafe { take(inner) })
    }
}

#[cfg(feature = "std")]
impl Counted {
    /// The hold that was given to C.
    ///
    /// # Safety
    ///
    /// It comes from `into_raw`, and comes back once.
    pub(crate) unsafe fn from_raw(hold: *mut c_void) -> Self {
        // SAFETY: passed on to the caller; what is held begins alike for values of all types.
        Self(unsafe { NonNull::new_unchecked(hold.cast()) })
    }
}

/// Frees the place of a value.
///
/// # Safety
///
/// The value has this type, and nobody has a hold on it any more.
unsafe fn take<T>(inner: NonNull<Inner<()>>) -> T {
    // SAFETY: `new` allocated it with the layout of this type, and nobody uses it afterwards.
    unsafe { Box::from_raw(inner.cast::<Inner<T>>().as_ptr()) }.value
}

impl<T> Counted<T> {
    /// How many holds there are. If there is one, it is this, and what the others did has happened.
    pub(crate) fn holds(&self) -> usize {
        self.count().load(Ordering::Acquire)
    }

    /// Whether the other is a hold on the same value.
    #[cfg(feature = "std")]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn count(&self) -> &AtomicUsize {
        // SAFETY: the place is there as long as there is a hold, and begins with the count.
        unsafe { &(*self.0.as_ptr()).holds }
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value is there as long as there is a hold, and is only shared.
        unsafe { &(*self.0.as_ptr()).value }
    }
}

impl<T> Clone for Counted<T> {
    fn clone(&self) -> Self {
        let before = self.count().fetch_add(1, Ordering::Relaxed);
        // So many can only be had by forgetting them.
        assert!(before <= usize::MAX / 2, "too many hold one value");
        Self(self.0)
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        if self.count().fetch_sub(1, Ordering::Release) == 1 {
            // What all others did with the value comes before its end. ThreadSanitizer knows no fences.
            self.holds();
            // SAFETY: the place is there until its end, which is now.
            let end = unsafe { (*self.0.as_ptr()).end };
            // SAFETY: the last hold on the value that this is the end of.
            unsafe { end(self.0.cast()) };
        }
    }
}
