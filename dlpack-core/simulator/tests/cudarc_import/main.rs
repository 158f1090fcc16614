//! Tensors of other libraries in kernels that cudarc launches: ordered after the library's work, and before its next.
#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "memory and streams that are known by their addresses"
)]

mod refused;
#[path = "../simulator/mod.rs"]
mod simulator;
mod torch;

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr};
use dlpack_core::cuda::{DeviceView, DeviceViewMut};
use dlpack_core::element::{AnyBits, Plain};
use dlpack_core::{DLPack, StreamHandle};
use simulator::{ALLOCATIONS, EVENTS, PER_THREAD, RELAXED, STREAMS, Sim};
use torch::{BYTES, Torch, cuda};

type Numbers = DeviceView<f32, [i64; 1]>;
type NumbersMut = DeviceViewMut<f32, [i64; 1]>;

/// The stream of our kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ours {
    Default,
    PerThread,
    /// A new stream of cudarc.
    New,
    /// The stream that the library uses.
    Theirs,
}

const OURS: [Ours; 4] = [Ours::Default, Ours::PerThread, Ours::New, Ours::Theirs];

/// The stream of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Theirs {
    Default,
    Blocking,
    NonBlocking,
}

const THEIRS: [Theirs; 3] = [Theirs::Default, Theirs::Blocking, Theirs::NonBlocking];

impl Theirs {
    fn stream(self) -> usize {
        match self {
            Self::Default => 0,
            Self::Blocking => cuda().blocking(),
            Self::NonBlocking => cuda().non_blocking(),
        }
    }
}

/// Which waits are omitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Without {
    Nothing,
    TheirsBeforeOurs,
    OursBeforeTheirs,
}

fn handle(stream: usize) -> StreamHandle {
    // SAFETY: the stream lives until the end of the test.
    unsafe { StreamHandle::from_raw(stream) }
}

/// A GPU with a stream of cudarc and one of the library. cudarc synchronizes the device when it makes its first stream, so that
/// stream is made before there is work.
fn world() -> (Sim, Arc<CudaContext>, Arc<CudaStream>, usize) {
    let sim = Sim::new(1);
    let context = CudaContext::new(0).unwrap();
    let ours = context.new_stream().unwrap();
    let theirs = cuda().non_blocking();
    (sim, context, ours, theirs)
}

/// A kernel that writes the result of `on`, which it gets as its argument.
fn kernel<T: DeviceRepr>(stream: &CudaStream, data: &mut impl DevicePtrMut<T>) {
    let bytes = data.num_bytes();
    let (address, _written) = data.device_ptr_mut(stream);
    let address = usize::try_from(address).unwrap();
    cuda().write(stream.cu_stream().addr(), address, bytes);
}

/// A kernel that only reads the result of `on`.
fn reading(stream: &CudaStream, data: &impl DevicePtr<f32>) {
    let bytes = data.num_bytes();
    let (address, _read) = data.device_ptr(stream);
    let address = usize::try_from(address).unwrap();
    cuda().read(stream.cu_stream().addr(), address, bytes);
}

