//! Run every test: unit, doc, ui, features, no_std, examples, drivers, Python, array libraries, coverage.
//!
//! With each feature, target, Rust, driver and PyO3 that matters. What this machine cannot do is skipped, with a word.
//! usage: `cargo xtask test [--keep-going]`
//!   --keep-going   run the other steps after one has failed

use crate::prelude::*;
use crate::{consumers, coverage, demo, drivers, gpu, guide, pytest};

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let keep_going = args.contains("--keep-going");
    finish(args)?;
    run_all(sh, "test", steps(keep_going)?, keep_going)
}

pub(crate) fn steps(keep_going: bool) -> Result<Vec<Step>> {
    let tests = "tests of the workspace: cargo test --workspace --all-features".to_owned();
    let mut steps = vec![
        Step::line(tests + if keep_going { " --no-fail-fast" } else { "" }),
        Step::new("no feature, and each feature alone", features),
        Step::new("no_std: a program without std", no_std_program),
        Step::new("no_std: targets without an operating system", bare_targets),
        Step::new("minimum Rust version", minimum_version),
    ];
    let folder = root().join("examples");
    for package in packages(|package| package.manifest_path.starts_with(&folder))? {
        // The other packages are for Python.
        let name = &package.name;
        let mut programs = package.targets.iter().filter(|target| target.is_bin());
        if programs.any(|target| target.name == *name) {
            let run = format!("example `{name}`: cargo run --quiet -p {name}");
            steps.push(Step::line(run));
        }
    }
    steps.extend(pytest::steps());
    steps.extend([
        Step::new("the CUDA and HIP drivers without a GPU", drivers::check),
        Step::new("kernels of the checks on a GPU", gpu::kernels),
        Step::new("checks on a GPU, with the fake driver", gpu::simulated),
        Step::new("checks on a GPU", |sh| gpu::checks(sh, Some("race"))),
        Step::new("tests of the examples in Python", demo::tests),
        Step::new("README and guide", guide::check),
        Step::new("array libraries", consumers::always),
        Step::new("requirement coverage", coverage::check),
    ]);
    Ok(steps)
}

/// Clippy rather than check, so that unused code without a feature is found, too.
fn features(sh: &Shell) -> Result<()> {
    let hack = sh.cmd(tool(sh, "cargo-hack", "0.6.46")?);
    let hack = hack.line("hack clippy -p dlpack-core -p dlpack-pyo3 --lib --each-feature");
    let hack = hack.line("--exclude-all-features --skip default -- -D warnings");
    hack.run()?;
    // Without `streams`, another file replaces its code.
    let test =
        "cargo test --quiet -p dlpack-core --lib --no-default-features --features derive,std";
    Ok(sh.line(test).run()?)
}

/// Its own panic handler collides with that of `std`, so it builds only if no dependency links `std`.
fn no_std_program(sh: &Shell) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return skip("the program is written for Linux");
    }
    let run = sh.line("cargo run --quiet --release --manifest-path xtask/no-std/Cargo.toml");
    let run = run.env("CARGO_TARGET_DIR", target_dir().join("no-std"));
    Ok(run.run()?)
}

fn bare_targets(sh: &Shell) -> Result<()> {
    let list = cmd!(sh, "rustup target list --installed").quiet().read();
    let mut targets: Vec<_> = list.iter().flat_map(|list| list.lines()).collect();
    targets.retain(|target| target.contains("-none"));
    if targets.is_empty() {
        return skip("none is installed; `rustup target add thumbv7em-none-eabihf` adds one");
    }
    let check = "cargo check -p dlpack-core --no-default-features --target";
    let mut checks = targets.iter().map(|target| sh.line(check).arg(target));
    Ok(checks.try_for_each(|check| check.run())?)
}

fn minimum_version(sh: &Shell) -> Result<()> {
    // This package inherits the `rust-version` of the workspace.
    let toolchain = env!("CARGO_PKG_RUST_VERSION");
    if !succeeds(cargo_of(sh, toolchain).arg("--version")) {
        let install = format!("rustup toolchain install {toolchain} --profile minimal");
        return skip(format!("it is not installed; `{install}` adds it"));
    }
    let check = cargo_of(sh, toolchain).line("check -p dlpack-core -p dlpack-pyo3");
    let check = check.env("CARGO_TARGET_DIR", target_dir().join("minimum"));
    Ok(check.run()?)
}
