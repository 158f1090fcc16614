//! Exports with a real driver that finds no GPU, with libraries that are not drivers, and without any driver.
//!
//! Core looks for each driver once in a process. So every case runs in its own process: this program again, with the case in its
//! environment. `cargo xtask test` installs the real libraries and names their paths. The expected messages of the loader are
//! those of glibc.
#![cfg(all(target_os = "linux", target_env = "gnu", feature = "std", not(miri)))]
#![expect(
    unsafe_code,
    reason = "lends memory by its address, and opens libraries"
)]

use core::fmt::Write as _;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use dlpack_core::stream::ENTRY_POINTS;
use dlpack_core::{
    DLPack, Descriptor, Device, Error, ExportRequest, Loan, Managed, Parts, StreamHandle,
};
use libloading::Library;

/// The environment variable with the case that a child process runs.
const CASE: &str = "DLPACK_TEST_CASE";
/// The environment variables with the paths of the real libraries. Core does not read them.
const REAL: [&str; 2] = ["DLPACK_TEST_LIBCUDA", "DLPACK_TEST_LIBAMDHIP64"];

/// A driver API and the variables that belong to it.
#[derive(Clone, Copy)]
struct Api {
    name: &'static str,
    device: Device,
    /// The variable by which core chooses the library to open.
    variable: &'static str,
    /// The variable with the path of the real library.
    real: &'static str,
}

const CUDA: Api = Api {
    name: "libcuda",
    device: Device::cuda(0),
    variable: "DLPACK_LIBCUDA",
    real: REAL[0],
};
const HIP: Api = Api {
    name: "libamdhip64",
    device: Device::rocm(0),
    variable: "DLPACK_LIBAMDHIP64",
    real: REAL[1],
};
const BOTH: [Api; 2] = [CUDA, HIP];

/// The owner of a tensor that claims to be in GPU memory.
struct Owner {
    values: [f32; 4],
    device: Device,
    drops: Arc<AtomicUsize>,
}

/// The stream on which `Owner` claims to be written.
const WRITTEN_ON: usize = 0x1000;

impl DLPack for Owner {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        // SAFETY: the four elements exist, and no code reads GPU memory through the address.
        let loan = unsafe { Loan::from_raw_parts(self.values.as_ptr(), 4, self.device) };
        if self.device == Device::CPU {
            return Parts::new().describe(loan);
        }
        // SAFETY: a driver that finds a GPU would be needed to use the stream, and there is none.
        let stream = unsafe { StreamHandle::from_raw(WRITTEN_ON) };
        Parts::new().stream(stream).describe(loan)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Exports to a consumer on `stream`: the outcome, and whether the owner was dropped with the tensor.
fn export(device: Device, request: ExportRequest) -> (Result<(), Error>, bool) {
    let drops = Arc::new(AtomicUsize::new(0));
    let owner = Owner {
        values: [1.0; 4],
        device,
        drops: Arc::clone(&drops),
    };
    let outcome = owner.into_dlpack_with(&request).map(drop::<Managed>);
    (outcome, drops.load(Ordering::Relaxed) == 1)
}

fn on(stream: i64) -> ExportRequest {
    ExportRequest {
        stream: Some(stream),
        ..ExportRequest::versioned()
    }
}

/// The body of every case. Does nothing if no case is set.
#[test]
fn run_case_in_child_process() {
    let Some(case) = std::env::var_os(CASE) else {
        return;
    };
    let api = BOTH.into_iter().find(|api| case == api.name).unwrap();

    // STC-08: neither the producer's own stream nor an unordered request needs a driver.
    assert_eq!(export(api.device, on(0x1000)), (Ok(()), true));
    let (unordered, dropped) = export(api.device, on(-1));
    assert_eq!(unordered, Ok(()));
    // ERR-11: an export that needs a driver fails, each time with the same error, and the owner is dropped.
    let (outcome, gone) = export(api.device, on(0x2000));
    let error = outcome.expect_err("nothing can be ordered here");
    assert!(gone);
    let again = std::thread::spawn(move || export(api.device, on(0x3000)));
    assert_eq!(again.join().unwrap(), (Err(error.clone()), true));
    let to_host = ExportRequest {
        dl_device: Some(Device::CPU),
        ..ExportRequest::versioned()
    };
    assert_eq!(export(api.device, to_host), (Err(error.clone()), true));
    // The owner of an unordered export is released if no code can have used the GPU. With a driver, other code in the process may
    // have used it.
    let is_unused = matches!(
        error,
        Error::NoDriver { .. } | Error::DriverFailed { code: 100, .. }
    );
    assert_eq!(dropped, is_unused, "{error}");
    assert_eq!(export(api.device, on(-1)), (Ok(()), is_unused));
    let cpu = export(Device::CPU, ExportRequest::versioned());
    assert_eq!(cpu, (Ok(()), true));
    println!("SAYS {error}");
}

/// The error of an export in a process whose environment names this library, or none.
fn error_of_export(api: Api, library: Option<&Path>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "run_case_in_child_process", "--nocapture"])
        .env(CASE, api.name);
    for api in BOTH {
        command.env_remove(api.variable);
    }
    if let Some(library) = library {
        command.env(api.variable, library);
        // The libraries that it depends on are in the same folder.
        command.env("LD_LIBRARY_PATH", library.parent().unwrap());
    }
    let ended = command.output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.success(),
        "{}, {}\n{text}\n{errors}",
        api.name,
        ended.status
    );
    let said = text.lines().find_map(|line| line.split_once("SAYS "));
    let (_, said) = said.unwrap_or_else(|| panic!("{}: it said nothing\n{text}", api.name));
    said.to_owned()
}

