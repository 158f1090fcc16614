//! `demo`: what the workspace can do, shown by two programs: one of Rust, one of Python.

use std::path::PathBuf;

use crate::args::Args;
use crate::python::{Venv, interpreter, venv};
use crate::step::{Outcome, Step, cargo, run, run_all, target_dir};

pub(crate) const HELP: &str = "
Builds and runs examples/quickstart: an annotated image, a point cloud with columns, a newtype, an enum over data
types and a frame with padded rows, each exported, printed and read back.

Then it builds the Python package examples/showcase with maturin, in an environment of its own, and lets NumPy read
each of its classes. Two pictures are written to target/demo: image.png and cloud.png.

Both assert what they print: when the command ends without an error, every line was true.

usage: cargo xtask demo [--test]
  --test   run the tests of the Python package instead: each class, the conformance kit, the type stubs
";

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let test = args.flag("--test");
    args.finish()?;
    if test {
        return run_all("demo", vec![step()], false);
    }
    println!("The Rust demonstration: annotated structs become tensors, nothing is copied.");
    run(cargo(&["run", "--quiet", "-p", "quickstart"]))?;

    println!("\nThe Python demonstration: annotated classes become arrays, nothing is copied.");
    if let Err(reason) = interpreter() {
        println!("SKIPPED: {reason}");
        return Ok(());
    }
    let venv = venv("demo", &[NUMPY, MATURIN])?;
    let site = showcase(&venv)?;
    let mut show = venv.run(&["-m", "dlpack_showcase.demo"]);
    show.arg(folder()).env("PYTHONPATH", site);
    run(show).map(drop)
}

/// The tests of the package: skipped, saying so, where there is no Python.
pub(crate) fn step() -> Step {
    Step::new("tests of examples/showcase", || {
        if let Err(reason) = interpreter() {
            return Ok(Outcome::Skipped(reason));
        }
        let needed = [NUMPY, MATURIN, "pytest", "mypy", "array-api-strict", "jax"];
        let venv = venv("showcase", &needed)?;
        let site = showcase(&venv)?;
        let mut pytest = venv.run(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
        pytest
            .arg("examples/showcase/tests")
            .env("PYTHONPATH", site);
        run(pytest)
    })
}

/// The oldest one that takes read-only memory without a copy.
const NUMPY: &str = "numpy>=2.1";
const MATURIN: &str = "maturin>=1.9,<2";

/// Builds the package with the environment's maturin, and gives the folder that holds it for `PYTHONPATH`.
///
/// It is not installed into the environment, which other checkouts share.
fn showcase(venv: &Venv) -> Result<PathBuf, String> {
    let wheels = folder().join("wheels");
    let site = folder().join("site");
    for old in [&wheels, &site] {
        if old.exists() {
            std::fs::remove_dir_all(old)
                .map_err(|error| format!("cannot remove {}: {error}", old.display()))?;
        }
    }
    let mut build = venv.run(&["-m", "maturin", "build", "--quiet", "--release"]);
    build
        .args(["--manifest-path", "examples/showcase/Cargo.toml", "--out"])
        .arg(&wheels)
        .arg("--interpreter")
        .arg(venv.python())
        .env("CARGO_TARGET_DIR", target_dir());
    run(build)?;
    let wheel = std::fs::read_dir(&wheels)
        .map_err(|error| format!("cannot read {}: {error}", wheels.display()))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|suffix| suffix == "whl"))
        .ok_or_else(|| format!("maturin left no wheel in {}", wheels.display()))?;
    let mut unpack = venv.run(&["-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]);
    unpack
        .args(["--disable-pip-version-check", "--target"])
        .arg(&site)
        .arg(wheel);
    run(unpack)?;
    Ok(site)
}

fn folder() -> PathBuf {
    target_dir().join("demo")
}
