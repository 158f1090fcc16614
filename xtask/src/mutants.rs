//! Plant one bug after another in a crate, and see that a test notices each. spec/mutants.md has the outcome.
//!
//! The bugs are those that cargo-mutants lists, which is installed where it is missing, and those of
//! xtask/mutants/by-hand.txt. All of them are compiled into one program, each behind a switch, in a copy of the workspace.
//! The tests first run without a bug, and say which places they reach; then each bug meets the tests that reach it.
//! A run can be stopped: the next one goes on with what is left. It takes hours. The verdicts are listed in
//! spec/mutants: commit them, and a run on another machine tries only the bugs of functions that changed since.
//! usage: `cargo xtask mutants core|derive|pyo3 [OPTIONS]`
//!   --bug WORD       only bugs whose line in target/mutants/NAME/bugs.tsv contains the word, such as the path of a file; more
//!                    often, bugs with any of the words
//!   --again          also bugs that are known to be alive
//!   --jobs N         how many bugs are tried at the same time; otherwise one for each core
//!   --minutes N      start no bug after so many minutes
//!   --seconds N      a quick pass: only the quickest tests that reach a bug, which together take so long; what these do not
//!                    notice stays open
//!   --without WORDS  the same without the test files whose names contain one of the words, such as "faults exit"
//!   --table          run nothing, print and record what is known so far
//!   --equal FILE     run nothing, record bugs that no test can notice: each line has a bug as in bugs.tsv, a tabulator, and the reason

use crate::prelude::*;
use crate::pytest::Run;

pub(crate) fn main(sh: &Shell, args: Arguments) -> Result<()> {
    let words = args.finish();
    let target = target_dir().join("mutants");
    let program = tool(sh, "cargo-mutants", "27.1.0")?;
    let manifest = manifest();
    // The environment and the driver without a GPU that `cargo xtask pytest` uses.
    let python = interpreter()?;
    let run = Run::new(sh, &python)?;
    let driver = driver_target();
    let command = cmd!(
        sh,
        "cargo run --quiet --manifest-path {manifest} --target-dir {driver}"
    );
    let command = command.arg("--").args(words).env("MUTANTS_ROOT", root());
    let command = command.env("MUTANTS_TARGET", &target);
    let command = command.env("MUTANTS_PROGRAM", program);
    let command = command.env("MUTANTS_PYTHON", run.venv.python());
    let command = command.env("PYO3_PYTHON", python);
    // As few cases as find most bugs; a campaign runs more.
    let command = command.env("DLPACK_CASES", "300");
    Ok(command.env("DLPACK_SIMULATOR", &run.driver).run()?)
}

fn manifest() -> PathBuf {
    root().join("xtask/mutants/Cargo.toml")
}

fn driver_target() -> PathBuf {
    target_dir().join("mutants/driver")
}

/// Tests the program itself.
pub(crate) fn test(sh: &Shell) -> Result<()> {
    let (manifest, target) = (manifest(), driver_target());
    Ok(cmd!(
        sh,
        "cargo test --quiet --manifest-path {manifest} --target-dir {target}"
    )
    .run()?)
}
