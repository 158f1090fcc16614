//! The list of waiting owners, in child processes: its limits in a process without captures, its state after a fork, and its
//! state at the exit.

use core::time::Duration;
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Instant;

use dlpack_core::stream::{collect, collect_in_background, limit, retained, sweep_all};
use dlpack_core::{DLPack, Descriptor, Device, Error, Loan, Parts};

use crate::collector;
use crate::forks;
use crate::memory::{BYTES, Blocks, Log, Owner, World};
use crate::second_device;
use crate::simulator::{Api, BOTH, EVENTS, RELAXED};
use crate::tensors::{assert_over, device_memory, number, request_on, written};
use crate::torch::from_dlpack;

const CASE: &str = "DLPACK_TEST_CASE";

/// Runs a case of `run_case_in_child_process`. Returns its output.
#[track_caller]
pub(crate) fn process(case: &str) -> String {
    let test = std::env::current_exe().expect("a test knows its own file");
    let output = Command::new(test)
        .args([
            "--exact",
            "processes::run_case_in_child_process",
            "--nocapture",
        ])
        .env(CASE, case)
        .output()
        .expect("a test can be started");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{case}: {}\n{text}", output.status);
    text
}

#[test]
fn run_case_in_child_process() {
    match std::env::var(CASE).as_deref() {
        Ok("owners") => BOTH.into_iter().for_each(many_owners),
        Ok("captures") => BOTH.into_iter().for_each(many_owners_after_a_capture),
        Ok("limit") => BOTH.into_iter().for_each(a_limit),
        Ok("bytes") => BOTH.into_iter().for_each(much_memory),
        Ok("fork") => forks::a_fork(),
        Ok("exit") => an_exit(),
        Ok("wakes") => a_collector_that_wakes(),
        Ok("back") => owners_that_are_put_back(),
        Ok("child") => forks::a_child_with_its_own_driver(),
        Ok("loaded") => forks::a_child_with_its_parents_driver(),
        Ok("named") => collector::of_a_named_stream(),
        Ok("too-many") => collector::of_too_many(),
        Ok("capture") => collector::after_a_capture(),
        Ok("graph") => collector::after_a_graph(),
        Ok("blocking") => collector::many_owners_after_a_blocking_capture(),
        Ok("lasting") => collector::of_a_context_whose_stream_is_named(),
        Ok("unseen-cuda") => an_unseen_capture(Api::Cuda),
        Ok("unseen-hip") => an_unseen_capture(Api::Hip),
        Ok("second-device") => second_device::host_memory(),
        Ok("gone") => collector::owners_of_contexts_that_may_be_gone(),
        _ => {}
    }
}

#[test]
fn the_collector_works_after_each_change_that_frees_owners() {
    for case in ["named", "too-many", "capture", "graph"] {
        process(case);
    }
}

#[test]
fn after_a_blocking_capture_an_export_records_no_whole_context() {
    process("blocking");
}

#[test]
fn an_export_does_not_retry_contexts_that_cannot_be_recorded() {
    process("gone");
}

#[test]
fn an_export_records_a_context_after_one_of_its_streams() {
    process("lasting");
}

#[test]
fn memory_of_the_host_creates_no_context_of_a_device_that_is_not_used() {
    process("second-device");
}

/// The thread sleeps between the owners, and notices each.
#[test]
fn the_collector_wakes_for_each_owner_and_when_it_is_enabled() {
    process("wakes");
}

