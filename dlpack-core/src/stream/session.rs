//! Driver calls of one thread as `Result`s: records events, waits for them, copies memory, and selects contexts.
#![expect(unsafe_code, reason = "calls C functions that were found by name")]

use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicBool, Ordering};
use core::{cell::Cell, ops::RangeInclusive, ptr};
use std::sync::OnceLock;

use crate::stream::driver::{Driver, Handle};
use crate::{Device, Error, panics::contain_panic};

/// `CU_EVENT_DISABLE_TIMING`, `hipEventDisableTiming`: half the cost, and no code reads the time.
const NO_TIMING: c_uint = 2;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`, `hipStreamCaptureModeRelaxed`.
const RELAXED: c_int = 2;
/// `CU_STREAM_CAPTURE_STATUS_NONE`, `hipStreamCaptureStatusNone`.
const NOT_CAPTURING: c_int = 0;
/// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`, `hipErrorStreamCaptureImplicit`: a default stream was queried while a stream
/// that it would wait for captures.
const CAPTURE_IMPLICIT: c_int = 906;
/// The codes of `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` and the other errors of captures, and those of HIP.
const CAPTURE_ERRORS: RangeInclusive<c_int> = 900..=908;
/// `CU_STREAM_NON_BLOCKING`, `hipStreamNonBlocking`: such a stream and the default stream do not wait for each other.
pub(super) const NON_BLOCKING: c_uint = 1;
/// `CUDA_ERROR_NOT_SUPPORTED`.
pub(super) const NOT_SUPPORTED: c_int = 801;
/// `CUDA_ERROR_INVALID_HANDLE`: the event and the stream belong to different contexts.
pub(super) const INVALID_HANDLE: c_int = 400;

impl Driver {
    /// Starts a session with the driver, which restores the current context of this thread when it is dropped.
    #[inline(never)]
    pub(crate) fn begin_session(&'static self, device: Device) -> Result<DriverSession, Error> {
        let before = self.query_current_context()?;
        Ok(DriverSession {
            driver: self,
            device,
            callers: before,
            before,
            now: Cell::new(before),
            mode: Cell::new(CaptureMode::AsBefore),
        })
    }
}

/// A session of driver calls for one device. Its drop restores the thread's context and capture mode.
pub(crate) struct DriverSession {
    pub(super) driver: &'static Driver,
    pub(super) device: Device,
    /// The context that was current when core was called.
    pub(super) callers: usize,
    before: usize,
    now: Cell<usize>,
    mode: Cell<CaptureMode>,
}

/// The capture mode of the thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaptureMode {
    AsBefore,
    /// Relaxed. This mode is restored at the end.
    Relaxed(c_int),
    /// Relaxed by an outer [`DriverSession`], which restores the mode.
    RelaxedOutside,
}

/// Marks that the current context is unknown, because an owner's `Drop` may have changed it. No context has this address.
const DISTURBED: usize = usize::MAX;

impl Drop for DriverSession {
    #[inline(never)]
    fn drop(&mut self) {
        if let CaptureMode::Relaxed(mut mode) = self.mode.get() {
            // SAFETY: `mode` is valid for reading and writing, and holds the mode that the driver returned in `relax_capture_mode`.
            let mut back = || unsafe { self.driver.exchange_mode(&raw mut mode) };
            // Try twice, since no other code restores the mode. There is no caller to report an error to.
            let _ = back().or_else(|_| back());
        }
        let now = match self.now.get() {
            DISTURBED => self.driver.query_current_context(),
            now => Ok(now),
        };
        if now != Ok(self.before) {
            // A failure is ignored: nothing is left to be done, because the thread has lost its context in any case.
            let _ = self.driver.set_current_context(self.before);
        }
    }
}

/// A capture that a stream takes part in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capture {
    No,
    Yes(u64),
    /// A default stream that accepts no work while a stream that it waits for captures.
    Blocked,
}

/// Whether a capture was ever seen in this process. If so, a capture that core cannot see may be active at any time.
static CAPTURES: AtomicBool = AtomicBool::new(false);

