//! Run the Python tests of dlpack-pyo3, in an environment of their own that has pytest and numpy.
//!
//! The variable PYTHON chooses the interpreter.
//! usage: `cargo xtask pytest [-k EXPRESSION] [-x]`
//!   -k EXPRESSION   only the tests whose names fit, as pytest understands it
//!   -x              stop at the first failure

pub(crate) mod faults;
mod interpreters;

use crate::prelude::*;

const TESTS: &str = "dlpack-pyo3/pytests/tests";
const PACKAGE: &str = "dlpack-pytests";
/// The minor versions of PyO3 before the newest, which every other step uses.
const OLDER_PYO3: [&str; 2] = ["0.28", "0.29"];

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let expression: Option<String> = args.opt_value_from_str("-k")?;
    let mut words: Vec<_> = expression.into_iter().flat_map(|expression| ["-k".into(), expression]).collect();
    words.extend(args.contains("-x").then(|| "-x".into()));
    finish(args)?;
    let python = interpreter()?;
    let step = Step::new(format!("Python tests with {}", python.display()), move |sh| {
        Ok(Run::new(sh, &python)?.pytest(sh).args(words).run()?)
    });
    run_all(sh, "pytest", vec![step], false)
}

/// What `test` runs: the tests with the newest PyO3 that dlpack-pyo3 accepts, and with each older one.
pub(crate) fn steps() -> Vec<Step> {
    let newest = Step::new("Python tests", |sh| Ok(Run::new(sh, &interpreter()?)?.pytest(sh).run()?));
    let older = OLDER_PYO3.map(|version| {
        Step::new(format!("Python tests with PyO3 {version}"), move |sh| {
            Ok(Run::with_pyo3(sh, version)?.pytest(sh).run()?)
        })
    });
    core::iter::once(newest).chain(older).collect()
}

/// One interpreter with its environment and the module built for it, and the driver that all of them use.
struct Run {
    venv: Venv,
    module: PathBuf,
    driver: PathBuf,
}

impl Run {
    fn new(sh: &Shell, python: &Path) -> Result<Self> {
        Self::with_module(sh, python, module(sh, python)?)
    }

    fn with_module(sh: &Shell, python: &Path, module: PathBuf) -> Result<Self> {
        let venv = venv_of(sh, python, "pytest", &["pytest", "numpy"]);
        // The tests that need numpy skip themselves where it cannot be had.
        let venv = venv.or_else(|_| venv_of(sh, python, "pytest", &["pytest"]))?;
        Ok(Self { venv, module, driver: driver(sh)? })
    }

    /// Cargo resolves a range to its newest version, so an older one takes a package of its own, with its own
    /// lock file, over the same sources.
    fn with_pyo3(sh: &Shell, version: &str) -> Result<Self> {
        let python = interpreter()?;
        let folder = target_dir().join(format!("pyo3-{version}"));
        let manifest = folder.join("Cargo.toml");
        let [sources, library] = ["dlpack-pyo3/pytests/src/lib.rs", "dlpack-pyo3"].map(|path| root().join(path));
        let text = format!(
            "[workspace]
[package]
name = {PACKAGE:?}
edition = \"2024\"
[lib]
name = \"dlpack_probe\"
path = {sources:?}
crate-type = [\"cdylib\"]
[features]
default = [\"own-abi\"]
own-abi = []
[dependencies]
dlpack-pyo3.path = {library:?}
pyo3 = {{ version = {version:?}, default-features = false, features = [\"macros\", \"extension-module\"] }}
"
        );
        sh.write_file(&manifest, text)?;
        let command = cmd!(sh, "cargo build --manifest-path {manifest}");
        let module = build(sh, &python, command, &folder.join("target"), "debug")?;
        Self::with_module(sh, &python, module)
    }

    fn pytest<'a>(&self, sh: &'a Shell) -> Cmd<'a> {
        self.venv.pytest(sh, TESTS).env("PYTHONPATH", &self.module).env("DLPACK_SIMULATOR", &self.driver)
    }
}

/// Builds the module for this interpreter, and gives the folder in which it finds it.
pub(crate) fn module(sh: &Shell, python: &Path) -> Result<PathBuf> {
    let usual = interpreter().is_ok_and(|usual| usual == python);
    // A folder for each of the others: in one they would build each other's dependencies anew.
    let target = if usual { target_dir() } else { target_dir().join(format!("python-{}", key(python, &[]))) };
    build(sh, python, cmd!(sh, "cargo build"), &target, "debug")
}

/// The same with a command that builds it in another way, into the folder `built` of `target`.
fn build(sh: &Shell, python: &Path, command: Cmd<'_>, target: &Path, built: &str) -> Result<PathBuf> {
    let command = command.args(["--quiet", "-p", PACKAGE]).env("PYO3_PYTHON", python).env("CARGO_TARGET_DIR", target);
    // Or it would want to link what the interpreter brings. Where everything else is built, all would be built anew.
    let link = (target != target_dir()).then_some(("PYO3_BUILD_EXTENSION_MODULE", "1"));
    command.envs(link).run()?;
    let name = if cfg!(windows) { "dlpack_probe.pyd" } else { "dlpack_probe.so" };
    replace(sh, &target.join(built).join(library("dlpack_probe")), &target.join("module").join(name))?;
    Ok(target.join("module"))
}

/// How cargo names a cdylib here.
pub(crate) fn library(name: &str) -> String {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    format!("{DLL_PREFIX}{name}{DLL_SUFFIX}")
}

/// Builds the driver without a GPU, which needs no Python.
pub(crate) fn driver(sh: &Shell) -> Result<PathBuf> {
    cmd!(sh, "cargo build --quiet -p dlpack-simulator").run()?;
    Ok(target_dir().join("debug").join(library("dlpack_simulator")))
}
