//! Stands for a binding to HIP: streams, and memory that is allocated and freed in their order.
//!
//! The library is looked for when the program runs, so that this builds and starts where there is none.
#![expect(unsafe_code, reason = "calls C functions that are found by name")]

use core::ffi::{c_int, c_uint, c_void};
use core::fmt;
use core::ptr;
use std::ffi::OsStr;
use std::sync::Arc;

use dlpack_core::{ProducerStream, StreamHandle, StreamRef};
use libloading::Library;

/// `hipStreamNonBlocking`
const NON_BLOCKING: c_uint = 1;

/// What goes wrong: the library is not there, or a call to it fails.
#[derive(Debug)]
pub enum HipError {
    /// There is no such library, or it lacks a function.
    Library(libloading::Error),
    /// What a function returned.
    Call(c_int),
}

impl fmt::Display for HipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Call(code) => write!(f, "HIP failed with {code}"),
        }
    }
}

impl core::error::Error for HipError {}

fn check(code: c_int) -> Result<(), HipError> {
    if code == 0 {
        Ok(())
    } else {
        Err(HipError::Call(code))
    }
}

/// The functions that are called here, as HIP declares them.
struct Calls {
    create: unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int,
    destroy: unsafe extern "C" fn(*mut c_void) -> c_int,
    allocate: unsafe extern "C" fn(*mut *mut f32, usize, *mut c_void) -> c_int,
    free: unsafe extern "C" fn(*mut f32, *mut c_void) -> c_int,
    upload: unsafe extern "C" fn(*mut f32, *const f32, usize, *mut c_void) -> c_int,
    /// Last, so that it is closed after them.
    _library: Library,
}

/// A stream of the current device.
pub struct Stream {
    handle: *mut c_void,
    calls: Calls,
}

// SAFETY: HIP's functions may be called on any thread.
unsafe impl Send for Stream {}
// SAFETY: as above, and by several threads at once.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new one, of the HIP in this library.
    pub fn new(library: impl AsRef<OsStr>) -> Result<Arc<Self>, HipError> {
        let calls = Calls::load(library.as_ref()).map_err(HipError::Library)?;
        let mut handle = ptr::null_mut();
        // SAFETY: a place for the result, and a flag that HIP knows.
        check(unsafe { (calls.create)(&raw mut handle, NON_BLOCKING) })?;
        Ok(Arc::new(Self { handle, calls }))
    }
}

impl Calls {
    fn load(library: &OsStr) -> Result<Self, libloading::Error> {
        // SAFETY: HIP does nothing when it is loaded but to get ready.
        let library = unsafe { Library::new(library) }?;
        Ok(Self {
            // SAFETY: this and the others are declared as HIP documents them.
            create: *unsafe { library.get(b"hipStreamCreateWithFlags") }?,
            // SAFETY: as above.
            destroy: *unsafe { library.get(b"hipStreamDestroy") }?,
            // SAFETY: as above.
            allocate: *unsafe { library.get(b"hipMallocAsync") }?,
            // SAFETY: as above.
            free: *unsafe { library.get(b"hipFreeAsync") }?,
            // SAFETY: as above.
            upload: *unsafe { library.get(b"hipMemcpyHtoDAsync") }?,
            _library: library,
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and destroyed once.
        unsafe { (self.calls.destroy)(self.handle) };
    }
}

impl ProducerStream for Stream {
    fn producer_stream(&self) -> StreamRef<'_> {
        // SAFETY: it is a stream of HIP's.
        let handle = unsafe { StreamHandle::from_raw(self.handle.addr()) };
        // SAFETY: it is destroyed when `self` is dropped.
        unsafe { StreamRef::kept_by(self, handle) }
    }
}

/// Elements in the memory of a GPU.
pub struct DeviceBuffer {
    start: *mut f32,
    len: usize,
    stream: Arc<Stream>,
}

// SAFETY: HIP's functions may be called on any thread, and the processor never follows the pointer.
unsafe impl Send for DeviceBuffer {}
// SAFETY: as above.
unsafe impl Sync for DeviceBuffer {}

impl DeviceBuffer {
    /// Queues the allocation of memory and the copying of these values there.
    pub fn upload(stream: &Arc<Stream>, values: &[f32]) -> Result<Self, HipError> {
        let (calls, handle, bytes) = (&stream.calls, stream.handle, size_of_val(values));
        let mut start = ptr::null_mut();
        // SAFETY: a place for the result, and a stream that lives.
        check(unsafe { (calls.allocate)(&raw mut start, bytes, handle) })?;
        let buffer = Self {
            start,
            len: values.len(),
            stream: Arc::clone(stream),
        };
        // SAFETY: so many bytes are on both sides, and HIP has read pageable memory when this returns.
        check(unsafe { (calls.upload)(start, values.as_ptr(), bytes, handle) })?;
        Ok(buffer)
    }

    /// The address of the first element.
    pub fn as_ptr(&self) -> *mut f32 {
        self.start
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `upload`, and freed once, in the order of the stream.
        unsafe { (self.stream.calls.free)(self.start, self.stream.handle) };
    }
}