/// The library writes, our kernel runs, and the library gets its memory back. Returns the faults, and all calls of core and
/// cudarc.
fn round(
    (theirs, ours, known): (Theirs, Ours, bool),
    writes: bool,
    without: Without,
) -> (Vec<String>, Vec<String>) {
    let sim = Sim::new(2);
    let context = CudaContext::new(0).unwrap();
    let stream = theirs.stream();
    // cudarc synchronizes the device when it makes its first stream.
    let our_stream = match ours {
        Ours::Default => context.default_stream(),
        Ours::PerThread => context.per_thread_stream(),
        Ours::New => context.new_stream().unwrap(),
        // SAFETY: the stream lives until the end of the test.
        Ours::Theirs => unsafe {
            context.wrap_borrowed_stream(core::ptr::without_provenance_mut(stream))
        },
    };
    let torch = Torch::new(stream);
    let tensor = torch.tensor();
    if !known {
        // The library was asked for data on the default stream.
        cuda().order(stream, 0);
    }
    cuda().set_current(0).unwrap();
    sim.forget_calls();
    let from_here = |part| sim.switch("ignore-wait", without == part);
    if writes {
        let view = NumbersMut::new(tensor).unwrap();
        let mut view = if known {
            view.with_stream(handle(stream))
        } else {
            view
        };
        from_here(Without::TheirsBeforeOurs);
        let mut data = view.on(&our_stream).unwrap();
        sim.switch("ignore-wait", false);
        assert_eq!(sim.current_context(), 0);
        context.bind_to_thread().unwrap();
        kernel(&our_stream, &mut data);
        cuda().set_current(0).unwrap();
        from_here(Without::OursBeforeTheirs);
    } else {
        let view = Numbers::new(tensor).unwrap();
        let mut view = if known {
            view.with_stream(handle(stream))
        } else {
            view
        };
        from_here(Without::TheirsBeforeOurs);
        let data = view.on(&our_stream).unwrap();
        sim.switch("ignore-wait", false);
        context.bind_to_thread().unwrap();
        reading(&our_stream, &data);
        cuda().set_current(0).unwrap();
        from_here(Without::OursBeforeTheirs);
    }
    sim.switch("ignore-wait", false);
    assert_eq!(sim.current_context(), 0);
    let calls = sim.call_names();
    context.bind_to_thread().unwrap();
    torch.end();
    context.check_err().unwrap();
    drop((our_stream, context));
    assert_eq!(sim.live(EVENTS), 0);
    (sim.faults(), calls)
}

/// Whether the calls order work by an event or by the host.
fn orders(calls: &[String]) -> bool {
    let words = ["WaitEvent", "EventRecord", "Synchronize"];
    calls
        .iter()
        .any(|name| words.iter().any(|word| name.contains(word)))
}

fn all() -> impl Iterator<Item = ((Theirs, Ours, bool), bool)> {
    let pairs = THEIRS
        .into_iter()
        .flat_map(|theirs| OURS.map(|ours| (theirs, ours)));
    pairs.flat_map(|(theirs, ours)| {
        [(true, true), (true, false), (false, true), (false, false)]
            .map(|(known, writes)| ((theirs, ours, known), writes))
    })
}

/// Whether two streams are ordered without events, or are the same.
fn ordered_anyway(theirs: Theirs, ours: Ours) -> bool {
    match (theirs, ours) {
        (_, Ours::Theirs) => true,
        (Theirs::Default, ours) => ours != Ours::New,
        (Theirs::Blocking, ours) => ours == Ours::Default,
        (Theirs::NonBlocking, _) => false,
    }
}

#[test]
fn the_library_then_a_kernel_then_the_library() {
    for (streams, writes) in all() {
        let (faults, calls) = round(streams, writes, Without::Nothing);
        assert!(faults.is_empty(), "{streams:?} {writes}: {faults:?}");
        let (theirs, ours, known) = streams;
        let waits = calls.iter().any(|name| name.contains("Synchronize"));
        assert_eq!(waits, !known, "{streams:?}: the host waits: {calls:?}");
        let same = ours == Ours::Theirs || (theirs, ours) == (Theirs::Default, Ours::Default);
        assert_eq!(orders(&calls), !(same && known), "{streams:?}: {calls:?}");
    }
}

/// The negative control of the test above, for both sides.
#[test]
fn without_one_of_the_waits_it_races() {
    for without in [Without::TheirsBeforeOurs, Without::OursBeforeTheirs] {
        for (streams, writes) in all() {
            let (theirs, ours, known) = streams;
            let (faults, _) = round(streams, writes, without);
            // If the stream is unknown, the host waits at the end, which the switch does not affect.
            let safe = ordered_anyway(theirs, ours)
                // The event is recorded on the default stream, which orders both.
                || (theirs, ours) == (Theirs::Blocking, Ours::PerThread)
                    && without == Without::OursBeforeTheirs
                || !known && without == Without::OursBeforeTheirs
                // The default stream waits for other streams without an event.
                || !known && matches!(ours, Ours::Default | Ours::PerThread);
            assert_eq!(
                faults.is_empty(),
                safe,
                "{streams:?} {writes} {without:?}: {faults:?}"
            );
            let race = |fault: &String| fault.contains("race");
            assert!(faults.iter().all(race), "{faults:?}");
        }
    }
}

