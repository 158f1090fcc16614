//! Work with a driver on one thread: contexts, events, waits and copies, as `Result`s.
#![expect(unsafe_code, reason = "calls C functions that were found by name")]

use core::ffi::{c_int, c_uint};
use core::{cell::Cell, ptr};
use std::sync::OnceLock;

use crate::stream::Queue;
use crate::stream::driver::{CudaCalls, Driver, Handle, Own};
use crate::{Device, Error};

/// `CU_EVENT_DISABLE_TIMING`, `hipEventDisableTiming`: half the cost, and nobody reads the time.
const NO_TIMING: c_uint = 2;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`, `hipStreamCaptureModeRelaxed`.
const RELAXED: c_int = 2;
/// `CU_STREAM_CAPTURE_STATUS_NONE`, `hipStreamCaptureStatusNone`.
const NOT_CAPTURING: c_int = 0;
/// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`, `hipErrorStreamCaptureImplicit`: a default stream was asked for while a stream
/// that it would wait for captures.
const CAPTURE_IMPLICIT: c_int = 906;
/// `CU_STREAM_NON_BLOCKING`, `hipStreamNonBlocking`: the default stream does not wait for such a stream, nor it for that.
const NON_BLOCKING: c_uint = 1;
/// `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: c_int = 801;

impl Driver {
    /// Remembers who is current on this thread until the result is dropped.
    pub(crate) fn visit(&'static self, device: Device) -> Result<Visit, Error> {
        let before = self.current()?;
        Ok(Visit {
            driver: self,
            device,
            before,
            now: Cell::new(before),
        })
    }
}

/// Work on a device: whoever was current on the thread before is so again afterwards.
pub(crate) struct Visit {
    driver: &'static Driver,
    device: Device,
    before: usize,
    now: Cell<usize>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        // Others may have changed it meanwhile: an owner in its `Drop` does.
        let now = self.driver.current();
        if now != Ok(self.before) {
            // Nothing is left to be done where this fails: the thread has lost its context otherwise too.
            let _ = self.driver.set_current(self.before);
        }
    }
}

/// A capture that a stream takes part in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capture {
    No,
    Yes(u64),
    /// A default stream, which no work may be put on while a stream that it waits for captures.
    Blocked,
}

/// That a capture is in the way.
pub(crate) fn capturing<T>(what: &'static str) -> Result<T, Error> {
    Err(Error::Capturing { what })
}

impl Visit {
    fn enter(&self, context: usize) -> Result<(), Error> {
        if self.now.get() != context {
            self.driver.set_current(context)?;
            self.now.set(context);
        }
        Ok(())
    }

    /// The context that is current now.
    pub(crate) fn now(&self) -> usize {
        self.now.get()
    }

    /// Makes the device's primary context the current one: the one in which consumers live.
    pub(crate) fn enter_primary(&self) -> Result<(), Error> {
        self.enter(self.driver.primary(self.device)?)
    }

    /// Makes the context of a stream the current one.
    pub(crate) fn enter_that_of(&self, stream: Queue) -> Result<(), Error> {
        match (&self.driver.own, stream.context()) {
            (Own::Hip(..), _) => self.enter_primary(),
            (Own::Cuda(calls), None) => match calls.context_of_stream {
                // Of default streams there is one in each context.
                Some(context_of_stream) if stream.handle > 2 => {
                    // A thread without a context is told nothing.
                    if self.now.get() == 0 {
                        self.enter_primary()?;
                    }
                    let mut context = ptr::null_mut();
                    // SAFETY: a stream that lives, by the promise behind its handle, and a place for the result.
                    let code = unsafe { context_of_stream(raw(stream.handle), &raw mut context) };
                    self.driver.check("cuStreamGetCtx", code)?;
                    self.enter(context.addr())
                }
                _ => self.enter_primary(),
            },
            (Own::Cuda(_), Some(context)) => self.enter(context),
        }
    }