fn a_collector_that_wakes() {
    let world = World::new(Api::Cuda);
    let producer = world.lane(world.first, Blocks::No);
    let defer = || {
        world.sim.switch("slow", true);
        let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
        drop(owner.into_dlpack_with(&request_on(None)).unwrap());
        assert_eq!(log.drops(), 0);
        log
    };
    let is_dropped = |log: &Log| {
        world.sim.switch("slow", false);
        let end = Instant::now() + Duration::from_secs(20);
        while log.drops() == 0 && Instant::now() < end {
            sleep(Duration::from_millis(1));
        }
        log.drops() == 1
    };
    let log = defer();
    assert!(!has_collector(), "it is disabled");
    collect_in_background(true);
    assert!(is_dropped(&log) && has_collector(), "it is enabled");
    for turn in 0..3 {
        assert!(is_dropped(&defer()), "turn {turn}");
        // The collector's last sweep finds no work, and it sleeps.
        sleep(Duration::from_millis(300));
    }
    collect_in_background(false);
    let log = defer();
    sleep(Duration::from_millis(300));
    world.sim.switch("slow", false);
    assert_eq!(log.drops(), 0, "it is disabled");
    collect_in_background(true);
    assert!(is_dropped(&log), "it is enabled again");
    let log = defer();
    // The collector now sweeps every 100 ms.
    sleep(Duration::from_millis(300));
    collect_in_background(false);
    sleep(Duration::from_millis(10));
    world.sim.switch("slow", false);
    sleep(Duration::from_millis(200));
    assert_eq!(log.drops(), 0, "it is disabled while it waits");
}

/// Whether the process has the collector's thread.
pub(crate) fn has_collector() -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
    names
        .flatten()
        .any(|name| name.starts_with("dlpack-collec"))
}

/// The collector sees no work while another thread has taken the owners to query their events, and wakes when they are returned.
#[test]
fn owners_that_another_thread_puts_back_wake_the_collector() {
    process("back");
}

fn owners_that_are_put_back() {
    let world = World::new(Api::Cuda);
    world.sim.switch("slow", true);
    let producer = world.lane(world.first, Blocks::No);
    let (owner, log) = written(&world, device_memory(Api::Cuda), producer);
    drop(owner.into_dlpack_with(&request_on(None)).unwrap());
    world.sim.switch("hold-queries", true);
    world.sim.hold();
    let querying = std::thread::spawn(sweep_all);
    world.sim.until_holding();
    collect_in_background(true);
    assert!(!has_collector(), "there is no work for it");
    world.sim.release();
    querying.join().unwrap();
    assert_eq!(log.drops(), 0, "the consumer is at work");
    world.sim.switch("slow", false);
    let end = Instant::now() + Duration::from_secs(20);
    while log.drops() == 0 && Instant::now() < end {
        sleep(Duration::from_millis(1));
    }
    assert_eq!(log.drops(), 1);
}

fn freed(logs: &[Arc<Log>]) -> usize {
    logs.iter().filter(|log| log.drops() == 1).count()
}

#[test]
fn sixty_four_owners_of_unknown_streams_are_freed() {
    process("owners");
}

fn many_owners(api: Api) {
    let world = World::new(api);
    let producer = world.lane(world.first, Blocks::No);
    let mut logs = Vec::new();
    for turn in 1..=64 {
        let consumer = world.lane(world.first, Blocks::No);
        let (tensor, log) = from_dlpack(&world, producer, consumer);
        logs.push(log);
        drop(tensor);
        sweep_all();
        assert_eq!(freed(&logs), 0, "turn {turn}");
    }
    let consumer = world.lane(world.first, Blocks::No);
    let (tensor, log) = from_dlpack(&world, producer, consumer);
    assert_eq!(freed(&logs), 0);
    sweep_all();
    assert_eq!(freed(&logs), 64);
    drop(tensor);
    assert_over(&world, &log);
}

#[test]
fn after_a_capture_an_export_records_no_whole_context() {
    process("captures");
}

/// A process that has captured once may be capturing on any stream, and recording a context breaks such a capture.
fn many_owners_after_a_capture(api: Api) {
    let world = World::new(api);
    let [producer, pool] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    let (owner, graph_log) = written(&world, device_memory(api), producer);
    world.driver.begin_capture(pool.handle, RELAXED).unwrap();
    drop(owner.into_dlpack_with(&request_on(number(pool))).unwrap());
    let graph = world.driver.end_capture(pool.handle).unwrap();
    let mut logs = Vec::new();
    for turn in 1..=70 {
        let consumer = world.lane(world.first, Blocks::No);
        let (tensor, log) = from_dlpack(&world, producer, consumer);
        logs.push(log);
        drop(tensor);
        sweep_all();
        assert_eq!(freed(&logs), 0, "turn {turn}");
    }
    assert_eq!(collect(), 0);
    assert_eq!(freed(&logs), 70);
    world.driver.destroy_graph(graph).unwrap();
    assert_over(&world, &graph_log);
}

