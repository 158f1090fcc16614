//! In which context, or on which device, a stream is.
#![expect(unsafe_code, reason = "calls C functions that were found by name")]

use core::ptr;

use crate::stream::driver::{CudaCalls, Handle, Own};
use crate::stream::visit::{Capture, Event, NOT_SUPPORTED, Visit, raw};
use crate::stream::{PER_THREAD, Queue};
use crate::{Error, memory::counted::Counted};

/// Where a stream is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    /// The context that has to be current for its number to mean it; in HIP the device. Where that is a green context, it is
    /// the one that is current on this thread, and must be made so on no other.
    pub(crate) enter: usize,
    /// The context whose record has its work in it: of a green context the primary one.
    pub(crate) whole: usize,
}

impl Place {
    const fn of(context: usize) -> Self {
        Self {
            enter: context,
            whole: context,
        }
    }
}

impl Visit {
    /// The device's primary context, or in HIP the device.
    pub(crate) fn primary(&self) -> Result<Place, Error> {
        self.driver.primary(self.device.device_id).map(Place::of)
    }

    /// Where the default streams are that somebody means by their numbers alone: in the context that is current on the
    /// thread if it belongs to the device, and in the device's primary one otherwise.
    pub(crate) fn home(&self) -> Result<Place, Error> {
        let Own::Cuda(calls) = &self.driver.own else {
            return self.primary();
        };
        if self.callers == 0 || self.driver.keeps(self.callers) {
            // One that is kept may be that of another device.
            return self.primary();
        }
        self.enter(self.callers)?;
        let device = self.device_of_current(calls)?;
        let elsewhere = device != self.device.device_id;
        if elsewhere || self.driver.is_primary(self.callers, device)? {
            return self.primary();
        }
        // Beside a capture the default stream may not be asked, nor used.
        let root = match self.capture(0)? {
            Capture::No => self.regular(calls, 0)?,
            _ => None,
        };
        Ok(Place {
            whole: root.unwrap_or(self.callers),
            enter: self.callers,
        })
    }

    /// Makes the context of a stream the current one, and asks whether it captures. In CUDA that comes first, since a stream
    /// that captures may be asked nothing else: not even where it is. Then it is taken to be where the default streams are.
    pub(crate) fn find(&self, stream: Queue) -> Result<(Place, Capture), Error> {
        let hip = matches!(self.driver.own, Own::Hip(..));
        let known = stream.handle <= PER_THREAD || stream.is_placed() || hip;
        let place = match known {
            true => self.place(stream)?,
            false if self.now() == 0 => self.primary()?,
            // A stream of any context can be asked in any.
            false => Place::of(self.now()),
        };
        self.enter(place.enter)?;
        let capture = self.capture(stream.handle)?;
        let place = match capture {
            _ if known => place,
            Capture::No => self.place(stream)?,
            _ => self.home()?,
        };
        self.enter(place.enter)?;
        Ok((place, capture))
    }

    /// Where a stream is, which does not capture.
    pub(crate) fn place(&self, stream: Queue) -> Result<Place, Error> {
        match (&self.driver.own, stream.context()) {
            (Own::Cuda(_), Some(context)) => Ok(Place::of(context)),
            (Own::Cuda(_), None) if stream.is_placed() => self.primary(),
            (Own::Cuda(calls), None) if stream.handle > PER_THREAD => {
                // A thread without a context is told nothing.
                if self.now() == 0 {
                    self.enter(self.primary()?.enter)?;
                }
                let Some(context) = self.regular(calls, stream.handle)? else {
                    return self.primary();
                };
                if !self.driver.keeps(context) {
                    self.enter(context)?;
                    let device = self.device_of_current(calls)?;
                    // If it is the primary one of any device, it is kept from now on, or else when it is next seen.
                    let _ = self.driver.is_primary(context, device);
                }
                Ok(Place::of(context))
            }
            (Own::Hip(calls, _), _) if stream.handle > PER_THREAD => {
                let Some(device_of_stream) = calls.device_of_stream else {
                    return self.primary();
                };
                let mut device = -1;
                // SAFETY: a stream that lives, by the promise behind its handle, and a place for the result.
                let code = unsafe { device_of_stream(raw(stream.handle), &raw mut device) };
                self.driver.check("hipStreamGetDevice", code)?;
                Ok(Place::of(usize::try_from(device).unwrap_or(usize::MAX)))
            }
            _ => self.home(),
        }
    }

    /// The device of the current context, or in HIP the current device.
    pub(super) fn device_of_now(&self) -> Result<i32, Error> {
        match &self.driver.own {
            Own::Cuda(calls) => self.device_of_current(calls),
            Own::Hip(..) => Ok(i32::try_from(self.now()).unwrap_or(-1)),
        }
    }

    /// The device of the current context.
    fn device_of_current(&self, calls: &CudaCalls) -> Result<i32, Error> {
        let mut device = -1;
        // SAFETY: a place for the result.
        let code = unsafe { (calls.device_of_context)(&raw mut device) };
        self.driver.check("cuCtxGetDevice", code)?;
        Ok(device)
    }

    /// The context of a stream that may be made current on any thread: of a green context, its primary one. `None` where
    /// the driver cannot tell.
    fn regular(&self, calls: &CudaCalls, stream: usize) -> Result<Option<usize>, Error> {
        let mut context: Handle = ptr::null_mut();
        let mut green: Handle = ptr::null_mut();
        let (call, code) = match (calls.contexts_of_stream, calls.context_of_stream) {
            // SAFETY: a stream that lives, by the promise behind its handle, and places for the results.
            (Some(ask), _) => ("cuStreamGetCtx", unsafe {
                ask(raw(stream), &raw mut context, &raw mut green)
            }),
            // SAFETY: as above.
            (None, Some(ask)) => ("cuStreamGetCtx", unsafe {
                ask(raw(stream), &raw mut context)
            }),
            (None, None) => return Ok(None),
        };
        if code == NOT_SUPPORTED {
            return Ok(None);
        }
        self.driver.check(call, code)?;
        Ok(Some(context.addr()))
    }

    /// The same moment of the current context, as an event that outlives it: one that we do not keep can be destroyed, and
    /// its events with it. Then a stream of ours, in the primary context, waits and the event is recorded there.
    pub(crate) fn lasting(&self, event: Event) -> Result<Counted<Event>, Error> {
        let own = self.now();
        let mut event = event;
        if !self.driver.keeps(own) {
            self.enter(self.primary()?.enter)?;
            let later = self.event()?;
            self.driver.beside(|stream| {
                self.wait(stream, &event)?;
                self.record(&later, stream)
            })?;
            event = later;
            self.enter(own)?;
        }
        Counted::new(event).map_err(|(_, bytes)| Error::OutOfMemory { bytes })
    }

    /// Whether a context is certain to live now. Others than these may have been destroyed since they were seen, but for
    /// that of a stream that lives.
    pub(crate) fn lives(&self, context: usize) -> bool {
        self.driver.keeps(context) || self.callers == context
    }
}
