//! Work with a driver on one thread: contexts, events, waits and copies, as `Result`s.
#![expect(unsafe_code, reason = "calls C functions that were found by name")]

use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicBool, Ordering};
use core::{cell::Cell, ptr};
use std::sync::OnceLock;

use crate::stream::driver::{CudaCalls, Driver, Handle, Own};
use crate::{Device, Error, panics::contain_panic};

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
pub(super) const NON_BLOCKING: c_uint = 1;
/// `CUDA_ERROR_NOT_SUPPORTED`.
pub(super) const NOT_SUPPORTED: c_int = 801;
/// `CUDA_ERROR_INVALID_HANDLE`: event and stream belong to two contexts.
pub(super) const INVALID_HANDLE: c_int = 400;

impl Driver {
    /// Remembers who is current on this thread until the result is dropped.
    pub(crate) fn visit(&'static self, device: Device) -> Result<Visit, Error> {
        let before = self.current()?;
        Ok(Visit {
            driver: self,
            device,
            callers: before,
            before,
            now: Cell::new(before),
            mode: Cell::new(Mode::AsBefore),
        })
    }
}

/// Calls of a driver for one device. When this is dropped, the thread has the context and the capture mode that it had before.
pub(crate) struct Visit {
    pub(super) driver: &'static Driver,
    pub(super) device: Device,
    /// What was current when core was called.
    pub(super) callers: usize,
    before: usize,
    now: Cell<usize>,
    mode: Cell<Mode>,
}

/// The capture mode of the thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    AsBefore,
    /// Relaxed, and to be set to this mode again.
    Relaxed(c_int),
    /// Relaxed by an outer [`Visit`], which sets it again.
    RelaxedOutside,
}

/// What stands for a context that an owner may have made the current one in its `Drop`. None has this address.
const DISTURBED: usize = usize::MAX;

