//! Unmodified cudarc on the simulator: correct programs report no fault, and incorrect ones report theirs.
#![cfg(target_os = "linux")]

mod clean;
mod hazards;
#[path = "../simulator/mod.rs"]
mod simulator;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use simulator::{ALLOCATIONS, EVENTS, GRAPHS, STREAMS, Sim};

/// A stream of a foreign library, which cudarc does not know.
pub(crate) fn foreign_stream(sim: &Sim) -> usize {
    sim.cuda().non_blocking()
}

pub(crate) fn address<T>(slice: &CudaSlice<T>, stream: &CudaStream) -> usize {
    usize::try_from(slice.device_ptr(stream).0).unwrap()
}

pub(crate) fn handle(stream: &CudaStream) -> usize {
    stream.cu_stream().expose_provenance()
}

/// Asserts that no object of the test is left.
pub(crate) fn assert_nothing_is_left(sim: &Sim) {
    for kind in [EVENTS, ALLOCATIONS, STREAMS, GRAPHS] {
        assert_eq!(sim.live(kind), 0, "kind {kind}");
    }
}
