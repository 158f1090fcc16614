//! The entry points of the drivers, found at run time, and who is current on a thread.
//!
//! A program that exports from a GPU has its driver loaded already, so ours is the same copy. One that does not has
//! perhaps none: then the first export that needs one says which library it looked for. Nothing here panics or aborts,
//! and what was found is remembered, good or bad.
#![expect(unsafe_code, reason = "calls C functions that are found by name")]

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use crate::device::Device;
use crate::error::Error;
use crate::stream::rules::{Api, Queue};

/// A stream, an event or a context, as the driver knows it.
type Handle = *mut c_void;

/// `CU_EVENT_DISABLE_TIMING`, `hipEventDisableTiming`: half the cost, and nobody reads the time.
const NO_TIMING: c_uint = 2;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`, `hipStreamCaptureModeRelaxed`.
const RELAXED: c_int = 2;
/// `CU_STREAM_CAPTURE_STATUS_NONE`, `hipStreamCaptureStatusNone`.
const NOT_CAPTURING: c_int = 0;
/// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`, `hipErrorStreamCaptureImplicit`: a default stream was asked for while a stream
/// that it would wait for captures.
const CAPTURE_IMPLICIT: c_int = 906;
/// `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: c_int = 801;

/// One table for both APIs: what they have in common has the same arguments and the same numbers, which the tests
/// check against both headers' documentation and real libraries.
macro_rules! entry_points {
    (
        both { $($both:ident($($both_arg:ty),*) = $both_cuda:literal, $both_hip:literal;)* }
        cuda { $($cuda:ident($($cuda_arg:ty),*) = $cuda_symbol:literal;)* }
        cuda optional { $($more:ident($($more_arg:ty),*) = $more_symbol:literal;)* }
        hip { $($hip:ident($($hip_arg:ty),*) = $hip_symbol:literal;)* }
    ) => {
        /// What both APIs have.
        struct Calls {
            $($both: unsafe extern "C" fn($($both_arg),*) -> c_int,)*
        }

        /// What only CUDA has.
        struct CudaCalls {
            $($cuda: unsafe extern "C" fn($($cuda_arg),*) -> c_int,)*
            $($more: Option<unsafe extern "C" fn($($more_arg),*) -> c_int>,)*
        }

        /// What only HIP has.
        struct HipCalls {
            $($hip: unsafe extern "C" fn($($hip_arg),*) -> c_int,)*
        }

        impl Calls {
            fn find(library: &Opened, api: Api) -> Result<Self, Error> {
                let name = |cuda, hip| match api { Api::Cuda => cuda, Api::Hip => hip };
                // SAFETY: each is declared with the arguments that the API documents for it.
                Ok(Self { $($both: unsafe { library.find(name($both_cuda, $both_hip)) }?,)* })
            }
        }

        impl CudaCalls {
            fn find(library: &Opened) -> Result<Self, Error> {
                Ok(Self {
                    $(
                        // SAFETY: each is declared with the arguments that the API documents for it.
                        $cuda: unsafe { library.find($cuda_symbol) }?,
                    )*
                    $(
                        // SAFETY: as above.
                        $more: unsafe { library.find($more_symbol) }.ok(),
                    )*
                })
            }
        }

        impl HipCalls {
            fn find(library: &Opened) -> Result<Self, Error> {
                // SAFETY: as above.
                Ok(Self { $($hip: unsafe { library.find($hip_symbol) }?,)* })
            }
        }

        /// Every entry point: the library, the symbol, and whether nothing goes without it.
        pub const ENTRY_POINTS: &[(&str, &str, bool)] = &[
            $((CUDA.name, $both_cuda, true),)*
            $((CUDA.name, $cuda_symbol, true),)*
            $((CUDA.name, $more_symbol, false),)*
            (CUDA.name, "cuGetErrorName", false),
            $((HIP.name, $both_hip, true),)*
            $((HIP.name, $hip_symbol, true),)*
            (HIP.name, "hipGetErrorName", false),
        ];
    };
}

