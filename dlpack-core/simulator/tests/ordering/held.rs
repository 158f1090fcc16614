//! What graphs hold: an owner whose data is read in a capture lives as long as somebody can launch that.

use std::sync::Arc;
use std::thread;

use dlpack_core::stream::{captured, collect, sweep_all};
use dlpack_core::{DLPack, Managed};

use crate::memory::{Blocks, Lane, Log, Owner, World};
use crate::simulator::{Api, BOTH, GLOBAL, RELAXED, THREAD_LOCAL, USER_OBJECTS, hand_over};
use crate::tensors::{asking, assert_over, device_memory, number, written};

/// A tensor that was exported to a stream that captured, and used there; and what came of the capture.
struct Captured {
    stream: Lane,
    tensor: Managed,
    log: Arc<Log>,
    graph: usize,
}

fn export(world: &World, owner: Owner, stream: Lane) -> Managed {
    let address = owner.address;
    let tensor = owner.into_dlpack_with(&asking(number(stream))).unwrap();
    world.read(stream, address);
    tensor
}

/// As inside of `torch.cuda.graph`. `equal`: on the producer's own stream.
fn capture(world: &World, equal: bool) -> Captured {
    let producer = world.lane(world.first, Blocks::No);
    let stream = match equal {
        true => producer,
        false => world.lane(world.first, Blocks::No),
    };
    let (owner, log) = written(world, device_memory(world.driver.api), producer);
    world.driver.begin_capture(stream.handle, GLOBAL).unwrap();
    let tensor = export(world, owner, stream);
    let graph = world.driver.end_capture(stream.handle);
    Captured {
        stream,
        tensor,
        log,
        graph: graph.expect("the capture is whole"),
    }
}

/// Each driver, and each way into a graph.
fn everywhere(body: impl Fn(&World, bool)) {
    for api in BOTH {
        for equal in [false, true] {
            body(&World::new(api), equal);
        }
    }
}

/// Whichever order their owners wait in.
#[test]
fn a_graph_that_is_deleted_lets_go_of_all_that_it_read() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let owners = [(); 4].map(|()| written(&world, device_memory(api), producer));
        world.driver.begin_capture(producer.handle, GLOBAL).unwrap();
        let logs = owners.map(|(owner, log)| {
            drop(export(&world, owner, producer));
            log
        });
        let graph = world.driver.end_capture(producer.handle).unwrap();
        assert_eq!((collect(), captured()), (0, 4));
        world.driver.destroy_graph(graph).unwrap();
        assert_eq!((collect(), captured()), (0, 0));
        logs.iter().for_each(|log| assert_over(&world, log));
    }
}

#[expect(unsafe_code, reason = "frees what graphs have read")]
fn forget_graphs() {
    // SAFETY: no graph is launched any more.
    unsafe { dlpack_core::stream::release_captured() };
}

/// `g = torch.cuda.CUDAGraph(); ..; g.replay(); del g`: nobody has to say anything.
#[test]
fn a_graph_that_is_deleted_lets_go_of_what_it_read() {
    everywhere(|world, equal| {
        let found = capture(world, equal);
        let driver = world.driver;
        drop(found.tensor);
        // PyTorch keeps what can be launched alone.
        let executable = driver.instantiate(found.graph).unwrap();
        driver.destroy_graph(found.graph).unwrap();
        for _ in 0..3 {
            driver.launch(executable, found.stream.handle).unwrap();
            collect();
            assert_eq!((found.log.drops(), captured()), (0, 1));
        }
        driver.destroy_executable(executable).unwrap();
        assert_eq!((found.log.drops(), captured()), (0, 0), "nobody has looked");
        assert_over(world, &found.log);
        assert_eq!(world.sim.live(USER_OBJECTS), 0);
    });
}

/// A launch goes on when its graph is deleted.
#[test]
fn a_graph_that_is_deleted_at_work_lets_go_when_it_is_done() {
    everywhere(|world, equal| {
        let found = capture(world, equal);
        let driver = world.driver;
        drop(found.tensor);
        world.sim.switch("slow", true);
        let other = world.lane(world.first, Blocks::No);
        let executable = driver.instantiate(found.graph).unwrap();
        driver.destroy_graph(found.graph).unwrap();
        world.order(found.stream, other);
        driver.launch(executable, other.handle).unwrap();
        driver.destroy_executable(executable).unwrap();
        if driver.api == Api::Cuda {
            collect();
            assert_eq!(found.log.drops(), 0, "it is being read");
            driver.synchronize_stream(other.handle).unwrap();
        }
        // HIP lets go at once, and waits for the device then.
        assert_over(world, &found.log);
    });
}