impl Drop for Visit {
    fn drop(&mut self) {
        if let Mode::Relaxed(mut mode) = self.mode.get() {
            // SAFETY: the mode of before.
            let mut back = || unsafe { self.driver.exchange_mode(&raw mut mode) };
            // A second attempt, since no other code sets the mode again. There is no caller to report an error to.
            let _ = back().or_else(|_| back());
        }
        let now = match self.now.get() {
            DISTURBED => self.driver.current(),
            now => Ok(now),
        };
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

/// Whether a capture was ever seen in this process: one that nobody sees may be under way at any time then.
static CAPTURES: AtomicBool = AtomicBool::new(false);

pub(crate) fn captures_are_known() -> bool {
    CAPTURES.load(Ordering::Relaxed)
}

/// That a capture is in the way.
pub(crate) fn capturing<T>(what: &'static str) -> Result<T, Error> {
    Err(Error::Capturing { what })
}

impl Visit {
    /// A visit within this one, perhaps for another device. Its end restores the context that is current now.
    pub(crate) fn nested(&self, device: Device) -> Result<Self, Error> {
        let before = match self.now() {
            DISTURBED => self.driver.current()?,
            now => now,
        };
        Ok(Self {
            driver: self.driver,
            device,
            callers: self.callers,
            before,
            now: Cell::new(before),
            mode: Cell::new(match self.mode.get() {
                Mode::AsBefore => Mode::AsBefore,
                Mode::Relaxed(_) | Mode::RelaxedOutside => Mode::RelaxedOutside,
            }),
        })
    }

    /// Makes a context the current one, or in HIP a device.
    pub(crate) fn enter(&self, context: usize) -> Result<(), Error> {
        if self.now.get() != context {
            self.driver.set_current(context)?;
            self.now.set(context);
        }
        Ok(())
    }

    /// Makes that current again which was when core was called.
    pub(crate) fn leave(&self) -> Result<(), Error> {
        self.enter(self.callers)
    }

    /// The context that is current now.
    pub(crate) fn now(&self) -> usize {
        self.now.get()
    }

    /// Whether a stream of the current context captures. Breaks no capture.
    pub(crate) fn capture(&self, stream: usize) -> Result<Capture, Error> {
        let mut status = NOT_CAPTURING;
        // SAFETY: a stream that lives, and a place for the result.
        let outcome = unsafe { self.driver.stream_status(raw(stream), &raw mut status) };
        if matches!(outcome, Err(Error::DriverFailed { code, .. }) if code == CAPTURE_IMPLICIT) {
            CAPTURES.store(true, Ordering::Relaxed);
            return Ok(Capture::Blocked);
        }
        outcome?;
        if status == NOT_CAPTURING {
            return Ok(Capture::No);
        }
        CAPTURES.store(true, Ordering::Relaxed);
        let mut id = 0;
        // SAFETY: a stream that lives, and places for the results.
        unsafe { (self.driver).stream_capture(raw(stream), &raw mut status, &raw mut id) }?;
        Ok(Capture::Yes(id))
    }

    /// The number of a stream, which the driver gives to no other in the life of the process: a handle may come back for
    /// another stream. `None` if the driver numbers none: CUDA before 12.0; and HIP, which does not promise as much.
    pub(crate) fn id(&self, stream: usize) -> Result<Option<u64>, Error> {
        let Own::Cuda(CudaCalls {
            stream_id: Some(stream_id),
            ..
        }) = self.driver.own
        else {
            return Ok(None);
        };
        let mut id = 0;
        // SAFETY: a stream that lives, and a place for the result.
        let code = unsafe { stream_id(raw(stream), &raw mut id) };
        if code == NOT_SUPPORTED {
            return Ok(None);
        }
        self.driver.check("cuStreamGetId", code)?;
        Ok(Some(id))
    }

    /// Whether the default stream of its context waits for work on this stream.
    pub(crate) fn is_waited_for_by_default(&self, stream: usize) -> Result<bool, Error> {
        let mut flags = 0;
        // SAFETY: a stream that lives, and a place for the result.
        unsafe { self.driver.stream_flags(raw(stream), &raw mut flags) }?;
        Ok(flags & NON_BLOCKING == 0)
    }

    /// An event of the current context: an unused one, if there is one, else a new one.
    pub(crate) fn event(&self) -> Result<Event, Error> {
        let context = self.now();
        let driver = self.driver;
        let is_reusable = matches!(driver.own, Own::Cuda(_)) && driver.keeps(context);
        let spare = is_reusable.then(|| driver.primaries.take_event(context));
        let event = match spare.flatten() {
            Some(event) => event,
            None => {
                let mut event = ptr::null_mut();
                // SAFETY: a place for the result.
                unsafe { driver.event_create(&raw mut event, NO_TIMING) }?;
                event.addr()
            }
        };
        Ok(Event {
            driver,
            event,
            reusable_in: is_reusable.then_some(context),
        })
    }

    /// The event happens when all work that is on the stream now is done.
    pub(crate) fn record(&self, event: &mut Event, stream: usize) -> Result<(), Error> {
        // SAFETY: an event of ours and a stream that lives.
        let recorded = unsafe { self.driver.event_record(event.raw(), raw(stream)) };
        event.reusable_in = event.reusable_in.filter(|_| recorded.is_ok());
        recorded
    }

    /// The event happens when all work that is on any stream of the current context now is done.
    /// `false` if the driver cannot do that.
    pub(crate) fn record_all(&self, event: &mut Event) -> Result<bool, Error> {
        let Own::Cuda(CudaCalls {
            record_all: Some(record_all),
            ..
        }) = self.driver.own
        else {
            return Ok(false);
        };
        // SAFETY: the current context, and an event of ours that was made in it.
        let code = unsafe { record_all(raw(self.now.get()), event.raw()) };
        if code == NOT_SUPPORTED {
            return Ok(false);
        }
        let recorded = self.driver.check("cuCtxRecordEvent", code);
        event.reusable_in = event.reusable_in.filter(|_| recorded.is_ok());
        recorded.map(|()| true)
    }

    /// Work that is put on the stream from now on waits for the event.
    pub(crate) fn wait(&self, stream: usize, event: &Event) -> Result<(), Error> {
        // SAFETY: a stream that lives and an event of ours.
        unsafe { self.driver.stream_wait(raw(stream), event.raw(), 0) }
    }

    /// Whether the event has happened. Breaks no capture: the thread's mode is relaxed until this visit ends.
    pub(crate) fn is_over(&self, event: &Event) -> Result<bool, Error> {
        self.relax()?;
        // SAFETY: an event of ours.
        unsafe { self.driver.query(event.raw()) }
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

    /// Makes a call that may block, without what others wait for.
    pub(super) fn blocking(
        &self,
        mut call: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut outcome = Ok(());
        self.relax()?;
        aside(&mut || outcome = call());
        outcome
    }

    /// Relaxes the capture mode of the thread until this visit ends, so that no call breaks the capture of another stream. A
    /// capture in global mode forbids to every thread that has not relaxed its own mode, and one in any other mode to its own
    /// thread, each call that could make a default stream wait.
    pub(crate) fn relax(&self) -> Result<(), Error> {
        if self.mode.get() == Mode::AsBefore {
            let mut mode = RELAXED;
            // SAFETY: a mode, which is exchanged for the one before.
            unsafe { self.driver.exchange_mode(&raw mut mode) }?;
            self.mode.set(Mode::Relaxed(mode));
        }
        Ok(())
    }

    /// Drops an owner. It has nothing to do with what the caller is doing, perhaps in a capture, which forbids most ways
    /// to free memory; and one that panics must not leave the thread in another mode.
    pub(super) fn let_go(self, release: &mut dyn FnMut()) {
        self.now.set(DISTURBED);
        // An owner that cannot be dropped relaxed is dropped all the same: its consumers are done.
        let _ = self.relax();
        contain_panic(release);
    }
}

/// A moment in a stream's work.
pub(crate) struct Event {
    driver: &'static Driver,
    /// Its handle, which is the same on any thread.
    event: usize,
    /// The context for which the event is kept when this is dropped; none if it is destroyed then.
    pub(super) reusable_in: Option<usize>,
}

impl Event {
    fn raw(&self) -> Handle {
        raw(self.event)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let keep = |context| self.driver.primaries.keep_event(context, self.event);
        if self.reusable_in.is_some_and(keep) {
            return;
        }
        // Allowed while a stream waits for it: the driver keeps what it needs.
        // SAFETY: made by `event`, kept for no other use, and destroyed once.
        let _ = unsafe { self.driver.event_destroy(self.raw()) };
    }
}

pub(super) fn raw(handle: usize) -> Handle {
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

pub(super) fn aside(wait: &mut dyn FnMut()) {
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
