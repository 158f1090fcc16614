//! Run the loom models: the shared counts, lists and pointers, in every order in which their threads can meet.
//!
//! Each model is a unit test in a module `models`, beside the code that it runs. That code takes its atomics and locks from
//! the module `sync` of its crate, which names those of loom in this build (`--cfg loom`) and in no other. A model
//! fails if an assertion fails in any order, if two accesses race, or if threads wait for each other.
//! usage: `cargo xtask models [FILTER]`
//!   FILTER   only the models with this word in their names

use crate::prelude::*;

pub(crate) fn main(sh: &Shell, args: Arguments) -> Result<()> {
    let words = args.finish();
    let filter = words.first().map_or("models::", |word| {
        word.to_str().unwrap_or("no name of a test")
    });
    ensure!(words.len() < 2, "one FILTER only; try `--help`");
    run(sh, filter)
}

/// All models, as CI runs them.
pub(crate) fn check(sh: &Shell) -> Result<()> {
    run(sh, "models::")
}

fn run(sh: &Shell, filter: &str) -> Result<()> {
    let test = sh
        .line("cargo test -p dlpack-core -p dlpack-pyo3-models --lib")
        .arg(filter);
    // A folder of its own: other flags would make every other build begin anew.
    let test = test.env("CARGO_TARGET_DIR", target_dir().join("models"));
    Ok(test.env("RUSTFLAGS", "--cfg loom").run()?)
}
