//! The entry points of the drivers, in one table for both APIs, and the current context of a thread.
//!
//! A program that exports from a GPU has its driver loaded already, and core uses that copy. Other programs may have
//! no driver: then the first export that needs one returns an error that names the library. This code neither panics
//! nor aborts. The result of the search is kept, whether a driver was found or not.
#![expect(unsafe_code, reason = "calls C functions that are found by name")]

use alloc::{boxed::Box, string::String};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;
use std::sync::OnceLock;

use crate::stream::library::{CUDA, HIP, OpenLibrary, Symbol};
use crate::stream::primary::PrimaryContexts;
use crate::stream::process::remember_process;
#[cfg(feature = "cudarc")]
use crate::stream::session::remember_capture;
use crate::stream::session::{NON_BLOCKING, NOT_SUPPORTED, run_in_hook};
use crate::{Device, Error, device::StreamApi, error::check_memory, error::text};

/// `CUDA_ERROR_NOT_READY`, `hipErrorNotReady`.
const NOT_READY: c_int = 600;

/// A stream, an event or a context, as the driver knows it.
pub(super) type Handle = *mut c_void;

/// Declares one table for both APIs: their common functions take equal arguments and constants. The tests check that
/// against the documentation of both headers and against real libraries. [`Driver`] has one method for each common
/// function, which calls it and names it in its error.
macro_rules! entry_points {
    (
        both { $($both:ident($($name:ident: $both_arg:ty),*) = $both_cuda:literal, $both_hip:literal;)* }
        both optional { $($maybe:ident($($part:ident: $maybe_arg:ty),*) = $maybe_cuda:literal, $maybe_hip:literal;)* }
        cuda { $($cuda:ident($($cuda_arg:ty),*) = $cuda_symbol:literal;)* }
        cuda optional { $($more:ident($($more_arg:ty),*) = $more_symbol:literal;)* }
        hip { $($hip:ident($($hip_arg:ty),*) = $hip_symbol:literal;)* }
        hip optional { $($late:ident($($late_arg:ty),*) = $late_symbol:literal;)* }
    ) => {
        /// Functions that both APIs have.
        #[repr(C)]
        struct CommonCalls {
            $($both: unsafe extern "C" fn($($both_arg),*) -> c_int,)*
            $($maybe: Option<unsafe extern "C" fn($($maybe_arg),*) -> c_int>,)*
        }

        /// Functions that only CUDA has.
        #[repr(C)]
        pub(super) struct CudaCalls {
            $(pub(super) $cuda: unsafe extern "C" fn($($cuda_arg),*) -> c_int,)*
            $(pub(super) $more: Option<unsafe extern "C" fn($($more_arg),*) -> c_int>,)*
        }

        /// Functions that only HIP has.
        #[repr(C)]
        pub(super) struct HipCalls {
            $(pub(super) $hip: unsafe extern "C" fn($($hip_arg),*) -> c_int,)*
            $(pub(super) $late: Option<unsafe extern "C" fn($($late_arg),*) -> c_int>,)*
        }

        impl CommonCalls {
            fn find(library: &OpenLibrary, api: StreamApi) -> Result<Self, Error> {
                const CUDA: &[Symbol] = &[$(($both_cuda, true),)* $(($maybe_cuda, false),)*];
                const HIP: &[Symbol] = &[$(($both_hip, true),)* $(($maybe_hip, false),)*];
                let symbols = match api { StreamApi::Cuda => CUDA, StreamApi::Hip => HIP };
                // SAFETY: the fields and both lists have the same order; each field is declared with the arguments that the APIs
                // document for it, and is an `Option` if its symbol is optional.
                unsafe { library.find_functions(symbols) }
            }
        }

        impl CudaCalls {
            fn find(library: &OpenLibrary) -> Result<Self, Error> {
                // SAFETY: the fields and the list have the same order; each field is declared with the arguments that the API
                // documents for it, and is an `Option` if its symbol is optional.
                unsafe { library.find_functions(&[$(($cuda_symbol, true),)* $(($more_symbol, false),)*]) }
            }
        }

        impl HipCalls {
            fn find(library: &OpenLibrary) -> Result<Self, Error> {
                // SAFETY: the fields and the list have the same order; each field is declared with the arguments that the API
                // documents for it, and is an `Option` if its symbol is optional.
                unsafe { library.find_functions(&[$(($hip_symbol, true),)* $(($late_symbol, false),)*]) }
            }
        }

        impl Driver {$(
            /// # Safety
            ///
            /// The caller meets the conditions that the API documents for this function.
            pub(super) unsafe fn $both(&self, $($name: $both_arg),*) -> Result<(), Error> {
                // SAFETY: the caller meets the conditions of the API; the pointer was looked up by its documented name.
                let code = unsafe { (self.calls.$both)($($name),*) };
                self.check_code(match self.api { StreamApi::Cuda => $both_cuda, StreamApi::Hip => $both_hip }, code)
            }
        )* $(
            /// Calls the function. `false` if the driver does not have it or does not support it.
            ///
            /// # Safety
            ///
            /// The caller meets the conditions that the API documents for this function.
            pub(super) unsafe fn $maybe(&self, $($part: $maybe_arg),*) -> Result<bool, Error> {
                let Some(call) = self.calls.$maybe else {
                    return Ok(false);
                };
                // SAFETY: the caller meets the conditions of the API; the pointer was looked up by its documented name.
                match unsafe { call($($part),*) } {
                    NOT_SUPPORTED => Ok(false),
                    code => self
                        .check_code(match self.api { StreamApi::Cuda => $maybe_cuda, StreamApi::Hip => $maybe_hip }, code)
                        .map(|()| true),
                }
            }
        )*}

        /// Every entry point: the library, the symbol, and whether it is required.
        pub const ENTRY_POINTS: &[(&str, &str, bool)] = &[
            $((CUDA.name, $both_cuda, true),)*
            $((CUDA.name, $maybe_cuda, false),)*
            $((CUDA.name, $cuda_symbol, true),)*
            $((CUDA.name, $more_symbol, false),)*
            $((HIP.name, $both_hip, true),)*
            $((HIP.name, $maybe_hip, false),)*
            $((HIP.name, $hip_symbol, true),)*
            $((HIP.name, $late_symbol, false),)*
            (HIP.name, "hipGetErrorName", false),
        ];
    };
}

