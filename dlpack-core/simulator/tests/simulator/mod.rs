//! Loads the simulator as a driver, and wraps it in Rust functions. Tests include this file as a module.
//!
//! A test begins with `Sim::new`, which waits until no other test uses the simulator, and resets it.
#![allow(unsafe_code, reason = "calls functions by their names")]
#![allow(dead_code, reason = "each test uses only some of it")]

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::Library;

/// The path of the library: cargo puts it in the folder of the tests of its package.
pub(crate) fn library_path() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    let beside = test.parent().expect("a file lies in a directory");
    beside.join(format!("{DLL_PREFIX}dlpack_simulator{DLL_SUFFIX}"))
}

/// Loads the library once, and sets the variables by which core finds it, before any test can make core look for a driver.
fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let path = library_path();
        for variable in ["DLPACK_LIBCUDA", "DLPACK_LIBAMDHIP64"] {
            // SAFETY: each test begins here, and the lock of `OnceLock` stops all others while this runs. No other code of these
            // tests reads the environment.
            unsafe { std::env::set_var(variable, &path) };
        }
        // SAFETY: the initialiser of the library is that of Rust's standard library.
        unsafe { Library::new(&path) }.expect("cargo builds the simulator beside its tests")
    })
}

/// Calls an entry point by its name, with the given C types.
macro_rules! call {
    ($name:expr, ($($value:expr => $type:ty),*) -> $result:ty) => {{
        let name = &$crate::simulator::terminated($name)[..=$name.len()];
        // SAFETY: the types are those of the function of this name in the simulator's `cuda.rs`, `cuda_memory.rs`, `hip.rs` or
        // `control.rs`.
        let entry = unsafe { library().get::<extern "C" fn($($type),*) -> $result>(name) };
        entry.unwrap_or_else(|error| panic!("{}: {error}", $name))($($value),*)
    }};
}

/// A NUL-terminated name, without an allocation.
fn terminated(name: &str) -> [u8; 64] {
    let mut terminated = [0; 64];
    terminated[..name.len()].copy_from_slice(name.as_bytes());
    terminated
}

mod capture;
mod driver;
mod memory;

pub(crate) use driver::Driver;

/// A return code as `Result`: anything but 0 is an error.
pub(crate) type Answer<T = ()> = Result<T, i32>;

