//! The real libraries of NVIDIA and AMD on a machine without a GPU: each entry point is there, each failure an error.

use std::path::{Path, PathBuf};

use crate::debian::{self, Archive, Needs, make_folder};
use crate::python::cache;
use crate::step::{Outcome, Step, StepResult, cargo, run};
use crate::tree::{entries, read};

/// A library that core opens, and where Debian keeps it.
struct Library {
    /// The variable that tells the tests where it lies.
    variable: &'static str,
    /// Its packages, of which the first that the archive has is taken.
    packages: &'static [&'static str],
    needs: Needs,
    /// What its file name begins with. The links beside it have longer or shorter names of the same beginning.
    name: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library {
        variable: "DLPACK_TEST_LIBCUDA",
        packages: &["libcuda1"],
        // It links to the C library alone, and asks for the others when it compiles a kernel.
        needs: Needs::Left,
        name: "libcuda.so.1",
    },
    Library {
        variable: "DLPACK_TEST_LIBAMDHIP64",
        packages: &["libamdhip64-7", "libamdhip64-6", "libamdhip64-5"],
        needs: Needs::Unpacked,
        name: "libamdhip64.so.",
    },
];

/// NVIDIA's library lies in the second part.
const PARTS: &str = "main non-free";

/// What `test` runs. The tests that need neither library run anywhere, with those of the workspace.
pub(crate) fn step() -> Step {
    Step::new("the real CUDA and HIP drivers without a GPU", || {
        if !cfg!(target_os = "linux") {
            return Ok(Outcome::Skipped("the drivers are those of Linux".into()));
        }
        let mut tests = cargo(&["test", "--quiet", "-p", "dlpack-core", "--test", "drivers"]);
        tests.args(["--", "--nocapture", "--test-threads=1"]);
        let mut missing = Vec::new();
        for library in &LIBRARIES {
            match found(library) {
                Ok(path) => {
                    println!("drivers: {}", path.display());
                    tests.env(library.variable, path);
                }
                Err(reason) => missing.push(format!("{}: {reason}", library.packages[0])),
            }
        }
        let _: Outcome = run(tests)?;
        outcome(&missing)
    })
}

/// A library that cannot be had is nobody's mistake, but must be seen.
fn outcome(missing: &[String]) -> StepResult {
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Skipped(format!(
        "only without the real libraries; {}",
        missing.join("; ")
    )))
}

/// The library in our cache folder, which is filled at the first call.
fn found(library: &Library) -> Result<PathBuf, String> {
    let place = cache()?.join("drivers");
    make_folder(&place)?;
    if let Some(path) = kept(&place, library)? {
        return Ok(path);
    }
    if !debian::is_here() {
        return Err("it comes with Debian's package manager, which is not here".into());
    }
    // A folder of this process: the package manager locks its own, and another run may be at the same work.
    let draft = cache()?.join(format!("drivers-{}", std::process::id()));
    let fetched = fetch(&draft, &place, library);
    // A draft that cannot be removed only costs space.
    let _ = std::fs::remove_dir_all(&draft);
    fetched?;
    kept(&place, library)?.ok_or_else(|| format!("the package holds no {}", library.name))
}

/// The library as an earlier run unpacked it, whichever version that was.
fn kept(place: &Path, library: &Library) -> Result<Option<PathBuf>, String> {
    for package in library.packages {
        for folder in entries(place)? {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(&format!("{package}_")) {
                return find(&folder, library.name);
            }
        }
    }
    Ok(None)
}

fn fetch(draft: &Path, place: &Path, library: &Library) -> Result<(), String> {
    make_folder(draft)?;
    let suite = suite(&read(Path::new("/etc/os-release"))?)?;
    let archive = Archive::open(draft, &[&format!("deb {{}} {suite} {PARTS}")])?;
    let (package, version) = library
        .packages
        .iter()
        .find_map(|&package| Some((package, archive.version(package)?)))
        .ok_or_else(|| format!("{suite} does not have it for this processor"))?;
    let unpacked = draft.join("unpacked");
    archive.unpack(package, library.needs, &unpacked)?;
    let target = place.join(format!("{package}_{}", version.replace(':', "_")));
    // Another run may have been first, with the same files.
    match std::fs::rename(&unpacked, &target) {
        Err(error) if !target.exists() => Err(format!("cannot make {}: {error}", target.display())),
        _ => Ok(()),
    }
}

/// The release of Debian that this machine runs; its C library fits.
fn suite(release: &str) -> Result<String, String> {
    release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| "this system does not say which release of Debian it is".into())
}

/// The file below `folder` with the shortest name of this beginning.
fn find(folder: &Path, beginning: &str) -> Result<Option<PathBuf>, String> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // A link to a folder may lead out of the package.
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if name.starts_with(beginning) && path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(found.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_says_its_release() {
        let told = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(suite(told).as_deref(), Ok("bookworm"));
        assert_eq!(suite("VERSION_CODENAME=\"sid\"").as_deref(), Ok("sid"));
        assert!(suite("ID=other\n").is_err());
    }

    #[test]
    fn what_is_missing_is_said_by_name() {
        assert!(matches!(outcome(&[]), Ok(Outcome::Passed)));
        let missing = ["libcuda1: no network".to_owned()];
        let Ok(Outcome::Skipped(reason)) = outcome(&missing) else {
            panic!("a missing library passed");
        };
        assert!(reason.contains("libcuda1: no network"), "{reason}");
    }

    #[cfg(unix)]
    #[test]
    fn what_was_unpacked_is_found_without_the_package_manager() {
        let place = std::env::temp_dir().join(format!("xtask-drivers-{}", std::process::id()));
        let inner = place.join("libcuda1_535-1/usr/lib/current");
        std::fs::create_dir_all(&inner).unwrap();
        let [cuda, hip] = &LIBRARIES;
        assert_eq!(kept(&place, cuda).unwrap(), None);
        std::fs::write(inner.join("libcuda.so.535"), "").unwrap();
        assert_eq!(kept(&place, cuda).unwrap(), None);
        std::os::unix::fs::symlink("libcuda.so.535", inner.join("libcuda.so.1")).unwrap();
        assert_eq!(
            kept(&place, cuda).unwrap(),
            Some(inner.join("libcuda.so.1"))
        );
        assert_eq!(kept(&place, hip).unwrap(), None);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
