//! A panic in the `Drop` of an owner ends here: unwinding into C would abort.
// ABI-10

#[cfg(feature = "std")]
use alloc::boxed::Box;

#[cfg(feature = "std")]
#[inline(always)]
pub(crate) fn contain_panic(drop_owner: impl FnOnce()) {
    let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(drop_owner));
    if let Err(payload) = dropped {
        report(payload);
    }
}

#[cfg(feature = "std")]
#[cold]
#[inline(never)]
fn report(payload: Box<dyn core::any::Any + Send>) {
    use std::io::Write as _;

    // The panic hook has printed where and why; a failing stderr must not make it a second panic.
    let _ = writeln!(
        std::io::stderr(),
        "dlpack-core: the owner of a tensor panicked while it was dropped by a consumer"
    );
    // Its own `Drop` could panic again; then it is not worth another try.
    let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| drop(payload)));
    core::mem::forget(dropped);
}

/// Without `std` a panic cannot be caught: the `extern "C"` deleter turns it into an abort.
#[cfg(not(feature = "std"))]
pub(crate) fn contain_panic(drop_owner: impl FnOnce()) {
    drop_owner();
}