fn answer(code: i32) -> Answer {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// The value that an entry point wrote through its output pointer.
fn result(code: i32, place: usize) -> Answer<usize> {
    answer(code).map(|()| place)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Api {
    Cuda,
    Hip,
}

pub(crate) const BOTH: [Api; 2] = [Api::Cuda, Api::Hip];

/// Kinds of `Sim::live`.
pub(crate) const EVENTS: i32 = 0;
pub(crate) const ALLOCATIONS: i32 = 1;
pub(crate) const STREAMS: i32 = 2;
pub(crate) const GRAPHS: i32 = 3;
pub(crate) const USER_OBJECTS: i32 = 4;

/// Modes of captures, and of threads.
pub(crate) const GLOBAL: i32 = 0;
pub(crate) const THREAD_LOCAL: i32 = 1;
pub(crate) const RELAXED: i32 = 2;

/// CUDA's special streams. 0 is the legacy stream of both drivers.
pub(crate) const LEGACY: usize = 1;
pub(crate) const PER_THREAD: usize = 2;

/// The simulator, for one test at a time.
pub(crate) struct Sim {
    _alone: MutexGuard<'static, ()>,
    /// CUDA's primary context of device 0, which `Sim` never releases.
    primary: usize,
    /// Whether the test itself checks disagreements of the oracles.
    may_disagree: AtomicBool,
}

impl Drop for Sim {
    fn drop(&mut self) {
        // Waiting owners must not be dropped in the next test's world. Owners of several contexts need one call for each context.
        if !std::thread::panicking() {
            dlpack_core::stream::collect();
            dlpack_core::stream::collect();
            let (_, disagreements) = verdicts();
            let expected = self.may_disagree.load(Ordering::Relaxed);
            assert!(expected || disagreements.is_empty(), "{disagreements:?}");
        }
    }
}

impl Sim {
    /// Resets the simulator to this many devices. `cuInit` has been called; no context is current.
    pub(crate) fn new(devices: i32) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // The collector's thread would drop owners at any time. Tests sweep by explicit calls instead.
        dlpack_core::stream::collect_in_background(false);
        // Events of the previous world do not exist in the new one.
        dlpack_core::stream::spare_events(true);
        call!("sim_reset", (devices => i32) -> ());
        let mut primary = 0;
        if devices > 0 {
            assert_eq!(call!("cuInit", (0 => u32) -> i32), 0);
            let cuda = Driver { api: Api::Cuda };
            primary = cuda.retain(0).expect("there is a device 0");
        }
        call!("sim_forget_calls", () -> ());
        Self {
            _alone: alone,
            primary,
            may_disagree: AtomicBool::new(false),
        }
    }

    /// One of the two drivers. With CUDA, the primary context of device 0 becomes current on this thread.
    pub(crate) fn driver(&self, api: Api) -> Driver {
        let driver = Driver { api };
        if api == Api::Cuda {
            let current = driver.set_current(self.primary);
            current.expect("the context is there");
        }
        driver
    }

    /// CUDA with the primary context of device 0 current.
    pub(crate) fn cuda(&self) -> Driver {
        self.driver(Api::Cuda)
    }

    pub(crate) fn hip(&self) -> Driver {
        self.driver(Api::Hip)
    }

    /// Records an access of the host to these bytes.
    pub(crate) fn host_read(&self, address: usize, bytes: usize) {
        on_host(address, bytes, false);
    }

    pub(crate) fn host_write(&self, address: usize, bytes: usize) {
        on_host(address, bytes, true);
    }

    /// Tells the simulator that all host threads have synchronized. Tests call it after they join threads.
    pub(crate) fn hand_over(&self) {
        hand_over();
    }

    /// The faults so far. Fails the test if the two oracles disagree.
    #[track_caller]
    pub(crate) fn faults(&self) -> Vec<String> {
        let (faults, disagreements) = verdicts();
        assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
        faults
    }

    /// The disagreements of the two oracles, for a test that expects some.
    pub(crate) fn disagreements(&self) -> Vec<String> {
        self.may_disagree.store(true, Ordering::Relaxed);
        verdicts().1
    }

    /// Fails the test if there was a fault.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        let faults = self.faults();
        assert!(faults.is_empty(), "faults:\n{}", faults.join("\n"));
    }

    /// Fails the test unless there was exactly one fault, whose text contains these words. The faults are cleared only with the
    /// next world.
    #[track_caller]
    pub(crate) fn assert_one_fault(&self, words: &[&str]) {
        let faults = self.faults();
        let all = faults.join("\n");
        assert_eq!(faults.len(), 1, "one fault was expected:\n{all}");
        for word in words {
            assert!(all.contains(word), "`{word}` is missing in:\n{all}");
        }
    }

    /// Entry points called since the last reset or `forget_calls`, such as `cuEventRecord event=0x100040 stream=0x0`.
    pub(crate) fn calls(&self) -> Vec<String> {
        lines("sim_calls")
    }

    /// The names of the calls, without arguments.
    pub(crate) fn call_names(&self) -> Vec<String> {
        let name = |line: String| line.split(' ').next().unwrap_or_default().to_owned();
        self.calls().into_iter().map(name).collect()
    }

    pub(crate) fn forget_calls(&self) {
        call!("sim_forget_calls", () -> ());
    }

    /// How many objects of a kind (`EVENTS`, ..) exist. Events that core keeps for the next export are not counted.
    pub(crate) fn live(&self, kind: i32) -> i32 {
        let spare = match kind {
            EVENTS => dlpack_core::stream::spare_events(false),
            _ => 0,
        };
        let all = call!("sim_live", (kind => i32) -> i32);
        all - i32::try_from(spare).expect("a small number")
    }

    /// The `nth` next call of `entry` (1: the next) returns `code` and does nothing. 0 cancels that.
    pub(crate) fn fail(&self, entry: &str, nth: u64, code: i32) {
        let entry = format!("{entry}\0");
        call!("sim_fail", (entry.as_ptr() => *const u8, nth => u64, code => i32) -> ());
    }

    pub(crate) fn switch(&self, what: &str, on: bool) {
        let what = format!("{what}\0");
        call!("sim_switch", (what.as_ptr() => *const u8, i32::from(on) => i32) -> ());
    }

    /// The next call that waits on the host is held until `release`.
    pub(crate) fn hold(&self) {
        call!("sim_hold", () -> ());
    }

    pub(crate) fn release(&self) {
        call!("sim_release", () -> ());
    }

    pub(crate) fn holding(&self) -> bool {
        call!("sim_holding", () -> i32) != 0
    }

    /// Waits until a call is held.
    #[track_caller]
    pub(crate) fn until_holding(&self) {
        for _ in 0..60_000 {
            if self.holding() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.release();
        panic!("no call has waited on the host for a minute");
    }

    /// This thread's current context of CUDA, 0 for none.
    pub(crate) fn current_context(&self) -> usize {
        call!("sim_current_context", () -> usize)
    }
}

/// Tells the simulator that all host threads have synchronized, on a thread without a `Sim`.
pub(crate) fn hand_over() {
    call!("sim_hand_over", () -> ());
}

/// Records an access of the calling thread to these bytes, without a `Sim`.
pub(crate) fn on_host(address: usize, bytes: usize, write: bool) {
    call!("sim_host", (address => usize, bytes => usize, i32::from(write) => i32) -> ());
}

/// The faults, and the disagreements of the two oracles.
fn verdicts() -> (Vec<String>, Vec<String>) {
    let lines = lines("sim_faults").into_iter();
    lines.partition(|line| !line.starts_with("disagreement"))
}

fn lines(function: &str) -> Vec<String> {
    let mut buffer = vec![0_u8; 1 << 16];
    let count = call!(
        function,
        (buffer.as_mut_ptr() => *mut u8, buffer.len() => usize) -> usize
    );
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(0);
    buffer.truncate(end);
    let text = String::from_utf8(buffer).expect("the simulator writes text");
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), count, "the buffer holds all lines");
    lines
}

