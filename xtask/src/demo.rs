//! Run the demonstration: annotated structs, exported and read back.
//!
//! Runs examples/quickstart, and builds the Python package examples/showcase, whose classes NumPy reads. Two pictures are
//! written to target/demo. Both assert what they print: when the command ends without an error, every line was true.
//! usage: `cargo xtask demo [--test]`
//!   --test   run the tests of the Python package instead: each class, the conformance kit, the type stubs

use crate::prelude::*;

/// NumPy from the first that takes read-only memory without a copy.
const PACKAGES: [&str; 2] = ["numpy>=2.1", "maturin>=1.16,<2"];
const TESTED: [&str; 5] = ["pytest", "mypy", "basedpyright", "array-api-strict", "jax"];

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let test = args.contains("--test");
    finish(args)?;
    if test {
        return Step::new("tests of examples/showcase", tests).alone(sh, "demo");
    }
    let rust = Step::line("structs become tensors, no copy: cargo run --quiet -p quickstart");
    let python = Step::new("Python classes become arrays, no copy", python);
    run_all(sh, "demo", vec![rust, python], false)
}

fn python(sh: &Shell) -> Result<()> {
    let venv = venv(sh, &interpreter()?, "demo", &PACKAGES)?;
    let show = venv.run(sh).args(["-m", "dlpack_showcase.demo"]);
    let show = show.arg(target_dir().join("demo"));
    Ok(show.env("PYTHONPATH", showcase(sh, &venv)?).run()?)
}

/// The tests of the package.
pub(crate) fn tests(sh: &Shell) -> Result<()> {
    let packages: Vec<_> = PACKAGES.into_iter().chain(TESTED).collect();
    let venv = venv(sh, &interpreter()?, "showcase", &packages)?;
    let tests = pytest(venv.run(sh), "examples/showcase/tests");
    Ok(tests.env("PYTHONPATH", showcase(sh, &venv)?).run()?)
}

/// Builds the package with the environment's maturin, and gives the folder that holds it for `PYTHONPATH`.
///
/// It is not installed into the environment, which other checkouts share.
fn showcase(sh: &Shell, venv: &Venv) -> Result<PathBuf> {
    let [wheels, site] = ["demo/wheels", "demo/site"].map(|name| target_dir().join(name));
    sh.remove_path(&wheels)?;
    sh.remove_path(&site)?;
    let words = "-m maturin build --quiet --release --generate-stubs --features stubs --manifest-path examples/showcase/Cargo.toml";
    let build = venv.run(sh).line(words).arg("--interpreter");
    let build = build.arg(venv.python()).arg("--out").arg(&wheels);
    build.env("CARGO_TARGET_DIR", target_dir()).run()?;
    let wheel = sh.read_dir(&wheels)?.pop().context("no wheel")?;
    let words = "-m pip install --quiet --no-deps --no-index --disable-pip-version-check --target";
    venv.run(sh).line(words).args([site.clone(), wheel]).run()?;
    Ok(site)
}