entry_points! {
    both {
        init(flags: c_uint) = "cuInit", "hipInit";
        event_create(event: *mut Handle, flags: c_uint) = "cuEventCreate", "hipEventCreateWithFlags";
        event_record(event: Handle, stream: Handle) = "cuEventRecord", "hipEventRecord";
        event_destroy(event: Handle) = "cuEventDestroy_v2", "hipEventDestroy";
        stream_wait(stream: Handle, event: Handle, flags: c_uint) = "cuStreamWaitEvent", "hipStreamWaitEvent";
        stream_synchronize(stream: Handle) = "cuStreamSynchronize", "hipStreamSynchronize";
        stream_flags(stream: Handle, flags: *mut c_uint) = "cuStreamGetFlags", "hipStreamGetFlags";
        stream_status(stream: Handle, status: *mut c_int) = "cuStreamIsCapturing", "hipStreamIsCapturing";
        stream_capture(stream: Handle, status: *mut c_int, id: *mut u64) = "cuStreamGetCaptureInfo", "hipStreamGetCaptureInfo";
        exchange_mode(mode: *mut c_int) = "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode";
        synchronize() = "cuCtxSynchronize", "hipDeviceSynchronize";
        device_count(count: *mut c_int) = "cuDeviceGetCount", "hipGetDeviceCount";
        allocate(address: *mut usize, bytes: usize) = "cuMemAlloc_v2", "hipMalloc";
        free(address: usize) = "cuMemFree_v2", "hipFree";
        to_host(target: *mut c_void, source: usize, bytes: usize, stream: Handle) = "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync";
        on_device(target: usize, source: usize, bytes: usize, stream: Handle) = "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync";
    }
    both optional {
        capture_graph(stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, nodes: *mut Handle, count: *mut usize)
            = "cuStreamGetCaptureInfo_v2", "hipStreamGetCaptureInfo_v2";
        join_capture(stream: Handle, nodes: *mut Handle, count: usize, flags: c_uint)
            = "cuStreamUpdateCaptureDependencies", "hipStreamUpdateCaptureDependencies";
        object_create(object: *mut Handle, data: *mut c_void, end: extern "C" fn(*mut c_void), holds: c_uint, flags: c_uint)
            = "cuUserObjectCreate", "hipUserObjectCreate";
        object_release(object: Handle, holds: c_uint) = "cuUserObjectRelease", "hipUserObjectRelease";
        allocate_ordered(address: *mut usize, bytes: usize, stream: Handle) = "cuMemAllocAsync", "hipMallocAsync";
        free_ordered(address: usize, stream: Handle) = "cuMemFreeAsync", "hipFreeAsync";
        graph_takes(graph: Handle, object: Handle, holds: c_uint, flags: c_uint) = "cuGraphRetainUserObject", "hipGraphRetainUserObject";
    }
    cuda {
        context(*mut Handle) = "cuCtxGetCurrent";
        set_context(Handle) = "cuCtxSetCurrent";
        device_of_context(*mut c_int) = "cuCtxGetDevice";
        device(*mut c_int, c_int) = "cuDeviceGet";
        primary_state(c_int, *mut c_uint, *mut c_int) = "cuDevicePrimaryCtxGetState";
        create_stream(*mut Handle, c_uint) = "cuStreamCreate";
        destroy_stream(Handle) = "cuStreamDestroy_v2";
        query(Handle) = "cuEventQuery";
        retain_primary(*mut Handle, c_int) = "cuDevicePrimaryCtxRetain";
    }
    cuda optional {
        record_all(Handle, Handle) = "cuCtxRecordEvent";
        context_of_stream(Handle, *mut Handle) = "cuStreamGetCtx";
        contexts_of_stream(Handle, *mut Handle, *mut Handle) = "cuStreamGetCtx_v2";
        stream_id(Handle, *mut u64) = "cuStreamGetId";
        error_name(c_int, *mut *const c_char) = "cuGetErrorName";
    }
    hip {
        device(*mut c_int) = "hipGetDevice";
        set_device(c_int) = "hipSetDevice";
        query(Handle) = "hipEventQuery";
    }
    hip optional {
        device_of_stream(Handle, *mut c_int) = "hipStreamGetDevice";
    }
}

