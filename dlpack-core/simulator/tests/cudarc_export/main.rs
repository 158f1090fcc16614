//! Values of cudarc, exported to consumers that cudarc does not know.
#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "memory and contexts that are known by their addresses"
)]

mod made;
#[path = "../simulator/mod.rs"]
mod simulator;

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, DevicePtr};
use dlpack_core::{DLPack, Device, DeviceType, Error};
use made::{ALL, BYTES, LENGTH, Made, READERS, Raw, Reader, What, contexts, cuda, raw, request_on};
use simulator::{ALLOCATIONS, EVENTS, RELAXED, STREAMS, Sim};

/// Exports, reads at once, and drops while the read is pending.
fn hand_over(what: What, reader: Reader, place: usize, switch: Option<&str>) -> Vec<String> {
    let sim = Sim::new(2);
    {
        let contexts = contexts(&sim);
        let context = &contexts[place];
        let made = what.make(&sim, context);
        // The consumer works in the primary context of the device of the data. Memory that the host reads is on no device: the
        // default streams are those of the current context.
        let default = matches!(reader, Reader::Legacy | Reader::PerThread);
        let primary = &contexts[match place {
            _ if what.is_on_host() && default => 1,
            2 => 0,
            place => place,
        }];
        primary.bind_to_thread().unwrap();
        let (stream, number) = reader.stream(what);
        // The context of other code is current.
        contexts[1].bind_to_thread().unwrap();
        let before = sim.current_context();
        sim.forget_calls();
        if let Some(switch) = switch {
            sim.switch(switch, true);
        }
        let tensor = made.export(&request_on(number)).unwrap();
        assert_eq!(sim.current_context(), before);
        let names = sim.call_names();
        let count = |name: &str| names.iter().filter(|found| *found == name).count();
        // One event is ours; cudarc records none, neither for a read nor for a write.
        assert!(
            count("cuEventRecord") <= 1,
            "{what:?} {reader:?}: {names:?}"
        );
        assert_eq!(count("cuEventRecord"), count("cuEventCreate"));
        if !what.is_on_host() {
            let waits = names.iter().find(|name| name.contains("Synchronize"));
            assert_eq!(waits, None);
        }
        let address = tensor.view().as_ptr().expose_provenance();
        let bytes = 4 * usize::try_from(tensor.view().shape()[0]).unwrap();
        assert_eq!(
            bytes,
            if what == What::View {
                BYTES - 16
            } else {
                BYTES
            }
        );
        primary.bind_to_thread().unwrap();
        match stream {
            Some(stream) => cuda().read(stream, address, bytes),
            None => sim.host_read(address, bytes),
        }
        contexts[1].bind_to_thread().unwrap();
        drop(tensor);
        // Owners of several contexts need one call for each context.
        dlpack_core::stream::collect();
        dlpack_core::stream::collect();
        if let Some(switch) = switch {
            sim.switch(switch, false);
        }
        assert_eq!(sim.current_context(), before);
        context.check_err().unwrap();
        if let Some(stream) = stream.filter(|&stream| stream > 2) {
            primary.bind_to_thread().unwrap();
            cuda().destroy_stream(stream).unwrap();
        }
    }
    assert_eq!(dlpack_core::stream::captured(), 0);
    for kind in [EVENTS, ALLOCATIONS, STREAMS] {
        assert_eq!(sim.live(kind), 0, "{what:?} {reader:?} in {place}: {kind}");
    }
    sim.faults()
}

fn all() -> impl Iterator<Item = (What, Reader, usize)> {
    let pairs = ALL
        .into_iter()
        .flat_map(|what| READERS.into_iter().map(move |reader| (what, reader)));
    pairs.flat_map(|(what, reader)| [0, 1, 2].map(|place| (what, reader, place)))
}