/// What else the consumer did with the tensor, outside of the graph, was on a stream that could not be asked for its number.
#[test]
fn an_export_to_the_stream_frees_what_its_graph_has_let_go_of_where_that_is_the_producers_own() {
    for equal in [false, true] {
        let world = World::new(Api::Cuda);
        let found = capture(&world, equal);
        drop(found.tensor);
        world.driver.destroy_graph(found.graph).unwrap();
        assert_eq!(found.log.drops(), 0);
        let producer = world.lane(world.first, Blocks::No);
        let (owner, next) = written(&world, device_memory(Api::Cuda), producer);
        drop(export(&world, owner, found.stream));
        sweep_all();
        assert_eq!(found.log.drops(), usize::from(equal));
        for log in [&found.log, &next] {
            assert_over(&world, log);
        }
    }
}

/// The consumer keeps its array longer than the graph, and goes on with it.
#[test]
fn a_tensor_that_outlives_its_graph_waits_for_its_consumer_alone() {
    everywhere(|world, equal| {
        let found = capture(world, equal);
        world.driver.destroy_graph(found.graph).unwrap();
        let address = found.tensor.view().as_ptr().expose_provenance();
        world.read(found.stream, address);
        drop(found.tensor);
        assert_eq!(captured(), 0);
        assert_over(world, &found.log);
    });
}

/// Each one lets go at its own time.
#[test]
fn two_graphs_that_read_one_owner_hold_it_both() {
    everywhere(|world, equal| {
        let found = capture(world, equal);
        let second = world.lane(world.first, Blocks::No);
        // The first tensor is exported once more, into another capture.
        world.driver.begin_capture(second.handle, GLOBAL).unwrap();
        let again = found.tensor.into_dlpack_with(&asking(number(second)));
        drop(again.unwrap());
        let graph = world.driver.end_capture(second.handle).unwrap();
        world.driver.destroy_graph(graph).unwrap();
        collect();
        assert_eq!((found.log.drops(), captured()), (0, 1), "of the first one");
        world.driver.destroy_graph(found.graph).unwrap();
        assert_over(world, &found.log);
    });
}

#[test]
fn a_capture_that_breaks_lets_go() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let [stream, joined] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
        let (owner, log) = written(&world, device_memory(api), producer);
        world.driver.begin_capture(stream.handle, RELAXED).unwrap();
        let address = owner.address;
        drop(export(&world, owner, stream));
        // It never comes back.
        world.order(stream, joined);
        world.read(joined, address);
        assert_eq!((log.drops(), captured()), (0, 1));
        assert!(world.driver.end_capture(stream.handle).is_err());
        assert_eq!(captured(), 0);
        assert_over(&world, &log);
    }
}

/// A capture that is broken already becomes no graph that could hold anything.
#[test]
fn a_capture_that_is_broken_is_asked_for_no_graph() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let stream = world.lane(world.first, Blocks::No);
        let (owner, log) = written(&world, device_memory(api), producer);
        world.driver.begin_capture(stream.handle, RELAXED).unwrap();
        world.driver.synchronize_stream(stream.handle).unwrap_err();
        drop(owner.into_dlpack_with(&asking(number(stream))).unwrap());
        assert_eq!((captured(), world.sim.live(USER_OBJECTS)), (1, 0));
        world.driver.end_capture(stream.handle).unwrap_err();
        forget_graphs();
        assert_over(&world, &log);
    }
}