entry_points! {
    both {
        init(c_uint) = "cuInit", "hipInit";
        event_create(*mut Handle, c_uint) = "cuEventCreate", "hipEventCreateWithFlags";
        event_record(Handle, Handle) = "cuEventRecord", "hipEventRecord";
        event_synchronize(Handle) = "cuEventSynchronize", "hipEventSynchronize";
        event_destroy(Handle) = "cuEventDestroy_v2", "hipEventDestroy";
        stream_wait(Handle, Handle, c_uint) = "cuStreamWaitEvent", "hipStreamWaitEvent";
        stream_synchronize(Handle) = "cuStreamSynchronize", "hipStreamSynchronize";
        stream_status(Handle, *mut c_int) = "cuStreamIsCapturing", "hipStreamIsCapturing";
        stream_capture(Handle, *mut c_int, *mut u64) = "cuStreamGetCaptureInfo", "hipStreamGetCaptureInfo";
        exchange_mode(*mut c_int) = "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode";
        synchronize() = "cuCtxSynchronize", "hipDeviceSynchronize";
        allocate(*mut usize, usize) = "cuMemAlloc_v2", "hipMalloc";
        free(usize) = "cuMemFree_v2", "hipFree";
        to_host(*mut c_void, usize, usize, Handle) = "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync";
        on_device(usize, usize, usize, Handle) = "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync";
    }
    cuda {
        context(*mut Handle) = "cuCtxGetCurrent";
        set_context(Handle) = "cuCtxSetCurrent";
        device(*mut c_int, c_int) = "cuDeviceGet";
        retain_primary(*mut Handle, c_int) = "cuDevicePrimaryCtxRetain";
    }
    cuda optional {
        record_all(Handle, Handle) = "cuCtxRecordEvent";
        context_of_stream(Handle, *mut Handle) = "cuStreamGetCtx";
    }
    hip {
        device(*mut c_int) = "hipGetDevice";
        set_device(c_int) = "hipSetDevice";
    }
}

/// Where an API's library is looked for.
struct Place {
    name: &'static str,
    /// What names another in the environment.
    variable: &'static str,
    candidates: &'static [&'static str],
    error_name: &'static str,
}

const CUDA: Place = Place {
    name: "libcuda",
    variable: "DLPACK_LIBCUDA",
    // The first name is that of the driver; the second can be the stub of a toolkit.
    candidates: if cfg!(windows) {
        &["nvcuda.dll"]
    } else {
        &["libcuda.so.1", "libcuda.so"]
    },
    error_name: "cuGetErrorName",
};

const HIP: Place = Place {
    name: "libamdhip64",
    variable: "DLPACK_LIBAMDHIP64",
    candidates: if cfg!(windows) {
        &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
    } else {
        &[
            "libamdhip64.so",
            "libamdhip64.so.7",
            "libamdhip64.so.6",
            "libamdhip64.so.5",
        ]
    },
    error_name: "hipGetErrorName",
};

/// A library that is never closed again.
struct Opened {
    library: Library,
    name: String,
}

impl Opened {
    fn open(place: &Place) -> Result<Self, Error> {
        if let Some(path) = std::env::var_os(place.variable) {
            let name = path.to_string_lossy().into_owned();
            // SAFETY: who names a library in the environment vouches for what it does when it is loaded.
            return match unsafe { Library::new(&path) } {
                Ok(library) => Ok(Self { library, name }),
                Err(error) => Err(Error::NoDriver {
                    library: place.name,
                    why: error.to_string(),
                }),
            };
        }
        // Two copies of a runtime do not know each other's streams: one that is loaded already is the right one.
        let loaded = place.candidates.iter().find_map(|name| Self::loaded(name));
        if let Some(opened) = loaded {
            return Ok(opened);
        }
        let mut failures = Vec::new();
        for &name in place.candidates {
            // SAFETY: a driver does nothing when it is loaded but to get ready.
            match unsafe { Library::new(name) } {
                Ok(library) => {
                    let name = name.to_owned();
                    return Ok(Self { library, name });
                }
                Err(error) => failures.push(error.to_string()),
            }
        }
        Err(Error::NoDriver {
            library: place.name,
            why: failures.join("; "),
        })
    }

    #[cfg(unix)]
    fn loaded(name: &str) -> Option<Self> {
        use libloading::os::unix;

        /// `RTLD_NOLOAD`, which `libloading` does not name.
        const NO_LOAD: c_int = if cfg!(target_os = "macos") { 0x10 } else { 4 };
        // SAFETY: nothing is loaded, and so nothing runs.
        let library = unsafe { unix::Library::open(Some(name), unix::RTLD_LAZY | NO_LOAD) }.ok()?;
        Some(Self {
            library: library.into(),
            name: name.to_owned(),
        })
    }