#[test]
fn exports_wait_for_writes_on_other_streams_and_free_nothing_early() {
    let mut wrong = Vec::new();
    for (what, reader, place) in all() {
        let faults = hand_over(what, reader, place, None);
        if !faults.is_empty() {
            wrong.push(format!("{what:?} {reader:?} in {place}: {faults:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn without_waits_exports_race() {
    let mut found = 0;
    for (what, reader, place) in all() {
        let events = hand_over(what, reader, place, Some("ignore-wait"));
        // The stream of the data waits for the last writer by an event, except for one kind.
        let expected = what != What::SliceOfDefault;
        let hidden = expected && events.is_empty();
        assert!(!hidden, "{what:?} {reader:?} in {place}");
        found += usize::from(!events.is_empty());
    }
    assert!(found > 0);
}

#[test]
fn describe_does_not_change_the_current_context() {
    for what in ALL {
        for place in 0..3 {
            let sim = Sim::new(2);
            let contexts = contexts(&sim);
            let made = what.make(&sim, &contexts[place]);
            for current in [0, raw(&contexts[0]), raw(&contexts[1]), raw(&contexts[2])] {
                cuda().set_current(current).unwrap();
                sim.forget_calls();
                made.describe().unwrap();
                assert_eq!(sim.current_context(), current, "{what:?} in {place}");
                let records = sim.call_names();
                assert!(!records.contains(&"cuEventRecord".to_owned()));
                assert!(!records.iter().any(|name| name.contains("Synchronize")));
            }
            contexts[place].bind_to_thread().unwrap();
            drop(made);
            sim.assert_clean();
        }
    }
}

#[test]
fn errors_that_cudarc_stores_are_returned_by_the_export() {
    for what in ALL {
        let sim = Sim::new(2);
        let contexts = contexts(&sim);
        let made = what.make(&sim, &contexts[0]);
        let context = &contexts[0];
        context.bind_to_thread().unwrap();
        let waits = what != What::SliceOfDefault;
        sim.fail("cuStreamWaitEvent", u64::from(waits), 719);
        let current = sim.current_context();
        let exported = made.export(&request_on(Some(2)));
        assert_eq!(sim.current_context(), current, "{what:?}");
        let code = match exported {
            Err(Error::DriverFailed { code, .. }) => code,
            Ok(_) if !waits => 719,
            other => panic!("{what:?}: {other:?}"),
        };
        assert_eq!(code, 719);
        context.check_err().unwrap();
        context.default_stream().alloc_zeros::<u8>(1).unwrap();
        sim.assert_clean();
    }
}

#[test]
fn two_consumers_of_one_slice_are_both_waited_for() {
    // cudarc keeps one event for all readers, and would lose that of the first.
    let sim = Sim::new(2);
    {
        let contexts = contexts(&sim);
        let Made::Slice(slice) = What::Slice.make(&sim, &contexts[0]) else {
            unreachable!()
        };
        let slice = Arc::new(slice);
        contexts[0].bind_to_thread().unwrap();
        let tensors = [(); 2].map(|()| {
            let stream = cuda().non_blocking();
            let number = i64::try_from(stream).ok();
            let tensor = slice.to_dlpack_with(&request_on(number)).unwrap();
            let address = tensor.view().as_ptr().expose_provenance();
            cuda().read(stream, address, BYTES);
            tensor
        });
        drop(slice);
        drop(tensors);
        assert_eq!(dlpack_core::stream::collect(), 0);
    }
    sim.assert_clean();
    assert_eq!(sim.live(ALLOCATIONS), 0);
}

#[test]
fn a_reader_that_cudarc_knows_is_still_waited_for() {
    let sim = Sim::new(2);
    {
        let contexts = contexts(&sim);
        let Made::Slice(slice) = What::Slice.make(&sim, &contexts[0]) else {
            unreachable!()
        };
        let reader = contexts[0].new_stream().unwrap();
        {
            let (address, _recorded) = slice.device_ptr(&reader);
            let address = usize::try_from(address).unwrap();
            let handle = reader.cu_stream().expose_provenance();
            cuda().read(handle, address, BYTES);
        }
        let consumer = cuda().non_blocking();
        let number = i64::try_from(consumer).ok();
        let tensor = slice.into_dlpack_with(&request_on(number)).unwrap();
        let address = tensor.view().as_ptr().expose_provenance();
        cuda().read(consumer, address, BYTES);
        drop(tensor);
    }
    sim.assert_clean();
}

#[test]
fn a_cudarc_stream_can_be_the_stream_of_a_struct() {
    for place in 0..3 {
        for default in [false, true] {
            let sim = Sim::new(2);
            let contexts = contexts(&sim);
            let context = &contexts[place];
            let stream = match default {
                true => context.default_stream(),
                false => context.new_stream().unwrap(),
            };
            let slice = stream.clone_htod(&[1_u32; LENGTH]).unwrap();
            let address = usize::try_from(slice.device_ptr(&stream).0).unwrap();
            let ordinal = i32::try_from(context.ordinal()).unwrap();
            let raw = Raw {
                start: core::ptr::with_exposed_provenance_mut(address),
                len: slice.len(),
                device: Device::cuda(ordinal),
                stream: Arc::clone(&stream),
                _slice: slice,
            };
            let primary = &contexts[context.ordinal()];
            primary.bind_to_thread().unwrap();
            let consumer = cuda().non_blocking();
            let number = i64::try_from(consumer).ok();
            let tensor = raw.into_dlpack_with(&request_on(number)).unwrap();
            cuda().read(consumer, address, BYTES);
            drop(tensor);
            assert_eq!(dlpack_core::stream::collect(), 0);
            sim.assert_clean();
            assert_eq!(sim.live(ALLOCATIONS), 0);
        }
    }
}

#[test]
fn a_graph_keeps_a_slice() {
    let sim = Sim::new(2);
    let contexts = contexts(&sim);
    let made = What::Slice.make(&sim, &contexts[0]);
    contexts[0].bind_to_thread().unwrap();
    let consumer = cuda().non_blocking();
    let number = i64::try_from(consumer).ok();
    cuda().begin_capture(consumer, RELAXED).unwrap();
    let tensor = made.export(&request_on(number)).unwrap();
    let address = tensor.view().as_ptr().expose_provenance();
    cuda().read(consumer, address, BYTES);
    drop(tensor);
    let graph = cuda().end_capture(consumer).unwrap();
    let executable = cuda().instantiate(graph).unwrap();
    for _ in 0..10 {
        cuda().launch(executable, consumer).unwrap();
    }
    assert_eq!(sim.live(ALLOCATIONS), 1);
    cuda().destroy_executable(executable).unwrap();
    cuda().destroy_graph(graph).unwrap();
    release();
    assert_eq!(sim.live(ALLOCATIONS), 0);
    sim.assert_clean();
}

/// Another stream of cudarc wrote the data before the capture. cudarc would wait for that in the capture, and break it.
#[test]
fn an_export_of_data_whose_stream_captures_is_refused_without_effect() {
    for what in [What::Slice, What::View, What::Unified, What::Pinned] {
        let sim = Sim::new(2);
        let contexts = contexts(&sim);
        let made = what.make(&sim, &contexts[0]);
        contexts[0].bind_to_thread().unwrap();
        let own = made.stream_to_capture();
        cuda().begin_capture(own, RELAXED).unwrap();
        contexts[1].bind_to_thread().unwrap();
        let refused = made.describe().expect_err("its stream captures");
        assert!(matches!(refused, Error::Capturing { .. }), "{refused}");
        assert_eq!(sim.current_context(), raw(&contexts[1]));
        contexts[0].bind_to_thread().unwrap();
        let graph = cuda().end_capture(own).expect("the capture is whole");
        cuda().destroy_graph(graph).unwrap();
        contexts[0].check_err().unwrap();
        drop(made);
        sim.assert_clean();
    }
}

/// Without events of cudarc there is nothing to wait for.
#[test]
fn data_without_events_is_exported_in_its_own_capture() {
    let sim = Sim::new(2);
    let contexts = contexts(&sim);
    // SAFETY: all work is on one stream.
    unsafe { contexts[0].disable_event_tracking() };
    let stream = contexts[0].new_stream().unwrap();
    let slice = stream.clone_htod(&[1_u32; LENGTH]).unwrap();
    let handle = stream.cu_stream().expose_provenance();
    cuda().begin_capture(handle, RELAXED).unwrap();
    let tensor = slice.into_dlpack_with(&request_on(i64::try_from(handle).ok()));
    let tensor = tensor.unwrap();
    let address = tensor.view().as_ptr().expose_provenance();
    cuda().read(handle, address, BYTES);
    drop(tensor);
    let graph = cuda().end_capture(handle).expect("the capture is whole");
    assert_eq!(sim.live(ALLOCATIONS), 1, "the graph keeps it");
    cuda().destroy_graph(graph).unwrap();
    release();
    assert_eq!(sim.live(ALLOCATIONS), 0);
    sim.assert_clean();
}

fn release() {
    // SAFETY: the graphs are destroyed.
    unsafe { dlpack_core::stream::release_captured() };
}

#[test]
fn kinds_of_memory_are_told_apart() {
    let sim = Sim::new(2);
    let contexts = contexts(&sim);
    for what in ALL {
        for (place, ordinal) in [(0, 0), (1, 1), (2, 0)] {
            let tensor = what
                .make(&sim, &contexts[place])
                .export(&request_on(Some(-1)))
                .unwrap();
            let expected = match what {
                What::Pinned => Device::new(DeviceType::CUDA_HOST, 0),
                What::Unified => Device::new(DeviceType::CUDA_MANAGED, 0),
                _ => Device::cuda(ordinal),
            };
            assert_eq!(tensor.view().device(), expected, "{what:?} in {place}");
            assert!(!tensor.view().is_read_only());
        }
    }
    sim.assert_clean();
}

/// A slice that is freed as soon as the host has synchronized with its consumer.
#[derive(DLPack)]
#[dlpack(release = "immediate")]
struct Hasty {
    #[dlpack(data)]
    slice: CudaSlice<u32>,
}

#[test]
fn a_slice_of_the_default_stream_is_freed_on_that_of_its_own_context() {
    // cudarc makes no context current for it, and its stream has only the handle 0.
    for hasty in [false, true] {
        let sim = Sim::new(2);
        let first = CudaContext::new(0).unwrap();
        let slice = first.default_stream().clone_htod(&[1; LENGTH]).unwrap();
        let second = CudaContext::new(1).unwrap();
        let request = request_on(None);
        let tensor = match hasty {
            false => slice.into_dlpack_with(&request).unwrap(),
            true => Hasty { slice }.into_dlpack_with(&request).unwrap(),
        };
        let address = tensor.view().as_ptr().expose_provenance();
        first.bind_to_thread().unwrap();
        cuda().read(0, address, BYTES);
        second.bind_to_thread().unwrap();
        drop(tensor);
        assert_eq!(sim.current_context(), raw(&second));
        sim.assert_clean();
        assert_eq!(sim.live(ALLOCATIONS), 0);
    }
}
