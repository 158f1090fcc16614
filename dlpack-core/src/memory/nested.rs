//! Limits how deep releases nest: an owner may keep another tensor, which keeps another one, and so on.
#![expect(
    unsafe_code,
    reason = "calls functions with the address of what they release"
)]

use core::sync::atomic::{AtomicPtr, Ordering};
use core::{ffi::c_void, mem::transmute, ptr};

/// Calls `release(context)`, now or after the releases that this thread runs at the moment.
///
/// Releasing a tensor or an object may drop the last reference to another tensor or object, which is then released too, and so on.
/// Python code can build chains of any length, but the stack is limited. So releases at a depth of 16 are queued, and the last call to end
/// on this thread runs them. Without the feature `std` each release runs at once.
///
/// ```
/// use dlpack_core::binding::release_nested;
///
/// /// An item of a linked list, which owns the next item.
/// struct Item(*mut Item);
///
/// impl Drop for Item {
///     fn drop(&mut self) {
///         let next = self.0.cast();
///         // SAFETY: null, which is not read, or a box that this item owns.
///         unsafe { release_nested(next, |next| if !next.is_null() { drop(Box::from_raw(next.cast::<Item>())) }) };
///     }
/// }
///
/// let mut first = Item(std::ptr::null_mut());
/// for _ in 0..100_000 {
///     first = Item(Box::into_raw(Box::new(first)));
/// }
/// drop(first);
/// ```
///
/// # Safety
///
/// `release` may be called once with `context`, on this thread, until the last such call ends. It does not unwind.
#[inline]
pub unsafe fn release_nested(context: *mut c_void, release: unsafe fn(*mut c_void)) {
    #[cfg(feature = "std")]
    // SAFETY: same contract as this function's.
    unsafe {
        queue::release_or_queue(context, release);
    }
    #[cfg(not(feature = "std"))]
    // SAFETY: same contract as this function's.
    unsafe {
        release(context);
    }
}

/// Runs the release of a tensor of another producer: calls the function with the address, once.
type ReleaseHook = unsafe fn(*mut c_void, unsafe fn(*mut c_void));

/// The address of a [`ReleaseHook`], or null.
static HOOK: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Calls the deleters of other producers inside of `hook` from now on. A binding to a language in which an error may be pending hides
/// it there, since a deleter may run code of that language.
///
/// ```
/// use core::ffi::c_void;
/// use dlpack_core::binding::around_deleters;
///
/// unsafe fn hook(context: *mut c_void, release: unsafe fn(*mut c_void)) {
///     // SAFETY: the only call, by the contract of a hook.
///     unsafe { release(context) };
/// }
/// // SAFETY: `hook` calls its argument once.
/// unsafe { around_deleters(hook) };
/// ```
///
/// # Safety
///
/// `hook` calls the given function once, with the given address, and does not unwind.
pub unsafe fn around_deleters(hook: ReleaseHook) {
    HOOK.store(hook as *mut (), Ordering::Release);
}

/// Calls `release(context)` inside of the hook, if there is one.
///
/// # Safety
///
/// `release` may be called once with `context`.
pub(crate) unsafe fn release_in_hook(context: *mut c_void, release: unsafe fn(*mut c_void)) {
    let hook = HOOK.load(Ordering::Acquire);
    if hook.is_null() {
        // SAFETY: same contract as this function's.
        return unsafe { release(context) };
    }
    // SAFETY: `around_deleters` stored the address of a function of this type.
    let hook = unsafe { transmute::<*mut (), ReleaseHook>(hook) };
    // SAFETY: the hook calls `release` once, by the contract of `around_deleters`.
    unsafe { hook(context, release) };
}

#[cfg(feature = "std")]
mod queue {
    use alloc::vec::Vec;
    use core::cell::{Cell, RefCell};
    use core::ffi::c_void;
    use std::thread_local;

    const DEEPEST: usize = 16;

    type Release = (*mut c_void, unsafe fn(*mut c_void));

    thread_local! {
        /// How many releases this thread runs, one inside the other.
        static DEPTH: Cell<usize> = const { Cell::new(0) };
        /// The number of releases in the queue, which is rarely used: each use asks whether the thread still has it.
        static QUEUED: Cell<usize> = const { Cell::new(0) };
        static QUEUE: RefCell<Vec<Release>> = const { RefCell::new(Vec::new()) };
    }

    /// Implements [`release_nested`](super::release_nested).
    ///
    /// # Safety
    ///
    /// The contract of `release_nested`.
    #[inline(never)]
    pub(super) unsafe fn release_or_queue(context: *mut c_void, release: unsafe fn(*mut c_void)) {
        if DEPTH.get() >= DEEPEST && push((context, release)) {
            return;
        }
        DEPTH.set(DEPTH.get() + 1);
        // SAFETY: by the contract of `release_nested`.
        unsafe { release(context) };
        // The calls of a thread may end in another order than that in which they began: greenlets switch stacks.
        while DEPTH.get() == 1 && QUEUED.get() > 0 {
            let Some((context, release)) = pop() else {
                break;
            };
            // SAFETY: by the contract of `release_nested`; no other call on this thread runs.
            unsafe { release(context) };
        }
        DEPTH.set(DEPTH.get() - 1);
    }

    /// Queues a release. Fails if there is no memory, or if the thread's local storage is gone; then the release nests.
    #[cold]
    fn push(item: Release) -> bool {
        let push = |queue: &RefCell<Vec<Release>>| {
            let mut queue = queue.borrow_mut();
            queue.try_reserve(1).map(|()| queue.push(item)).is_ok()
        };
        let is_queued = QUEUE.try_with(push).unwrap_or(false);
        QUEUED.set(QUEUED.get() + usize::from(is_queued));
        is_queued
    }

    #[cold]
    fn pop() -> Option<Release> {
        QUEUED.set(QUEUED.get() - 1);
        let pop = |queue: &RefCell<Vec<Release>>| queue.borrow_mut().pop();
        QUEUE.try_with(pop).ok().flatten()
    }
}