/// The return code of an entry point that is called with this many zeros, so with null for all its output pointers. For calls
/// that fail before they read their arguments.
pub(crate) fn answer_of(name: &str, arguments: usize) -> i32 {
    match arguments {
        0 => call!(name, () -> i32),
        1 => call!(name, (0 => usize) -> i32),
        2 => call!(name, (0 => usize, 0 => usize) -> i32),
        3 => call!(name, (0 => usize, 0 => usize, 0 => usize) -> i32),
        4 => call!(name, (0 => usize, 0 => usize, 0 => usize, 0 => usize) -> i32),
        5 => call!(name, (0 => usize, 0 => usize, 0 => usize, 0 => usize, 0 => usize) -> i32),
        _ => {
            assert_eq!(
                arguments, 6,
                "{name} has more arguments than are tried here"
            );
            call!(name, (0 => usize, 0 => usize, 0 => usize, 0 => usize, 0 => usize, 0 => usize) -> i32)
        }
    }
}

/// The name that a driver has for a code.
pub(crate) fn error_name(api: Api, code: i32) -> Option<String> {
    let name = if api == Api::Hip {
        call!("hipGetErrorName", (code => i32) -> *const c_char)
    } else {
        let mut name = core::ptr::null();
        call!("cuGetErrorName", (code => i32, &raw mut name => *mut *const c_char) -> i32);
        name
    };
    if name.is_null() {
        return None;
    }
    // SAFETY: the simulator's names are NUL-terminated constants.
    let name = unsafe { CStr::from_ptr(name) };
    Some(name.to_string_lossy().into_owned())
}