/// Remembers that a capture was seen.
pub(super) fn remember_capture() {
    CAPTURES.store(true, Ordering::Relaxed);
}

pub(crate) fn captures_are_known() -> bool {
    CAPTURES.load(Ordering::Relaxed)
}

/// Remembers that a capture was seen, if the driver refused a call for one.
fn note_capture<T>(outcome: Result<T, Error>) -> Result<T, Error> {
    if matches!(&outcome, Err(Error::DriverFailed { code, .. }) if CAPTURE_ERRORS.contains(code)) {
        remember_capture();
    }
    outcome
}

/// Returns the error that a capture prevents the call.
pub(crate) fn capture_error<T>(what: &'static str) -> Result<T, Error> {
    Err(Error::Capturing { what })
}

impl DriverSession {
    /// Starts a session within this one, perhaps for another device. Its drop restores the context that is current now.
    #[inline(never)]
    pub(crate) fn begin_nested(&self, device: Device) -> Result<Self, Error> {
        let before = match self.current_context() {
            DISTURBED => self.driver.query_current_context()?,
            now => now,
        };
        Ok(Self {
            driver: self.driver,
            device,
            callers: self.callers,
            before,
            now: Cell::new(before),
            mode: Cell::new(match self.mode.get() {
                CaptureMode::AsBefore => CaptureMode::AsBefore,
                CaptureMode::Relaxed(_) | CaptureMode::RelaxedOutside => {
                    CaptureMode::RelaxedOutside
                }
            }),
        })
    }

    /// Makes a context the current one, or in HIP a device.
    #[inline(never)]
    pub(crate) fn enter_context(&self, context: usize) -> Result<(), Error> {
        if self.now.get() != context {
            self.driver.set_current_context(context)?;
            self.now.set(context);
        }
        Ok(())
    }

    /// Makes the context current that was current when core was called.
    pub(crate) fn restore_context(&self) -> Result<(), Error> {
        self.enter_context(self.callers)
    }

    /// The context that is current now.
    pub(crate) fn current_context(&self) -> usize {
        self.now.get()
    }

    /// Whether a stream of the current context captures. Breaks no capture.
    pub(crate) fn query_capture(&self, stream: usize) -> Result<Capture, Error> {
        let mut status = NOT_CAPTURING;
        // SAFETY: the stream lives, and `status` is valid for writing.
        let outcome = unsafe {
            self.driver
                .stream_status(handle_of(stream), &raw mut status)
        };
        if matches!(outcome, Err(Error::DriverFailed { code, .. }) if code == CAPTURE_IMPLICIT) {
            remember_capture();
            return Ok(Capture::Blocked);
        }
        outcome?;
        if status == NOT_CAPTURING {
            return Ok(Capture::No);
        }
        remember_capture();
        let mut id = 0;
        // SAFETY: the stream lives, and `status` and `id` are valid for writing.
        unsafe { (self.driver).stream_capture(handle_of(stream), &raw mut status, &raw mut id) }?;
        Ok(Capture::Yes(id))
    }

    /// The ID of a stream, which the driver gives to no other stream in the life of the process; a handle can be reused.
    /// `None` if the driver has no such IDs: CUDA before 12.0, and HIP, which does not promise that they are unique.
    pub(crate) fn query_stream_id(&self, stream: usize) -> Result<Option<u64>, Error> {
        let Some(stream_id) = self.driver.cuda_calls().and_then(|calls| calls.stream_id) else {
            return Ok(None);
        };
        let mut id = 0;
        // SAFETY: the stream lives, and `id` is valid for writing.
        let code = unsafe { stream_id(handle_of(stream), &raw mut id) };
        if code == NOT_SUPPORTED {
            return Ok(None);
        }
        self.driver.check_code("cuStreamGetId", code)?;
        Ok(Some(id))
    }

