//! Finds the context, or in HIP the device, that a stream belongs to, and records an event in it.
#![expect(unsafe_code, reason = "calls C functions that were found by name")]

use core::ptr;

use crate::stream::driver::{ApiCalls, CudaCalls, Handle};
use crate::stream::session::{
    Capture, DriverSession, Event, INVALID_HANDLE, NOT_SUPPORTED, handle_of,
};
use crate::stream::{PER_THREAD, Queue};
use crate::{Error, memory::counted::Counted};

/// The context, or in HIP the device, of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StreamContext {
    /// The context that must be current for the stream's number to be valid; in HIP the device. If it is a green context, it is
    /// the current context of this thread, and must not be made current on any other thread.
    pub(crate) to_enter: usize,
    /// The context to record for the stream's work: the primary context for a stream of a green context.
    pub(crate) to_record: usize,
}

impl StreamContext {
    const fn from_context(context: usize) -> Self {
        Self {
            to_enter: context,
            to_record: context,
        }
    }
}

impl DriverSession {
    /// Whether the memory belongs to no device: DLPack gives all memory that the host reads the index 0.
    pub(crate) fn is_without_device(&self) -> bool {
        self.device.device_type.is_host_readable()
    }

    /// The context for work on this memory: the device's primary context, or in HIP the device. For memory without a device it is
    /// the current context, and if none is current, a primary context that exists.
    pub(crate) fn home_context(&self) -> Result<StreamContext, Error> {
        let context = match self.is_without_device() {
            false => self.driver.primary_context(self.device.device_id),
            true if self.has_callers_context() => Ok(self.callers),
            true => match self.driver.find_any_context() {
                Some(context) => Ok(context),
                None => self.driver.primary_context(self.device.device_id),
            },
        };
        context.map(StreamContext::from_context)
    }

    /// Whether a context was current when core was called. In HIP a device always is.
    fn has_callers_context(&self) -> bool {
        self.callers != 0 || self.driver.cuda_calls().is_none()
    }

    /// Makes an existing context current if none is, for calls that need one but not a particular one. Creates none.
    pub(crate) fn enter_any_context(&self) -> Result<(), Error> {
        if self.driver.cuda_calls().is_some() && self.current_context() == 0 {
            if let Some(context) = self.driver.find_any_context() {
                return self.enter_context(context);
            }
        }
        Ok(())
    }

    /// A primary context for events that must outlive the current context. It is that of the device, and for memory without a
    /// device that of the current context's device.
    fn lasting_context(&self) -> Result<usize, Error> {
        let device = match self.is_without_device() {
            true => self.current_device()?,
            false => self.device.device_id,
        };
        self.driver.primary_context(device)
    }

    /// The context of default streams that are named by number alone. It is the context that is current on the thread if it
    /// belongs to the device or if the memory belongs to no device, and the device's primary context otherwise.
    pub(crate) fn default_stream_context(&self) -> Result<StreamContext, Error> {
        let Some(calls) = self.driver.cuda_calls() else {
            return self.home_context();
        };
        if self.callers == 0 || self.driver.retains_context(self.callers) {
            // A retained context can be that of another device.
            return self.home_context();
        }
        self.enter_context(self.callers)?;
        let device = self.query_current_device(calls)?;
        let elsewhere = device != self.device.device_id && !self.is_without_device();
        if elsewhere || self.driver.is_primary_context(self.callers, device)? {
            return self.home_context();
        }
        // During a capture the default stream may be neither queried nor used.
        let root = match self.query_capture(0)? {
            Capture::No => self.query_shareable_context(calls, 0)?,
            _ => None,
        };
        Ok(StreamContext {
            to_record: root.unwrap_or(self.callers),
            to_enter: self.callers,
        })
    }

    /// The [`default_stream_context`](Self::default_stream_context), without a further call in most programs. `None` if it is a
    /// primary context that core has not used.
    pub(crate) fn find_default_context(&self) -> Result<Option<StreamContext>, Error> {
        if self.callers == 0 || self.driver.retains_context(self.callers) {
            let primary = self.driver.primaries.find_context(self.device.device_id);
            return Ok(primary.map(StreamContext::from_context));
        }
        self.default_stream_context().map(Some)
    }

    /// Makes the context of a stream current, and queries whether the stream captures.
    pub(crate) fn enter_stream_context(
        &self,
        stream: Queue,
    ) -> Result<(StreamContext, Capture), Error> {
        let (known, capture) = self.find_capture(stream)?;
        let place = self.resolve_context(stream, known, capture)?;
        self.enter_context(place.to_enter)?;
        Ok((place, capture))
    }

