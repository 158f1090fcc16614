//! Which addresses the views with a promise have.
//!
//! A promise speaks of everybody but these views: no two of them may meet where one writes. They are kept apart here, as
//! the same array can be two arguments of one call.

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::{process, thread};

use dlpack_core::{Error, TensorRef};

/// Where the elements of a view are, until it is dropped.
#[derive(Debug)]
pub(super) struct Lease(Span);

#[derive(Clone, Copy, PartialEq, Debug)]
struct Span {
    /// The address of the first element, and where the lowest and the highest one lie.
    data: usize,
    start: usize,
    end: usize,
    /// All elements are multiples of this away from `data`, and this wide.
    step: usize,
    width: usize,
    writes: bool,
    /// A forked child has memory of its own, and nobody who gives back the leases of its parent.
    process: u32,
}

static LEASES: Mutex<Vec<Span>> = Mutex::new(Vec::new());

/// The list, which is held for a few instructions at a time; none where it stays locked, as it does in a child that was
/// forked in between.
fn leases() -> Option<MutexGuard<'static, Vec<Span>>> {
    for turn in 0..2000 {
        match LEASES.try_lock() {
            Ok(leases) => return Some(leases),
            // Nothing in here panics between two changes.
            Err(TryLockError::Poisoned(leases)) => return Some(leases.into_inner()),
            Err(TryLockError::WouldBlock) if turn < 1000 => thread::yield_now(),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

impl Lease {
    /// Takes the elements of a tensor on the host.
    ///
    /// # Errors
    ///
    /// [`Error::Borrowed`] if another view has one of them, and one of the two may write.
    pub(super) fn take(tensor: &TensorRef<'_>, writes: bool) -> Result<Self, Error> {
        let span = Span::of(tensor, writes);
        let Some(mut leases) = leases() else {
            return Err(Error::Borrowed);
        };
        if leases
            .iter()
            .any(|other| (writes || other.writes) && span.meets(other))
        {
            return Err(Error::Borrowed);
        }
        if leases.try_reserve(1).is_err() {
            let bytes = size_of::<Span>();
            return Err(Error::OutOfMemory { bytes });
        }
        leases.push(span);
        Ok(Self(span))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(mut leases) = leases() else {
            return;
        };
        // Equal ones are as good as each other.
        if let Some(at) = leases.iter().rposition(|span| *span == self.0) {
            leases.swap_remove(at);
        }
    }
}

impl Span {
    fn of(tensor: &TensorRef<'_>, writes: bool) -> Self {
        let width = tensor.dtype().itemsize_bits().div_ceil(8);
        let data = tensor.as_ptr().addr();
        let mut span = Self {
            data,
            start: data,
            end: data + width,
            step: 0,
            width,
            writes,
            process: process::id(),
        };
        if tensor.shape().contains(&0) {
            span.end = data;
        }
        for (&extent, &stride) in tensor.shape().iter().zip(tensor.strides()) {
            // What a tensor reaches was found to lie in memory.
            let bytes = usize::try_from(stride.unsigned_abs())
                .unwrap_or(usize::MAX)
                .wrapping_mul(width);
            if extent > 1 {
                let far = usize::try_from(extent - 1)
                    .unwrap_or(usize::MAX)
                    .wrapping_mul(bytes);
                if stride < 0 {
                    span.start = span.start.wrapping_sub(far);
                } else {
                    span.end = span.end.wrapping_add(far);
                }
                span.step = gcd(span.step, bytes);
            }
        }
        if tensor.dtype().itemsize_bits() % 8 != 0 {
            // Strides count parts of bytes.
            span.step = 1;
        }
        span
    }

    /// Whether the two may have a byte in common. Where both leap over the other, as two columns of a matrix do, they
    /// have none.
    fn meets(&self, other: &Self) -> bool {
        let step = gcd(self.step, other.step);
        let apart = match step {
            0 => false,
            step => {
                // How far the other's elements lie behind ours, within one step.
                let behind = other.data.wrapping_sub(self.data) as isize;
                let behind = behind.rem_euclid(step as isize) as usize;
                behind >= self.width && step - behind >= other.width
            }
        };
        let near = self.start < other.end && other.start < self.end;
        near && !apart && self.process == other.process
    }
}

fn gcd(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
