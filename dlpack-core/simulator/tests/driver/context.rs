//! Contexts and devices: what is current on each thread, and what can be used from another context.

use crate::simulator::{Api, BOTH, Driver, LEGACY, Sim, answer_of};

type Call<'a> = &'a (dyn Fn(Driver) -> Result<(), i32> + Sync);

#[test]
fn calls_that_need_a_context_return_201_without_one() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    let event = cuda.event();
    let needing: [(&str, Call<'_>); 9] = [
        ("event", &|cuda| cuda.create_event().map(drop)),
        ("record", &|cuda| cuda.record(event, stream)),
        ("wait", &|cuda| cuda.wait(stream, event)),
        ("destroy event", &|cuda| cuda.destroy_event(event)),
        ("synchronize stream", &|cuda| {
            cuda.synchronize_stream(stream)
        }),
        ("synchronize event", &|cuda| cuda.synchronize_event(event)),
        ("synchronize", &|cuda| cuda.synchronize()),
        ("allocate", &|cuda| cuda.try_alloc(8).map(drop)),
        ("capturing", &|cuda| cuda.is_capturing(LEGACY).map(drop)),
    ];
    assert_ne!(sim.current_context(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(sim.current_context(), 0, "each thread has its own");
            for (what, call) in needing {
                assert_eq!(call(cuda), Err(201), "{what}");
            }
        });
    });
    for (what, call) in needing {
        if what != "destroy event" {
            assert_eq!(call(cuda), Ok(()), "{what}");
        }
    }
    sim.assert_clean();
}

#[test]
fn an_event_is_recorded_in_its_own_context_and_waited_for_in_any() {
    let sim = Sim::new(2);
    let cuda = sim.cuda();
    let first = sim.current_context();
    let second = cuda.retain(1).unwrap();
    let memory = cuda.alloc_managed(8);
    let here = cuda.non_blocking();
    let event = cuda.event();
    cuda.write(here, memory, 8);
    cuda.set_current(second).unwrap();
    let there = cuda.non_blocking();
    assert_eq!(cuda.record(event, there), Err(400));
    assert_eq!(
        cuda.record(event, LEGACY),
        Err(400),
        "which is another legacy stream"
    );
    // A handle determines its context, whatever is current.
    assert_eq!(cuda.record(event, here), Ok(()));
    assert_eq!(cuda.context_of(here), Ok(first));
    assert_eq!(cuda.context_of(LEGACY), Ok(second));
    assert_eq!(cuda.wait(there, event), Ok(()));
    cuda.write(there, memory, 8);
    sim.assert_clean();
}

#[test]
fn legacy_streams_of_two_contexts_do_not_wait_for_each_other() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let primary = sim.current_context();
    let memory = cuda.alloc(8);
    cuda.write(LEGACY, memory, 8);
    let other = cuda.create_context(0).unwrap();
    assert_eq!(
        sim.current_context(),
        other,
        "a new context becomes current"
    );
    cuda.read(LEGACY, memory, 8);
    sim.assert_one_fault(&["race"]);
    assert_eq!(cuda.destroy_context(other), Ok(()));
    assert_eq!(sim.current_context(), 0);
    assert_eq!(cuda.set_current(other), Err(201));
    assert_eq!(cuda.set_current(primary), Ok(()));
    assert_eq!(cuda.current(), Ok(primary));
}

#[test]
fn synchronizing_a_context_does_not_order_another() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc_managed(8);
    cuda.write(LEGACY, memory, 8);
    cuda.create_context(0).unwrap();
    assert_eq!(cuda.synchronize(), Ok(()));
    sim.host_read(memory, 8);
    sim.assert_one_fault(&["race"]);
}

#[test]
fn a_primary_context_lasts_as_long_as_it_is_retained() {
    let sim = Sim::new(2);
    let cuda = sim.cuda();
    // Another test may have retained it.
    while cuda.release(1).is_ok() {}
    let context = cuda.retain(1).unwrap();
    assert_eq!(cuda.retain(1), Ok(context));
    assert_eq!(cuda.set_current(context), Ok(()));
    cuda.non_blocking();
    cuda.event();
    cuda.alloc(8);
    // An error of CUDA: "Not associated with any CUDA context."
    cuda.alloc_async(8, LEGACY);
    assert_eq!(cuda.release(1), Ok(()));
    assert_eq!((sim.live(0), sim.live(1), sim.live(2)), (1, 2, 1));
    assert_eq!(cuda.release(1), Ok(()));
    assert_eq!((sim.live(0), sim.live(1), sim.live(2)), (0, 1, 0));
    assert_eq!(cuda.create_event(), Err(709));
    assert_eq!(cuda.release(1), Err(201));
    assert_eq!(cuda.retain(1), Ok(context));
    assert!(cuda.create_event().is_ok());
    assert_eq!(cuda.release(1), Ok(()));
    assert_eq!(cuda.retain(2), Err(101));
}

#[test]
fn hip_has_a_current_device_for_each_thread() {
    let sim = Sim::new(2);
    let hip = sim.hip();
    let memory = hip.alloc_managed(8);
    hip.write(0, memory, 8);
    assert_eq!(hip.set_device(2), Err(101));
    assert_eq!(hip.set_device(1), Ok(()));
    let elsewhere = std::thread::scope(|scope| scope.spawn(|| hip.device()).join());
    assert_eq!((hip.device(), elsewhere.unwrap()), (Ok(1), Ok(0)));
    // This does not wait for the work of the other device.
    assert_eq!(hip.synchronize(), Ok(()));
    sim.host_read(memory, 8);
    sim.assert_one_fault(&["race"]);
}

#[test]
fn a_machine_without_devices_returns_100() {
    let sim = Sim::new(0);
    assert_eq!(
        (answer_of("cuInit", 1), answer_of("hipInit", 1)),
        (100, 100)
    );
    assert_eq!(answer_of("hipGetDeviceCount", 1), 100);
    assert_eq!(sim.hip().create_event(), Err(101));
    assert_eq!(sim.hip().set_device(0), Err(101));
}

#[test]
fn a_kernel_reaches_another_devices_memory_only_with_peer_access() {
    for api in BOTH {
        for allowed in [false, true] {
            let sim = Sim::new(2);
            let driver = sim.driver(api);
            let (first, second) = match api {
                Api::Cuda => (sim.current_context(), driver.retain(1).unwrap()),
                Api::Hip => (0, 1),
            };
            let enter = |place| match api {
                Api::Cuda => driver.set_current(place).unwrap(),
                Api::Hip => driver.set_device(i32::try_from(place).unwrap()).unwrap(),
            };
            let memory = [
                driver.alloc(8),
                driver.alloc_managed(8),
                driver.alloc_pinned(8),
            ];
            enter(second);
            if allowed {
                assert_eq!(driver.enable_peer(first), Ok(()));
                assert_eq!(driver.enable_peer(first), Err(704));
                assert_eq!(driver.enable_peer(second), Err(201));
            }
            let stream = driver.non_blocking();
            for address in memory {
                driver.write(stream, address, 8);
            }
            match allowed {
                true => sim.assert_clean(),
                false => sim.assert_one_fault(&["no peer access"]),
            }
        }
    }
}
