//! Which copy of a driver core takes where there are several.
#![expect(unsafe_code, reason = "opens libraries")]

use std::path::PathBuf;
use std::process::Command;

use dlpack_core::{Device, stream};
use libloading::Library;

use crate::simulator::library_path;

/// The folder in which a process of its own finds two copies.
const COPIES: &str = "DLPACK_TEST_COPIES";
/// Core looks for the first one first.
const NAMES: [&str; 2] = ["libamdhip64.so", "libamdhip64.so.6"];

/// Two copies of a runtime do not know each other's streams.
#[test]
fn the_copy_that_the_program_has_loaded_is_taken() {
    let test = std::env::current_exe().expect("a test knows its own file");
    let folder = test.with_extension(format!("copies-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in NAMES {
        std::fs::copy(library_path(), folder.join(name)).unwrap();
    }
    let output = Command::new(&test)
        .args([
            "--exact",
            "loaded::in_a_process_with_two_copies",
            "--nocapture",
        ])
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
    // SAFETY: the library's initialization is that of Rust's standard library.
    let open = |name: &str| unsafe { Library::new(folder.join(name)) }.unwrap();
    let loaded = open(NAMES[1]);
    assert_eq!(stream::available(Device::rocm(0)), Ok(()));
    let calls = |library: &Library| {
        // SAFETY: the types of the simulator's function, which takes null for no place.
        let calls = unsafe { library.get::<extern "C" fn(usize, usize) -> usize>(b"sim_calls\0") };
        calls.unwrap()(0, 0)
    };
    assert!(calls(&loaded) > 0, "what is loaded was asked");
    assert_eq!(calls(&open(NAMES[0])), 0, "and nothing else");
}
