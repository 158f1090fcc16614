//! Primary contexts that core retains, their unused events, and the contexts of known streams.
//!
//! A retained primary context lives as long as the process, and so do its events. So an export takes an unused event instead
//! of creating and destroying one. `cuEventRecord` "will overwrite the previously captured state", and a stream that waits is
//! "not affected by later calls". HIP documents neither guarantee ("results are undefined" where a record is outstanding), so its
//! events are created for each use.
//!
//! A stream belongs to one context, and the driver gives its ID to no other stream. So the context is queried once for each ID.
#![expect(unsafe_code, reason = "calls C functions that were found by name")]

use alloc::vec::Vec;
use core::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::stream::driver::{CudaCalls, Driver, Own, loaded};
use crate::stream::visit::aside;
use crate::{Error, device::StreamApi};

/// How many unused events are kept for each context: as many as threads that export at the same time.
const SPARE: usize = 16;
/// The number of streams with a remembered context. A stream is found at its ID modulo this.
const STREAMS: usize = 64;

/// The primary contexts that were requested, and some of their streams.
pub(super) struct Primaries {
    contexts: Mutex<Vec<Primary>>,
    /// Pairs of a stream's ID and its context.
    streams: Mutex<[(u64, usize); STREAMS]>,
}

/// A primary context that was requested. It is retained until the process ends, as every CUDA runtime does.
struct Primary {
    device: i32,
    context: usize,
    /// Events of this context that no thread uses.
    spare: Vec<usize>,
}

impl Primaries {
    pub(super) const fn new() -> Self {
        Self {
            contexts: Mutex::new(Vec::new()),
            streams: Mutex::new([(0, 0); STREAMS]),
        }
    }

    fn contexts(&self) -> MutexGuard<'_, Vec<Primary>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn streams(&self) -> MutexGuard<'_, [(u64, usize); STREAMS]> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The primary context of a device, if it was requested before.
    pub(super) fn find(&self, device: i32) -> Option<usize> {
        find(&self.contexts(), device)
    }

    /// Takes an unused event of this context.
    pub(super) fn take_event(&self, context: usize) -> Option<usize> {
        let mut contexts = self.contexts();
        let found = contexts.iter_mut().find(|one| one.context == context)?;
        found.spare.pop()
    }

    /// Keeps an event of this context for the next use. `false` if enough events are kept.
    pub(super) fn keep_event(&self, context: usize, event: usize) -> bool {
        let mut contexts = self.contexts();
        let found = contexts.iter_mut().find(|one| one.context == context);
        found.is_some_and(|one| {
            let has_room = one.spare.len() < SPARE && one.spare.try_reserve(1).is_ok();
            if has_room {
                one.spare.push(event);
            }
            has_room
        })
    }

    /// The context of the stream with this ID, if it is remembered.
    pub(super) fn context_of(&self, id: u64) -> Option<usize> {
        let (known, context) = self.streams()[slot(id)];
        (known == id && context != 0).then_some(context)
    }

    /// Remembers the context of the stream with this ID, which lives as long as the stream.
    pub(super) fn remember_context(&self, id: u64, context: usize) {
        self.streams()[slot(id)] = (id, context);
    }

    /// Counts the unused events. With `forget`, it forgets them: a test simulator that was restarted has destroyed them.
    pub(super) fn spare_events(&self, forget: bool) -> usize {
        let mut contexts = self.contexts();
        let count = contexts.iter().map(|one| one.spare.len()).sum();
        if forget {
            contexts.iter_mut().for_each(|one| one.spare.clear());
        }
        count
    }
}

fn find(contexts: &[Primary], device: i32) -> Option<usize> {
    let found = contexts.iter().find(|one| one.device == device);
    found.map(|one| one.context)
}

fn slot(id: u64) -> usize {
    usize::try_from(id % STREAMS as u64).unwrap_or(0)
}

impl Driver {
    /// Whether this is a retained primary context, or in HIP a device: both exist until the process ends.
    pub(super) fn keeps(&self, context: usize) -> bool {
        let is_retained = |one: &Primary| one.context == context;
        self.api == StreamApi::Hip || self.primaries.contexts().iter().any(is_retained)
    }

    /// Whether a context is the primary one of a device. A device without a primary context gets none from this.
    pub(super) fn is_primary(&self, context: usize, device: i32) -> Result<bool, Error> {
        let Own::Cuda(calls) = &self.own else {
            return Ok(true);
        };
        let mut flags = 0;
        let mut active = 0;
        // SAFETY: `device` exists, because one of its contexts is current, and both pointers are valid for writing.
        let code = unsafe { (calls.primary_state)(device, &raw mut flags, &raw mut active) };
        self.check("cuDevicePrimaryCtxGetState", code)?;
        Ok(active != 0 && self.primary(device)? == context)
    }

    /// What must be current for work on a device: its primary context, or in HIP the device itself.
    pub(super) fn primary(&self, device: i32) -> Result<usize, Error> {
        let Own::Cuda(calls) = &self.own else {
            return Ok(usize::try_from(device).unwrap_or(usize::MAX));
        };
        if let Some(context) = self.primaries.find(device) {
            return Ok(context);
        }
        // Creating the context is slow, so other threads run meanwhile.
        let mut made = Ok(0);
        aside(&mut || {
            let mut contexts = self.primaries.contexts();
            made = match find(&contexts, device) {
                Some(context) => Ok(context),
                None => self.retain(calls, device, &mut contexts),
            };
        });
        made
    }

    fn retain(
        &self,
        calls: &CudaCalls,
        device: i32,
        contexts: &mut Vec<Primary>,
    ) -> Result<usize, Error> {
        let room = contexts.try_reserve(1);
        let bytes = size_of::<Primary>();
        room.map_err(|_| Error::OutOfMemory { bytes })?;
        let mut ordinal = 0;
        // SAFETY: `ordinal` is valid for writing the result.
        let code = unsafe { (calls.device)(&raw mut ordinal, device) };
        self.check("cuDeviceGet", code)?;
        let mut context = ptr::null_mut();
        // SAFETY: `context` is valid for writing, and the driver returned `ordinal` for an existing device.
        let code = unsafe { (calls.retain_primary)(&raw mut context, ordinal) };
        self.check("cuDevicePrimaryCtxRetain", code)?;
        contexts.push(Primary {
            device,
            context: context.addr(),
            spare: Vec::new(),
        });
        Ok(context.addr())
    }
}

/// The number of unused events in the contexts of all drivers. With `forget`, core uses none of them again.
///
/// For tests on a simulator that is restarted: the events from before the restart do not exist any more.
#[doc(hidden)]
pub fn spare_events(forget: bool) -> usize {
    let drivers = [StreamApi::Cuda, StreamApi::Hip].map(loaded);
    let count = |driver: &Driver| driver.primaries.spare_events(forget);
    drivers.into_iter().flatten().map(count).sum()
}
