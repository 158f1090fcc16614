//! Operations on a tensor other than a single export and its drop.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use dlpack_core::binding::current_stream;
use dlpack_core::{DLPack, Device, Error, ExportRequest, StreamHandle};

use crate::memory::{Blocks, Kind, Lane, Log, Owner, World};
use crate::simulator::{ALLOCATIONS, Api, BOTH, Driver, EVENTS};

pub(crate) fn device_memory(api: Api) -> Kind {
    match api {
        Api::Cuda => Kind::Cuda,
        Api::Hip => Kind::Rocm,
    }
}

/// The handle of a stream that lives for the rest of the test.
#[expect(unsafe_code, reason = "`from_raw` requires that the stream lives")]
pub(crate) fn handle_of(lane: Lane) -> StreamHandle {
    // SAFETY: the tests of this file destroy no streams, and drop their tensors before the next world begins.
    unsafe { StreamHandle::from_raw(lane.handle) }
}

/// An owner of memory that is being written on `lane`.
pub(crate) fn written(world: &World, kind: Kind, lane: Lane) -> (Owner, Arc<Log>) {
    let log = Arc::<Log>::default();
    let address = world.alloc(kind);
    world.write(lane, address);
    let owner = Owner {
        driver: world.driver,
        kind,
        address,
        named_stream: Some(handle_of(lane)),
        freed_on: lane,
        written: None,
        immediate: false,
        log: Arc::clone(&log),
    };
    (owner, log)
}

pub(crate) fn number(lane: Lane) -> Option<i64> {
    Some(i64::try_from(lane.handle).expect("a handle is no large number"))
}

pub(crate) fn request_on(stream: Option<i64>) -> ExportRequest {
    ExportRequest {
        stream,
        ..ExportRequest::versioned()
    }
}

#[track_caller]
pub(crate) fn assert_over(world: &World, log: &Log) {
    assert_eq!(dlpack_core::stream::collect(), 0);
    world.sim.assert_clean();
    assert_eq!(log.problems(), [""; 0]);
    assert_eq!(log.drops(), 1, "the owner is dropped once");
    assert_eq!(world.sim.live(EVENTS), 0);
    assert_eq!(world.sim.live(ALLOCATIONS), 0);
    assert_eq!(dlpack_core::stream::captured(), 0);
}

#[test]
fn invalid_stream_numbers_are_refused_without_a_call() {
    for kind in Kind::ALL {
        let bad: &[i64] = match kind.api() {
            Api::Cuda => &[0, -2, -3, i64::MIN],
            Api::Hip => &[1, 2, -2, i64::MIN],
        };
        let to_host = [-1, 0, 1, 2, 0x1000].map(|stream| ExportRequest {
            dl_device: Some(Device::CPU),
            ..request_on(Some(stream))
        });
        let requests = bad.iter().map(|&stream| request_on(Some(stream)));
        for request in requests.chain(to_host) {
            let world = World::new(kind.api());
            let lane = world.lane(world.first, Blocks::No);
            let (owner, log) = written(&world, kind, lane);
            world.driver.synchronize_stream(lane.handle).unwrap();
            let owner = Arc::new(owner);
            world.sim.forget_calls();
            let refused = owner.to_dlpack_with(&request);
            assert!(
                matches!(refused, Err(Error::BadStream { .. })),
                "{kind:?} {request:?}: {refused:?}"
            );
            assert_eq!(world.sim.calls(), [""; 0]);
            drop(owner);
            assert_over(&world, &log);
        }
    }
}

#[test]
fn a_tensor_that_is_exported_again_keeps_its_stream() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let consumer = world.lane(world.first, Blocks::No);
        let (owner, log) = written(&world, device_memory(api), producer);
        let address = owner.address;
        let tensor = owner.into_dlpack().unwrap();
        let again = tensor
            .into_dlpack_with(&request_on(number(consumer)))
            .unwrap();
        world.read(consumer, address);
        drop(again);
        assert_over(&world, &log);
    }
}

