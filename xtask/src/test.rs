//! Run every test: unit, doc, ui, features, no_std, examples, drivers, Python, array libraries, coverage.
//!
//! With all features, with none, and with each alone; for targets without an operating system; with the minimum Rust
//! version; with the real drivers of CUDA and HIP, which find no GPU and say so; with each version of PyO3 that we accept.
//! What cannot be checked on this machine is skipped, and the last lines say so.
//! usage: `cargo xtask test [--keep-going]`
//!   --keep-going   run the other steps after one has failed

use cargo_metadata::{Package, Target};

use crate::prelude::*;
use crate::{consumers, coverage, demo, drivers, gpu, pytests};

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let keep_going = args.contains("--keep-going");
    finish(args)?;
    run_all(sh, "test", steps(keep_going)?, keep_going)
}

pub(crate) fn steps(keep_going: bool) -> Result<Vec<Step>> {
    let go_on = if keep_going { " --no-fail-fast" } else { "" };
    let mut steps = vec![
        Step::command("tests of the workspace", format!("cargo test --workspace --all-features{go_on}")),
        Step::new("no feature, and each feature alone", features),
        Step::new("no_std: a program without std", no_std_program),
        Step::new("no_std: targets without an operating system", bare_targets),
        Step::new("minimum Rust version", minimum_version),
    ];
    for Package { name, .. } in examples()? {
        steps.push(Step::command(format!("example `{name}`"), format!("cargo run --quiet -p {name}")));
    }
    steps.extend([
        Step::new("the real CUDA and HIP drivers without a GPU", drivers::check),
        Step::new("kernels of the checks on a GPU", gpu::kernels),
        Step::new("checks on a GPU, with the fake driver", gpu::on_the_fake_driver),
        Step::new("checks on a GPU", |sh| gpu::checks(sh, Some("race"))),
    ]);
    steps.extend(pytests::steps());
    steps.extend([
        Step::new("tests of examples/showcase", demo::tests),
        Step::new("array libraries", consumers::always),
        Step::new("requirement coverage", coverage::check),
    ]);
    Ok(steps)
}

/// Lints rather than checks, so that what is unused without a feature is found too.
fn features(sh: &Shell) -> Result<()> {
    let hack = tool(sh, "cargo-hack", "0.6.46")?;
    let features = ["--each-feature", "--exclude-all-features", "--skip", "default"];
    Ok(cmd!(sh, "{hack} hack clippy -p dlpack-core -p dlpack-pyo3 --lib {features...} -- -D warnings").run()?)
}

/// Its own panic handler collides with the one of `std`, so it only builds if nothing links `std`.
fn no_std_program(sh: &Shell) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return skip("the program is written for Linux");
    }
    let run = cmd!(sh, "cargo run --quiet --release --manifest-path xtask/no-std/Cargo.toml");
    Ok(run.env("CARGO_TARGET_DIR", target_dir().join("no-std")).run()?)
}

fn bare_targets(sh: &Shell) -> Result<()> {
    let Ok(listed) = cmd!(sh, "rustup target list --installed").quiet().read() else {
        return skip("no rustup here to list targets");
    };
    let mut targets = listed.lines().filter(|target| target.contains("-none")).peekable();
    if targets.peek().is_none() {
        return skip("none is installed; `rustup target add thumbv7em-none-eabihf` adds one");
    }
    let check = |target| cmd!(sh, "cargo check -p dlpack-core --no-default-features --target {target}").run();
    Ok(targets.try_for_each(check)?)
}

fn minimum_version(sh: &Shell) -> Result<()> {
    let core = packages(|package| package.name == "dlpack-core")?.into_iter().next();
    let version = core.and_then(|core| core.rust_version).context("dlpack-core has no rust-version")?;
    let toolchain = format!("{}.{}", version.major, version.minor);
    if !succeeds(cargo_of(sh, &toolchain).arg("--version")) {
        let install = format!("rustup toolchain install {toolchain} --profile minimal");
        return skip(format!("Rust {toolchain} is not installed; `{install}` adds it"));
    }
    let check = cargo_of(sh, &toolchain).args(["check", "-p", "dlpack-core", "-p", "dlpack-pyo3"]);
    Ok(check.env("CARGO_TARGET_DIR", target_dir().join("minimum")).run()?)
}

/// The packages in `examples/` that are programs; the others are for Python.
fn examples() -> Result<Vec<Package>> {
    let folder = root().join("examples");
    packages(|package| {
        let is_program = |target: &Target| target.name == package.name && target.is_bin();
        package.manifest_path.starts_with(&folder) && package.targets.iter().any(is_program)
    })
}
