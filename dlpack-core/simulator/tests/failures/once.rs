//! Failures of driver calls that core makes once in a process.

use std::process::Command;
use std::sync::Arc;

use dlpack_core::{DLPack, Error, ExportRequest, Managed};

use crate::allocator::with_budget;
use crate::memory::{Blocks, Log, Owner, World};
use crate::simulator::{ALLOCATIONS, Api, EVENTS};
use crate::{CODE, Way, handle_of};

/// The call that fails in the child process.
const CASE: &str = "DLPACK_TEST_CASE";

#[test]
fn calls_that_are_made_once_in_a_process_fail() {
    for entry in [
        "cuInit",
        "hipInit",
        "cuDeviceGet",
        "cuDevicePrimaryCtxRetain",
        "cu, without memory",
        "hip, without memory",
    ] {
        let test = std::env::current_exe().expect("a test knows its own file");
        let output = Command::new(test)
            .args(["--exact", "once::in_a_process_of_its_own", "--nocapture"])
            .env(CASE, entry)
            .output()
            .expect("a test can be started");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{entry}:\n{text}");
    }
}

fn no_memory(result: Result<Managed, Error>) {
    assert!(
        matches!(result, Err(Error::OutOfMemory { .. })),
        "{result:?}"
    );
}

#[test]
fn in_a_process_of_its_own() {
    let Ok(entry) = std::env::var(CASE) else {
        return;
    };
    let api = match entry.starts_with("hip") {
        true => Api::Hip,
        false => Api::Cuda,
    };
    let world = World::new(api);
    let kind = Way::Event.kind(api);
    let producer = world.lane(world.first, Blocks::No);
    let address = world.alloc(kind);
    let new_owner = |log: &Arc<Log>| Owner {
        driver: world.driver,
        kind,
        address,
        named_stream: Some(handle_of(producer)),
        freed_on: producer,
        written: None,
        immediate: false,
        log: Arc::clone(log),
    };
    let request = ExportRequest {
        // The number of the stream for which the primary context of the device is needed.
        stream: Some(i64::from(api == Api::Cuda)),
        ..ExportRequest::versioned()
    };
    let log = Arc::<Log>::default();
    let owner = Arc::new(new_owner(&log));
    let export = || -> Result<Managed, Error> { owner.to_dlpack_with(&request) };
    if entry.ends_with("memory") {
        let unordered = ExportRequest {
            stream: Some(-1),
            ..request
        };
        let kept = Arc::<Log>::default();
        let reader = Arc::new(new_owner(&kept));
        let read = || reader.to_dlpack_with(&unordered);
        // Allocations of the block, of the liveness flag of the stream, and of the list of streams.
        (0..3).for_each(|budget| no_memory(with_budget(budget, read)));
        let tensor = with_budget(3, read).unwrap();
        drop(reader);
        with_budget(0, || drop(tensor));
        assert_eq!(kept.drops(), 0, "its consumer cannot be awaited");
        // Allocations of the block and of the driver's table.
        no_memory(with_budget(0, export));
        no_memory(with_budget(1, export));
        assert_eq!(dlpack_core::stream::available(kind.device()), Ok(()));
        let asks = 1 + usize::from(api == Api::Cuda);
        (0..asks).for_each(|budget| no_memory(with_budget(budget, export)));
        drop(with_budget(asks, export).unwrap());
    } else {
        world.sim.fail(&entry, 1, CODE);
        if !entry.ends_with("Init") {
            // The first call is for the producer's context, which is optional.
            world.sim.fail(&entry, 2, CODE);
        }
        let failed = export().unwrap_err();
        assert!(
            matches!(&failed, Error::DriverFailed { call, code: CODE, .. } if *call == entry),
            "{failed:?}"
        );
        // The device may be ready at a later call.
        drop(export().unwrap());
    }
    drop(owner);
    assert_eq!(dlpack_core::stream::collect(), 0);
    assert_eq!(log.drops(), 1);
    world.sim.assert_clean();
    assert_eq!(world.sim.live(EVENTS), 0);
    assert_eq!(world.sim.live(ALLOCATIONS), 0);
}