#[test]
#[expect(unsafe_code, reason = "takes over a struct of C")]
fn an_imported_tensor_is_ready_on_the_default_stream() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let consumer = world.lane(world.first, Blocks::No);
        let (owner, log) = written(&world, device_memory(api), producer);
        let address = owner.address;
        // An importer requests the default stream, and the struct names no other.
        let exported = owner
            .into_dlpack_with(&request_on(None))
            .unwrap()
            .into_raw();
        // SAFETY: `into_raw` just returned the pointer, and this is its only use.
        let imported = unsafe { dlpack_core::Managed::from_raw(exported) }.unwrap();
        let again = imported.into_dlpack_with(&request_on(number(consumer)));
        let again = again.unwrap();
        world.read(consumer, address);
        drop(again);
        assert_over(&world, &log);
    }
}

#[test]
fn the_default_stream_of_one_thread_is_ordered_before_that_of_another() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::PerThread);
    let consumer = world.lane(world.first, Blocks::No);
    let (owner, log) = written(&world, Kind::Cuda, producer);
    let address = owner.address;
    let tensor = owner.into_dlpack().unwrap();
    let there = std::thread::spawn(move || tensor.into_dlpack_with(&request_on(number(consumer))));
    let again = there.join().unwrap().unwrap();
    // Earlier work of this thread does not matter: the export on the other thread orders the consumer.
    world.read(consumer, address);
    drop(again);
    assert_over(&world, &log);
}

#[test]
fn two_consumers_of_one_owner_are_both_waited_for() {
    for api in BOTH {
        // The orders in which the two tensors and the owner itself are dropped.
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let world = World::new(api);
            let producer = world.lane(world.first, Blocks::No);
            let consumers = [(); 2].map(|()| world.lane(world.first, Blocks::No));
            let (owner, log) = written(&world, device_memory(api), producer);
            let owner = Arc::new(owner);
            let tensors = consumers.map(|consumer| {
                let tensor = owner.to_dlpack_with(&request_on(number(consumer))).unwrap();
                world.read(consumer, owner.address);
                tensor
            });
            let [first, second] = tensors.map(Some);
            let mut owner = Some(owner);
            let (mut first, mut second) = (first, second);
            for which in order {
                assert_eq!(log.drops(), 0);
                match which {
                    0 => drop(first.take()),
                    1 => drop(second.take()),
                    _ => drop(owner.take()),
                }
            }
            assert_over(&world, &log);
        }
    }
}

#[test]
fn the_current_stream_is_that_of_the_last_unordered_export_while_it_lives() {
    let world = World::new(Api::Cuda);
    let (cuda, second) = (Device::cuda(0), Device::cuda(1));
    let [one, two] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    let other = world.lane(world.other, Blocks::PerThread);
    assert_eq!(current_stream(cuda), 0, "nothing was exported");
    let mut logs = Vec::new();
    let mut export = |lane| {
        let (owner, log) = written(&world, Kind::Cuda, lane);
        logs.push(log);
        owner
    };
    let first = export(one).into_dlpack().unwrap();
    assert_eq!(current_stream(cuda), one.handle);
    assert_eq!(current_stream(second), 0, "of another device");
    let later = export(two).into_dlpack_with(&request_on(Some(-1))).unwrap();
    assert_eq!(current_stream(cuda), two.handle);
    let ordered = export(one)
        .into_dlpack_with(&request_on(number(two)))
        .unwrap();
    assert_eq!(current_stream(cuda), two.handle, "order was asked for");
    let elsewhere = std::thread::spawn(move || current_stream(cuda));
    assert_eq!(elsewhere.join().unwrap(), 0, "on another thread");
    drop(later);
    assert_eq!(current_stream(cuda), 0, "the last one is gone");
    let mut beside = export(other);
    beside.named_stream = Some(within(beside.named_stream, world.other));
    let beside = beside.into_dlpack().unwrap();
    assert_eq!(current_stream(cuda), 0, "it has no number");
    drop((first, ordered, beside));
    for log in &logs {
        assert_over(&world, log);
    }
}

#[expect(
    unsafe_code,
    reason = "`in_context` requires the context of the stream"
)]
fn within(stream: Option<StreamHandle>, context: usize) -> StreamHandle {
    // SAFETY: the stream is the default stream of this context.
    unsafe { stream.expect("it names a stream").in_context(context) }
}