/// Who cannot be told keeps the owner until somebody says so.
#[test]
fn a_driver_without_user_objects_leaves_the_end_to_the_user() {
    let calls = [
        ("cuStreamGetCaptureInfo_v2", "hipStreamGetCaptureInfo_v2"),
        ("cuUserObjectCreate", "hipUserObjectCreate"),
        ("cuGraphRetainUserObject", "hipGraphRetainUserObject"),
    ];
    for (cuda, hip) in calls {
        for code in [801, 719] {
            everywhere(|world, equal| {
                let failing = match world.driver.api {
                    Api::Cuda => cuda,
                    Api::Hip => hip,
                };
                world.sim.fail(failing, 1, code);
                let found = capture(world, equal);
                drop(found.tensor);
                world.driver.destroy_graph(found.graph).unwrap();
                collect();
                assert_eq!((found.log.drops(), captured()), (0, 1), "{failing}");
                assert_eq!(world.sim.live(USER_OBJECTS), 0);
                forget_graphs();
                assert_over(world, &found.log);
            });
        }
    }
}

/// Whoever says so too early for the driver is right all the same: no graph is launched any more.
#[test]
fn graphs_that_nobody_launches_again_may_stay() {
    everywhere(|world, equal| {
        let found = capture(world, equal);
        drop(found.tensor);
        let other = world.lane(world.first, Blocks::No);
        let executable = world.driver.instantiate(found.graph).unwrap();
        world.order(found.stream, other);
        world.driver.launch(executable, other.handle).unwrap();
        assert_eq!(captured(), 1);
        forget_graphs();
        assert_over(world, &found.log);
        world.driver.destroy_executable(executable).unwrap();
        world.driver.destroy_graph(found.graph).unwrap();
        assert_over(world, &found.log);
    });
}

/// The driver's own thread must call no driver, and whoever is dropped may: a slice of `cudarc` does.
#[test]
fn no_owner_is_dropped_by_the_thread_that_ends_a_graph() {
    everywhere(|world, equal| {
        let found = capture(world, equal);
        drop(found.tensor);
        world.sim.forget_calls();
        world.driver.destroy_graph(found.graph).unwrap();
        let ended = ["cuGraphDestroy", "hipGraphDestroy"];
        assert_eq!(
            world.sim.call_names(),
            [ended[usize::from(world.driver.api == Api::Hip)]]
        );
        assert_over(world, &found.log);
    });
}

/// Graphs end on threads of the driver's while others export, drop and look.
#[test]
fn many_threads_capture_and_delete_graphs_at_once() {
    for api in BOTH {
        let world = World::new(api);
        // What one thread waited for, another one knows by the lock of the list.
        world.sim.switch("hand-over", true);
        let (driver, first) = (world.driver, world.first);
        let producer = world.lane(world.first, Blocks::No);
        let threads: Vec<_> = (0..6)
            .map(|_| {
                let consumer = world.lane(world.first, Blocks::No);
                let owners: Vec<_> = (0..40)
                    .map(|_| written(&world, device_memory(api), producer))
                    .collect();
                thread::spawn(move || {
                    hand_over();
                    if api == Api::Cuda {
                        driver.set_current(first).unwrap();
                    }
                    let (stream, mut logs) = (consumer.handle, Vec::new());
                    for (turn, (owner, log)) in owners.into_iter().enumerate() {
                        let (address, request) = (owner.address, asking(number(consumer)));
                        // Some read in order, and look after the others on the way.
                        let captures = turn % 4 != 0;
                        if captures {
                            driver.begin_capture(stream, THREAD_LOCAL).unwrap();
                        }
                        let mut tensor = Some(owner.into_dlpack_with(&request).unwrap());
                        driver.read(stream, address, 8);
                        if turn % 4 != 1 {
                            drop(tensor.take());
                        }
                        if captures {
                            let graph = driver.end_capture(stream).unwrap();
                            let executable = driver.instantiate(graph).unwrap();
                            driver.destroy_graph(graph).unwrap();
                            driver.launch(executable, stream).unwrap();
                            driver.destroy_executable(executable).unwrap();
                        }
                        assert!(captured() <= 6);
                        sweep_all();
                        logs.push(log);
                    }
                    logs
                })
            })
            .collect();
        let logs: Vec<_> = threads
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect();
        let early = logs.iter().filter(|log| log.drops() == 1).count();
        assert!(api == Api::Hip || early > 40, "{early} on the way");
        for log in &logs {
            assert_over(&world, log);
        }
        assert_eq!(world.sim.live(USER_OBJECTS), 0);
    }
}