    /// Whether a stream of the current context captures. Breaks no capture.
    pub(crate) fn capture(&self, stream: usize) -> Result<Capture, Error> {
        let mut status = NOT_CAPTURING;
        // SAFETY: a stream that lives, and a place for the result.
        let outcome = unsafe { self.driver.stream_status(raw(stream), &raw mut status) };
        if matches!(outcome, Err(Error::DriverFailed { code, .. }) if code == CAPTURE_IMPLICIT) {
            return Ok(Capture::Blocked);
        }
        outcome?;
        if status == NOT_CAPTURING {
            return Ok(Capture::No);
        }
        let mut id = 0;
        // SAFETY: a stream that lives, and places for the results.
        unsafe { (self.driver).stream_capture(raw(stream), &raw mut status, &raw mut id) }?;
        Ok(Capture::Yes(id))
    }

    /// Whether the default stream of the device's primary context waits for work on this stream.
    pub(crate) fn is_waited_for_by_default(&self, stream: usize) -> Result<bool, Error> {
        self.enter_primary()?;
        let primary = self.now();
        self.enter_that_of(Queue::new(stream))?;
        if self.now() != primary {
            return Ok(false);
        }
        let mut flags = 0;
        // SAFETY: a stream that lives, and a place for the result.
        unsafe { self.driver.stream_flags(raw(stream), &raw mut flags) }?;
        Ok(flags & NON_BLOCKING == 0)
    }

    /// A new event in the current context.
    pub(crate) fn event(&self) -> Result<Event, Error> {
        let mut event = ptr::null_mut();
        // SAFETY: a place for the result.
        unsafe { self.driver.event_create(&raw mut event, NO_TIMING) }?;
        Ok(Event {
            driver: self.driver,
            event,
        })
    }

    /// The event happens when all work that is on the stream now is done.
    pub(crate) fn record(&self, event: &Event, stream: usize) -> Result<(), Error> {
        // SAFETY: an event of ours and a stream that lives.
        unsafe { self.driver.event_record(event.event, raw(stream)) }
    }

    /// The event happens when all work that is on any stream of the current context now is done.
    /// `false` if the driver cannot do that.
    pub(crate) fn record_all(&self, event: &Event) -> Result<bool, Error> {
        let Own::Cuda(CudaCalls {
            record_all: Some(record_all),
            ..
        }) = self.driver.own
        else {
            return Ok(false);
        };
        // SAFETY: the current context, and an event of ours that was made in it.
        let code = unsafe { record_all(raw(self.now.get()), event.event) };
        if code == NOT_SUPPORTED {
            return Ok(false);
        }
        self.driver.check("cuCtxRecordEvent", code)?;
        Ok(true)
    }

    /// Work that is put on the stream from now on waits for the event.
    pub(crate) fn wait(&self, stream: usize, event: &Event) -> Result<(), Error> {
        // SAFETY: a stream that lives and an event of ours.
        unsafe { self.driver.stream_wait(raw(stream), event.event, 0) }
    }

    /// The host waits for the event.
    pub(crate) fn wait_on_host(&self, event: &Event) -> Result<(), Error> {
        // SAFETY: an event of ours.
        self.blocking(|| unsafe { self.driver.event_synchronize(event.event) })
    }

    /// The host waits for all work on a stream.
    pub(crate) fn synchronize(&self, stream: usize) -> Result<(), Error> {
        // SAFETY: a stream that lives.
        self.blocking(|| unsafe { self.driver.stream_synchronize(raw(stream)) })
    }

    /// The host waits for all work of the current context.
    pub(crate) fn synchronize_all(&self) -> Result<(), Error> {
        // SAFETY: always allowed.
        self.blocking(|| unsafe { self.driver.synchronize() })
    }

