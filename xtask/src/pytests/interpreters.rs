//! Which Pythons there are to test with, and how to build those that no package manager installs.
//!
//! A debug build notices what a release build lets pass: a count changed without the GIL, a call with an exception
//! pending, an object freed twice. A free-threaded build has no GIL that would hide a race. Both are built from the
//! source packages of Debian, whose signatures the package manager checks, or from sources that lie in the cache
//! folder already; nothing is installed outside of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::debian::{self, Archive, make_folder};
use crate::python::{cache, interpreter_of};
use crate::step::{Outcome, Step, StepResult, output, run};

/// The versions that an ordinary interpreter is looked for.
const VERSIONS: [u32; 6] = [10, 11, 12, 13, 14, 15];

/// Name, minor version, and how it is configured. `t` at the end: no GIL.
const SPECIAL: [(&str, u32, &[&str]); 3] = [
    ("3.13d", 13, &["--with-pydebug"]),
    ("3.14d", 14, &["--with-pydebug"]),
    ("3.14t", 14, &["--disable-gil"]),
];

/// Every Python found, by name.
pub(super) fn found() -> Vec<(String, PathBuf)> {
    let ordinary = VERSIONS
        .iter()
        .filter_map(|&minor| Some((format!("3.{minor}"), interpreter_of((3, minor))?)));
    let special = SPECIAL
        .iter()
        .filter_map(|(name, ..)| Some(((*name).to_owned(), python(name).ok()?)))
        .filter(|(_, python)| python.exists());
    ordinary.chain(special).collect()
}

fn python(name: &str) -> Result<PathBuf, String> {
    Ok(folder(name)?.join("bin/python3"))
}

fn folder(name: &str) -> Result<PathBuf, String> {
    Ok(cache()?.join(format!("python-{name}")))
}

/// One step for each that is missing.
pub(super) fn steps() -> Vec<Step> {
    SPECIAL
        .iter()
        .filter(|(name, ..)| !python(name).is_ok_and(|python| python.exists()))
        .map(|&(name, minor, options)| {
            Step::new(format!("build Python {name}"), move || {
                build(name, minor, options)
            })
        })
        .collect()
}

fn build(name: &str, minor: u32, options: &[&str]) -> StepResult {
    if !debian::is_here() {
        return Ok(Outcome::Skipped(
            "the sources come with Debian's package manager, which is not here".into(),
        ));
    }
    let sources = cache()?.join("python-sources");
    let source = match unpacked(&sources, minor) {
        Some(source) => source,
        None => {
            fetch(&sources, minor)?;
            unpacked(&sources, minor).ok_or("the archive holds no Python")?
        }
    };
    let place = sources.join(format!("build-{name}"));
    make_folder(&place)?;
    let mut configure = Command::new(source.join("configure"));
    configure
        .current_dir(&place)
        .arg("--quiet")
        .arg(format!("--prefix={}", folder(name)?.display()))
        .arg("--with-ensurepip=install")
        .args(options);
    run(quiet(configure))?;
    for words in [&["-j2"][..], &["install"]] {
        let mut make = Command::new("nice");
        make.current_dir(&place).arg("make").args(words);
        run(quiet(make))?;
    }
    // The objects are ten times the size of what was installed.
    std::fs::remove_dir_all(&place).map_err(|error| error.to_string())?;
    Ok(Outcome::Passed)
}

fn quiet(mut command: Command) -> Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The sources of this version, if they are there already.
fn unpacked(sources: &Path, minor: u32) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(sources)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&format!("Python-3.{minor}.")) && path.join("configure").exists()
        })
        .collect();
    found.sort();
    found.pop()
}

fn fetch(sources: &Path, minor: u32) -> Result<(), String> {
    make_folder(sources)?;
    let package = format!("python3.{minor}");
    download(sources, &package).map_err(|error| {
        format!(
            "{error}; or unpack Python-3.{minor}.N into {}",
            sources.display()
        )
    })?;
    unpack(sources, &package)
}

/// Fetches the archive of the original source, as the newest suite that still has it holds it.
fn download(sources: &Path, package: &str) -> Result<(), String> {
    let archive = Archive::open(sources, &["deb-src {} sid main", "deb-src {} trixie main"])?;
    let versions = archive.apt("apt-cache", &["showsrc", package]);
    let told = output(versions)?;
    let versions = told
        .lines()
        .filter_map(|line| line.strip_prefix("Version: "));
    // An index may name what its archive has replaced since.
    for version in versions {
        let wanted = format!("{package}={version}");
        let source = archive.apt(
            "apt-get",
            &["source", "--download-only", "--only-source", &wanted],
        );
        // The original source may come though Debian's patches do not, and is all that is needed.
        if run(source).is_ok() || newest(sources, package, ".orig.tar.xz").is_some() {
            return Ok(());
        }
    }
    Err(format!("the archive has no source of {package}"))
}

fn unpack(sources: &Path, package: &str) -> Result<(), String> {
    let archive = newest(sources, package, ".orig.tar.xz").ok_or("no source came")?;
    let mut tar = Command::new("tar");
    tar.current_dir(sources).arg("xf").arg(archive);
    run(tar).map(drop)
}

fn newest(folder: &Path, prefix: &str, suffix: &str) -> Option<PathBuf> {
    let prefix = format!("{prefix}_");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&prefix) && name.ends_with(suffix)
        })
        .collect();
    found.sort();
    found.pop()
}