#[test]
fn an_unseen_capture_is_broken_once() {
    for case in ["unseen-cuda", "unseen-hip"] {
        process(case);
    }
}

/// Another library captures, and no export takes part. Core cannot ask for that: the first export that records whole contexts
/// makes one attempt, which breaks the capture. From then on no export makes another.
fn an_unseen_capture(api: Api) {
    let world = World::new(api);
    let [producer, consumer] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    // Its context is tried before that of unknown streams.
    let [pool, beside] = [(); 2].map(|()| world.lane(world.second, Blocks::No));
    let mut logs = Vec::new();
    let mut attempts = Vec::new();
    for _ in 0..2 {
        let begun = world.within(world.second, |driver| {
            driver.begin_capture(pool.handle, RELAXED)
        });
        assert_eq!(begun, Ok(()));
        for turn in 0..70 {
            let number = if turn == 0 { number(beside) } else { Some(-1) };
            let (owner, log) = written(&world, device_memory(api), producer);
            drop(owner.into_dlpack_with(&request_on(number)).unwrap());
            logs.push(log);
        }
        world.sim.forget_calls();
        let (owner, log) = written(&world, device_memory(api), producer);
        let tensor = owner.into_dlpack_with(&request_on(number(consumer)));
        drop(tensor.unwrap());
        logs.push(log);
        let calls = world.sim.call_names();
        let names = ["cuCtxRecordEvent", "hipDeviceSynchronize"];
        let records = calls.iter().filter(|name| names.contains(&name.as_str()));
        attempts.push(records.count());
        // Nor does a later one look at the owners.
        let looked = calls.iter().any(|name| name.contains("ThreadExchange"));
        assert_eq!(looked, attempts.len() == 1);
        match world.within(world.second, |driver| driver.end_capture(pool.handle)) {
            Ok(graph) => world.driver.destroy_graph(graph).unwrap(),
            Err(code) => assert_eq!((code, attempts.len()), (901, 1)),
        }
    }
    assert_eq!(attempts, [1, 0]);
    collect();
    collect();
    logs.iter().for_each(|log| assert_over(&world, log));
}

/// Unordered requests after a capture leave owners whose streams cannot be queried. Their number is limited, and the error says
/// so.
#[test]
fn an_export_is_refused_if_too_many_owners_wait() {
    process("limit");
}

