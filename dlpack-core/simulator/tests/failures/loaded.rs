//! Which copy of a driver core uses if there are several, and what it does without devices.
#![expect(
    unsafe_code,
    reason = "opens libraries, and lends memory by its address"
)]

use core::sync::atomic::{AtomicUsize, Ordering};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use dlpack_core::{DLPack, Descriptor, Device, Error, ExportRequest, Loan, Parts, stream};
use libloading::Library;

use crate::memory::{BYTES, Blocks, Kind, World};
use crate::simulator::{Api, Sim, library_path};
use crate::{CODE, Owner, handle_of};

/// The folder in which the child process finds two copies.
const COPIES: &str = "DLPACK_TEST_COPIES";
/// Core looks for the first name first.
const NAMES: [&str; 2] = ["libamdhip64.so", "libamdhip64.so.6"];

/// Runs one test in a child process.
fn alone(program: &Path, test: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture"]);
    command
}

/// Two copies of a run-time library do not know each other's streams, so core must use the one that the program uses.
#[test]
fn the_copy_that_the_program_has_loaded_is_taken() {
    let test = std::env::current_exe().expect("a test knows its own file");
    let folder = test.with_extension(format!("copies-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in NAMES {
        std::fs::copy(library_path(), folder.join(name)).unwrap();
    }
    let output = alone(&test, "loaded::in_a_process_with_two_copies")
        .env("LD_LIBRARY_PATH", &folder)
        .env(COPIES, &folder)
        .env_remove("DLPACK_LIBAMDHIP64")
        .output()
        .expect("a test can be started");
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[test]
fn in_a_process_with_two_copies() {
    let Some(folder) = std::env::var_os(COPIES).map(PathBuf::from) else {
        return;
    };
    // SAFETY: the initialiser of the library is that of Rust's standard library.
    let open = |name: &str| unsafe { Library::new(folder.join(name)) }.unwrap();
    let loaded = open(NAMES[1]);
    assert_eq!(stream::available(Device::rocm(0)), Ok(()));
    let calls = |library: &Library| {
        // SAFETY: these are the types of the simulator's function, which accepts a null buffer.
        let calls = unsafe { library.get::<extern "C" fn(usize, usize) -> usize>(b"sim_calls\0") };
        calls.unwrap()(0, 0)
    };
    assert!(calls(&loaded) > 0, "what is loaded was asked");
    assert_eq!(calls(&open(NAMES[0])), 0, "and nothing else");
}

/// The case of the child process.
const CASE: &str = "DLPACK_TEST_DEVICE";

#[test]
fn a_missing_or_late_device_causes_no_leak_and_no_race() {
    for case in ["none", "late", "twice"] {
        let test = std::env::current_exe().expect("a test knows its own file");
        let output = alone(&test, "loaded::in_a_process_with_such_a_device")
            .env(CASE, case)
            .output()
            .expect("a test can be started");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{case}:\n{text}");
    }
}

/// Memory that is not accessed.
struct Bare(Arc<AtomicUsize>, [u8; BYTES]);

impl DLPack for Bare {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let start = self.1.as_ptr().cast_mut();
        // SAFETY: the bytes exist, and no device reads them.
        let loan = unsafe { Loan::from_raw_parts_mut(start, BYTES, Device::cuda(0)) };
        Parts::new().describe(loan)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn request_on(stream: i64) -> ExportRequest {
    ExportRequest {
        stream: Some(stream),
        ..ExportRequest::versioned()
    }
}

#[test]
fn in_a_process_with_such_a_device() {
    match std::env::var(CASE).as_deref() {
        // No work was ever queued on this device.
        Ok("none") => {
            let _sim = Sim::new(0);
            let drops = Arc::<AtomicUsize>::default();
            let bare = Bare(Arc::clone(&drops), [0; BYTES]);
            drop(
                bare.into_dlpack_with(&request_on(-1))
                    .expect("no driver is needed"),
            );
            assert_eq!(drops.load(Ordering::SeqCst), 1);
        }
        // The consumer uses the driver, although core's first attempt to initialise it fails. With "twice" the second attempt, at
        // the drop, fails too, so core cannot know then whether the tensor is still read.
        Ok(case @ ("late" | "twice")) => {
            let world = World::new(Api::Cuda);
            let consumer = world.lane(world.first, Blocks::No);
            let log = Arc::default();
            let owner = Owner {
                driver: world.driver,
                kind: Kind::CudaHost,
                address: world.alloc(Kind::CudaHost),
                named_stream: None,
                freed_on: consumer,
                written: None,
                immediate: false,
                log: Arc::clone(&log),
            };
            let address = owner.address;
            world.sim.fail("cuInit", 1, CODE);
            let number = i64::try_from(consumer.handle).expect("a handle is no large number");
            let tensor = owner
                .into_dlpack_with(&request_on(number))
                .expect("nothing is pending");
            world.read(consumer, address);
            if case == "twice" {
                world.sim.fail("cuInit", 1, CODE);
            }
            drop(tensor);
            assert_eq!(log.drops(), 0, "it is being read");
            assert_eq!(stream::collect(), 0);
            assert_eq!(log.drops(), 1);
            world.sim.assert_clean();
        }
        _ => {}
    }
}

/// Set if the driver has only the older function for the context of a stream, as CUDA 12.4, which fails for streams of green
/// contexts.
const OLDER: &str = "DLPACK_TEST_OLDER";

#[test]
fn streams_of_green_contexts_are_ordered_without_a_query_of_their_context() {
    let test = std::env::current_exe().expect("a test knows its own file");
    let folder = test.with_extension(format!("older-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // The simulator must be in the folder of the test.
    let (moved, path) = (folder.join("test"), library_path());
    std::fs::copy(&test, &moved).unwrap();
    let mut library = std::fs::read(&path).unwrap();
    let (name, other) = (b"cuStreamGetCtx_v2\0", b"cuStreamGetCtx_v0\0");
    let places = 0..library.len() - name.len();
    for at in places
        .filter(|at| library[*at..].starts_with(name))
        .collect::<Vec<_>>()
    {
        library[at..][..other.len()].copy_from_slice(other);
    }
    std::fs::write(folder.join(path.file_name().unwrap()), library).unwrap();
    let output = alone(&moved, "loaded::in_a_process_with_the_older_query")
        .env(OLDER, "yes")
        .output()
        .expect("a test can be started");
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[test]
fn in_a_process_with_the_older_query() {
    if std::env::var_os(OLDER).is_none() {
        return;
    }
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    let consumer = world.lane(world.green, Blocks::No);
    let log = Arc::default();
    let owner = Owner {
        driver: world.driver,
        kind: Kind::Cuda,
        address: world.alloc(Kind::Cuda),
        named_stream: Some(handle_of(producer)),
        freed_on: producer,
        written: None,
        immediate: false,
        log: Arc::clone(&log),
    };
    let address = owner.address;
    world.write(producer, address);
    world.sim.forget_calls();
    let number = i64::try_from(consumer.handle).expect("a handle is no large number");
    let tensor = owner
        .into_dlpack_with(&request_on(number))
        .expect("it is ordered");
    let names = world.sim.call_names();
    assert!(
        names.iter().any(|name| name == "cuStreamGetCtx"),
        "{names:?}"
    );
    world.read(consumer, address);
    drop(tensor);
    assert_eq!(log.drops(), 0, "it is being read");
    stream::collect();
    world
        .within(world.first, |driver| driver.synchronize())
        .unwrap();
    assert_eq!(stream::collect(), 0);
    assert_eq!(log.drops(), 1);
    world.sim.assert_clean();
}