#[test]
fn a_wrong_stream_causes_a_race() {
    let (sim, _context, ours, stream) = world();
    let (torch, wrong) = (Torch::new(stream), cuda().non_blocking());
    let mut view = NumbersMut::new(torch.tensor())
        .unwrap()
        .with_stream(handle(wrong));
    kernel(&ours, &mut view.on(&ours).unwrap());
    drop(view);
    assert!(!sim.faults().is_empty());
}

#[test]
fn a_view_that_was_never_used_waits_for_nothing() {
    let sim = Sim::new(1);
    let _context = CudaContext::new(0).unwrap();
    let torch = Torch::new(cuda().non_blocking());
    sim.forget_calls();
    drop(NumbersMut::new(torch.tensor()).unwrap());
    assert!(!orders(&sim.call_names()));
    assert!(torch.is_free());
    torch.end();
    sim.assert_clean();
}

#[test]
fn a_forgotten_view_keeps_its_tensor() {
    let (sim, _context, ours, stream) = world();
    let torch = Torch::new(stream);
    let mut view = NumbersMut::new(torch.tensor())
        .unwrap()
        .with_stream(handle(stream));
    kernel(&ours, &mut view.on(&ours).unwrap());
    core::mem::forget(view);
    assert!(!torch.is_free());
    sim.assert_clean();
}

#[test]
fn one_stream_after_another() {
    let (sim, context, _first, stream) = world();
    let torch = Torch::new(stream);
    let mut view = NumbersMut::new(torch.tensor())
        .unwrap()
        .with_stream(handle(stream));
    for _ in 0..3 {
        let ours = context.new_stream().unwrap();
        kernel(&ours, &mut view.on(&ours).unwrap());
    }
    drop(view);
    torch.end();
    sim.assert_clean();
}

/// Imported memory may be used on any stream of cudarc, like cudarc's own slices.
#[test]
fn other_streams_of_cudarc_wait_for_the_producer_and_are_waited_for() {
    let (sim, context, ours, stream) = world();
    let torch = Torch::new(stream);
    let other = context.new_stream().unwrap();
    let mut view = NumbersMut::new(torch.tensor())
        .unwrap()
        .with_stream(handle(stream));
    kernel(&other, &mut view.on(&ours).unwrap());
    drop(view);
    torch.end();
    sim.assert_clean();
}

#[test]
fn in_a_capture_of_the_producers_stream_no_call_breaks_it() {
    let (sim, context, _ours, stream) = world();
    let torch = Torch::new(stream);
    let mut view = NumbersMut::new(torch.tensor())
        .unwrap()
        .with_stream(handle(stream));
    // SAFETY: the stream lives until the end of the test.
    let ours = unsafe { view.producer_stream(&context) }.unwrap();
    cuda().begin_capture(stream, RELAXED).unwrap();
    kernel(&ours, &mut view.on(&ours).unwrap());
    drop(view);
    let graph = cuda().end_capture(stream).unwrap();
    let executable = cuda().instantiate(graph).unwrap();
    cuda().launch(executable, stream).unwrap();
    cuda().destroy_executable(executable).unwrap();
    cuda().destroy_graph(graph).unwrap();
    sim.assert_clean();
}

#[test]
fn the_producers_stream_is_the_named_one() {
    let sim = Sim::new(2);
    let contexts = [0, 1].map(|device| CudaContext::new(device).unwrap());
    sim.cuda();
    let stream = cuda().non_blocking();
    for (named, found) in [
        (None, 0),
        (Some(0), 0),
        (Some(PER_THREAD), 0),
        (Some(stream), stream),
    ] {
        let torch = Torch::new(stream);
        let view = Numbers::new(torch.tensor()).unwrap();
        let view = match named {
            Some(named) => view.with_stream(handle(named)),
            None => view,
        };
        // SAFETY: the stream lives until the end of the test.
        let ours = unsafe { view.producer_stream(&contexts[0]) }.unwrap();
        assert_eq!(ours.cu_stream().addr(), found);
        // SAFETY: the stream lives until the end of the test.
        assert!(unsafe { view.producer_stream(&contexts[1]) }.is_err());
    }
    sim.assert_clean();
}