/// A driver that was found and initialized.
pub(crate) struct Driver {
    pub(super) api: StreamApi,
    calls: CommonCalls,
    pub(super) api_calls: ApiCalls,
    pub(super) primaries: PrimaryContexts,
}

/// Functions that the APIs do not have in common.
pub(super) enum ApiCalls {
    Cuda(CudaCalls),
    /// The second field is `hipGetErrorName`, if the library has it.
    Hip(
        HipCalls,
        Option<unsafe extern "C" fn(c_int) -> *const c_char>,
    ),
}

/// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`.
#[cfg(feature = "cudarc")]
const CAPTURE_UNSUPPORTED: c_int = 900;

/// The error for a CUDA failure that another crate reports.
#[cfg(feature = "cudarc")]
pub(crate) fn cuda_error(call: &str, code: c_int) -> Error {
    if code == CAPTURE_UNSUPPORTED {
        remember_capture();
        let what = "a wait for earlier work would break the capture of a `cudarc` stream";
        return Error::Capturing { what };
    }
    match find_driver(StreamApi::Cuda) {
        Ok(driver) => driver.error_from_code(call, code),
        Err(error) => error,
    }
}

/// Checks that the driver for a device was found and has a device. Exports check that themselves. This is for a program
/// that needs to know before its first export, such as one with `cudarc`, which panics where there is no driver.
///
/// Creates no context. Whether a driver was found is remembered; a driver that could not be initialized is tried again.
///
/// ```
/// use dlpack_core::{Device, stream};
///
/// assert_eq!(stream::available(Device::CPU), Ok(()));
/// if let Err(why) = stream::available(Device::cuda(0)) {
///     println!("no GPU here: {why}");
/// }
/// ```
///
/// # Errors
///
/// [`Error::NoDriver`], [`Error::NoEntryPoint`], or the error that the driver returned when it was initialized.
pub fn available(device: Device) -> Result<(), Error> {
    let Some(api) = device.device_type.stream_api() else {
        return Ok(());
    };
    find_driver(api).map(|_| ())
}

