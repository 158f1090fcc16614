//! Exports beside a driver that is real and finds no GPU, beside libraries that are none, and beside nothing at all.
//!
//! Core looks for each driver once in a process, so that every case has a process of its own: this program again, with
//! the case in its environment. The real libraries come with `cargo xtask test`, which says where they lie.
//! What the loader says is that of the GNU system.
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

/// What a process of its own does.
const CASE: &str = "DLPACK_TEST_CASE";
/// What the tests know of the real libraries, and core never looks at.
const REAL: [&str; 2] = ["DLPACK_TEST_LIBCUDA", "DLPACK_TEST_LIBAMDHIP64"];

/// An API, as these tests see it.
#[derive(Clone, Copy)]
struct Api {
    name: &'static str,
    device: Device,
    /// What tells core which library to open.
    variable: &'static str,
    /// What tells us where the real one lies.
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

/// A tensor whose memory, so it says, is a GPU's.
struct Owner {
    values: [f32; 4],
    device: Device,
    drops: Arc<AtomicUsize>,
}

/// Where `Owner` says that it is written.
const WRITTEN_ON: usize = 0x1000;

impl DLPack for Owner {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        // SAFETY: so many elements are there, and nobody reads memory of a GPU through the address.
        let loan = unsafe { Loan::from_raw_parts(self.values.as_ptr(), 4, self.device) };
        if self.device == Device::CPU {
            return Parts::new().describe(loan);
        }
        // SAFETY: no driver that gets this far finds a GPU, and so none uses it.
        let stream = unsafe { StreamHandle::from_raw(WRITTEN_ON) };
        Parts::new().stream(stream).describe(loan)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Exports to a consumer on `stream`: the outcome, and whether the owner is gone when the tensor is.
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

/// The body of every case; does nothing where no case is set.
#[test]
fn inside_a_process_of_its_own() {
    let Some(case) = std::env::var_os(CASE) else {
        return;
    };
    let api = BOTH.into_iter().find(|api| case == api.name).unwrap();

    // STC-08: the producer's own stream needs no driver, and no order needs none either.
    assert_eq!(export(api.device, on(0x1000)), (Ok(()), true));
    let (unordered, dropped) = export(api.device, on(-1));
    assert_eq!(unordered, Ok(()));
    // ERR-11: what needs one fails, each time alike, and the owner is dropped.
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
    // What was exported without order is let go all the same, where nobody can have used it. Where there is a driver, others
    // may know more of it than we do.
    let nobody = matches!(
        error,
        Error::NoDriver { .. } | Error::DriverFailed { code: 100, .. }
    );
    assert_eq!(dropped, nobody, "{error}");
    assert_eq!(export(api.device, on(-1)), (Ok(()), nobody));
    let cpu = export(Device::CPU, ExportRequest::versioned());
    assert_eq!(cpu, (Ok(()), true));
    println!("SAYS {error}");
}

/// What an export says in a process for which the environment names this library, or none.
fn says(api: Api, library: Option<&Path>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "inside_a_process_of_its_own", "--nocapture"])
        .env(CASE, api.name);
    for api in BOTH {
        command.env_remove(api.variable);
    }
    if let Some(library) = library {
        command.env(api.variable, library);
        // What it needs lies beside it.
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
fn a_library_that_is_not_there() {
    for api in BOTH {
        let path = std::env::temp_dir().join("no-such-library.so");
        assert_eq!(
            says(api, Some(&path)),
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
            says(api, Some(&path)),
            format!(
                "{} is needed, but could not be loaded: {}: invalid ELF header",
                api.name,
                path.display()
            )
        );
    }
    std::fs::remove_file(&path).unwrap();
}

/// A library of the system has none of the functions; the first that core looks for is named.
#[test]
fn a_library_of_something_else() {
    for (api, first) in [(CUDA, "cuInit"), (HIP, "hipInit")] {
        assert_eq!(
            says(api, Some(Path::new("libm.so.6"))),
            format!("libm.so.6 has no function `{first}`: it is too old, or not a driver")
        );
    }
}

/// What most users' machines look like. A machine with a driver says something else, and so does not count.
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
            says(api, None),
            format!("{} is needed, but could not be loaded: {tried}", api.name)
        );
    }
}

/// Where the real library lies, if somebody has said so.
fn real(api: Api) -> Option<PathBuf> {
    let path = std::env::var_os(api.real).map(PathBuf::from);
    if path.is_none() {
        println!(
            "SKIPPED: {} says nothing of a real {}; `cargo xtask test` fetches one",
            api.real, api.name
        );
    }
    path
}

fn load(name: impl AsRef<OsStr>) -> Option<Library> {
    // SAFETY: a driver, and what it needs, does nothing when it is loaded.
    unsafe { Library::new(name.as_ref()) }.ok()
}

/// Opens a library whose needs lie beside it, which only the environment of a new process can say otherwise.
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
        // A library that is loaded is found by its name from then on.
        left.retain(|beside| load(beside).map(core::mem::forget).is_none());
        assert!(left.len() < before, "{} cannot be loaded", path.display());
    }
}

/// Every entry point of core's tables is in the real library, by exactly that name.
#[test]
fn every_entry_point_is_there() {
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
            // SAFETY: it is only looked for.
            let found = unsafe { library.get::<unsafe extern "C" fn()>(symbol.as_bytes()) };
            match (found.is_ok(), required) {
                (true, _) => {}
                (false, false) => println!("{}: {symbol} is absent, and optional", api.name),
                (false, true) => absent.push(*symbol),
            }
        }
        assert!(absent.is_empty(), "{}: {absent:?}", path.display());
        // The names above would be found in anything if this were.
        // SAFETY: as above.
        let none = unsafe { library.get::<unsafe extern "C" fn()>(b"cuNoSuchFunction") };
        assert!(none.is_err());
    }
}

/// A file that NVIDIA's library makes for the administrator where it is missing, and that leads nowhere here.
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
            // Nobody else makes it either.
            let _ = std::fs::remove_file(Self::PATH);
        }
    }
}

/// The real libraries load, find no GPU, and say so.
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
        let said = says(api, Some(&path));
        assert!(wanted.contains(&&*said), "{said}");
    }
}
