//! cudarc as it is, on the simulator: its own ways to be right are clean, and the ways to be wrong with it are seen.
#![cfg(target_os = "linux")]

mod clean;
mod hazards;
#[path = "../simulator/mod.rs"]
mod simulator;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use simulator::{ALLOCATIONS, EVENTS, GRAPHS, STREAMS, Sim};

/// What a foreign library does: it makes a stream by itself, and works on an address.
pub(crate) fn foreign_stream(sim: &Sim) -> usize {
    sim.cuda().non_blocking()
}

pub(crate) fn address<T>(slice: &CudaSlice<T>, stream: &CudaStream) -> usize {
    usize::try_from(slice.device_ptr(stream).0).unwrap()
}

pub(crate) fn handle(stream: &CudaStream) -> usize {
    stream.cu_stream().expose_provenance()
}

/// Everything that a test made is given back.
pub(crate) fn assert_nothing_is_left(sim: &Sim) {
    for kind in [EVENTS, ALLOCATIONS, STREAMS, GRAPHS] {
        assert_eq!(sim.live(kind), 0, "kind {kind}");
    }
}
