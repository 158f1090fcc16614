//! The record of calls: caller, function, arguments and result of each. `second` knows nothing else.

use core::cell::RefCell;
use std::borrow::Cow;
use std::thread_local;

/// A call that has returned.
pub(crate) struct Call {
    /// The calling thread, as a number that no other thread of the process has.
    pub(crate) thread: u64,
    pub(crate) entry: Cow<'static, str>,
    /// The arguments but for places of results.
    pub(crate) arguments: Vec<u64>,
    /// What was read from such places and written to them, in this order.
    pub(crate) places: Vec<u64>,
    pub(crate) code: i32,
    /// Whether it failed because a test requested that, or because `cuInit` was not called before.
    pub(crate) planned: bool,
    /// How many faults there were after it.
    pub(crate) faults: usize,
}

thread_local! {
    static PLACES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// What is read from a place, or written to it.
pub(crate) trait Noted: Copy {
    fn noted(self) -> Option<u64>;
}

macro_rules! noted {
    ($($number:ty)*) => {$(
        impl Noted for $number {
            #[allow(clippy::cast_sign_loss, trivial_numeric_casts, reason = "bits, as they come")]
            fn noted(self) -> Option<u64> {
                Some(self as u64)
            }
        }
    )*};
}
noted! { usize u64 u32 i32 }

macro_rules! unnoted {
    ($($other:ty)*) => {$(
        impl Noted for $other {
            fn noted(self) -> Option<u64> {
                None
            }
        }
    )*};
}
unnoted! { u8 f32 *const core::ffi::c_char }

pub(crate) fn note(value: impl Noted) {
    if let Some(number) = value.noted() {
        // A thread that is being torn down has no list.
        let _ = PLACES.try_with(|places| places.borrow_mut().push(number));
    }
}

/// What was noted on this thread since the last time.
pub(crate) fn noted() -> Vec<u64> {
    PLACES
        .try_with(|places| core::mem::take(&mut *places.borrow_mut()))
        .unwrap_or_default()
}
