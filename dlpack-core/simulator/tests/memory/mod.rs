//! Memory of both drivers, the streams that work on it, and an owner that frees it in stream order.
#![allow(unsafe_code, reason = "lends memory by its address")]
#![allow(dead_code, reason = "each test uses only some of it")]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dlpack_core::{DLPack, Descriptor, Device, DeviceType, Error, Loan, Parts, StreamHandle};

use crate::simulator::{Answer, Api, Driver, PER_THREAD, Sim, on_host};

pub(crate) const BYTES: usize = 64;

/// A kind of memory, as a device of DLPack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Cuda,
    CudaManaged,
    CudaHost,
    Rocm,
    RocmHost,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Cuda,
        Self::CudaManaged,
        Self::CudaHost,
        Self::Rocm,
        Self::RocmHost,
    ];

    pub(crate) fn api(self) -> Api {
        match self {
            Self::Cuda | Self::CudaManaged | Self::CudaHost => Api::Cuda,
            Self::Rocm | Self::RocmHost => Api::Hip,
        }
    }

    pub(crate) fn device(self) -> Device {
        let kind = match self {
            Self::Cuda => DeviceType::CUDA,
            Self::CudaManaged => DeviceType::CUDA_MANAGED,
            Self::CudaHost => DeviceType::CUDA_HOST,
            Self::Rocm => DeviceType::ROCM,
            Self::RocmHost => DeviceType::ROCM_HOST,
        };
        Device::new(kind, 0)
    }

    /// Whether the CPU reads and frees it.
    pub(crate) fn is_on_host(self) -> bool {
        !matches!(self, Self::Cuda | Self::Rocm)
    }

    /// Whether a tensor without a named stream has no pending work.
    pub(crate) fn is_pinned(self) -> bool {
        matches!(self, Self::CudaHost | Self::RocmHost)
    }
}

/// The relation of a stream to the legacy stream of its context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocks {
    /// The legacy stream itself.
    Legacy,
    PerThread,
    Yes,
    No,
}

/// A stream: its handle, and the context (CUDA) or device (HIP) to which the handle belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lane {
    pub(crate) handle: usize,
    pub(crate) place: usize,
    pub(crate) blocks: Blocks,
}

impl Lane {
    /// Whether the driver orders the two without an event.
    pub(crate) fn is_ordered_with(self, other: Self) -> bool {
        let waits = |one: Self| matches!(one.blocks, Blocks::PerThread | Blocks::Yes);
        let legacy = |one: Self| one.blocks == Blocks::Legacy;
        let one_of_each = legacy(self) && waits(other) || waits(self) && legacy(other);
        self == other || (self.place == other.place && one_of_each)
    }
}

/// Two devices, and in CUDA a second context of the first one.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) driver: Driver,
    /// The first device (HIP), or its primary context (CUDA).
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// Another context of the first device; in HIP the first device.
    pub(crate) other: usize,
    /// A green context of the first device; in HIP the first device.
    pub(crate) green: usize,
}

impl World {
    pub(crate) fn new(api: Api) -> Self {
        let sim = Sim::new(2);
        let driver = sim.driver(api);
        let (first, second, other, green) = match api {
            Api::Hip => (0, 1, 0, 0),
            Api::Cuda => {
                let first = sim.current_context();
                let second = driver.retain(1).expect("there are two devices");
                let green = driver.create_green(0).expect("no limit");
                let other = driver.create_context(0).expect("no limit");
                (first, second, other, green)
            }
        };
        let world = Self {
            sim,
            driver,
            first,
            second,
            other,
            green,
        };
        // Streams of either device work on the memory of both.
        for (place, peer) in [(first, second), (second, first)] {
            world.enter(place);
            assert_eq!(driver.enable_peer(peer), Ok(()));
        }
        world.enter(first);
        world.sim.forget_calls();
        world
    }

    pub(crate) fn enter(&self, place: usize) {
        assert_eq!(try_enter(self.driver, place), Ok(()));
    }

    /// The current context or device of this thread.
    pub(crate) fn current(&self) -> usize {
        match self.driver.api {
            Api::Cuda => self.sim.current_context(),
            Api::Hip => self.driver.device().expect("always known").unsigned_abs() as usize,
        }
    }

    /// Runs `body` with another context or device current, then restores the current one.
    pub(crate) fn within<T>(&self, place: usize, body: impl FnOnce(Driver) -> T) -> T {
        let before = self.current();
        self.enter(place);
        let done = body(self.driver);
        self.enter(before);
        done
    }

    pub(crate) fn lane(&self, place: usize, blocks: Blocks) -> Lane {
        let handle = self.within(place, |driver| match blocks {
            Blocks::Legacy => 0,
            Blocks::PerThread => PER_THREAD,
            Blocks::Yes => driver.blocking(),
            Blocks::No => driver.non_blocking(),
        });
        Lane {
            handle,
            place,
            blocks,
        }
    }

