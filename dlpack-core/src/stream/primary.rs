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

use crate::stream::driver::{CudaCalls, Driver, loaded_driver};
use crate::stream::session::run_in_hook;
use crate::{Error, device::StreamApi};

/// How many unused events are kept for each context: as many as threads that export at the same time.
const SPARE: usize = 16;
/// The number of streams with a remembered context. A stream is found at its ID modulo this.
const STREAMS: usize = 64;

/// The primary contexts that were requested, and some of their streams.
pub(super) struct PrimaryContexts {
    contexts: Mutex<Vec<PrimaryContext>>,
    /// Pairs of a stream's ID and its context.
    streams: Mutex<[(u64, usize); STREAMS]>,
}

/// A primary context that was requested. It is retained until the process ends, as every CUDA runtime does.
struct PrimaryContext {
    device: i32,
    context: usize,
    /// Events of this context that no thread uses.
    spare: Vec<usize>,
}

impl PrimaryContexts {
    pub(super) const fn new() -> Self {
        Self {
            contexts: Mutex::new(Vec::new()),
            streams: Mutex::new([(0, 0); STREAMS]),
        }
    }

    fn lock_contexts(&self) -> MutexGuard<'_, Vec<PrimaryContext>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_streams(&self) -> MutexGuard<'_, [(u64, usize); STREAMS]> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The primary context of a device, if it was requested before.
    pub(super) fn find_context(&self, device: i32) -> Option<usize> {
        find_primary(&self.lock_contexts(), device)
    }

    /// Takes an unused event of this context.
    pub(super) fn take_event(&self, context: usize) -> Option<usize> {
        let mut contexts = self.lock_contexts();
        let found = contexts.iter_mut().find(|one| one.context == context)?;
        found.spare.pop()
    }

    /// Keeps an event of this context for the next use. `false` if enough events are kept.
    pub(super) fn keep_event(&self, context: usize, event: usize) -> bool {
        let mut contexts = self.lock_contexts();
        let found = contexts.iter_mut().find(|one| one.context == context);
        found.is_some_and(|one| {
            let check_limit = one.spare.len() < SPARE && one.spare.try_reserve(1).is_ok();
            if check_limit {
                one.spare.push(event);
            }
            check_limit
        })
    }

    /// The context of the stream with this ID, if it is remembered.
    pub(super) fn context_of(&self, id: u64) -> Option<usize> {
        let (known, context) = self.lock_streams()[slot_of_stream(id)];
        (known == id && context != 0).then_some(context)
    }

    /// Remembers the context of the stream with this ID, which lives as long as the stream.
    pub(super) fn remember_context(&self, id: u64, context: usize) {
        self.lock_streams()[slot_of_stream(id)] = (id, context);
    }

    /// Counts the unused events. With `forget`, it forgets them: a test simulator that was restarted has destroyed them.
    pub(super) fn spare_events(&self, forget: bool) -> usize {
        let mut contexts = self.lock_contexts();
        let count = contexts.iter().map(|one| one.spare.len()).sum();
        if forget {
            contexts.iter_mut().for_each(|one| one.spare.clear());
        }
        count
    }
}

fn find_primary(contexts: &[PrimaryContext], device: i32) -> Option<usize> {
    let found = contexts.iter().find(|one| one.device == device);
    found.map(|one| one.context)
}

fn slot_of_stream(id: u64) -> usize {
    usize::try_from(id % STREAMS as u64).unwrap_or(0)
}

impl Driver {
    /// Whether this is a retained primary context, or in HIP a device: both exist until the process ends.
    pub(super) fn retains_context(&self, context: usize) -> bool {
        let is_retained = |one: &PrimaryContext| one.context == context;
        self.api == StreamApi::Hip || self.primaries.lock_contexts().iter().any(is_retained)
    }

    /// Whether a context is the primary one of a device. A device without a primary context gets none from this.
    pub(super) fn is_primary_context(&self, context: usize, device: i32) -> Result<bool, Error> {
        let Some(calls) = self.cuda_calls() else {
            return Ok(true);
        };
        Ok(self.has_primary_context(calls, device)? && self.primary_context(device)? == context)
    }

    /// Whether a device has a primary context. Creates none.
    fn has_primary_context(&self, calls: &CudaCalls, device: i32) -> Result<bool, Error> {
        let mut flags = 0;
        let mut active = 0;
        // SAFETY: `device` exists: it is that of a current context, or less than the number of devices. Both pointers are valid for
        // writing.
        let code = unsafe { (calls.primary_state)(device, &raw mut flags, &raw mut active) };
        self.check_code("cuDevicePrimaryCtxGetState", code)?;
        Ok(active != 0)
    }

    /// The number of devices.
    pub(super) fn count_devices(&self) -> Result<i32, Error> {
        let mut count = 0;
        // SAFETY: `count` is valid for writing the result.
        unsafe { self.device_count(&raw mut count) }?;
        Ok(count)
    }

    /// The primary context of a device if it exists, or in HIP the device. Creates none: a context takes memory of a device that
    /// this process may not use, and one that does not exist has no pending work.
    #[inline(never)]
    pub(super) fn find_existing_context(&self, device: i32) -> Result<Option<usize>, Error> {
        if let Some(calls) = self.cuda_calls() {
            let is_known = self.primaries.find_context(device).is_some();
            if !is_known && !self.has_primary_context(calls, device)? {
                return Ok(None);
            }
        }
        self.primary_context(device).map(Some)
    }

    /// The primary context of the first device that has one. Creates none.
    #[inline(never)]
    pub(super) fn find_any_context(&self) -> Option<usize> {
        let mut devices = 0..self.count_devices().ok()?;
        devices.find_map(|device| self.find_existing_context(device).ok().flatten())
    }

    /// What must be current for work on a device: its primary context, or in HIP the device itself.
    pub(super) fn primary_context(&self, device: i32) -> Result<usize, Error> {
        let Some(calls) = self.cuda_calls() else {
            return Ok(usize::try_from(device).unwrap_or(usize::MAX));
        };
        if let Some(context) = self.primaries.find_context(device) {
            return Ok(context);
        }
        // Creating the context is slow, so other threads run meanwhile.
        let mut made = Ok(0);
        run_in_hook(&mut || {
            let mut contexts = self.primaries.lock_contexts();
            made = match find_primary(&contexts, device) {
                Some(context) => Ok(context),
                None => self.retain_primary(calls, device, &mut contexts),
            };
        });
        made
    }

    fn retain_primary(
        &self,
        calls: &CudaCalls,
        device: i32,
        contexts: &mut Vec<PrimaryContext>,
    ) -> Result<usize, Error> {
        let room = contexts.try_reserve(1);
        let bytes = size_of::<PrimaryContext>();
        room.map_err(|_| Error::OutOfMemory { bytes })?;
        let mut ordinal = 0;
        // SAFETY: `ordinal` is valid for writing the result.
        let code = unsafe { (calls.device)(&raw mut ordinal, device) };
        self.check_code("cuDeviceGet", code)?;
        let mut context = ptr::null_mut();
        // SAFETY: `context` is valid for writing, and the driver returned `ordinal` for an existing device.
        let code = unsafe { (calls.retain_primary)(&raw mut context, ordinal) };
        self.check_code("cuDevicePrimaryCtxRetain", code)?;
        contexts.push(PrimaryContext {
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
    let drivers = [StreamApi::Cuda, StreamApi::Hip].map(loaded_driver);
    let count = |driver: &Driver| driver.primaries.spare_events(forget);
    drivers.into_iter().flatten().map(count).sum()
}
