//! The entry points of the drivers, one table for both APIs, and who is current on a thread.
//!
//! A program that exports from a GPU has its driver loaded already, so ours is the same copy. One that does not has
//! perhaps none: then the first export that needs one says which library it looked for. Nothing here panics or aborts,
//! and what was found is remembered, good or bad.
#![expect(unsafe_code, reason = "calls C functions that are found by name")]

use alloc::{string::String, vec::Vec};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::stream::library::{CUDA, HIP, OpenLibrary};
use crate::{Device, Error, device::Api, error::room, error::text};

/// A stream, an event or a context, as the driver knows it.
pub(super) type Handle = *mut c_void;

/// One table for both APIs: what they have in common has the same arguments and the same numbers, which the tests
/// check against both headers' documentation and real libraries. A [`Driver`] has a method for each of these, which
/// calls it and names it where it fails.
macro_rules! entry_points {
    (
        both { $($both:ident($($name:ident: $both_arg:ty),*) = $both_cuda:literal, $both_hip:literal;)* }
        cuda { $($cuda:ident($($cuda_arg:ty),*) = $cuda_symbol:literal;)* }
        cuda optional { $($more:ident($($more_arg:ty),*) = $more_symbol:literal;)* }
        hip { $($hip:ident($($hip_arg:ty),*) = $hip_symbol:literal;)* }
    ) => {
        /// What both APIs have.
        struct Calls {
            $($both: unsafe extern "C" fn($($both_arg),*) -> c_int,)*
        }

        /// What only CUDA has.
        pub(super) struct CudaCalls {
            $(pub(super) $cuda: unsafe extern "C" fn($($cuda_arg),*) -> c_int,)*
            $(pub(super) $more: Option<unsafe extern "C" fn($($more_arg),*) -> c_int>,)*
        }

        /// What only HIP has.
        pub(super) struct HipCalls {
            $(pub(super) $hip: unsafe extern "C" fn($($hip_arg),*) -> c_int,)*
        }

        impl Calls {
            fn find(library: &OpenLibrary, api: Api) -> Result<Self, Error> {
                let name = |cuda, hip| match api { Api::Cuda => cuda, Api::Hip => hip };
                // SAFETY: each is declared with the arguments that the API documents for it.
                Ok(Self { $($both: unsafe { library.find(name($both_cuda, $both_hip)) }?,)* })
            }
        }

        impl CudaCalls {
            fn find(library: &OpenLibrary) -> Result<Self, Error> {
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
            fn find(library: &OpenLibrary) -> Result<Self, Error> {
                // SAFETY: as above.
                Ok(Self { $($hip: unsafe { library.find($hip_symbol) }?,)* })
            }
        }

        impl Driver {$(
            /// # Safety
            ///
            /// As the API documents it.
            pub(super) unsafe fn $both(&self, $($name: $both_arg),*) -> Result<(), Error> {
                // SAFETY: passed on to the caller.
                let code = unsafe { (self.calls.$both)($($name),*) };
                self.check(match self.api { Api::Cuda => $both_cuda, Api::Hip => $both_hip }, code)
            }
        )*}

        /// Every entry point: the library, the symbol, and whether nothing goes without it.
        pub const ENTRY_POINTS: &[(&str, &str, bool)] = &[
            $((CUDA.name, $both_cuda, true),)*
            $((CUDA.name, $cuda_symbol, true),)*
            $((CUDA.name, $more_symbol, false),)*
            $((HIP.name, $both_hip, true),)*
            $((HIP.name, $hip_symbol, true),)*
            (HIP.name, "hipGetErrorName", false),
        ];
    };
}

entry_points! {
    both {
        init(flags: c_uint) = "cuInit", "hipInit";
        event_create(event: *mut Handle, flags: c_uint) = "cuEventCreate", "hipEventCreateWithFlags";
        event_record(event: Handle, stream: Handle) = "cuEventRecord", "hipEventRecord";
        event_synchronize(event: Handle) = "cuEventSynchronize", "hipEventSynchronize";
        event_destroy(event: Handle) = "cuEventDestroy_v2", "hipEventDestroy";
        stream_wait(stream: Handle, event: Handle, flags: c_uint) = "cuStreamWaitEvent", "hipStreamWaitEvent";
        stream_synchronize(stream: Handle) = "cuStreamSynchronize", "hipStreamSynchronize";
        stream_flags(stream: Handle, flags: *mut c_uint) = "cuStreamGetFlags", "hipStreamGetFlags";
        stream_status(stream: Handle, status: *mut c_int) = "cuStreamIsCapturing", "hipStreamIsCapturing";
        stream_capture(stream: Handle, status: *mut c_int, id: *mut u64) = "cuStreamGetCaptureInfo", "hipStreamGetCaptureInfo";
        exchange_mode(mode: *mut c_int) = "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode";
        synchronize() = "cuCtxSynchronize", "hipDeviceSynchronize";
        allocate(address: *mut usize, bytes: usize) = "cuMemAlloc_v2", "hipMalloc";
        free(address: usize) = "cuMemFree_v2", "hipFree";
        to_host(target: *mut c_void, source: usize, bytes: usize, stream: Handle) = "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync";
        on_device(target: usize, source: usize, bytes: usize, stream: Handle) = "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync";
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
        error_name(c_int, *mut *const c_char) = "cuGetErrorName";
    }
    hip {
        device(*mut c_int) = "hipGetDevice";
        set_device(c_int) = "hipSetDevice";
    }
}

/// A driver that was found and is ready.
pub(crate) struct Driver {
    pub(super) api: Api,
    calls: Calls,
    pub(super) own: Own,
    /// The primary contexts that were asked for, by device. They are kept for good, as every CUDA runtime does.
    primary: Mutex<Vec<(i32, usize)>>,
}

/// What the APIs do not have in common.
pub(super) enum Own {
    Cuda(CudaCalls),
    /// What names an error comes last.
    Hip(
        HipCalls,
        Option<unsafe extern "C" fn(c_int) -> *const c_char>,
    ),
}

/// A failure of CUDA's that somebody else reports.
#[cfg(feature = "cudarc")]
pub(crate) fn failure(call: &str, code: c_int) -> Error {
    match driver(Api::Cuda) {
        Ok(driver) => driver.failed(call, code),
        Err(error) => error,
    }
}

/// Whether the driver for a device's work was found and has a device. Exports find out by themselves; this is for a
/// program that wants to know before it tries anything, such as one with `cudarc`, which panics where there is no driver.
///
/// Makes no context. The answer holds for the whole process: drivers are looked for once.
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
/// [`Error::NoDriver`], [`Error::NoEntryPoint`], or what the driver said when it was asked to begin.
pub fn available(device: Device) -> Result<(), Error> {
    let Some(api) = device.device_type.api() else {
        return Ok(());
    };
    driver(api).map(|_| ())
}

/// The driver of an API. Why there is none is remembered.
pub(crate) fn driver(api: Api) -> Result<&'static Driver, Error> {
    static DRIVERS: [OnceLock<Result<Driver, Error>>; 2] = [const { OnceLock::new() }; 2];
    let driver = &DRIVERS[api as usize];
    if driver.get().is_none() {
        // Far more than the names and errors of libraries take. That there is none now is not remembered.
        room(1 << 16)?;
    }
    let driver = driver.get_or_init(|| Driver::load(api));
    driver.as_ref().map_err(Error::again)
}

