//! In which context, or on which device, a stream is.
#![expect(unsafe_code, reason = "calls C functions that were found by name")]

use core::ptr;

use crate::stream::driver::{CudaCalls, Handle, Own};
use crate::stream::visit::{Capture, Event, INVALID_HANDLE, NOT_SUPPORTED, Visit, raw};
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

    /// Makes the context of a stream the current one, and asks whether the stream captures.
    pub(crate) fn find(&self, stream: Queue) -> Result<(Place, Capture), Error> {
        let (known, capture) = self.find_capture(stream)?;
        let place = self.locate(stream, known, capture)?;
        self.enter(place.enter)?;
        Ok((place, capture))
    }

    /// Whether a stream captures, and where it is if that takes no query. In CUDA this comes before any query, since a capturing
    /// stream allows no other: not even where it is.
    pub(crate) fn find_capture(&self, stream: Queue) -> Result<(Option<Place>, Capture), Error> {
        let known = match stream.handle <= PER_THREAD || stream.is_placed() {
            true => Some(self.place(stream)?),
            false => None,
        };
        match known {
            Some(place) => self.enter(place.enter)?,
            None if self.now() == 0 && matches!(self.driver.own, Own::Cuda(_)) => {
                self.enter(self.primary()?.enter)?;
            }
            // A stream of any context can be queried in any.
            None => {}
        }
        Ok((known, self.capture(stream.handle)?))
    }

    /// Where a stream is, after [`Self::find_capture`]. A capturing stream of CUDA is taken to be where the default streams are.
    pub(crate) fn locate(
        &self,
        stream: Queue,
        known: Option<Place>,
        capture: Capture,
    ) -> Result<Place, Error> {
        match (known, capture, &self.driver.own) {
            (Some(place), ..) => Ok(place),
            (None, Capture::No, _) | (None, _, Own::Hip(..)) => self.place(stream),
            (None, ..) => self.home(),
        }
    }

    /// Where the stream of a consumer is, which does not capture, and its ID if the driver numbers streams. Its context may not
    /// be current then.
    pub(crate) fn identify(
        &self,
        stream: Queue,
        known: Option<Place>,
    ) -> Result<(Place, Option<u64>), Error> {
        if stream.handle < PER_THREAD {
            return Ok((self.locate(stream, known, Capture::No)?, None));
        }
        let id = self.id(stream.handle)?;
        let remembered = id.and_then(|id| self.driver.primaries.context_of(id));
        let place = match (known, remembered) {
            (Some(place), _) => place,
            (None, Some(context)) => Place::of(context),
            (None, None) => {
                let place = self.place(stream)?;
                if let Some(id) = id {
                    self.driver.primaries.remember_context(id, place.enter);
                }
                place
            }
        };
        Ok((place, id))
    }

    /// The context that most streams of the device belong to: the primary one. None where the program works in a context of its
    /// own, and before CUDA 12.5, which does not document the error for an event of another context.
    fn likely_context(&self) -> Option<usize> {
        let Own::Cuda(CudaCalls {
            contexts_of_stream: Some(_),
            ..
        }) = self.driver.own
        else {
            return None;
        };
        let usual = self.callers == 0 || self.driver.keeps(self.callers);
        usual.then(|| self.driver.primaries.find(self.device.device_id))?
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

    /// An event that happens when all work is done that is on a stream now, which does not capture. `place` is where the
    /// stream is, if that is known.
    ///
    /// Most streams belong to the primary context of the device. So the event is one of that context, which saves the query where
    /// the stream is: the driver documents the error for an event of another context.
    pub(crate) fn end_of(&self, stream: Queue, place: Option<Place>) -> Result<Event, Error> {
        if place.is_none() {
            if let Some(context) = self.likely_context() {
                self.enter(context)?;
                let mut event = self.event()?;
                match self.record(&mut event, stream.handle) {
                    Err(Error::DriverFailed { code, .. }) if code == INVALID_HANDLE => {
                        event.reusable_in = Some(context);
                    }
                    recorded => return recorded.map(|()| event),
                }
            }
        }
        let place = place.map_or_else(|| self.place(stream), Ok)?;
        self.enter(place.enter)?;
        let mut event = self.event()?;
        self.record(&mut event, stream.handle).map(|()| event)
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
            let mut later = self.event()?;
            self.driver.beside(|stream| {
                self.wait(stream, &event)?;
                self.record(&mut later, stream)
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