    #[cfg(windows)]
    fn loaded(name: &str) -> Option<Self> {
        let library = libloading::os::windows::Library::open_already_loaded(name).ok()?;
        Some(Self {
            library: library.into(),
            name: name.to_owned(),
        })
    }

    /// The function of this name.
    ///
    /// # Safety
    ///
    /// `F` is a type of function pointers, and that of this function.
    unsafe fn find<F: Copy>(&self, symbol: &'static str) -> Result<F, Error> {
        // SAFETY: passed on to the caller.
        match unsafe { self.library.get::<F>(symbol.as_bytes()) } {
            Ok(found) => Ok(*found),
            Err(_) => Err(Error::NoEntryPoint {
                library: self.name.clone(),
                symbol,
            }),
        }
    }
}

/// A driver that was found and is ready.
pub(crate) struct Driver {
    api: Api,
    calls: Calls,
    own: Own,
    error_name: Option<ErrorName>,
    /// The primary contexts that were asked for, by device. They are kept for good, as every CUDA runtime does.
    primary: Mutex<Vec<(i32, usize)>>,
}

/// What the APIs do not have in common.
enum Own {
    Cuda(CudaCalls),
    Hip(HipCalls),
}

#[derive(Clone, Copy)]
enum ErrorName {
    Cuda(unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int),
    Hip(unsafe extern "C" fn(c_int) -> *const c_char),
}

/// A failure of CUDA's that somebody else reports.
#[cfg(feature = "cudarc")]
pub(crate) fn failure(call: &str, code: c_int) -> Error {
    match driver(Api::Cuda) {
        Ok(driver) => Error::DriverFailed {
            call: call.to_owned(),
            code,
            name: driver.name_of(code),
        },
        Err(error) => error,
    }
}

/// The driver of an API. Why there is none is remembered.
pub(crate) fn driver(api: Api) -> Result<&'static Driver, Error> {
    static DRIVERS: [OnceLock<Result<Driver, Error>>; 2] = [const { OnceLock::new() }; 2];
    DRIVERS[api as usize]
        .get_or_init(|| Driver::load(api))
        .as_ref()
        .map_err(Clone::clone)
}

impl Driver {
    fn load(api: Api) -> Result<Self, Error> {
        let place = match api {
            Api::Cuda => CUDA,
            Api::Hip => HIP,
        };
        let library = Opened::open(&place)?;
        let calls = Calls::find(&library, api)?;
        let own = match api {
            Api::Cuda => Own::Cuda(CudaCalls::find(&library)?),
            Api::Hip => Own::Hip(HipCalls::find(&library)?),
        };
        let error_name = match api {
            // SAFETY: the API documents it so.
            Api::Cuda => unsafe { library.find(place.error_name) }.map(ErrorName::Cuda),
            // SAFETY: as above.
            Api::Hip => unsafe { library.find(place.error_name) }.map(ErrorName::Hip),
        };
        // Its functions are called for as long as the process lives.
        core::mem::forget(library.library);
        let driver = Self {
            api,
            calls,
            own,
            error_name: error_name.ok(),
            primary: Mutex::new(Vec::new()),
        };
        // SAFETY: allowed at any time; no flag is defined.
        let code = unsafe { (driver.calls.init)(0) };
        driver.check("Init", code)?;
        Ok(driver)
    }

    /// That a call went well; `call` is its name without the prefix of the API.
    fn check(&self, call: &'static str, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        Err(self.failed(call, code))
    }

    #[cold]
    fn failed(&self, call: &'static str, code: c_int) -> Error {
        let prefix = match self.api {
            Api::Cuda => "cu",
            Api::Hip => "hip",
        };
        Error::DriverFailed {
            call: format!("{prefix}{call}"),
            code,
            name: self.name_of(code),
        }
    }