impl Driver {
    fn load(api: Api) -> Result<Self, Error> {
        let search = match api {
            Api::Cuda => CUDA,
            Api::Hip => HIP,
        };
        let library = OpenLibrary::open(&search)?;
        let calls = Calls::find(&library, api)?;
        let own = match api {
            Api::Cuda => Own::Cuda(CudaCalls::find(&library)?),
            Api::Hip => {
                // SAFETY: the API documents it so.
                let error_name = unsafe { library.find("hipGetErrorName") };
                Own::Hip(HipCalls::find(&library)?, error_name.ok())
            }
        };
        // Its functions are called for as long as the process lives.
        core::mem::forget(library.library);
        let driver = Self {
            api,
            calls,
            own,
            primary: Mutex::new(Vec::new()),
        };
        // SAFETY: allowed at any time; no flag is defined.
        unsafe { driver.init(0) }?;
        Ok(driver)
    }

    /// That a call of this function went well.
    pub(super) fn check(&self, symbol: &'static str, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        Err(self.failed(symbol.trim_end_matches("_v2"), code))
    }

    #[cold]
    fn failed(&self, call: &str, code: c_int) -> Error {
        let error = || {
            Ok(Error::DriverFailed {
                call: text(call)?,
                code,
                name: self.name_of(code)?,
            })
        };
        error().unwrap_or_else(|error| error)
    }