    /// Whether a stream captures, and its context if that needs no query. In CUDA this comes before any other query, because a
    /// capturing stream allows no other, not even for its context.
    pub(crate) fn find_capture(
        &self,
        stream: Queue,
    ) -> Result<(Option<StreamContext>, Capture), Error> {
        let known = match stream.handle <= PER_THREAD || stream.is_placed() {
            true => Some(self.query_context(stream)?),
            false => None,
        };
        match known {
            Some(place) => self.enter_context(place.to_enter)?,
            None if self.current_context() == 0 && self.driver.cuda_calls().is_some() => {
                self.enter_context(self.home_context()?.to_enter)?;
            }
            // A stream of any context can be queried in any context.
            None => {}
        }
        Ok((known, self.query_capture(stream.handle)?))
    }

    /// The context of a stream, after [`Self::find_capture`]. A capturing CUDA stream cannot be queried, and is assumed to be in
    /// the [`default_stream_context`](Self::default_stream_context).
    pub(crate) fn resolve_context(
        &self,
        stream: Queue,
        known: Option<StreamContext>,
        capture: Capture,
    ) -> Result<StreamContext, Error> {
        match (known, capture, &self.driver.api_calls) {
            (Some(place), ..) => Ok(place),
            (None, Capture::No, _) | (None, _, ApiCalls::Hip(..)) => self.query_context(stream),
            (None, ..) => self.default_stream_context(),
        }
    }

    /// The context of a consumer's stream, which must not capture, and its ID if the driver numbers streams. Afterwards another
    /// context may be current.
    pub(crate) fn identify_stream(
        &self,
        stream: Queue,
        known: Option<StreamContext>,
    ) -> Result<(StreamContext, Option<u64>), Error> {
        if stream.handle < PER_THREAD {
            return Ok((self.resolve_context(stream, known, Capture::No)?, None));
        }
        let id = self.query_stream_id(stream.handle)?;
        let remembered = id.and_then(|id| self.driver.primaries.context_of(id));
        let place = match (known, remembered) {
            (Some(place), _) => place,
            (None, Some(context)) => StreamContext::from_context(context),
            (None, None) => {
                let place = self.query_context(stream)?;
                if let Some(id) = id {
                    self.driver.primaries.remember_context(id, place.to_enter);
                }
                place
            }
        };
        Ok((place, id))
    }

    /// The context that most streams of the device belong to: the primary one. `None` if the program works in a context of its
    /// own, and before CUDA 12.5, which does not document the error for an event of another context.
    fn likely_context(&self) -> Option<usize> {
        self.driver.cuda_calls()?.contexts_of_stream?;
        let usual = self.callers == 0 || self.driver.retains_context(self.callers);
        usual.then(|| self.driver.primaries.find_context(self.device.device_id))?
    }

    /// Queries the context of a stream, which must not capture.
    pub(crate) fn query_context(&self, stream: Queue) -> Result<StreamContext, Error> {
        match (&self.driver.api_calls, stream.context()) {
            (ApiCalls::Cuda(_), Some(context)) => Ok(StreamContext::from_context(context)),
            (ApiCalls::Cuda(_), None) if stream.is_placed() => {
                let primary = self.driver.primary_context(self.device.device_id)?;
                Ok(StreamContext::from_context(primary))
            }
            (ApiCalls::Cuda(calls), None) if stream.handle > PER_THREAD => {
                // The driver answers the query only on a thread that has a context.
                if self.current_context() == 0 {
                    self.enter_context(self.home_context()?.to_enter)?;
                }
                let Some(context) = self.query_shareable_context(calls, stream.handle)? else {
                    return self.lasting_context().map(StreamContext::from_context);
                };
                if !self.driver.retains_context(context) {
                    self.enter_context(context)?;
                    let device = self.query_current_device(calls)?;
                    // A primary context of any device is retained here; if that fails, the next query tries again.
                    let _ = self.driver.is_primary_context(context, device);
                }
                Ok(StreamContext::from_context(context))
            }
            (ApiCalls::Hip(calls, _), _) if stream.handle > PER_THREAD => {
                let Some(device_of_stream) = calls.device_of_stream else {
                    return self.find_device_by_event(stream);
                };
                let mut device = -1;
                // SAFETY: the stream lives, which the creator of its handle guarantees, and `device` is valid for writing.
                let code = unsafe { device_of_stream(handle_of(stream.handle), &raw mut device) };
                if code == NOT_SUPPORTED {
                    return self.find_device_by_event(stream);
                }
                self.driver.check_code("hipStreamGetDevice", code)?;
                Ok(StreamContext::from_context(
                    usize::try_from(device).unwrap_or(usize::MAX),
                ))
            }
            _ => self.default_stream_context(),
        }
    }

