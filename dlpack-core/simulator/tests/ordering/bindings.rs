//! Functions for bindings to other languages: the current stream, and the wait after an import.

use dlpack_core::binding::{current_stream, wait_for_producer};
use dlpack_core::{DLPack, Managed};

use crate::memory::{BYTES, Blocks, Kind, World};
use crate::simulator::Api;
use crate::tensors::{assert_over, written};

/// XAP-25: the current stream of a device is that of the thread's last unordered export, as long as that export lives.
#[test]
fn the_current_stream_is_that_of_the_last_export_that_lives() {
    let world = World::new(Api::Cuda);
    let [kind, other] = [Kind::Cuda, Kind::CudaManaged];
    assert_eq!(current_stream(kind.device()), 0);
    let [one, two] = [0, 1].map(|_| world.lane(world.first, Blocks::No));
    let (first, first_log) = written(&world, kind, one);
    let (beside, beside_log) = written(&world, other, two);
    let first = first.into_dlpack().unwrap();
    let beside = beside.into_dlpack().unwrap();
    assert_eq!(current_stream(kind.device()), one.handle);
    assert_eq!(current_stream(other.device()), two.handle);
    let (second, second_log) = written(&world, kind, two);
    let second = second.into_dlpack().unwrap();
    assert_eq!(current_stream(kind.device()), two.handle);
    drop(second);
    assert_eq!(current_stream(kind.device()), 0);
    drop((first, beside));
    assert_eq!(current_stream(other.device()), 0);
    for log in [first_log, beside_log, second_log] {
        assert_over(&world, &log);
    }
}

/// The host waits for the default stream, which orders work of another producer.
#[test]
#[expect(unsafe_code, reason = "takes over a struct of C")]
fn the_host_waits_for_the_producer_of_an_import() {
    let world = World::new(Api::Cuda);
    let legacy = world.lane(world.first, Blocks::Legacy);
    let (owner, log) = written(&world, Kind::CudaManaged, legacy);
    let address = owner.address;
    let foreign = owner.into_dlpack().unwrap().into_raw();
    // SAFETY: `into_raw` just returned the pointer, and this is its only use.
    let tensor = unsafe { Managed::from_raw(foreign) }.unwrap();
    wait_for_producer(&tensor).unwrap();
    world.sim.host_read(address, BYTES);
    drop(tensor);
    assert_over(&world, &log);
}

/// Of a tensor without elements nothing is read, whatever address its producer gives it.
#[test]
#[expect(unsafe_code, reason = "takes over a struct of C")]
fn the_host_does_not_wait_for_an_import_without_elements() {
    let world = World::new(Api::Cuda);
    let legacy = world.lane(world.first, Blocks::Legacy);
    let (owner, log) = written(&world, Kind::CudaManaged, legacy);
    let foreign = owner.into_dlpack().unwrap().into_raw();
    // SAFETY: no other code has the struct yet.
    let shape = unsafe { (*foreign.as_ptr()).dl_tensor.shape };
    // SAFETY: the tensor has one axis.
    unsafe { shape.write(0) };
    // SAFETY: `into_raw` just returned the pointer, and this is its only use from now on.
    let tensor = unsafe { Managed::from_raw(foreign) }.unwrap();
    assert!(!tensor.view().as_ptr().is_null());
    world.sim.forget_calls();
    wait_for_producer(&tensor).unwrap();
    assert_eq!(world.sim.calls(), [""; 0]);
    drop(tensor);
    assert_over(&world, &log);
}