    /// What the driver calls an error.
    fn name_of(&self, code: c_int) -> Result<String, Error> {
        let mut name = ptr::null();
        match &self.own {
            Own::Cuda(calls) => {
                if let Some(error_name) = calls.error_name {
                    // SAFETY: a place for the result; an unknown code leaves null there.
                    unsafe { error_name(code, &raw mut name) };
                }
            }
            // SAFETY: any code may be asked for.
            Own::Hip(_, Some(error_name)) => name = unsafe { error_name(code) },
            Own::Hip(_, None) => {}
        }
        if name.is_null() {
            return text("an unknown error");
        }
        // SAFETY: a string that lives as long as the driver.
        let name = unsafe { CStr::from_ptr(name) };
        text(name.to_str().unwrap_or("an unknown error"))
    }

    /// Whoever is current on this thread, to be made so again.
    pub(super) fn current(&self) -> Result<usize, Error> {
        match &self.own {
            Own::Cuda(calls) => {
                let mut context = ptr::null_mut();
                // SAFETY: a place for the result.
                let code = unsafe { (calls.context)(&raw mut context) };
                self.check("cuCtxGetCurrent", code)?;
                Ok(context.addr())
            }
            Own::Hip(calls, _) => {
                let mut device = 0;
                // SAFETY: a place for the result.
                let code = unsafe { (calls.device)(&raw mut device) };
                self.check("hipGetDevice", code)?;
                Ok(usize::try_from(device).unwrap_or(0))
            }
        }
    }

    pub(super) fn set_current(&self, context: usize) -> Result<(), Error> {
        match &self.own {
            Own::Cuda(calls) => {
                // SAFETY: a context that was current, is a stream's, or a primary one that we retained; or none.
                let code = unsafe { (calls.set_context)(ptr::without_provenance_mut(context)) };
                self.check("cuCtxSetCurrent", code)
            }
            Own::Hip(calls, _) => {
                // SAFETY: a number; HIP checks it.
                let code = unsafe { (calls.set_device)(c_int::try_from(context).unwrap_or(-1)) };
                self.check("hipSetDevice", code)
            }
        }
    }

    /// What is to be current for work on a device: its primary context, or in HIP the device itself.
    pub(super) fn primary(&self, device: Device) -> Result<usize, Error> {
        let Own::Cuda(calls) = &self.own else {
            return Ok(usize::try_from(device.device_id).unwrap_or(usize::MAX));
        };
        let mut known = self.primary.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, context)) = known.iter().find(|(id, _)| *id == device.device_id) {
            return Ok(*context);
        }
        let room = known.try_reserve(1);
        let bytes = size_of::<(i32, usize)>();
        room.map_err(|_| Error::OutOfMemory { bytes })?;
        let mut ordinal = 0;
        // SAFETY: a place for the result.
        let code = unsafe { (calls.device)(&raw mut ordinal, device.device_id) };
        self.check("cuDeviceGet", code)?;
        let mut context = ptr::null_mut();
        // SAFETY: a place for the result, and a device that there is.
        let code = unsafe { (calls.retain_primary)(&raw mut context, ordinal) };
        self.check("cuDevicePrimaryCtxRetain", code)?;
        known.push((device.device_id, context.addr()));
        Ok(context.addr())
    }
}