/// From Rust to Rust: an export of a cudarc slice names its stream.
#[test]
fn an_exported_cudarc_slice() {
    for default in [false, true] {
        let sim = Sim::new(1);
        let context = CudaContext::new(0).unwrap();
        let own = match default {
            true => context.default_stream(),
            false => context.new_stream().unwrap(),
        };
        let ours = context.new_stream().unwrap();
        let slice = own.clone_htod(&[[1.0_f32, 2.0, 3.0]; 4]).unwrap();
        sim.forget_calls();
        let mut view = DeviceView::<[f32; 3], [i64; 1]>::new(slice.into_dlpack().unwrap()).unwrap();
        assert_eq!((view.shape(), view.len()), ([4], 4));
        let copy = ours.clone_dtod(&view.on(&ours).unwrap()).unwrap();
        drop(view);
        let waits = |name: &String| name.contains("Synchronize");
        assert!(
            !sim.call_names().iter().any(waits),
            "{:?}",
            sim.call_names()
        );
        assert_eq!(dlpack_core::stream::collect(), 0);
        assert_eq!(sim.live(ALLOCATIONS), 1);
        assert_eq!(ours.clone_dtoh(&copy).unwrap(), [[1.0, 2.0, 3.0]; 4]);
        drop((copy, own, ours));
        sim.assert_clean();
        for kind in [EVENTS, ALLOCATIONS, STREAMS] {
            assert_eq!(sim.live(kind), 0);
        }
    }
}

/// No number means the default stream of this context, so the host waits for our work.
#[test]
fn a_slice_of_another_context() {
    for default in [false, true] {
        let sim = Sim::new(1);
        let context = CudaContext::new(0).unwrap();
        let ours = context.new_stream().unwrap();
        let raw = sim.cuda().create_context(0).unwrap();
        // SAFETY: the context was just made on device 0, and no other code destroys it.
        let other =
            unsafe { CudaContext::from_raw_context(0, 0, core::ptr::without_provenance_mut(raw)) };
        let other = other.unwrap();
        let own = match default {
            true => other.default_stream(),
            false => other.new_stream().unwrap(),
        };
        let slice = own.clone_htod(&[1.0_f32; 4]).unwrap();
        let mut view = NumbersMut::new(slice.into_dlpack().unwrap()).unwrap();
        // SAFETY: the stream is not used.
        assert!(unsafe { view.producer_stream(&context) }.is_err());
        kernel(&ours, &mut view.on(&ours).unwrap());
        sim.forget_calls();
        drop(view);
        let waits = |name: &String| name.contains("Synchronize");
        assert!(!default || sim.call_names().iter().any(waits));
        assert_eq!(dlpack_core::stream::collect(), 0);
        sim.assert_clean();
        assert_eq!(sim.live(ALLOCATIONS), 0);
    }
}

#[test]
fn a_view_goes_to_another_thread() {
    let (sim, context, ours, stream) = world();
    let torch = Torch::new(stream);
    let mut view = NumbersMut::new(torch.tensor())
        .unwrap()
        .with_stream(handle(stream));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Joined threads are synchronized, which the simulator cannot know.
            simulator::hand_over();
            let mut data = view.on(&ours).unwrap();
            context.bind_to_thread().unwrap();
            kernel(&ours, &mut data);
            drop(view);
        });
    });
    sim.cuda();
    torch.end();
    sim.assert_clean();
}

fn assert_send_sync<T: Send + Sync>(_: &T) {}

#[test]
fn any_rank_and_any_element() {
    fn check<T: Plain + AnyBits>(torch: &Torch, elements: usize) {
        let view = DeviceView::<T, dlpack_core::layout::Dims>::new(torch.tensor()).unwrap();
        assert_eq!(view.shape(), [i64::try_from(elements).unwrap()]);
        assert_eq!(view.is_empty(), elements == 0);
        assert_send_sync(&view);
    }
    let sim = Sim::new(1);
    sim.cuda();
    check::<f32>(&Torch::new(0), 4);
    let empty = Torch::with_shape(0, &[0]);
    check::<f32>(&empty, 0);
    let context = CudaContext::new(0).unwrap();
    let mut view = Numbers::new(empty.tensor()).unwrap();
    let ours = context.new_stream().unwrap();
    assert_eq!(view.on(&ours).unwrap().len(), 0);
    drop(view);
    assert_eq!(BYTES, 16);
    let shared: Arc<CudaStream> = ours;
    drop(shared);
    sim.assert_clean();
}
