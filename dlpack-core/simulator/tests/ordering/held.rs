//! What graphs keep: an owner whose data is read in a capture lives as long as the graph can be launched.

use std::sync::Arc;
use std::thread;

use dlpack_core::stream::{captured, collect, sweep_all};
use dlpack_core::{DLPack, Managed};

use crate::memory::{Blocks, Lane, Log, Owner, World};
use crate::simulator::{Api, BOTH, GLOBAL, RELAXED, THREAD_LOCAL, USER_OBJECTS, hand_over};
use crate::tensors::{assert_over, device_memory, number, request_on, written};

/// A tensor that was exported to a capturing stream and used there, and the graph of the capture.
struct Captured {
    stream: Lane,
    tensor: Managed,
    log: Arc<Log>,
    graph: usize,
}

fn export(world: &World, owner: Owner, stream: Lane) -> Managed {
    let address = owner.address;
    let tensor = owner.into_dlpack_with(&request_on(number(stream))).unwrap();
    world.read(stream, address);
    tensor
}

/// The same steps as inside of `torch.cuda.graph`. `equal`: on the producer's own stream.
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

/// Runs `body` for each driver, and for both kinds of capturing streams.
fn everywhere(body: impl Fn(&World, bool)) {
    for api in BOTH {
        for equal in [false, true] {
            body(&World::new(api), equal);
        }
    }
}

/// A kernel with a programmatic dependency gives an edge of the graph data, for which `cuStreamGetCaptureInfo_v2` has no place.
#[test]
fn a_graph_whose_edges_have_data_releases_its_owner() {
    for equal in [false, true] {
        let world = World::new(Api::Cuda);
        let stream = world.lane(world.first, Blocks::No);
        let producer = match equal {
            true => stream,
            false => world.lane(world.first, Blocks::No),
        };
        let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
        let earlier = world.alloc(device_memory(Api::Cuda));
        world.sim.switch("edge-data", true);
        world.driver.begin_capture(stream.handle, GLOBAL).unwrap();
        world.read(stream, earlier);
        drop(export(&world, owner, stream));
        let graph = world.driver.end_capture(stream.handle).unwrap();
        assert_eq!((captured(), log.drops()), (1, 0));
        world.driver.destroy_graph(graph).unwrap();
        world.driver.free(earlier).unwrap();
        assert_over(&world, &log);
    }
}

/// Owners are released in any order of their list.
#[test]
fn a_destroyed_graph_releases_all_its_owners_in_any_order() {
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

/// `g = torch.cuda.CUDAGraph(); ..; g.replay(); del g`: the user need not call core.
#[test]
fn a_destroyed_graph_releases_its_owner() {
    everywhere(|world, equal| {
        let found = capture(world, equal);
        let driver = world.driver;
        drop(found.tensor);
        // PyTorch keeps only the executable graph.
        let executable = driver.instantiate(found.graph).unwrap();
        driver.destroy_graph(found.graph).unwrap();
        for _ in 0..3 {
            driver.launch(executable, found.stream.handle).unwrap();
            collect();
            assert_eq!((found.log.drops(), captured()), (0, 1));
        }
        driver.destroy_executable(executable).unwrap();
        assert_eq!((found.log.drops(), captured()), (0, 0), "no sweep has run");
        assert_over(world, &found.log);
        assert_eq!(world.sim.live(USER_OBJECTS), 0);
    });
}

/// A launch continues when its graph is destroyed.
#[test]
fn a_graph_that_is_destroyed_during_a_launch_releases_after_it() {
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
        // HIP destroys the user object at once, and the free waits for the device.
        assert_over(world, &found.log);
    });
}

/// The owner waits for its graph, and for other uses of the tensor by the consumer. The stream of those could not be queried for
/// its ID, so an export to it frees the owner only if it is the producer's own stream.
#[test]
fn an_export_to_a_captured_stream_frees_only_owners_of_the_same_stream() {
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

/// The consumer keeps its array longer than the graph, and continues to use it.
#[test]
fn a_tensor_that_outlives_its_graph_waits_only_for_its_consumer() {
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

/// Each graph releases the owner when it is destroyed.
#[test]
fn two_graphs_that_read_one_owner_both_keep_it() {
    everywhere(|world, equal| {
        let found = capture(world, equal);
        let second = world.lane(world.first, Blocks::No);
        // The tensor is exported once more, into another capture.
        world.driver.begin_capture(second.handle, GLOBAL).unwrap();
        let again = found.tensor.into_dlpack_with(&request_on(number(second)));
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
fn a_broken_capture_releases_its_owner() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let [stream, joined] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
        let (owner, log) = written(&world, device_memory(api), producer);
        world.driver.begin_capture(stream.handle, RELAXED).unwrap();
        let address = owner.address;
        drop(export(&world, owner, stream));
        // The forked stream never joins the capture again.
        world.order(stream, joined);
        world.read(joined, address);
        assert_eq!((log.drops(), captured()), (0, 1));
        assert!(world.driver.end_capture(stream.handle).is_err());
        assert_eq!(captured(), 0);
        assert_over(&world, &log);
    }
}

/// A broken capture has no graph that could keep an owner.
#[test]
fn a_broken_capture_is_not_queried_for_its_graph() {
    for api in BOTH {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let stream = world.lane(world.first, Blocks::No);
        let (owner, log) = written(&world, device_memory(api), producer);
        world.driver.begin_capture(stream.handle, RELAXED).unwrap();
        world.driver.synchronize_stream(stream.handle).unwrap_err();
        drop(owner.into_dlpack_with(&request_on(number(stream))).unwrap());
        assert_eq!((captured(), world.sim.live(USER_OBJECTS)), (1, 0));
        world.driver.end_capture(stream.handle).unwrap_err();
        forget_graphs();
        assert_over(&world, &log);
    }
}

/// If the driver cannot report the end of a graph, the owner is kept until the user calls `release_captured`.
#[test]
fn without_user_objects_owners_are_kept_until_release_captured() {
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

/// `release_captured` may be called while graphs exist, because its caller guarantees that none is launched again.
#[test]
fn release_captured_may_precede_the_end_of_the_graphs() {
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

/// The driver's thread that destroys a user object must not call the driver, but the drop of an owner may: that of a `cudarc`
/// slice does.
#[test]
fn no_owner_is_dropped_by_the_thread_that_destroys_a_graph() {
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

/// Graphs end on threads of the driver while other threads export, drop and sweep.
#[test]
fn many_threads_capture_and_delete_graphs_at_once() {
    for api in BOTH {
        let world = World::new(api);
        // The lock of the list synchronizes the threads, which the simulator cannot know.
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
                        let (address, request) = (owner.address, request_on(number(consumer)));
                        // Some exports are ordered, and sweep the other owners.
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
