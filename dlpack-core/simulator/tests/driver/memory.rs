//! Allocations, frees and copies.

use crate::simulator::{ALLOCATIONS, Api, BOTH, Sim};

#[test]
fn a_free_in_stream_order_races_with_unordered_work() {
    for api in BOTH {
        for waits in [false, true] {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let (producer, consumer) = (driver.non_blocking(), driver.non_blocking());
            let memory = driver.alloc_async(8, producer);
            driver.order(producer, consumer);
            driver.read(consumer, memory, 8);
            if waits {
                driver.order(consumer, producer);
            }
            assert_eq!(driver.free_async(memory, producer), Ok(()));
            if waits {
                sim.assert_clean();
            } else {
                sim.assert_one_fault(&["race: free", "FreeAsync", "read"]);
            }
        }
    }
}

#[test]
fn memory_of_a_stream_needs_a_wait_on_other_streams() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let (here, there) = (cuda.non_blocking(), cuda.non_blocking());
    let memory = cuda.alloc_async(8, here);
    cuda.read(there, memory, 8);
    sim.assert_one_fault(&["race: read", "allocation"]);
}

#[test]
fn an_access_after_a_free_uses_freed_memory() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let stream = cuda.non_blocking();
    let memory = cuda.alloc_async(8, stream);
    assert_eq!(sim.live(ALLOCATIONS), 1);
    assert_eq!(cuda.free_async(memory, stream), Ok(()));
    assert_eq!(sim.live(ALLOCATIONS), 0);
    cuda.read(stream, memory, 8);
    sim.assert_one_fault(&["use after free: read", "after free", "cuMemFreeAsync"]);
}

#[test]
fn an_access_that_does_not_wait_for_a_free_races() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let (here, there) = (cuda.non_blocking(), cuda.non_blocking());
    let memory = cuda.alloc_async(8, here);
    cuda.order(here, there);
    assert_eq!(cuda.free_async(memory, here), Ok(()));
    cuda.read(there, memory, 8);
    sim.assert_one_fault(&["race: read", "free"]);
}

#[test]
fn a_plain_free_waits_for_the_device() {
    for api in BOTH {
        for managed in [false, true] {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let memory = if managed {
                driver.alloc_managed(8)
            } else {
                driver.alloc(8)
            };
            driver.write(driver.non_blocking(), memory, 8);
            assert_eq!(driver.free(memory), Ok(()));
            sim.assert_clean();
            sim.host_read(memory, 8);
            sim.assert_one_fault(&["use after free"]);
        }
    }
}

#[test]
fn a_plain_free_of_ordered_memory_waits_for_nothing() {
    for waits in [false, true] {
        let sim = Sim::new(1);
        let cuda = sim.cuda();
        let stream = cuda.non_blocking();
        let memory = cuda.alloc_async(8, stream);
        if waits {
            assert_eq!(cuda.synchronize_stream(stream), Ok(()));
        }
        assert_eq!(cuda.free(memory), Ok(()));
        if waits {
            sim.assert_clean();
        } else {
            sim.assert_one_fault(&["race: free by host thread 1 (cuMemFree_v2)"]);
        }
    }
}

#[test]
fn a_plain_free_does_not_wait_for_another_device() {
    let sim = Sim::new(2);
    let cuda = sim.cuda();
    let memory = cuda.alloc(8);
    let (here, there) = (sim.current_context(), cuda.retain(1).unwrap());
    cuda.set_current(there).unwrap();
    cuda.enable_peer(here).unwrap();
    cuda.read(0, memory, 8);
    assert_eq!(cuda.free(memory), Ok(()));
    sim.assert_one_fault(&["race: free"]);
    assert_eq!(cuda.release(1), Ok(()));
}

#[test]
fn pinned_memory_is_freed_at_once_by_cuda_and_after_the_device_by_hip() {
    for api in BOTH {
        let sim = Sim::new(1);
        let driver = sim.driver(api);
        let memory = driver.alloc_pinned(8);
        driver.write(driver.non_blocking(), memory, 8);
        assert_eq!(driver.free(memory), Err(1), "which is not its free");
        assert_eq!(driver.free_pinned(memory), Ok(()));
        match api {
            Api::Cuda => sim.assert_one_fault(&["race: free", "cuMemFreeHost"]),
            Api::Hip => sim.assert_clean(),
        }
    }
}