/// The driver of an API. A failed search is remembered. A driver that was found but could not be initialized is tried
/// again, because a device may be ready later.
pub(crate) fn find_driver(api: StreamApi) -> Result<&'static Driver, Error> {
    let driver = &DRIVERS[api as usize];
    let mut failed = None;
    if driver.get().is_none() {
        // Far more than the names and errors of libraries take. A lack of memory is not remembered.
        check_memory(1 << 16)?;
        // Loading is slow, so other threads run meanwhile. If two threads load it, the second `set` is ignored.
        run_in_hook(&mut || match Driver::load(api) {
            Err(error @ Error::DriverFailed { .. }) => failed = Some(error),
            found => drop(driver.set(found.map(Box::new))),
        });
    }
    match (driver.get(), failed) {
        (Some(Ok(found)), _) => Ok(found),
        (Some(Err(error)), _) => Err(error.clone_or_out_of_memory()),
        (None, Some(error)) => Err(error),
        (None, None) => unreachable!("it was found, or it failed"),
    }
}

// Boxed, so that the table of functions takes no space in the file of each program.
static DRIVERS: [OnceLock<Result<Box<Driver>, Error>>; 2] = [const { OnceLock::new() }; 2];

/// The driver of an API, if it was loaded before.
pub(super) fn loaded_driver(api: StreamApi) -> Option<&'static Driver> {
    DRIVERS[api as usize].get()?.as_deref().ok()
}

impl Driver {
    #[inline(never)]
    fn load(api: StreamApi) -> Result<Self, Error> {
        let search = match api {
            StreamApi::Cuda => CUDA,
            StreamApi::Hip => HIP,
        };
        let library = OpenLibrary::open(&search)?;
        let calls = CommonCalls::find(&library, api)?;
        let api_calls = match api {
            StreamApi::Cuda => ApiCalls::Cuda(CudaCalls::find(&library)?),
            StreamApi::Hip => {
                let calls = HipCalls::find(&library)?;
                // SAFETY: the result has the signature that HIP documents for `hipGetErrorName`, and is an `Option`.
                let error_name = unsafe { library.find_functions(&[("hipGetErrorName", false)]) }?;
                ApiCalls::Hip(calls, error_name)
            }
        };
        // The library stays loaded, because its functions are called until the process ends.
        core::mem::forget(library.library);
        let driver = Self {
            api,
            calls,
            api_calls,
            primaries: PrimaryContexts::new(),
        };
        // SAFETY: `init` may be called at any time; 0 is its only valid flag.
        unsafe { driver.init(0) }?;
        remember_process();
        Ok(driver)
    }

    /// The functions that only CUDA has, if this is its driver.
    pub(super) fn cuda_calls(&self) -> Option<&CudaCalls> {
        match &self.api_calls {
            ApiCalls::Cuda(calls) => Some(calls),
            ApiCalls::Hip(..) => None,
        }
    }

    /// Whether an event has happened.
    ///
    /// # Safety
    ///
    /// `event` is a live event of this driver.
    pub(super) unsafe fn is_event_over(&self, event: Handle) -> Result<bool, Error> {
        let (symbol, query) = match &self.api_calls {
            ApiCalls::Cuda(calls) => ("cuEventQuery", calls.query),
            ApiCalls::Hip(calls, _) => ("hipEventQuery", calls.query),
        };
        // SAFETY: same contract as this function's: `event` is a live event of this driver.
        let outcome = unsafe { query(event) };
        if outcome == NOT_READY {
            return Ok(false);
        }
        self.check_code(symbol, outcome).map(|()| true)
    }

