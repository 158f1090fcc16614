//! Catches a panic in the `Drop` of an owner, because a panic that unwinds into C would abort.
// ABI-10

#[cfg(feature = "std")]
use alloc::boxed::Box;

#[cfg(feature = "std")]
#[inline(always)]
pub(crate) fn contain_panic(drop_owner: impl FnOnce()) {
    let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(drop_owner));
    if let Err(payload) = dropped {
        report_panic(payload);
    }
}

#[cfg(feature = "std")]
#[cold]
#[inline(never)]
fn report_panic(payload: Box<dyn core::any::Any + Send>) {
    use std::io::Write as _;

    // The panic hook has already printed the message and its place. A failing stderr must not cause a second panic.
    let _ = writeln!(
        std::io::stderr(),
        "dlpack-core: the owner of a tensor panicked while it was dropped by a consumer"
    );
    // The payload's own `Drop` may panic. That second payload is leaked instead of dropped.
    let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| drop(payload)));
    core::mem::forget(dropped);
}

/// Calls `drop_owner`. Without `std` a panic cannot be caught, and the `extern "C"` deleter aborts.
#[cfg(not(feature = "std"))]
pub(crate) fn contain_panic(drop_owner: impl FnOnce()) {
    drop_owner();
}