#[test]
fn wrong_frees_are_refused() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let hip = sim.hip();
    let memory = cuda.alloc(8);
    assert_eq!(hip.free(memory), Err(1));
    assert_eq!(cuda.free(memory + 4), Err(1));
    assert_eq!(cuda.free(memory), Ok(()));
    assert_eq!(cuda.free(memory), Err(1));
    assert_eq!(cuda.free(0), Ok(()));
    let faults = sim.faults();
    let expected = ["of the other driver", "was not allocated", "already freed"];
    assert_eq!(faults.len(), expected.len(), "{faults:?}");
    for (fault, words) in faults.iter().zip(expected) {
        assert!(fault.contains(words), "{fault}");
    }
}

#[test]
fn an_access_beyond_a_block_is_a_fault() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(8);
    assert_eq!(cuda.kernel(0, memory + 4, 8, false), Err(1));
    sim.assert_one_fault(&["bytes 4..12", "a block of 8"]);
    let of_the_program = [0_u8; 8];
    let address = of_the_program.as_ptr().expose_provenance();
    assert_eq!(cuda.kernel(0, address, 8, false), Err(1));
    assert_eq!(cuda.copy_on_device(address, memory, 8, 0), Err(1));
    assert_eq!(sim.faults().len(), 3);
}

#[test]
fn copies_move_their_bytes_and_count_as_accesses() {
    for api in BOTH {
        let sim = Sim::new(1);
        let driver = sim.driver(api);
        let stream = driver.non_blocking();
        let (first, second) = (driver.alloc(4), driver.alloc(4));
        assert_eq!(driver.copy_to_device(first, &[1, 2, 3, 4], stream), Ok(()));
        assert_eq!(driver.copy_on_device(second, first, 4, stream), Ok(()));
        sim.assert_clean();
        let other = driver.non_blocking();
        assert_eq!(driver.copy_on_device(first, second, 4, other), Ok(()));
        // This write races with the first copy, and with the read of the second: each ran on another stream.
        assert_eq!(sim.faults().len(), 2, "{:?}", sim.faults());
        let mut back = [0; 4];
        assert_eq!(driver.copy_to_host(&mut back, second, stream), Ok(()));
        assert_eq!(back, [1, 2, 3, 4]);
    }
}

#[test]
fn a_copy_to_the_host_is_complete_when_the_host_has_waited() {
    for api in BOTH {
        for (pinned, waits) in [(false, false), (false, true), (true, false), (true, true)] {
            let sim = Sim::new(1);
            let driver = sim.driver(api);
            let stream = driver.non_blocking();
            let memory = driver.alloc(4);
            driver.write(stream, memory, 4);
            let mut pageable = [0; 4];
            let to = if pinned {
                driver.alloc_pinned(4)
            } else {
                pageable.as_mut_ptr().expose_provenance()
            };
            assert_eq!(driver.copy_to_address(to, memory, 4, stream), Ok(()));
            if waits {
                assert_eq!(driver.synchronize_stream(stream), Ok(()));
            }
            sim.host_read(to, 4);
            if waits {
                sim.assert_clean();
            } else {
                sim.assert_one_fault(&["race", "by host thread 1", "DtoHAsync"]);
            }
        }
    }
}

#[test]
fn a_synchronous_copy_is_complete() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let memory = cuda.alloc(4);
    let mut host = [0; 4];
    cuda.write(cuda.blocking(), memory, 4);
    assert_eq!(cuda.copy_to_host_and_wait(&mut host, memory), Ok(()));
    sim.host_read(host.as_ptr().expose_provenance(), 4);
    sim.host_write(memory, 4);
    sim.assert_clean();
}

#[test]
fn addresses_are_not_reused() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let mut seen = Vec::new();
    for _ in 0..20 {
        let memory = cuda.alloc(64);
        assert_eq!(cuda.free(memory), Ok(()));
        assert!(!seen.contains(&memory));
        seen.push(memory);
    }
}
