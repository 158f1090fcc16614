//! `test`: every test of the workspace, as a list of steps.

use crate::args::Args;
use crate::packages::{examples, features_of, minimum_rust};
use crate::step::{
    Outcome, Step, StepResult, cargo, output, program, run, run_all, succeeds, target_dir,
};
use crate::{consumers, coverage, demo, drivers, gpu, pyo3_versions, pytests};

pub(crate) const HELP: &str = "
Runs, in this order:
  the tests of all packages with all features, documentation and ui tests included
  dlpack-core and dlpack-pyo3 with no feature, and with each feature alone
  the no_std check: a program without the standard library exports, imports and exits
  a build for every installed target without an operating system
  a build with the minimum Rust version
  each example
  the real drivers of CUDA and HIP, which find no GPU and say so
  what can be known of the checks on a GPU (see `gpu`) without one
  the tests of dlpack-pyo3 in Python, with each version of PyO3 that it accepts
  the tests of the Python package in examples/showcase
  the array libraries that install quickly, each reading what the test classes export
  the requirement coverage (see `coverage`)
What cannot be checked on this machine is skipped, and the last lines say so.

usage: cargo xtask test [--keep-going]
  --keep-going   run the other steps after one has failed
";

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let keep_going = args.flag("--keep-going");
    args.finish()?;
    run_all("test", steps(keep_going)?, keep_going)
}

pub(crate) fn steps(keep_going: bool) -> Result<Vec<Step>, String> {
    let mut tests = cargo(&["test", "--workspace", "--all-features"]);
    if keep_going {
        tests.arg("--no-fail-fast");
    }
    let mut steps = vec![Step::command("tests of the workspace", tests)];
    for package in ["dlpack-core", "dlpack-pyo3"] {
        steps.push(lint(package, ""));
        for feature in features_of(package)? {
            steps.push(lint(package, &feature));
        }
    }
    steps.push(Step::new("no_std: a program without std", no_std_program));
    steps.push(Step::new(
        "no_std: targets without an operating system",
        bare_targets,
    ));
    steps.push(Step::new("minimum Rust version", minimum_version));
    for example in examples()? {
        steps.push(Step::command(
            format!("example `{example}`"),
            cargo(&["run", "--quiet", "-p", &example]),
        ));
    }
    steps.push(drivers::step());
    steps.extend(gpu::steps());
    steps.push(pytests::step());
    steps.extend(pyo3_versions::steps());
    steps.push(demo::step());
    steps.push(consumers::step());
    steps.push(Step::check("requirement coverage", coverage::check));
    Ok(steps)
}

/// Lints rather than checks, so that what is unused without a feature is found too.
fn lint(package: &str, feature: &str) -> Step {
    let name = match feature {
        "" => format!("{package} without features"),
        feature => format!("{package} with `{feature}` alone"),
    };
    Step::command(
        name,
        cargo(&[
            "clippy",
            "-p",
            package,
            "--lib",
            "--no-default-features",
            "--features",
            feature,
            "--",
            "-D",
            "warnings",
        ]),
    )
}

/// Its own panic handler collides with the one of `std`, so it only builds if nothing links `std`.
fn no_std_program() -> StepResult {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("the program is written for Linux".into()));
    }
    let mut command = cargo(&[
        "run",
        "--quiet",
        "--release",
        "--manifest-path",
        "xtask/no-std/Cargo.toml",
    ]);
    command.env("CARGO_TARGET_DIR", target_dir().join("no-std"));
    run(command)
}

fn bare_targets() -> StepResult {
    let Ok(listed) = output(program("rustup", &["target", "list", "--installed"])) else {
        return Ok(Outcome::Skipped("no rustup here to list targets".into()));
    };
    let targets: Vec<&str> = listed
        .lines()
        .filter(|target| target.contains("-none"))
        .collect();
    if targets.is_empty() {
        return Ok(Outcome::Skipped(
            "none is installed; `rustup target add thumbv7em-none-eabihf` adds one".into(),
        ));
    }
    for target in targets {
        run(cargo(&[
            "check",
            "-p",
            "dlpack-core",
            "--no-default-features",
            "--target",
            target,
        ]))?;
    }
    Ok(Outcome::Passed)
}

fn minimum_version() -> StepResult {
    let version = minimum_rust()?;
    let toolchain = format!("+{version}");
    // Cargo of this toolchain sets these for us; they would pin the compiler.
    let with = |words: &[&str]| {
        let mut command = program("cargo", &[&toolchain]);
        for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(name);
        }
        command
            .env("CARGO_TARGET_DIR", target_dir().join("minimum"))
            .args(words);
        command
    };
    if !succeeds(with(&["--version"])) {
        return Ok(Outcome::Skipped(format!(
            "Rust {version} is not installed; `rustup toolchain install {version} --profile minimal` adds it"
        )));
    }
    run(with(&["check", "-p", "dlpack-core", "-p", "dlpack-pyo3"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_step() {
        let examples = examples().unwrap().len();
        assert!(examples > 0);
        assert!(steps(false).unwrap().len() > examples);
    }
}
