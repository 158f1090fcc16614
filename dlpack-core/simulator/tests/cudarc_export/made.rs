//! Values that cudarc allocates, with writes pending, and their consumers.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, PinnedHostSlice, UnifiedSlice};
use dlpack_core::{DLPack, Device, Error, ExportRequest, Managed};

use crate::simulator::{Api, Driver, PER_THREAD, Sim};

pub(crate) const LENGTH: usize = 16;
pub(crate) const BYTES: usize = 4 * LENGTH;

/// The kinds of values that can be exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Slice,
    /// On the default stream, without other streams, so that cudarc tracks no events.
    SliceOfDefault,
    /// In a primary context without memory pools, so that it is freed synchronously.
    PlainSlice,
    View,
    Pinned,
    Unified,
}

pub(crate) const ALL: [What; 6] = [
    What::Slice,
    What::SliceOfDefault,
    What::PlainSlice,
    What::View,
    What::Pinned,
    What::Unified,
];

/// A part of a slice.
#[derive(DLPack)]
#[dlpack(data = self.slice.slice(4..))]
pub(crate) struct Tail {
    pub(crate) slice: CudaSlice<u32>,
}

/// Memory that cudarc frees, described by hand.
#[derive(DLPack)]
#[dlpack(
    // SAFETY: `len` elements are at the address until the slice is dropped, which this struct keeps.
    unsafe(data = self.start, len = self.len)
)]
pub(crate) struct Raw {
    pub(crate) start: *mut u32,
    pub(crate) len: usize,
    #[dlpack(device)]
    pub(crate) device: Device,
    #[dlpack(stream)]
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) _slice: CudaSlice<u32>,
}

// SAFETY: the address is never dereferenced, and the other fields are `Send`.
unsafe impl Send for Raw {}

/// A value of cudarc that is being written on another stream than its own.
pub(crate) enum Made {
    Slice(CudaSlice<u32>),
    View(Tail),
    Pinned(PinnedHostSlice<u32>),
    Unified(UnifiedSlice<u32>),
}

impl Made {
    pub(crate) fn export(self, request: &ExportRequest) -> Result<Managed, Error> {
        match self {
            Self::Slice(slice) => slice.into_dlpack_with(request),
            Self::View(tail) => tail.into_dlpack_with(request),
            Self::Pinned(pinned) => pinned.into_dlpack_with(request),
            Self::Unified(unified) => unified.into_dlpack_with(request),
        }
    }

    /// A stream whose capture forbids the stream of the data to wait: that stream itself, or for a default stream a blocking one.
    pub(crate) fn stream_to_capture(&self) -> usize {
        let stream = match self {
            Self::Slice(slice) => slice.stream(),
            Self::View(tail) => tail.slice.stream(),
            Self::Unified(_) => return cuda().blocking(),
            Self::Pinned(_) => return PER_THREAD,
        };
        stream.cu_stream().expose_provenance()
    }

    pub(crate) fn describe(&self) -> Result<(), Error> {
        match self {
            Self::Slice(slice) => slice.describe().map(drop),
            Self::View(tail) => tail.describe().map(drop),
            Self::Pinned(pinned) => pinned.describe().map(drop),
            Self::Unified(unified) => unified.describe().map(drop),
        }
    }
}

impl What {
    pub(crate) fn is_on_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Unified)
    }

    /// Makes a value in a context, with a write pending on another stream of cudarc.
    pub(crate) fn make(self, sim: &Sim, context: &Arc<CudaContext>) -> Made {
        // cudarc queries memory pools when it makes a context.
        let plain = (self == Self::PlainSlice && context.is_primary()).then(|| {
            sim.switch("no-memory-pools", true);
            let made = CudaContext::new(context.ordinal());
            sim.switch("no-memory-pools", false);
            made.unwrap()
        });
        let context = plain.as_ref().unwrap_or(context);
        if self == Self::SliceOfDefault {
            let stream = context.default_stream();
            return Made::Slice(stream.clone_htod(&[1; LENGTH]).unwrap());
        }
        let own = context.new_stream().unwrap();
        let other = context.new_stream().unwrap();
        let mut slice = own.clone_htod(&[1_u32; LENGTH]).unwrap();
        other.memset_zeros(&mut slice).unwrap();
        match self {
            Self::View => Made::View(Tail { slice }),
            Self::Pinned => {
                // SAFETY: the memory is written just below.
                let mut pinned = unsafe { context.alloc_pinned(LENGTH) }.unwrap();
                other.memcpy_dtoh(&slice, &mut pinned).unwrap();
                // The pinned copy itself is not the subject, so it is completed here.
                other.synchronize().unwrap();
                drop(slice);
                let slice = own.clone_htod(&[1_u32; LENGTH]).unwrap();
                other.memcpy_dtoh(&slice, &mut pinned).unwrap();
                Made::Pinned(pinned)
            }
            Self::Unified => {
                // SAFETY: the memory is written just below.
                let mut unified = unsafe { context.alloc_unified(LENGTH, true) }.unwrap();
                other.memset_zeros(&mut unified).unwrap();
                Made::Unified(unified)
            }
            _ => Made::Slice(slice),
        }
    }
}

/// The consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reader {
    Absent,
    Legacy,
    PerThread,
    Blocking,
    NonBlocking,
}

pub(crate) const READERS: [Reader; 5] = [
    Reader::Absent,
    Reader::Legacy,
    Reader::PerThread,
    Reader::Blocking,
    Reader::NonBlocking,
];

impl Reader {
    /// The handle of the consumer's stream (`None` for the host), and the number that it passes. Streams belong to the current
    /// context.
    pub(crate) fn stream(self, what: What) -> (Option<usize>, Option<i64>) {
        let made = |handle: usize| (Some(handle), i64::try_from(handle).ok());
        match self {
            Self::Absent if what.is_on_host() => (None, None),
            Self::Absent => (Some(0), None),
            Self::Legacy => (Some(0), Some(1)),
            Self::PerThread => (Some(PER_THREAD), Some(2)),
            Self::Blocking => made(cuda().blocking()),
            Self::NonBlocking => made(cuda().non_blocking()),
        }
    }
}

pub(crate) fn request_on(stream: Option<i64>) -> ExportRequest {
    ExportRequest {
        stream,
        ..ExportRequest::versioned()
    }
}

/// CUDA, with whatever context is current.
pub(crate) fn cuda() -> Driver {
    Driver { api: Api::Cuda }
}

pub(crate) fn raw(context: &CudaContext) -> usize {
    context.cu_ctx().expose_provenance()
}

/// The contexts of the data: the primary ones of both devices, and another one.
pub(crate) fn contexts(sim: &Sim) -> [Arc<CudaContext>; 3] {
    let first = CudaContext::new(0).unwrap();
    let second = CudaContext::new(1).unwrap();
    let other = sim.cuda().create_context(0).unwrap();
    [first, second, wrap(other)]
}

pub(crate) fn wrap(context: usize) -> Arc<CudaContext> {
    // SAFETY: the context was just made on device 0, and no other code destroys it.
    unsafe { CudaContext::from_raw_context(0, 0, core::ptr::without_provenance_mut(context)) }
        .unwrap()
}