    /// New memory of the device, the address of which is a multiple of 256.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<usize, Error> {
        let mut address = 0;
        // SAFETY: a place for the result.
        self.blocking(|| unsafe { self.driver.allocate(&raw mut address, bytes) })?;
        Ok(address)
    }

    /// Gives back what [`allocate`](Self::allocate) gave, after all work on the device.
    ///
    /// # Safety
    ///
    /// It is given back once.
    pub(crate) unsafe fn free(&self, address: usize) -> Result<(), Error> {
        // SAFETY: passed on to the caller.
        self.blocking(|| unsafe { self.driver.free(address) })
    }

    /// Copies from the device to the host, in the order of the stream. The host may have to wait.
    ///
    /// # Safety
    ///
    /// There are so many bytes on both sides, and those of the host are nobody else's until the stream is done.
    pub(crate) unsafe fn copy_to_host(
        &self,
        target: *mut u8,
        source: usize,
        bytes: usize,
        stream: usize,
    ) -> Result<(), Error> {
        let stream = raw(stream);
        // SAFETY: passed on to the caller.
        self.blocking(|| unsafe { (self.driver).to_host(target.cast(), source, bytes, stream) })
    }

    /// Copies on the device, in the order of the stream.
    ///
    /// # Safety
    ///
    /// There are so many bytes on both sides, and the target is nobody else's until the stream is done.
    pub(crate) unsafe fn copy_on_device(
        &self,
        target: usize,
        source: usize,
        bytes: usize,
        stream: usize,
    ) -> Result<(), Error> {
        // SAFETY: passed on to the caller.
        unsafe { (self.driver).on_device(target, source, bytes, raw(stream)) }
    }

    /// Makes a call that may block, without what others wait for, and so that it breaks no capture on another
    /// thread: a capture in global mode forbids such calls to every thread that has not relaxed its own.
    fn blocking(&self, mut call: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
        let mut mode = RELAXED;
        // SAFETY: a mode, which is exchanged for the one before.
        unsafe { self.driver.exchange_mode(&raw mut mode) }?;
        let mut outcome = Ok(());
        aside(&mut || outcome = call());
        // SAFETY: the mode of before. It cannot fail where it went well just now.
        let _ = unsafe { self.driver.exchange_mode(&raw mut mode) };
        outcome
    }
}

/// A moment in a stream's work.
pub(crate) struct Event {
    driver: &'static Driver,
    event: Handle,
}

impl Drop for Event {
    fn drop(&mut self) {
        // Allowed while somebody waits for it: the driver keeps what it needs.
        // SAFETY: made by `event`, and destroyed once.
        let _ = unsafe { self.driver.event_destroy(self.event) };
    }
}

fn raw(handle: usize) -> Handle {
    ptr::without_provenance_mut(handle)
}

/// How a thread waits without keeping others from their work.
type Aside = fn(&mut dyn FnMut());

static ASIDE: OnceLock<Aside> = OnceLock::new();

/// Waits are made inside of `aside` from now on: a binding to a language with a lock lets go of it there.
///
/// Each wait is made once, whether `aside` makes it never, once or twice.
pub fn around_blocking(aside: Aside) {
    // The first one stays: they are all the same binding's.
    let _ = ASIDE.set(aside);
}

fn aside(wait: &mut dyn FnMut()) {
    once_inside(ASIDE.get().copied(), wait);
}

/// Safe code can name the hook, so it decides nothing: a wait that was left out would be a race, and what is freed twice worse.
fn once_inside(hook: Option<Aside>, wait: &mut dyn FnMut()) {
    let mut waited = false;
    if let Some(hook) = hook {
        hook(&mut || {
            if !core::mem::replace(&mut waited, true) {
                wait();
            }
        });
    }
    if !waited {
        wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Own faults 7.
    #[test]
    fn a_wait_is_made_once_whatever_the_hook_does() {
        let hooks: [Option<Aside>; 4] = [
            None,
            Some(|_| {}),
            Some(|wait| wait()),
            Some(|wait| {
                wait();
                wait();
            }),
        ];
        for (at, hook) in hooks.into_iter().enumerate() {
            let mut waits = 0;
            once_inside(hook, &mut || waits += 1);
            assert_eq!(waits, 1, "hook {at}");
        }
    }
}