fn a_limit(api: Api) {
    let world = World::new(api);
    let [producer, pool] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    world.driver.begin_capture(pool.handle, RELAXED).unwrap();
    let (owner, graph_log) = written(&world, device_memory(api), producer);
    drop(owner.into_dlpack_with(&request_on(number(pool))).unwrap());
    let graph = world.driver.end_capture(pool.handle).unwrap();
    world.driver.destroy_graph(graph).unwrap();
    collect();
    // Where streams have IDs, owners whose stream is named again do not count.
    limit(3, usize::MAX);
    let consumer = world.lane(world.first, Blocks::No);
    for turn in 0..if api == Api::Cuda { 10 } else { 0 } {
        let (owner, _) = written(&world, device_memory(api), producer);
        let tensor = owner.into_dlpack_with(&request_on(number(consumer)));
        drop(tensor.unwrap_or_else(|error| panic!("turn {turn}: {error}")));
    }
    assert_eq!(collect(), 0);
    let bytes = BYTES as u64;
    for (owners, most, expected) in [(100, usize::MAX, 100), (usize::MAX, 30 * BYTES, 30)] {
        limit(owners, most);
        let mut logs = Vec::new();
        let refused = loop {
            let (owner, log) = written(&world, device_memory(api), producer);
            match owner.into_dlpack_with(&request_on(Some(-1))) {
                Ok(tensor) => drop(tensor),
                Err(error) => break (error, log),
            }
            logs.push(log);
            sweep_all();
            assert!(logs.len() < 200, "there is no limit");
        };
        assert_eq!((freed(&logs), logs.len()), (0, expected));
        let kept = retained();
        assert_eq!(
            (kept.owners, kept.open, kept.captured),
            (expected, expected, 0)
        );
        assert_eq!(kept.bytes as u64, expected as u64 * bytes);
        let (owners, bytes) = (kept.owners, kept.bytes);
        assert_eq!(refused.0, Error::TooManyWait { owners, bytes });
        assert_eq!(refused.1.drops(), 1);
        assert_eq!(collect(), 0);
        let (owner, log) = written(&world, device_memory(api), producer);
        drop(owner.into_dlpack_with(&request_on(Some(-1))).unwrap());
        logs.extend([log, refused.1]);
        logs.iter().for_each(|log| assert_over(&world, log));
    }
    limit(1 << 20, usize::MAX);
    assert_over(&world, &graph_log);
}

#[test]
fn owners_of_256_mb_of_unknown_streams_are_freed() {
    process("bytes");
}

/// A tensor with this many rows, all of which are the same memory.
struct Rows(Owner, i64);

impl DLPack for Rows {
    #[expect(unsafe_code, reason = "lends memory by its address")]
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let start = core::ptr::with_exposed_provenance_mut::<u8>(self.0.address);
        // SAFETY: the bytes are allocated, and are freed with the owner.
        let loan = unsafe { Loan::from_raw_parts_mut(start, BYTES, self.0.kind.device()) };
        let row = i64::try_from(BYTES).expect("a small number");
        let parts = Parts::new().shape([self.1, row]).strides([0, 1]);
        parts
            .stream(self.0.named_stream.expect("it names a stream"))
            .describe(loan)
    }
}

fn much_memory(api: Api) {
    let rows = (1 << 28) / i64::try_from(BYTES).expect("a small number");
    for (rows, expected) in [(rows - 1, 0), (rows, 1)] {
        let world = World::new(api);
        let producer = world.lane(world.first, Blocks::No);
        let [consumer, other] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
        let (owner, log) = written(&world, device_memory(api), producer);
        let address = owner.address;
        let tensor = Rows(owner, rows).into_dlpack_with(&request_on(number(consumer)));
        world.read(consumer, address);
        drop(tensor.expect("it can be exported"));
        let (tensor, next) = from_dlpack(&world, producer, other);
        sweep_all();
        assert_eq!(log.drops(), expected, "{rows} rows");
        drop(tensor);
        assert_over(&world, &log);
        assert_over(&world, &next);
    }
}

#[test]
fn owners_that_wait_at_exit_are_not_dropped() {
    let output = process("exit");
    assert!(output.contains("it waits"), "{output}");
    assert!(!output.contains("it is freed"), "{output}");
}

/// Prints a text when it is dropped.
struct PrintsDrop(Owner);

impl DLPack for PrintsDrop {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.0.describe()
    }
}

impl Drop for PrintsDrop {
    fn drop(&mut self) {
        eprintln!("it is freed");
    }
}

fn an_exit() {
    let world = World::new(Api::Cuda);
    let [producer, consumer] = [(); 2].map(|()| world.lane(world.first, Blocks::No));
    let (owner, _) = written(&world, device_memory(Api::Cuda), producer);
    drop(
        PrintsDrop(owner)
            .into_dlpack_with(&request_on(number(consumer)))
            .expect("it can be exported"),
    );
    assert_eq!(world.sim.live(EVENTS), 0);
    eprintln!("it waits on {}", Device::cuda(0));
    // The exit of a program, which does not collect, unlike the end of a test.
    std::process::exit(0);
}