    /// Converts a return code into an error that names the function.
    #[inline(never)]
    pub(super) fn check_code(&self, symbol: &'static str, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        Err(self.error_from_code(symbol.trim_end_matches("_v2"), code))
    }

    #[cold]
    fn error_from_code(&self, call: &str, code: c_int) -> Error {
        let error = || {
            Ok(Error::DriverFailed {
                call: text(call)?,
                code,
                name: self.name_of(code)?,
            })
        };
        error().unwrap_or_else(|error| error)
    }

    /// The driver's name for an error code.
    fn name_of(&self, code: c_int) -> Result<String, Error> {
        let mut name = ptr::null();
        match &self.api_calls {
            ApiCalls::Cuda(calls) => {
                if let Some(error_name) = calls.error_name {
                    // SAFETY: `name` is valid for writing; the driver writes null for an unknown code.
                    unsafe { error_name(code, &raw mut name) };
                }
            }
            // SAFETY: the function accepts any code.
            ApiCalls::Hip(_, Some(error_name)) => name = unsafe { error_name(code) },
            ApiCalls::Hip(_, None) => {}
        }
        if name.is_null() {
            return text("an unknown error");
        }
        // SAFETY: `name` is not null; the driver returns a C string that lives as long as the driver.
        let name = unsafe { CStr::from_ptr(name) };
        text(name.to_str().unwrap_or("an unknown error"))
    }

    /// The current context of this thread, or in HIP its device, so that it can be restored.
    #[inline(never)]
    pub(super) fn query_current_context(&self) -> Result<usize, Error> {
        match &self.api_calls {
            ApiCalls::Cuda(calls) => {
                let mut context = ptr::null_mut();
                // SAFETY: `context` is valid for writing the result.
                let code = unsafe { (calls.context)(&raw mut context) };
                self.check_code("cuCtxGetCurrent", code)?;
                Ok(context.addr())
            }
            ApiCalls::Hip(calls, _) => {
                let mut device = 0;
                // SAFETY: `device` is valid for writing the result.
                let code = unsafe { (calls.device)(&raw mut device) };
                self.check_code("hipGetDevice", code)?;
                Ok(usize::try_from(device).unwrap_or(0))
            }
        }
    }

    #[inline(never)]
    pub(super) fn set_current_context(&self, context: usize) -> Result<(), Error> {
        match &self.api_calls {
            ApiCalls::Cuda(calls) => {
                // SAFETY: the context is null, was current before, is a live stream's, or is a primary context that we retained.
                let code = unsafe { (calls.set_context)(ptr::without_provenance_mut(context)) };
                self.check_code("cuCtxSetCurrent", code)
            }
            ApiCalls::Hip(calls, _) => {
                // SAFETY: HIP takes any number and returns an error for an invalid device.
                let code = unsafe { (calls.set_device)(c_int::try_from(context).unwrap_or(-1)) };
                self.check_code("hipSetDevice", code)
            }
        }
    }

    /// Calls `work` with a new non-blocking stream of the current context, then destroys the stream. Work that was queued on
    /// it continues. In HIP, `work` gets the default stream.
    pub(super) fn with_new_stream<R>(
        &self,
        work: impl FnOnce(usize) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let Some(calls) = self.cuda_calls() else {
            return work(0);
        };
        let mut stream = ptr::null_mut();
        // SAFETY: `stream` is valid for writing the result.
        let code = unsafe { (calls.create_stream)(&raw mut stream, NON_BLOCKING) };
        self.check_code("cuStreamCreate", code)?;
        let done = work(stream.addr());
        // A failure is ignored: nothing is left to clean up.
        // SAFETY: the stream was created in this function and is destroyed once.
        let _ = unsafe { (calls.destroy_stream)(stream) };
        done
    }
}
