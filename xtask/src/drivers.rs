//! The real libraries of NVIDIA and AMD on a machine without a GPU: each entry point is there, each failure an error.

use crate::prelude::*;

/// A library that core opens: the variable that tells the tests its path, the Debian packages of which the first available one
/// contains it, and the start of its file name: the links in its folder have longer or shorter names. The first library depends
/// only on the C library; it loads the others when it compiles a kernel.
type Library = (&'static str, &'static str, &'static str);

const HIP: &str = "libamdhip64-7 libamdhip64-6 libamdhip64-5";
const LIBRARIES: [Library; 2] = [
    ("DLPACK_TEST_LIBCUDA", "--alone libcuda1", "libcuda.so.1"),
    ("DLPACK_TEST_LIBAMDHIP64", HIP, "libamdhip64.so."),
];

/// Runs as a step of `test`. The tests that need neither library run everywhere, with those of the workspace.
pub(crate) fn check(sh: &Shell) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return skip("the drivers are those of Linux");
    }
    let mut tests = sh.line("cargo test --quiet -p dlpack-core --test drivers --");
    let mut missing = Vec::new();
    for library in &LIBRARIES {
        match found(sh, library) {
            Ok(path) => tests = tests.env(library.0, path),
            Err(reason) => missing.push(format!("{}: {reason:#}", library.2)),
        }
    }
    tests.line("--nocapture --test-threads=1").run()?;
    // A library that cannot be downloaded is no failure, but must be reported.
    none(missing).or_else(|error| skip(format!("only without the real libraries; {error}")))
}

/// The library in our cache folder, which is filled by the first call.
fn found(sh: &Shell, library: &Library) -> Result<PathBuf> {
    let place = sh.create_dir(cache()?.join("drivers"))?;
    if unpacked(sh, &place, library).is_none() {
        sh.line(".ci/debian library")
            .arg(&place)
            .line(library.1)
            .run()?;
    }
    unpacked(sh, &place, library).with_context(|| format!("the package holds no {}", library.2))
}

/// The library that an earlier run unpacked, in any version: the shortest name with that start.
fn unpacked(sh: &Shell, place: &Path, library: &Library) -> Option<PathBuf> {
    let of = |package| find(sh, place, &format!("{package}_*/{}*", library.2));
    library.1.split(' ').find_map(of)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_was_unpacked_is_found_without_the_package_manager() {
        let sh = Shell::new().unwrap();
        let place = sh.create_temp_dir().unwrap();
        let found = || LIBRARIES.map(|library| unpacked(&sh, place.path(), &library));
        let folder = place.path().join("libcuda1_535-1/usr/lib");
        let link = folder.join("libcuda.so.1");
        sh.write_file(folder.join("libcuda.so.535"), "").unwrap();
        assert_eq!(found(), [None, None]);
        std::os::unix::fs::symlink("libcuda.so.535", &link).unwrap();
        assert_eq!(found(), [Some(link), None]);
    }
}