    /// What the driver calls an error.
    fn name_of(&self, code: c_int) -> String {
        let name = match self.error_name {
            Some(ErrorName::Cuda(name)) => {
                let mut text = ptr::null();
                // SAFETY: a place for the result; an unknown code leaves null there.
                unsafe { name(code, &raw mut text) };
                text
            }
            // SAFETY: any code may be asked for.
            Some(ErrorName::Hip(name)) => unsafe { name(code) },
            None => ptr::null(),
        };
        if name.is_null() {
            return "an unknown error".to_owned();
        }
        // SAFETY: a string that lives as long as the driver.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    }

    /// Whoever is current on this thread, to be made so again.
    fn current(&self) -> Result<usize, Error> {
        match &self.own {
            Own::Cuda(calls) => {
                let mut context = ptr::null_mut();
                // SAFETY: a place for the result.
                let code = unsafe { (calls.context)(&raw mut context) };
                self.check("CtxGetCurrent", code)?;
                Ok(context.addr())
            }
            Own::Hip(calls) => {
                let mut device = 0;
                // SAFETY: a place for the result.
                let code = unsafe { (calls.device)(&raw mut device) };
                self.check("GetDevice", code)?;
                Ok(usize::try_from(device).unwrap_or(0))
            }
        }
    }

    fn set_current(&self, context: usize) -> Result<(), Error> {
        match &self.own {
            Own::Cuda(calls) => {
                // SAFETY: a context that was current, is a stream's, or a primary one that we retained; or none.
                let code = unsafe { (calls.set_context)(ptr::without_provenance_mut(context)) };
                self.check("CtxSetCurrent", code)
            }
            Own::Hip(calls) => {
                // SAFETY: a number; HIP checks it.
                let code = unsafe { (calls.set_device)(c_int::try_from(context).unwrap_or(-1)) };
                self.check("SetDevice", code)
            }
        }
    }

    /// What is to be current for work on a device: its primary context, or in HIP the device itself.
    fn primary(&self, device: Device) -> Result<usize, Error> {
        let Own::Cuda(calls) = &self.own else {
            return Ok(usize::try_from(device.device_id).unwrap_or(usize::MAX));
        };
        let mut known = self.primary.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, context)) = known.iter().find(|(id, _)| *id == device.device_id) {
            return Ok(*context);
        }
        let mut ordinal = 0;
        // SAFETY: a place for the result.
        let code = unsafe { (calls.device)(&raw mut ordinal, device.device_id) };
        self.check("DeviceGet", code)?;
        let mut context = ptr::null_mut();
        // SAFETY: a place for the result, and a device that there is.
        let code = unsafe { (calls.retain_primary)(&raw mut context, ordinal) };
        self.check("DevicePrimaryCtxRetain", code)?;
        known.push((device.device_id, context.addr()));
        Ok(context.addr())
    }

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