    pub(crate) fn alloc(&self, kind: Kind) -> usize {
        let address = self.within(self.first, |driver| match kind {
            Kind::Cuda | Kind::Rocm => driver.alloc(BYTES),
            Kind::CudaManaged => driver.alloc_managed(BYTES),
            Kind::CudaHost | Kind::RocmHost => driver.alloc_pinned(BYTES),
        });
        self.sim
            .host_write(address, if kind.is_on_host() { BYTES } else { 0 });
        address
    }

    pub(crate) fn kernel(&self, lane: Lane, address: usize, write: bool) -> Answer {
        self.within(lane.place, |driver| {
            driver.kernel(lane.handle, address, BYTES, write)
        })
    }

    #[track_caller]
    pub(crate) fn read(&self, lane: Lane, address: usize) {
        assert_eq!(self.kernel(lane, address, false), Ok(()));
    }

    #[track_caller]
    pub(crate) fn write(&self, lane: Lane, address: usize) {
        assert_eq!(self.kernel(lane, address, true), Ok(()));
    }

    /// Writes the memory, and records an event after the write.
    #[track_caller]
    pub(crate) fn write_and_record(&self, lane: Lane, address: usize) -> usize {
        self.write(lane, address);
        self.within(lane.place, |driver| {
            let event = driver.event();
            assert_eq!(driver.record(event, lane.handle), Ok(()));
            event
        })
    }

    /// Makes `later` wait for all work of `earlier` that is queued now.
    #[track_caller]
    pub(crate) fn order(&self, earlier: Lane, later: Lane) {
        let event = self.within(earlier.place, |driver| {
            let event = driver.event();
            assert_eq!(driver.record(event, earlier.handle), Ok(()));
            event
        });
        self.within(later.place, |driver| {
            assert_eq!(driver.wait(later.handle, event), Ok(()));
            assert_eq!(driver.destroy_event(event), Ok(()));
        });
    }
}

pub(crate) fn try_enter(driver: Driver, place: usize) -> Answer {
    match driver.api {
        Api::Cuda => driver.set_current(place),
        Api::Hip => driver.set_device(i32::try_from(place).expect("a small number")),
    }
}

/// Records the drops of owners, and failures of their frees.
#[derive(Default)]
pub(crate) struct Log {
    drops: AtomicUsize,
    forgotten: AtomicBool,
    problems: Mutex<Vec<String>>,
}

impl Log {
    pub(crate) fn drops(&self) -> usize {
        self.drops.load(Ordering::SeqCst)
    }

    /// From now on, owners with this log free nothing.
    pub(crate) fn forget(&self) {
        self.forgotten.store(true, Ordering::SeqCst);
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.problems
            .lock()
            .expect("no thread panics while it holds the lock")
            .clone()
    }
}

/// An owner of memory, which it frees on a stream, or on the host after a write.
pub(crate) struct Owner {
    pub(crate) driver: Driver,
    pub(crate) kind: Kind,
    pub(crate) address: usize,
    /// The stream that it names as the one with its writes.
    pub(crate) named_stream: Option<StreamHandle>,
    pub(crate) freed_on: Lane,
    /// An event after its own writes, for which it waits before the host frees the memory.
    pub(crate) written: Option<usize>,
    pub(crate) immediate: bool,
    pub(crate) log: Arc<Log>,
}

impl DLPack for Owner {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let start = core::ptr::with_exposed_provenance_mut::<u8>(self.address);
        // SAFETY: the bytes are allocated, and are freed when `self` is dropped. Accesses are only recorded by the simulator,
        // which checks their order and passes the bytes to no other code.
        let mut loan = unsafe { Loan::from_raw_parts_mut(start, BYTES, self.kind.device()) };
        if let Some(stream) = self.named_stream {
            loan = loan.with_stream(stream);
        }
        let mut parts = Parts::new();
        if self.immediate {
            parts = parts.release_immediate();
        }
        parts.describe(loan)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.log.drops.fetch_add(1, Ordering::SeqCst);
        if self.log.forgotten.load(Ordering::SeqCst) {
            return;
        }
        let Self {
            driver, address, ..
        } = *self;
        let mut outcome = Ok(());
        if self.kind.is_on_host() {
            // Any context will do, so it makes none current.
            if let Some(event) = self.written {
                outcome = outcome.and(twice(|| driver.synchronize_event(event)));
            }
            // The next user of the memory, to which it is ordinary memory.
            on_host(address, BYTES, true);
            let freed = twice(|| match self.kind {
                Kind::CudaManaged => driver.free(address),
                _ => driver.free_pinned(address),
            });
            outcome = outcome.and(freed);
        } else {
            // Like cudarc, it leaves its own context current.
            outcome = outcome.and(twice(|| try_enter(driver, self.freed_on.place)));
            outcome = outcome.and(twice(|| driver.free_async(address, self.freed_on.handle)));
        }
        if let Err(code) = outcome {
            let mut problems = self
                .log
                .problems
                .lock()
                .expect("no thread panics while it holds the lock");
            problems.push(format!("the owner's free gives {code}"));
        }
    }
}

/// A test that makes one call fail may hit the owner's own call.
fn twice(call: impl Fn() -> Answer) -> Answer {
    call().or_else(|_| call())
}