#[test]
fn either_struct_is_ordered_and_its_deleter_called_on_any_thread() {
    for api in BOTH {
        for legacy in [false, true] {
            let world = World::new(api);
            let producer = world.lane(world.first, Blocks::No);
            let consumer = world.lane(world.first, Blocks::No);
            let (owner, log) = written(&world, device_memory(api), producer);
            let address = owner.address;
            let request = ExportRequest {
                max_version: None,
                ..request_on(number(consumer))
            };
            let request = if legacy {
                request
            } else {
                request_on(number(consumer))
            };
            let tensor = owner.into_dlpack_with(&request).unwrap();
            let deleter = Deleter::of(tensor, legacy);
            world.read(consumer, address);
            std::thread::spawn(move || deleter.call()).join().unwrap();
            assert_over(&world, &log);
        }
    }
}

/// A struct as C code has it.
enum Deleter {
    Versioned(usize),
    Legacy(usize),
}

impl Deleter {
    fn of(tensor: dlpack_core::Managed, legacy: bool) -> Self {
        if legacy {
            let tensor = tensor.into_legacy().unwrap();
            Self::Legacy(tensor.as_ptr().expose_provenance())
        } else {
            Self::Versioned(tensor.into_raw().as_ptr().expose_provenance())
        }
    }

    #[expect(unsafe_code, reason = "calls deleters as C does")]
    fn call(self) {
        match self {
            Self::Versioned(tensor) => {
                let tensor: *mut dlpack_core::abi::DLManagedTensorVersioned =
                    core::ptr::with_exposed_provenance_mut(tensor);
                // SAFETY: `into_raw` returned the pointer, and no other code has it.
                let deleter = unsafe { (*tensor).deleter }.expect("it is never null");
                // SAFETY: the deleter is called once, with its own struct.
                unsafe { deleter(tensor) };
            }
            Self::Legacy(tensor) => {
                let tensor: *mut dlpack_core::abi::DLManagedTensor =
                    core::ptr::with_exposed_provenance_mut(tensor);
                // SAFETY: `into_legacy` returned the pointer, and no other code has it.
                let deleter = unsafe { (*tensor).deleter }.expect("it is never null");
                // SAFETY: the deleter is called once, with its own struct.
                unsafe { deleter(tensor) };
            }
        }
    }
}

/// An owner that panics when it is dropped, after it has made another context current.
struct Panics(Owner);

impl DLPack for Panics {
    fn describe(&self) -> Result<dlpack_core::Descriptor<'_>, Error> {
        self.0.describe()
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        // The inner owner is dropped all the same, and leaves its context current.
        panic!("a test panics in a drop");
    }
}

#[test]
fn an_owner_that_panics_does_not_change_the_current_context() {
    for api in BOTH {
        for stream in [Some(-1), None] {
            let world = World::new(api);
            let producer = world.lane(world.first, Blocks::No);
            let (owner, log) = written(&world, device_memory(api), producer);
            let tensor = Panics(owner).into_dlpack_with(&request_on(stream)).unwrap();
            world.enter(world.second);
            drop(tensor);
            assert_eq!(world.current(), world.second);
            assert_over(&world, &log);
        }
    }
}

/// An owner that reads the current context before it frees anything.
struct Looks {
    owner: Owner,
    current: fn(Driver) -> usize,
    found: Arc<AtomicUsize>,
}

impl DLPack for Looks {
    fn describe(&self) -> Result<dlpack_core::Descriptor<'_>, Error> {
        self.owner.describe()
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        let found = (self.current)(self.owner.driver);
        self.found.store(found, Ordering::SeqCst);
    }
}

/// The owner may depend on the current context for its stream or memory. Memory that the host reads is freed in any context.
#[test]
fn an_owner_is_dropped_where_its_context_is_current() {
    for kind in Kind::ALL {
        for names_stream in [true, false] {
            let world = World::new(kind.api());
            let lane = world.lane(world.first, Blocks::Legacy);
            let (mut owner, log) = written(&world, kind, lane);
            world.driver.synchronize_stream(lane.handle).unwrap();
            owner.named_stream = owner.named_stream.filter(|_| names_stream);
            let found = Arc::new(AtomicUsize::new(usize::MAX));
            let owner = Looks {
                owner,
                current: match kind.api() {
                    Api::Cuda => |driver| driver.current().unwrap(),
                    Api::Hip => |driver| driver.device().unwrap().unsigned_abs() as usize,
                },
                found: Arc::clone(&found),
            };
            let tensor = owner.into_dlpack_with(&request_on(None)).unwrap();
            world.enter(world.second);
            drop(tensor);
            assert_over(&world, &log);
            let expected = match kind.is_on_host() {
                true => world.second,
                false => world.first,
            };
            assert_eq!(found.load(Ordering::SeqCst), expected, "{kind:?}");
        }
    }
}