#[test]
fn a_missing_library() {
    for api in BOTH {
        let path = std::env::temp_dir().join("no-such-library.so");
        assert_eq!(
            error_of_export(api, Some(&path)),
            format!(
                "{} is needed, but could not be loaded: {path}: cannot open shared object file: No such file or directory",
                api.name,
                path = path.display()
            )
        );
    }
}

#[test]
fn a_file_that_is_no_library() {
    let path = std::env::temp_dir().join(format!("dlpack-drivers-{}.so", std::process::id()));
    std::fs::write(
        &path,
        "no library at all, but long enough for the loader to look at its head",
    )
    .unwrap();
    for api in BOTH {
        assert_eq!(
            error_of_export(api, Some(&path)),
            format!(
                "{} is needed, but could not be loaded: {}: invalid ELF header",
                api.name,
                path.display()
            )
        );
    }
    std::fs::remove_file(&path).unwrap();
}

/// A library of the system has none of the functions; the error names the first that core looks for.
#[test]
fn a_library_without_driver_functions() {
    for (api, first) in [(CUDA, "cuInit"), (HIP, "hipInit")] {
        assert_eq!(
            error_of_export(api, Some(Path::new("libm.so.6"))),
            format!("libm.so.6 has no function `{first}`: it is too old, or not a driver")
        );
    }
}

/// Most users' machines have no driver. On a machine with one the error differs, and the test is skipped.
#[test]
fn a_machine_without_drivers() {
    for (api, names) in [
        (CUDA, &["libcuda.so.1", "libcuda.so"][..]),
        (
            HIP,
            &[
                "libamdhip64.so.7",
                "libamdhip64.so.6",
                "libamdhip64.so.5",
                "libamdhip64.so",
            ],
        ),
    ] {
        if let Some(name) = names.iter().find(|name| load(name).is_some()) {
            println!("SKIPPED: this machine has {name}");
            continue;
        }
        let tried = names.iter().fold(String::new(), |mut text, name| {
            let separator = if text.is_empty() { "" } else { "; " };
            let _ = write!(
                text,
                "{separator}{name}: cannot open shared object file: No such file or directory"
            );
            text
        });
        assert_eq!(
            error_of_export(api, None),
            format!("{} is needed, but could not be loaded: {tried}", api.name)
        );
    }
}

