//! Run the demonstration: annotated structs, exported and read back.
//!
//! Runs examples/quickstart, and the classes of examples/showcase in NumPy, with pictures in target/demo; both assert all.
//! usage: `cargo xtask demo [--test]`
//!   --test   run the tests of all examples in Python instead; of the package: each class, the conformance kit, the stubs

use crate::prelude::*;

/// NumPy, from the first version that imports read-only memory without a copy.
const PACKAGES: &str = "numpy>=2.1 maturin>=1.16,<2";
const TESTED: &str = "numpy>=2.1 maturin>=1.16,<2 pytest mypy basedpyright array-api-strict jax matplotlib pandas scikit-learn polars pyarrow";
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

/// The tests of the package, those of its notebook on the oldest Python with the stable-ABI module, and those of the other
/// examples.
pub(crate) fn tests(sh: &Shell) -> Result<()> {
    let usual = (interpreter()?, "pyo3/macros", "test");
    let oldest = interpreter_of(10).map(|python| (python, "pyo3/abi3-py310", "notebook"));
    for (python, feature, only) in core::iter::once(usual).chain(oldest) {
        let venv = environment(sh, &python)?;
        let tests = pytest(venv.run(sh), "examples/showcase/tests");
        let tests = tests.env("PYTHONPATH", showcase(sh, &venv, feature)?);
        tests.args(["-k", only]).run()?;
    }
    // The other examples are modules in the folders of their tests, which build them: examples/conftest.py.
    let others = venv(sh, &interpreter()?, "examples", SHOWN)?.run(sh);
    let others = pytest(others, "examples").arg("--ignore=examples/showcase");
    Ok(others.env("PYO3_PYTHON", interpreter()?).run()?)
}

/// The environment of the tests.
pub(crate) fn environment(sh: &Shell, python: &Path) -> Result<Venv> {
    venv(sh, python, "showcase", TESTED)
}

/// The showcase and the conformance kit, for `PYTHONPATH`.
fn showcase(sh: &Shell, venv: &Venv, feature: &str) -> Result<std::ffi::OsString> {
    let words = "--generate-stubs -m examples/showcase/Cargo.toml --features stubs --features";
    let site = built(sh, venv, "showcase", &format!("{words} {feature}"))?;
    let kit = root().join("conformance/src");
    Ok(std::env::join_paths([site, kit])?)
}

/// Builds a package with the environment's maturin, and returns the folder that contains it, for `PYTHONPATH`.
///
/// It is not installed into the environment, which other checkouts share.
pub(crate) fn built(sh: &Shell, venv: &Venv, name: &str, words: &str) -> Result<PathBuf> {
    let folder = target_dir().join("wheels").join(name);
    sh.remove_path(&folder)?;
    let build = venv.run(sh).line("-m maturin build --quiet --release");
    let build = build.line(words).arg("--interpreter").arg(venv.python());
    let build = build.env("CARGO_TARGET_DIR", target_dir());
    build.arg("--out").arg(&folder).run()?;
    unpacked(sh, venv, &folder)
}

/// Unpacks the wheel in a folder, so that it can be imported.
pub(crate) fn unpacked(sh: &Shell, venv: &Venv, folder: &Path) -> Result<PathBuf> {
    let wheel = sh.read_dir(folder)?.pop().context("no wheel")?;
    let site = folder.join("site");
    let unpack = venv.run(sh).line("-m zipfile -e");
    unpack.args([&wheel, &site]).run()?;
    Ok(site)
}