/// An owner that frees on the default stream of the current context, whichever that is.
struct Trusting(Owner);

impl DLPack for Trusting {
    fn describe(&self) -> Result<dlpack_core::Descriptor<'_>, Error> {
        self.0.describe()
    }
}

impl Drop for Trusting {
    fn drop(&mut self) {
        // The inner owner only counts the drop.
        self.0.log.forget();
        let freed = self.0.driver.free_async(self.0.address, 0);
        assert_eq!(freed, Ok(()));
    }
}

/// Another context may be current where the tensor is dropped than at its export. The owner is dropped in that of the export, and
/// only where it is current if it may have been destroyed.
#[test]
fn an_owner_that_names_its_default_stream_by_number_is_freed_in_the_context_of_the_export() {
    for (names_stream, stream) in [(true, None), (true, Some(1)), (false, None)] {
        for exports_in in 0..2 {
            for drops_in in 0..4 {
                let world = World::new(Api::Cuda);
                let places = [world.other, world.first, world.second, 0];
                let exporting = places[exports_in];
                let lane = world.lane(exporting, Blocks::Legacy);
                let (mut owner, log) = written(&world, Kind::Cuda, lane);
                owner.named_stream = owner.named_stream.filter(|_| names_stream);
                let address = owner.address;
                world.enter(exporting);
                let tensor = Trusting(owner).into_dlpack_with(&request_on(stream));
                let tensor = tensor.unwrap();
                world.read(lane, address);
                world.enter(places[drops_in]);
                drop(tensor);
                assert_eq!(world.current(), places[drops_in]);
                let at_once = exporting == world.first || drops_in == exports_in;
                assert_eq!(log.drops(), usize::from(at_once));
                dlpack_core::stream::collect();
                world.enter(exporting);
                assert_over(&world, &log);
            }
        }
    }
}

/// Without `hipStreamGetDevice`, a stream of another device than the memory's would be taken for one of that device, and its work
/// would not be waited for.
#[test]
fn a_stream_of_another_device_is_refused_where_its_device_cannot_be_queried() {
    for kind in [Kind::Rocm, Kind::RocmHost] {
        for consumer_is_foreign in [true, false] {
            let world = World::new(Api::Hip);
            world.sim.switch("no-stream-devices", true);
            let own = world.lane(world.first, Blocks::No);
            let consumer = match consumer_is_foreign {
                true => world.lane(world.second, Blocks::Yes),
                false => world.lane(world.first, Blocks::No),
            };
            let (owner, log) = written(&world, kind, own);
            let address = owner.address;
            // A refusal orders nothing, and the owner of pinned memory frees it on the host.
            assert_eq!(world.driver.synchronize_stream(own.handle), Ok(()));
            let exported = owner.into_dlpack_with(&request_on(number(consumer)));
            match (consumer_is_foreign, exported) {
                (true, Err(Error::ForeignStream { device })) => assert_eq!(device, kind.device()),
                (false, Ok(tensor)) => {
                    world.read(consumer, address);
                    drop(tensor);
                }
                (_, other) => panic!("{kind:?} {consumer_is_foreign}: {other:?}"),
            }
            assert_over(&world, &log);
        }
    }
}

/// The default streams are those of the device of the memory, also on a thread whose current context belongs to another device
/// and is not a primary one.
#[test]
fn a_context_of_another_device_does_not_change_which_default_stream_is_meant() {
    let world = World::new(Api::Cuda);
    let elsewhere = world.driver.create_context(1).unwrap();
    let producer = world.lane(world.first, Blocks::No);
    let legacy = world.lane(world.first, Blocks::Legacy);
    let (owner, log) = written(&world, Kind::Cuda, producer);
    let address = owner.address;
    world.enter(elsewhere);
    let tensor = owner.into_dlpack_with(&request_on(Some(1))).unwrap();
    world.read(legacy, address);
    drop(tensor);
    assert_eq!(world.current(), elsewhere);
    world.enter(world.first);
    assert_over(&world, &log);
}