/// The path of the real library, if the environment names it.
fn real(api: Api) -> Option<PathBuf> {
    let path = std::env::var_os(api.real).map(PathBuf::from);
    if path.is_none() {
        println!(
            "SKIPPED: {} error_of_export nothing of a real {}; `cargo xtask test` fetches one",
            api.real, api.name
        );
    }
    path
}

fn load(name: impl AsRef<OsStr>) -> Option<Library> {
    // SAFETY: the initialisers of a driver and of its dependencies have no requirements.
    unsafe { Library::new(name.as_ref()) }.ok()
}

/// Opens a library and, before it, its dependencies in the same folder: the search path of this process cannot be changed.
fn open(path: &Path) -> Library {
    let mut left: Vec<PathBuf> = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|beside| beside.to_string_lossy().contains(".so"))
        .collect();
    loop {
        if let Some(library) = load(path) {
            return library;
        }
        let before = left.len();
        // A loaded library is found by its name from then on.
        left.retain(|beside| load(beside).map(core::mem::forget).is_none());
        assert!(left.len() < before, "{} cannot be loaded", path.display());
    }
}

/// The real library has every entry point of core's tables, by exactly that name.
#[test]
fn real_libraries_have_every_entry_point() {
    for (api, least) in [(CUDA, 20), (HIP, 18)] {
        let own: Vec<_> = ENTRY_POINTS
            .iter()
            .filter(|(library, ..)| *library == api.name)
            .collect();
        assert!(own.len() >= least, "{}: {}", api.name, own.len());
        let Some(path) = real(api) else { continue };
        let library = open(&path);
        let mut absent = Vec::new();
        for (_, symbol, required) in own {
            // SAFETY: the symbol is looked up and not called.
            let found = unsafe { library.get::<unsafe extern "C" fn()>(symbol.as_bytes()) };
            match (found.is_ok(), required) {
                (true, _) => {}
                (false, false) => println!("{}: {symbol} is absent, and optional", api.name),
                (false, true) => absent.push(*symbol),
            }
        }
        assert!(absent.is_empty(), "{}: {absent:?}", path.display());
        // If this name were found, the lookups above would prove nothing.
        // SAFETY: the symbol is looked up and not called.
        let none = unsafe { library.get::<unsafe extern "C" fn()>(b"cuNoSuchFunction") };
        assert!(none.is_err());
    }
}

/// A device file that NVIDIA's library creates if it is missing. Without a GPU it leads nowhere, so the test removes it.
struct Node {
    was_there: bool,
}

impl Node {
    const PATH: &str = "/dev/nvidiactl";

    fn watch() -> Self {
        Self {
            was_there: Path::new(Self::PATH).exists(),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.was_there {
            // No other code created it.
            let _ = std::fs::remove_file(Self::PATH);
        }
    }
}

/// The real libraries load, find no GPU, and report it.
#[test]
fn a_driver_without_a_gpu() {
    let _node = Node::watch();
    for (api, module, wanted) in [
        (
            CUDA,
            "/proc/driver/nvidia/version",
            &["`cuInit` failed with CUDA_ERROR_NO_DEVICE (100)"][..],
        ),
        (
            HIP,
            "/dev/kfd",
            &[
                "`hipInit` failed with hipErrorNoDevice (100)",
                "`hipInit` failed with hipErrorInvalidDevice (101)",
            ],
        ),
    ] {
        if Path::new(module).exists() {
            println!("SKIPPED: this machine has a GPU for {}", api.name);
            continue;
        }
        let Some(path) = real(api) else { continue };
        let said = error_of_export(api, Some(&path));
        assert!(wanted.contains(&&*said), "{said}");
    }
}
