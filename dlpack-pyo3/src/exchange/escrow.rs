//! A tensor on its way into a new owner: handed over at once when that exists, or not at all.
#![expect(unsafe_code, reason = "lends a tensor that it keeps itself")]

use std::sync::{Arc, Mutex, PoisonError};

use dlpack_core::binding::export_with;
use dlpack_core::{DLPack, Error, Managed};

use crate::export::unordered;

/// A tensor that is handed over for good once its new owner is known to exist, and not before.
///
/// What is made of it may be done with the tensor at once, when it copies, or keep it: the tensor is
/// released when it is both accepted and done with, and never if it is not accepted.
pub(crate) struct Escrow(Arc<Mutex<Stake>>);

struct Stake {
    tensor: Option<Managed>,
    accepted: bool,
    done: bool,
}

/// What the new owner holds.
struct Deposit(Arc<Mutex<Stake>>);

impl Escrow {
    pub(crate) fn open(mut tensor: Managed) -> Result<(Self, Managed), Error> {
        let request = unordered(tensor.view().device());
        let opened = (|| {
            let descriptor = tensor.describe_mut()?;
            let stake = Arc::new(Mutex::new(Stake {
                tensor: None,
                accepted: false,
                done: false,
            }));
            let deposit = Deposit(Arc::clone(&stake));
            // SAFETY: the tensor goes into the stake right below, and stays there until the deposit
            // is dropped; its memory does not move with it.
            let lent = unsafe { export_with(deposit, descriptor, &request) }?;
            Ok((stake, lent))
        })();
        match opened {
            Ok((stake, lent)) => {
                stake.lock().unwrap_or_else(PoisonError::into_inner).tensor = Some(tensor);
                Ok((Self(stake), lent))
            }
            Err(error) => {
                // The tensor is the caller's still.
                core::mem::forget(tensor);
                Err(error)
            }
        }
    }

    /// The new owner exists.
    pub(crate) fn accept(self) {
        let mut stake = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stake.accepted = true;
        let released = if stake.done {
            stake.tensor.take()
        } else {
            None
        };
        drop(stake);
        // Its deleter may do anything, so not under the lock.
        drop(released);
    }
}

impl Drop for Stake {
    fn drop(&mut self) {
        if !self.accepted {
            core::mem::forget(self.tensor.take());
        }
    }
}

impl Drop for Deposit {
    fn drop(&mut self) {
        let mut stake = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stake.done = true;
        let released = if stake.accepted {
            stake.tensor.take()
        } else {
            None
        };
        drop(stake);
        drop(released);
    }
}