impl Visit {
    fn calls(&self) -> &'static Calls {
        &self.driver.calls
    }

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
            (Own::Hip(_), _) => self.enter_primary(),
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
                    self.driver.check("StreamGetCtx", code)?;
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
        let code = unsafe { (self.calls().stream_status)(raw(stream), &raw mut status) };
        if code == CAPTURE_IMPLICIT {
            return Ok(Capture::Blocked);
        }
        self.driver.check("StreamIsCapturing", code)?;
        if status == NOT_CAPTURING {
            return Ok(Capture::No);
        }
        let mut id = 0;
        // SAFETY: a stream that lives, and places for the results.
        let code =
            unsafe { (self.calls().stream_capture)(raw(stream), &raw mut status, &raw mut id) };
        self.driver.check("StreamGetCaptureInfo", code)?;
        Ok(Capture::Yes(id))
    }

    /// A new event in the current context.
    pub(crate) fn event(&self) -> Result<Event, Error> {
        let mut event = ptr::null_mut();
        // SAFETY: a place for the result.
        let code = unsafe { (self.calls().event_create)(&raw mut event, NO_TIMING) };
        let call = match self.driver.api {
            Api::Cuda => "EventCreate",
            Api::Hip => "EventCreateWithFlags",
        };
        self.driver.check(call, code)?;
        Ok(Event {
            driver: self.driver,
            event,
        })
    }

    /// The event happens when all work that is on the stream now is done.
    pub(crate) fn record(&self, event: &Event, stream: usize) -> Result<(), Error> {
        // SAFETY: an event of ours and a stream that lives.
        let code = unsafe { (self.calls().event_record)(event.event, raw(stream)) };
        self.driver.check("EventRecord", code)
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
        self.driver.check("CtxRecordEvent", code)?;
        Ok(true)
    }

    /// Work that is put on the stream from now on waits for the event.
    pub(crate) fn wait(&self, stream: usize, event: &Event) -> Result<(), Error> {
        // SAFETY: a stream that lives and an event of ours.
        let code = unsafe { (self.calls().stream_wait)(raw(stream), event.event, 0) };
        self.driver.check("StreamWaitEvent", code)
    }

    /// The host waits for the event.
    pub(crate) fn wait_on_host(&self, event: &Event) -> Result<(), Error> {
        let code = self.blocking(|| {
            // SAFETY: an event of ours.
            unsafe { (self.calls().event_synchronize)(event.event) }
        })?;
        self.driver.check("EventSynchronize", code)
    }

    /// The host waits for all work on a stream.
    pub(crate) fn synchronize(&self, stream: usize) -> Result<(), Error> {
        let code = self.blocking(|| {
            // SAFETY: a stream that lives.
            unsafe { (self.calls().stream_synchronize)(raw(stream)) }
        })?;
        self.driver.check("StreamSynchronize", code)
    }

    /// The host waits for all work of the current context.
    pub(crate) fn synchronize_all(&self) -> Result<(), Error> {
        let code = self.blocking(|| {
            // SAFETY: always allowed.
            unsafe { (self.calls().synchronize)() }
        })?;
        let call = match self.driver.api {
            Api::Cuda => "CtxSynchronize",
            Api::Hip => "DeviceSynchronize",
        };
        self.driver.check(call, code)
    }

    /// New memory of the device, the address of which is a multiple of 256.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<usize, Error> {
        let mut address = 0;
        let code = self.blocking(|| {
            // SAFETY: a place for the result.
            unsafe { (self.calls().allocate)(&raw mut address, bytes) }
        })?;
        let call = match self.driver.api {
            Api::Cuda => "MemAlloc",
            Api::Hip => "Malloc",
        };
        self.driver.check(call, code)?;
        Ok(address)
    }

    /// Gives back what [`allocate`](Self::allocate) gave, after all work on the device.
    ///
    /// # Safety
    ///
    /// It is given back once.
    pub(crate) unsafe fn free(&self, address: usize) -> Result<(), Error> {
        let code = self.blocking(|| {
            // SAFETY: passed on to the caller.
            unsafe { (self.calls().free)(address) }
        })?;
        let call = match self.driver.api {
            Api::Cuda => "MemFree",
            Api::Hip => "Free",
        };
        self.driver.check(call, code)
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
        let code = self.blocking(|| {
            // SAFETY: passed on to the caller.
            unsafe { (self.calls().to_host)(target.cast(), source, bytes, raw(stream)) }
        })?;
        self.driver.check("MemcpyDtoHAsync", code)
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
        let code = unsafe { (self.calls().on_device)(target, source, bytes, raw(stream)) };
        self.driver.check("MemcpyDtoDAsync", code)
    }

    /// Makes a call that may block, without what others wait for, and so that it breaks no capture on another
    /// thread: a capture in global mode forbids such calls to every thread that has not relaxed its own.
    fn blocking(&self, mut call: impl FnMut() -> c_int) -> Result<c_int, Error> {
        let mut mode = RELAXED;
        // SAFETY: a mode, which is exchanged for the one before.
        let code = unsafe { (self.calls().exchange_mode)(&raw mut mode) };
        self.driver.check("ThreadExchangeStreamCaptureMode", code)?;
        let mut code = 0;
        aside(&mut || code = call());
        // SAFETY: the mode of before. It cannot fail where it went well just now.
        unsafe { (self.calls().exchange_mode)(&raw mut mode) };
        Ok(code)
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
        unsafe { (self.driver.calls.event_destroy)(self.event) };
    }
}

fn raw(handle: usize) -> Handle {
    ptr::without_provenance_mut(handle)
}

/// How a thread waits without keeping others from their work.
type Aside = fn(&mut dyn FnMut());

static ASIDE: OnceLock<Aside> = OnceLock::new();

/// Waits are made inside of `aside` from now on: a binding to a language with a lock lets go of it there.
pub fn around_blocking(aside: Aside) {
    // The first one stays: they are all the same binding's.
    let _ = ASIDE.set(aside);
}

fn aside(wait: &mut dyn FnMut()) {
    match ASIDE.get() {
        Some(aside) => aside(wait),
        None => wait(),
    }
}
