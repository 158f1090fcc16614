//! The drivers' entry points for kernels, contexts, streams and events.

use super::{Answer, Api, answer, library, result};

/// The entry points of one driver that both have. Those of CUDA only panic with HIP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver {
    pub(crate) api: Api,
}

impl Driver {
    pub(super) fn name(self, cuda: &'static str, hip: &'static str) -> &'static str {
        let name = match self.api {
            Api::Cuda => cuda,
            Api::Hip => hip,
        };
        assert!(
            !name.is_empty(),
            "{:?} has no entry point for this",
            self.api
        );
        name
    }

    /// A kernel that reads or writes these bytes.
    pub(crate) fn kernel(self, stream: usize, address: usize, bytes: usize, write: bool) -> Answer {
        let api = i32::from(self.api == Api::Hip);
        answer(call!(
            "sim_kernel",
            (api => i32, stream => usize, address => usize, bytes => usize, i32::from(write) => i32) -> i32
        ))
    }

    #[track_caller]
    pub(crate) fn read(self, stream: usize, address: usize, bytes: usize) {
        assert_eq!(self.kernel(stream, address, bytes, false), Ok(()));
    }

    #[track_caller]
    pub(crate) fn write(self, stream: usize, address: usize, bytes: usize) {
        assert_eq!(self.kernel(stream, address, bytes, true), Ok(()));
    }

    // Contexts and devices.

    pub(crate) fn retain(self, device: i32) -> Answer<usize> {
        let mut context = 0;
        let name = self.name("cuDevicePrimaryCtxRetain", "");
        let code = call!(name, (&raw mut context => *mut usize, device => i32) -> i32);
        result(code, context)
    }

    pub(crate) fn release(self, device: i32) -> Answer {
        let name = self.name("cuDevicePrimaryCtxRelease_v2", "");
        answer(call!(name, (device => i32) -> i32))
    }

    /// Whether a device has a primary context.
    pub(crate) fn has_primary(self, device: i32) -> Answer<bool> {
        let (mut flags, mut active) = (0, 0);
        let name = self.name("cuDevicePrimaryCtxGetState", "");
        let code = call!(name, (device => i32, &raw mut flags => *mut u32, &raw mut active => *mut i32) -> i32);
        answer(code).map(|()| active != 0)
    }

    /// Makes a context other than the primary one, and makes it current.
    pub(crate) fn create_context(self, device: i32) -> Answer<usize> {
        let mut context = 0;
        let name = self.name("cuCtxCreate_v4", "");
        let code = call!(
            name,
            (&raw mut context => *mut usize, 0 => usize, 0 => u32, device => i32) -> i32
        );
        result(code, context)
    }

    /// Makes a green context, without making it current.
    pub(crate) fn create_green(self, device: i32) -> Answer<usize> {
        let mut context = 0;
        let name = self.name("cuGreenCtxCreate", "");
        let code = call!(
            name,
            (&raw mut context => *mut usize, 0 => usize, device => i32, 1 => u32) -> i32
        );
        result(code, context)
    }

    pub(crate) fn destroy_context(self, context: usize) -> Answer {
        let name = self.name("cuCtxDestroy_v2", "");
        answer(call!(name, (context => usize) -> i32))
    }

    pub(crate) fn set_current(self, context: usize) -> Answer {
        let name = self.name("cuCtxSetCurrent", "");
        answer(call!(name, (context => usize) -> i32))
    }

    pub(crate) fn current(self) -> Answer<usize> {
        let mut context = 0;
        let name = self.name("cuCtxGetCurrent", "");
        let code = call!(name, (&raw mut context => *mut usize) -> i32);
        result(code, context)
    }

    /// Lets kernels of the current context (CUDA) or device (HIP) access memory of another one.
    pub(crate) fn enable_peer(self, peer: usize) -> Answer {
        let name = self.name("cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess");
        match self.api {
            Api::Cuda => answer(call!(name, (peer => usize, 0 => u32) -> i32)),
            Api::Hip => {
                let device = i32::try_from(peer).expect("a small number");
                answer(call!(name, (device => i32, 0 => u32) -> i32))
            }
        }
    }

    pub(crate) fn set_device(self, device: i32) -> Answer {
        let name = self.name("", "hipSetDevice");
        answer(call!(name, (device => i32) -> i32))
    }

    pub(crate) fn device(self) -> Answer<i32> {
        let mut device = -1;
        let name = self.name("", "hipGetDevice");
        let code = call!(name, (&raw mut device => *mut i32) -> i32);
        answer(code).map(|()| device)
    }

    /// Waits for the current context (CUDA) or device (HIP).
    pub(crate) fn synchronize(self) -> Answer {
        let name = self.name("cuCtxSynchronize", "hipDeviceSynchronize");
        answer(call!(name, () -> i32))
    }

    pub(crate) fn record_context(self, context: usize, event: usize) -> Answer {
        let name = self.name("cuCtxRecordEvent", "");
        answer(call!(name, (context => usize, event => usize) -> i32))
    }

    // Streams.

    fn stream(self, flags: u32) -> Answer<usize> {
        let mut stream = 0;
        let name = self.name("cuStreamCreate", "hipStreamCreateWithFlags");
        let code = call!(name, (&raw mut stream => *mut usize, flags => u32) -> i32);
        result(code, stream)
    }

    /// A stream that the legacy stream waits for, and that waits for the legacy stream.
    #[track_caller]
    pub(crate) fn blocking(self) -> usize {
        self.stream(0).expect("a context is current")
    }

    #[track_caller]
    pub(crate) fn non_blocking(self) -> usize {
        self.stream(1).expect("a context is current")
    }

    pub(crate) fn destroy_stream(self, stream: usize) -> Answer {
        let name = self.name("cuStreamDestroy_v2", "hipStreamDestroy");
        answer(call!(name, (stream => usize) -> i32))
    }

    pub(crate) fn synchronize_stream(self, stream: usize) -> Answer {
        let name = self.name("cuStreamSynchronize", "hipStreamSynchronize");
        answer(call!(name, (stream => usize) -> i32))
    }

    pub(crate) fn query_stream(self, stream: usize) -> Answer {
        let name = self.name("cuStreamQuery", "hipStreamQuery");
        answer(call!(name, (stream => usize) -> i32))
    }

    pub(crate) fn wait(self, stream: usize, event: usize) -> Answer {
        let name = self.name("cuStreamWaitEvent", "hipStreamWaitEvent");
        answer(call!(name, (stream => usize, event => usize, 0 => u32) -> i32))
    }

    pub(crate) fn context_of(self, stream: usize) -> Answer<usize> {
        let mut context = 0;
        let name = self.name("cuStreamGetCtx", "");
        let code = call!(name, (stream => usize, &raw mut context => *mut usize) -> i32);
        result(code, context)
    }

    // Events.

    /// Queries that a capture may forbid: context, flags and number of a stream; in HIP device and flags.
    pub(crate) fn ask(self, stream: usize) -> [Answer; 3] {
        let mut place = 0_u64;
        let names = match self.api {
            Api::Cuda => ["cuStreamGetCtx", "cuStreamGetFlags", "cuStreamGetId"],
            Api::Hip => [
                "hipStreamGetDevice",
                "hipStreamGetFlags",
                "hipStreamGetFlags",
            ],
        };
        names.map(|name| {
            let code = call!(name, (stream => usize, &raw mut place => *mut u64) -> i32);
            answer(code)
        })
    }

    /// Orders what `later` captures next after what `earlier` has captured.
    pub(crate) fn join_capture(self, earlier: usize, later: usize) -> Answer {
        let (mut status, mut id, mut graph) = (0, 0, 0);
        let (mut nodes, mut count) = (0, 0);
        let name = self.name("cuStreamGetCaptureInfo_v2", "hipStreamGetCaptureInfo_v2");
        let code = call!(
            name,
            (
                earlier => usize, &raw mut status => *mut i32, &raw mut id => *mut u64, &raw mut graph => *mut usize,
                &raw mut nodes => *mut usize, &raw mut count => *mut usize
            ) -> i32
        );
        answer(code)?;
        let name = self.name(
            "cuStreamUpdateCaptureDependencies",
            "hipStreamUpdateCaptureDependencies",
        );
        answer(call!(
            name,
            (later => usize, nodes => usize, count => usize, 0 => u32) -> i32
        ))
    }

    pub(crate) fn create_event(self) -> Answer<usize> {
        self.create_event_with(2)
    }

    pub(crate) fn create_event_with(self, flags: u32) -> Answer<usize> {
        let mut event = 0;
        let name = self.name("cuEventCreate", "hipEventCreateWithFlags");
        let code = call!(name, (&raw mut event => *mut usize, flags => u32) -> i32);
        result(code, event)
    }

    /// The time between two events.
    pub(crate) fn elapsed(self, start: usize, end: usize) -> Answer {
        let mut milliseconds = 0_f32;
        let name = self.name("cuEventElapsedTime", "");
        answer(call!(
            name,
            (&raw mut milliseconds => *mut f32, start => usize, end => usize) -> i32
        ))
    }

    #[track_caller]
    pub(crate) fn event(self) -> usize {
        self.create_event().expect("a context is current")
    }

    pub(crate) fn destroy_event(self, event: usize) -> Answer {
        let name = self.name("cuEventDestroy_v2", "hipEventDestroy");
        answer(call!(name, (event => usize) -> i32))
    }

    pub(crate) fn record(self, event: usize, stream: usize) -> Answer {
        let name = self.name("cuEventRecord", "hipEventRecord");
        answer(call!(name, (event => usize, stream => usize) -> i32))
    }

    pub(crate) fn synchronize_event(self, event: usize) -> Answer {
        let name = self.name("cuEventSynchronize", "hipEventSynchronize");
        answer(call!(name, (event => usize) -> i32))
    }

    pub(crate) fn query_event(self, event: usize) -> Answer {
        let name = self.name("cuEventQuery", "hipEventQuery");
        answer(call!(name, (event => usize) -> i32))
    }

    /// Makes `later` wait for all work of `earlier` that is queued now, by an event that is destroyed at once.
    #[track_caller]
    pub(crate) fn order(self, earlier: usize, later: usize) {
        let event = self.event();
        assert_eq!(self.record(event, earlier), Ok(()));
        assert_eq!(self.wait(later, event), Ok(()));
        assert_eq!(self.destroy_event(event), Ok(()));
    }
}
