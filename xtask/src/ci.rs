//! `ci`: what must hold before a change is taken.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::packages::PUBLISHED;
use crate::step::{Outcome, Step, StepResult, cargo, output, run, run_all, target_dir};
use crate::tree::entries;
use crate::{readme, test, unsafe_files, words};

pub(crate) const HELP: &str = "
Runs the checks of the text, formatting, clippy, documentation, everything that `test` runs, and packaging.
.ci/run calls this; run it before you push.

usage: cargo xtask ci [--keep-going]
  --keep-going   run the other steps after one has failed
";

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let keep_going = args.flag("--keep-going");
    args.finish()?;

    let mut steps = vec![
        Step::check("words that must not stay", words::check),
        Step::check("unsafe only where listed", unsafe_files::check),
        Step::check("README shows the quickstart's code", readme::check),
        Step::command("formatting", cargo(&["fmt", "--all", "--check"])),
        Step::command(
            "clippy",
            cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--all-features",
                "--",
                "-D",
                "warnings",
            ]),
        ),
        documentation(),
    ];
    steps.extend(test::steps(keep_going)?);
    steps.push(Step::new("packaging", packaging));
    run_all("ci", steps, keep_going)
}

fn documentation() -> Step {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    command.env("RUSTDOCFLAGS", "-Dwarnings");
    Step::command("documentation", command)
}

/// Packs what is published and builds it from the packed files, each crate against the packed others.
///
/// Cargo takes a version that it knows for the same code, so what an earlier run packed is forgotten first.
fn packaging() -> StepResult {
    let target = target_dir().join("packaging");
    forget(&target)?;
    for directory in unpacked()? {
        forget(&directory)?;
    }
    let mut words = vec!["package", "--allow-dirty"];
    for name in PUBLISHED {
        words.extend(["-p", name]);
    }
    for name in PUBLISHED {
        let list = output(cargo(&["package", "--allow-dirty", "--list", "-p", name]))?;
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            if !list.lines().any(|line| line == file) {
                return Err(format!("the package {name} lacks {file}"));
            }
        }
    }
    let mut package = cargo(&words);
    package.env("CARGO_TARGET_DIR", target);
    run(package)?;
    Ok(Outcome::Passed)
}

fn forget(directory: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Where cargo unpacked our own crates, as if they came from a registry.
fn unpacked() -> Result<Vec<PathBuf>, String> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = home.map(|home| home.join("registry/src"));
    let Some(sources) = sources.filter(|sources| sources.is_dir()) else {
        return Ok(vec![]);
    };
    let version = env!("CARGO_PKG_VERSION");
    let mut found = Vec::new();
    for registry in entries(&sources)? {
        found.extend(PUBLISHED.map(|name| registry.join(format!("{name}-{version}"))));
    }
    Ok(found)
}
