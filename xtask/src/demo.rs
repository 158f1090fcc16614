//! Run the demonstration: annotated structs, exported and read back.
//!
//! Runs examples/quickstart, and the classes of examples/showcase in NumPy, with pictures in target/demo; both assert all.
//! usage: `cargo xtask demo [--test]`
//!   --test   run the tests of all examples in Python instead; of the package: each class, the conformance kit, the stubs

use crate::prelude::*;

/// NumPy from the first that takes read-only memory without a copy.
const PACKAGES: &str = "numpy>=2.1 maturin>=1.16,<2";
const TESTED: &str = "numpy>=2.1 maturin>=1.16,<2 pytest mypy basedpyright array-api-strict jax matplotlib pandas scikit-learn";
const SHOWN: &str = "pytest numpy>=2.1 pandas ml_dtypes gymnasium distributed";

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let test = args.contains("--test");
    finish(args)?;
    if test {
        return Step::new("tests of the examples in Python", tests).alone(sh, "demo");
    }
    let rust = Step::line("structs become tensors, no copy: cargo run --quiet -p quickstart");
    let python = Step::new("Python classes become arrays, no copy", python);
    run_all(sh, "demo", vec![rust, python], false)
}

fn python(sh: &Shell) -> Result<()> {
    let venv = venv(sh, &interpreter()?, "demo", PACKAGES)?;
    let show = venv.run(sh).line("-m dlpack_showcase.demo");
    let show = show.env("PYTHONPATH", showcase(sh, &venv, "pyo3/macros")?);
    Ok(show.arg(target_dir().join("demo")).run()?)
}

/// The tests of the package; its notebook on the oldest Python, with the module of the stable ABI; and of the others.
pub(crate) fn tests(sh: &Shell) -> Result<()> {
    let usual = (interpreter()?, "pyo3/macros", "test");
    let oldest = interpreter_of(10).map(|python| (python, "pyo3/abi3-py310", "notebook"));
    for (python, feature, only) in core::iter::once(usual).chain(oldest) {
        let venv = environment(sh, &python)?;
        let tests = pytest(venv.run(sh), "examples/showcase/tests");
        let tests = tests.env("PYTHONPATH", showcase(sh, &venv, feature)?);
        tests.args(["-k", only]).run()?;
    }
    // The others are modules beside their tests, which build them: examples/conftest.py.
    let others = venv(sh, &interpreter()?, "examples", SHOWN)?.run(sh);
    let others = pytest(others, "examples").arg("--ignore=examples/showcase");
    Ok(others.env("PYO3_PYTHON", interpreter()?).run()?)
}

pub(crate) fn environment(sh: &Shell, python: &Path) -> Result<Venv> {
    venv(sh, python, "showcase", TESTED)
}

/// Builds the package with the environment's maturin, and gives the folder that holds it for `PYTHONPATH`.
///
/// It is not installed into the environment, which other checkouts share.
fn showcase(sh: &Shell, venv: &Venv, feature: &str) -> Result<PathBuf> {
    let [wheels, site] = ["demo/wheels", "demo/site"].map(|name| target_dir().join(name));
    sh.remove_path(&wheels)?;
    sh.remove_path(&site)?;
    let words = "-m maturin build --quiet --release --generate-stubs -m examples/showcase/Cargo.toml --features stubs --features";
    let build = venv.run(sh).line(words).args([feature, "--interpreter"]);
    let build = build.arg(venv.python()).arg("--out").arg(&wheels);
    build.env("CARGO_TARGET_DIR", target_dir()).run()?;
    let wheel = sh.read_dir(&wheels)?.pop().context("no wheel")?;
    let words = "-m pip install --quiet --no-deps --no-index --disable-pip-version-check --target";
    venv.run(sh).line(words).args([site.clone(), wheel]).run()?;
    Ok(site)
}