    /// Whether the default stream of its context waits for work on this stream.
    pub(crate) fn is_waited_for_by_default(&self, stream: usize) -> Result<bool, Error> {
        let mut flags = 0;
        // SAFETY: the stream lives, and `flags` is valid for writing.
        unsafe { self.driver.stream_flags(handle_of(stream), &raw mut flags) }?;
        Ok(flags & NON_BLOCKING == 0)
    }

    /// An event of the current context: a kept unused event if there is one, else a new event.
    #[inline(never)]
    pub(crate) fn acquire_event(&self) -> Result<Event, Error> {
        let context = self.current_context();
        let driver = self.driver;
        let is_reusable = driver.cuda_calls().is_some() && driver.retains_context(context);
        let spare = is_reusable.then(|| driver.primaries.take_event(context));
        let event = match spare.flatten() {
            Some(event) => event,
            None => {
                let mut event = ptr::null_mut();
                // SAFETY: `event` is valid for writing the result.
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

    /// Records the event: it happens when all work that is on the stream now is done.
    pub(crate) fn record_event(&self, event: &mut Event, stream: usize) -> Result<(), Error> {
        // SAFETY: the `Event` owns a live event, and the stream lives.
        let recorded = unsafe { self.driver.event_record(event.handle(), handle_of(stream)) };
        event.reusable_in = event.reusable_in.filter(|_| recorded.is_ok());
        recorded
    }

    /// Records the event: it happens when all work that is on any stream of the current context now is done.
    /// `false` if the driver cannot record a context.
    pub(crate) fn record_context(&self, event: &mut Event) -> Result<bool, Error> {
        let Some(record_all) = self.driver.cuda_calls().and_then(|calls| calls.record_all) else {
            return Ok(false);
        };
        // SAFETY: the context is current, so it lives, and the `Event` owns a live event that was made in it.
        let code = unsafe { record_all(handle_of(self.now.get()), event.handle()) };
        if code == NOT_SUPPORTED {
            return Ok(false);
        }
        let recorded = note_capture(self.driver.check_code("cuCtxRecordEvent", code));
        event.reusable_in = event.reusable_in.filter(|_| recorded.is_ok());
        recorded.map(|()| true)
    }

    /// Makes work that is queued on the stream from now on wait for the event.
    pub(crate) fn wait_for_event(&self, stream: usize, event: &Event) -> Result<(), Error> {
        // SAFETY: the stream lives, and the `Event` owns a live event.
        unsafe {
            self.driver
                .stream_wait(handle_of(stream), event.handle(), 0)
        }
    }

    /// Whether the event has happened. Breaks no capture: the thread's mode is relaxed until this session ends.
    pub(crate) fn is_event_over(&self, event: &Event) -> Result<bool, Error> {
        self.relax_capture_mode()?;
        // SAFETY: the `Event` owns a live event.
        unsafe { self.driver.is_event_over(event.handle()) }
    }

    /// Blocks the host until all work on a stream is done.
    pub(crate) fn block_on_stream(&self, stream: usize) -> Result<(), Error> {
        // SAFETY: the stream lives.
        self.run_blocking(|| unsafe { self.driver.stream_synchronize(handle_of(stream)) })
    }

    /// Blocks the host until all work of the current context is done.
    pub(crate) fn block_on_context(&self) -> Result<(), Error> {
        // SAFETY: the call has no arguments and no preconditions.
        note_capture(self.run_blocking(|| unsafe { self.driver.synchronize() }))
    }

    /// Copies from the device to the host in stream order. The host may have to wait.
    ///
    /// # Safety
    ///
    /// Both ranges have `bytes` bytes, and no other code accesses the host's range until the stream is done.
    pub(crate) unsafe fn copy_to_host(
        &self,
        target: *mut u8,
        source: usize,
        bytes: usize,
        stream: usize,
    ) -> Result<(), Error> {
        let stream = handle_of(stream);
        // SAFETY: same contract as this function's: both ranges are valid, and the host's is unused until the stream is done.
        self.run_blocking(|| unsafe { (self.driver).to_host(target.cast(), source, bytes, stream) })
    }

    /// Copies on the device in stream order.
    ///
    /// # Safety
    ///
    /// Both ranges have `bytes` bytes, and no other code accesses the target range until the stream is done.
    pub(crate) unsafe fn copy_on_device(
        &self,
        target: usize,
        source: usize,
        bytes: usize,
        stream: usize,
    ) -> Result<(), Error> {
        // SAFETY: same contract as this function's: both ranges are valid, and the target is unused until the stream is done.
        unsafe { (self.driver).on_device(target, source, bytes, handle_of(stream)) }
    }

    /// Makes a call that may block, inside the hook that releases locks which other threads need.
    pub(super) fn run_blocking(
        &self,
        mut call: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut outcome = Ok(());
        self.relax_capture_mode()?;
        run_in_hook(&mut || outcome = call());
        outcome
    }

    /// Relaxes the capture mode of the thread until this session ends, so that no call breaks the capture of another stream. A
    /// capture forbids each call that could make a default stream wait. In global mode it forbids them to every thread that has
    /// not relaxed its own mode, and in any other mode only to its own thread.
    pub(crate) fn relax_capture_mode(&self) -> Result<(), Error> {
        if self.mode.get() == CaptureMode::AsBefore {
            let mut mode = RELAXED;
            // SAFETY: `mode` holds a valid mode, and is valid for writing the previous one.
            unsafe { self.driver.exchange_mode(&raw mut mode) }?;
            self.mode.set(CaptureMode::Relaxed(mode));
        }
        Ok(())
    }

    /// Drops an owner, in relaxed capture mode. The drop is unrelated to the caller's work, which may be a capture, and a capture
    /// forbids most ways to free memory. A panic of the owner is contained, so that the thread's mode is restored.
    pub(super) fn drop_owner(self, release: &mut dyn FnMut()) {
        self.now.set(DISTURBED);
        // If the mode cannot be relaxed, the owner is dropped anyway: its consumers are done.
        let _ = self.relax_capture_mode();
        contain_panic(release);
    }
}

/// An event of the driver: a point in a stream's work.
pub(crate) struct Event {
    driver: &'static Driver,
    /// The handle, which is valid on any thread.
    event: usize,
    /// The context for which the event is kept when this is dropped; `None` if it is destroyed then.
    pub(super) reusable_in: Option<usize>,
}

impl Event {
    fn handle(&self) -> Handle {
        handle_of(self.event)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let keep = |context| self.driver.primaries.keep_event(context, self.event);
        if self.reusable_in.is_some_and(keep) {
            return;
        }
        // Allowed while a stream waits for the event: the driver keeps what it needs.
        // SAFETY: the event was created in `event`, is not kept for another use, and is destroyed once.
        let _ = unsafe { self.driver.event_destroy(self.handle()) };
    }
}

pub(super) fn handle_of(handle: usize) -> Handle {
    ptr::without_provenance_mut(handle)
}

/// A hook that runs a blocking call without the locks that other threads need.
type BlockingHook = fn(&mut dyn FnMut());

static BLOCKING_HOOK: OnceLock<BlockingHook> = OnceLock::new();

/// Runs blocking calls inside of `aside` from now on, so that a binding to a language with a global lock can release it there.
///
/// Each blocking call is made once, even if `aside` calls its argument never or twice.
pub fn around_blocking(aside: BlockingHook) {
    // The first hook stays: all calls come from the same binding.
    let _ = BLOCKING_HOOK.set(aside);
}

pub(super) fn run_in_hook(wait: &mut dyn FnMut()) {
    run_once_in_hook(BLOCKING_HOOK.get().copied(), wait);
}

/// Calls `wait` exactly once, whatever the hook does, since safe code can set the hook. A skipped wait is a race; a repeated
/// free is a double free.
fn run_once_in_hook(hook: Option<BlockingHook>, wait: &mut dyn FnMut()) {
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
        let hooks: [Option<BlockingHook>; 4] = [
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
            run_once_in_hook(hook, &mut || waits += 1);
            assert_eq!(waits, 1, "hook {at}");
        }
    }
}
