//! The C library of `tensor.c`, in safe words.
#![expect(unsafe_code, reason = "calls into C")]

use core::ffi::{c_double, c_int};
use core::ptr::NonNull;

use dlpack_core::abi::DLManagedTensorVersioned;
use dlpack_core::{Error, Managed};

// As tensor.c declares them.
unsafe extern "C" {
    fn tensor_sum(managed: *mut DLManagedTensorVersioned) -> c_double;
    fn tensor_double(managed: *mut DLManagedTensorVersioned) -> c_int;
    fn tensor_ramp(count: i64) -> *mut DLManagedTensorVersioned;
    safe fn tensor_alive() -> c_int;
}

/// Passes the tensor to C, which sums its elements and calls the deleter.
pub(crate) fn sum(tensor: Managed) -> f64 {
    let raw = tensor.into_raw();
    // SAFETY: `raw` owns a valid tensor, and C calls its deleter exactly once.
    unsafe { tensor_sum(raw.as_ptr()) }
}

/// Lends the tensor to C, which doubles it in place if it may.
pub(crate) fn double(tensor: Managed) -> Result<(Managed, bool), Error> {
    let raw = tensor.into_raw();
    // SAFETY: `raw` owns a valid tensor, and C neither keeps it nor calls its deleter.
    let written = unsafe { tensor_double(raw.as_ptr()) };
    // SAFETY: `into_raw` gave us this tensor, and we are its only owner still.
    let tensor = unsafe { Managed::from_raw(raw) }?;
    Ok((tensor, written == 1))
}

/// A tensor whose memory belongs to C: 0, 1, 2, ..
pub(crate) fn ramp(count: u32) -> Result<Managed, Error> {
    // SAFETY: the function accepts every count that is not negative.
    let raw = unsafe { tensor_ramp(i64::from(count)) };
    let raw = NonNull::new(raw).expect("C has memory for a few integers");
    // SAFETY: C made a valid tensor, and nothing else owns it.
    unsafe { Managed::from_raw(raw) }
}

/// The number of tensors of C that are not released yet.
pub(crate) fn alive() -> i32 {
    tensor_alive()
}