    /// The device of a stream of HIP, where it cannot be queried: the device of the memory, if the stream accepts an event of that
    /// device. HIP refuses the event of another device, and then the end of the stream's work could not be found.
    fn find_device_by_event(&self, stream: Queue) -> Result<StreamContext, Error> {
        let home = self.home_context()?;
        // In a capture, the event would become a part of the graph.
        if self.query_capture(stream.handle)? == Capture::No {
            self.enter_context(home.to_enter)?;
            let mut event = self.acquire_event()?;
            match self.record_event(&mut event, stream.handle) {
                Err(Error::DriverFailed { code, .. }) if code == INVALID_HANDLE => {
                    let device = self.device;
                    return Err(Error::ForeignStream { device });
                }
                recorded => recorded?,
            }
        }
        Ok(home)
    }

    /// Records an event that happens when all work is done that is on a stream now. The stream must not capture. `place` is its
    /// context, if that is known.
    ///
    /// Most streams belong to the primary context of the device, so an event of that context is tried first. That saves the query
    /// for the context: the driver documents the error for an event of another context.
    pub(crate) fn record_end_of_stream(
        &self,
        stream: Queue,
        place: Option<StreamContext>,
    ) -> Result<Event, Error> {
        if place.is_none() {
            if let Some(context) = self.likely_context() {
                self.enter_context(context)?;
                let mut event = self.acquire_event()?;
                match self.record_event(&mut event, stream.handle) {
                    Err(Error::DriverFailed { code, .. }) if code == INVALID_HANDLE => {
                        event.reusable_in = Some(context);
                    }
                    recorded => return recorded.map(|()| event),
                }
            }
        }
        let place = place.map_or_else(|| self.query_context(stream), Ok)?;
        self.enter_context(place.to_enter)?;
        let mut event = self.acquire_event()?;
        self.record_event(&mut event, stream.handle).map(|()| event)
    }

    /// The device of the current context, or in HIP the current device.
    pub(super) fn current_device(&self) -> Result<i32, Error> {
        match &self.driver.api_calls {
            ApiCalls::Cuda(calls) => self.query_current_device(calls),
            ApiCalls::Hip(..) => Ok(i32::try_from(self.current_context()).unwrap_or(-1)),
        }
    }

    /// The device of the current context.
    fn query_current_device(&self, calls: &CudaCalls) -> Result<i32, Error> {
        let mut device = -1;
        // SAFETY: `device` is valid for writing the result.
        let code = unsafe { (calls.device_of_context)(&raw mut device) };
        self.driver.check_code("cuCtxGetDevice", code)?;
        Ok(device)
    }

    /// The context of a stream that can be made current on any thread: for a green context, its primary context. `None` if
    /// the driver cannot tell.
    fn query_shareable_context(
        &self,
        calls: &CudaCalls,
        stream: usize,
    ) -> Result<Option<usize>, Error> {
        let mut context: Handle = ptr::null_mut();
        let mut green: Handle = ptr::null_mut();
        let (call, code) = match (calls.contexts_of_stream, calls.context_of_stream) {
            // SAFETY: the stream lives, which the creator of its handle guarantees, and both pointers are valid for writing.
            (Some(ask), _) => ("cuStreamGetCtx", unsafe {
                ask(handle_of(stream), &raw mut context, &raw mut green)
            }),
            // SAFETY: the stream lives, which the creator of its handle guarantees, and `context` is valid for writing.
            (None, Some(ask)) => ("cuStreamGetCtx", unsafe {
                ask(handle_of(stream), &raw mut context)
            }),
            (None, None) => return Ok(None),
        };
        if code == NOT_SUPPORTED {
            return Ok(None);
        }
        self.driver.check_code(call, code)?;
        Ok(Some(context.addr()))
    }

    /// Converts an event of the current context into one that outlives it. A context that is not retained can be destroyed with
    /// its events. Then a new stream in the primary context waits for the event, and a new event is recorded there.
    pub(crate) fn make_lasting(&self, event: Event) -> Result<Counted<Event>, Error> {
        let own = self.current_context();
        let mut event = event;
        if !self.driver.retains_context(own) {
            self.enter_context(self.lasting_context()?)?;
            event = self.join_events(&[&event])?;
            self.enter_context(own)?;
        }
        Counted::new(event).map_err(|(_, bytes)| Error::OutOfMemory { bytes })
    }

    /// A new event of the current context that happens when all of these events have happened.
    pub(crate) fn join_events(&self, events: &[&Event]) -> Result<Event, Error> {
        let mut later = self.acquire_event()?;
        self.driver.with_new_stream(|stream| {
            for event in events {
                self.wait_for_event(stream, event)?;
            }
            self.record_event(&mut later, stream)
        })?;
        Ok(later)
    }

    /// Whether a context is certain to live now. A context that is neither retained nor the caller's may have been destroyed,
    /// unless a stream of it is known to live.
    pub(crate) fn is_context_alive(&self, context: usize) -> bool {
        self.driver.retains_context(context) || self.callers == context
    }
}
