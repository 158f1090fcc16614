//! Memory that the host reads, in a process that uses only the second device: in a child process (`processes.rs`), because
//! core keeps every primary context that it has used.

use std::sync::Arc;

use dlpack_core::stream::{collect, retained};
use dlpack_core::{DLPack, ExportRequest};

use crate::memory::{Blocks, Kind, Lane, Log, Owner};
use crate::simulator::{ALLOCATIONS, Api, Driver, Sim};
use crate::tensors::{handle_of, request_on};

const BYTES: usize = crate::memory::BYTES;

/// A process with two devices, of which the first has no context.
struct OneOfTwo {
    sim: Sim,
    driver: Driver,
    /// The primary context of the second device, which is current.
    context: usize,
}

impl OneOfTwo {
    fn new() -> Self {
        let sim = Sim::new(2);
        let driver = sim.driver(Api::Cuda);
        driver.release(0).expect("the simulator has retained it");
        let context = driver.retain(1).expect("there are two devices");
        driver.set_current(context).expect("the context exists");
        Self {
            sim,
            driver,
            context,
        }
    }

    /// An owner of memory that a kernel on the default stream writes, unless it is pinned.
    fn written(&self, kind: Kind, names_stream: bool) -> (Owner, Arc<Log>) {
        let lane = Lane {
            handle: 0,
            place: self.context,
            blocks: Blocks::Legacy,
        };
        let address = match kind {
            Kind::CudaManaged => self.driver.alloc_managed(BYTES),
            _ => self.driver.alloc_pinned(BYTES),
        };
        if names_stream || kind == Kind::CudaManaged {
            self.driver.write(0, address, BYTES);
        }
        let log = Arc::<Log>::default();
        let owner = Owner {
            driver: self.driver,
            kind,
            address,
            named_stream: names_stream.then(|| handle_of(lane)),
            freed_on: lane,
            written: None,
            immediate: false,
            log: Arc::clone(&log),
        };
        (owner, log)
    }

    #[track_caller]
    fn assert_untouched(&self, log: &Log, what: &str) {
        self.sim.assert_clean();
        assert_eq!(log.problems(), [""; 0], "{what}");
        assert_eq!((log.drops(), retained().owners), (1, 0), "{what}");
        assert_eq!(self.sim.live(ALLOCATIONS), 0, "{what}");
        assert_eq!(self.driver.has_primary(0), Ok(false), "{what}");
    }
}

/// Neither an export nor a drop creates a context of the first device, which another process may have for itself.
pub(crate) fn host_memory() {
    let world = OneOfTwo::new();
    for kind in [Kind::CudaManaged, Kind::CudaHost] {
        for names_stream in [true, false] {
            for stream in [None, Some(-1), Some(1), Some(2)] {
                for dropping in [world.context, 0] {
                    let what = format!("{kind:?} {names_stream} {stream:?} {dropping}");
                    let (owner, log) = world.written(kind, names_stream);
                    let address = owner.address;
                    let tensor = owner.into_dlpack_with(&request_on(stream));
                    let tensor = tensor.unwrap_or_else(|error| panic!("{what}: {error}"));
                    match stream {
                        None => world.sim.host_read(address, BYTES),
                        // An unordered consumer makes the order itself, here by the same stream.
                        Some(2) => world.driver.read(2, address, BYTES),
                        Some(_) => world.driver.read(0, address, BYTES),
                    }
                    world.driver.set_current(dropping).unwrap();
                    drop(tensor);
                    collect();
                    collect();
                    world.driver.set_current(world.context).unwrap();
                    world.assert_untouched(&log, &what);
                }
            }
        }
    }
    a_thread_without_a_context(&world);
}

/// A thread on which no context is current uses the one that exists, for the order as for the free.
fn a_thread_without_a_context(world: &OneOfTwo) {
    let (owner, log) = world.written(Kind::CudaManaged, true);
    let address = owner.address;
    world.driver.set_current(0).unwrap();
    let tensor = owner.into_dlpack_with(&ExportRequest::versioned()).unwrap();
    world.sim.host_read(address, BYTES);
    drop(tensor);
    assert_eq!(world.driver.current(), Ok(0));
    world.driver.set_current(world.context).unwrap();
    world.assert_untouched(&log, "no context");
}
