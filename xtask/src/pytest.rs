//! Run the Python tests of dlpack-pyo3, in an environment of their own that has pytest and numpy.
//!
//! usage: `cargo xtask pytest [WORDS]`; the variable PYTHON chooses the interpreter
//!   WORDS   what pytest understands, such as `-x` to stop at the first failure or `-k NAME` to choose

use crate::prelude::*;

const PACKAGE: &str = "dlpack-pytests";
/// The minor versions of PyO3 before the newest, which every other step uses.
const OLDER_PYO3: [&str; 2] = ["0.28", "0.29"];
/// The words for cargo that build the module with the stable ABI. It lacks functions of CPython, so code takes other paths.
pub(crate) const STABLE_ABI: [&str; 3] = ["--no-default-features", "--features", "pyo3/abi3-py310"];
/// Succeeds in the free-threaded build of CPython 3.13, which PyO3 0.28 is the last to support.
const IS_3_13T: &str = "import sys, sysconfig; \
    sys.exit(sys.version_info >= (3, 14) or not sysconfig.get_config_var('Py_GIL_DISABLED'))";

pub(crate) fn main(sh: &Shell, args: Arguments) -> Result<()> {
    let (python, words) = (interpreter()?, args.finish());
    let name = format!("Python tests with {}", python.display());
    let step = move |sh: &Shell| Ok(Run::new(sh, &python)?.pytest(sh).args(words).run()?);
    Step::new(name, step).alone(sh, "pytest")
}

/// The steps for `test`: the tests with the newest PyO3 that dlpack-pyo3 accepts, and with each older one. The last of them also
/// uses the stable ABI, since a run of its own would take minutes.
pub(crate) fn steps() -> [Step; 3] {
    let newest = |sh: &Shell| Ok(Run::new(sh, &interpreter()?)?.pytest(sh).run()?);
    let older = |version, abi: &'static [&str]| {
        move |sh: &Shell| {
            let run = Run::with_pyo3(sh, &interpreter()?, version, abi)?;
            Ok(run.pytest(sh).run()?)
        }
    };
    let [oldest, other] = OLDER_PYO3;
    [
        Step::new("Python tests", newest),
        Step::new(
            format!("Python tests with PyO3 {oldest}"),
            older(oldest, &[]),
        ),
        Step::new(
            format!("Python tests with PyO3 {other} and the stable ABI"),
            older(other, &STABLE_ABI),
        ),
    ]
}

/// One interpreter with its environment, the module built for it, and the driver that all of them use.
pub(crate) struct Run {
    pub(crate) venv: Venv,
    pub(crate) module: PathBuf,
    pub(crate) driver: PathBuf,
    /// The older version of PyO3 that the module is built with.
    older_pyo3: Option<&'static str>,
}

impl Run {
    /// Builds the module with the newest PyO3 that supports this interpreter.
    pub(crate) fn new(sh: &Shell, python: &Path) -> Result<Self> {
        if succeeds(sh.cmd(python).args(["-c", IS_3_13T])) {
            return Self::with_pyo3(sh, python, OLDER_PYO3[0], &[]);
        }
        Self::with_module(sh, python, &module(sh, python)?)
    }

    pub(crate) fn with_module(sh: &Shell, python: &Path, module: &Path) -> Result<Self> {
        let venv_of = |packages| venv(sh, python, "pytest", packages);
        let venv = venv_of("pytest numpy ml_dtypes joblib").or_else(|_| venv_of("pytest numpy"));
        // The tests skip themselves if a package is missing.
        let venv = venv.or_else(|_| venv_of("pytest"))?;
        let (module, driver) = (module.to_owned(), driver(sh)?);
        Ok(Self {
            venv,
            module,
            driver,
            older_pyo3: None,
        })
    }

    /// Cargo resolves a range to its newest version, so an older one needs another package with the same sources.
    fn with_pyo3(sh: &Shell, python: &Path, version: &'static str, abi: &[&str]) -> Result<Self> {
        let folder = target_of(python).join(format!("pyo3-{version}"));
        let manifest = folder.join("Cargo.toml");
        let text = sh.read_file("dlpack-pyo3/pytests/older-pyo3.toml")?;
        let text = text.replace("{{root}}", &root().display().to_string());
        sh.write_file(&manifest, text.replace("{{version}}", version))?;
        let command = cmd!(sh, "cargo build --manifest-path {manifest} {abi...}");
        let module = build(python, command, &folder.join("target"), "debug")?;
        Ok(Self {
            older_pyo3: Some(version),
            ..Self::with_module(sh, python, &module)?
        })
    }

    /// All tests.
    pub(crate) fn pytest<'a>(&self, sh: &'a Shell) -> Cmd<'a> {
        self.pytest_of(self.venv.run(sh))
    }

    /// All tests, with a given interpreter command.
    pub(crate) fn pytest_of<'a>(&self, python: Cmd<'a>) -> Cmd<'a> {
        let pytest = pytest(python, "dlpack-pyo3/pytests/tests");
        let pytest = pytest.env("DLPACK_SIMULATOR", &self.driver);
        let pytest = pytest.env("DLPACK_OLDER_PYO3", self.older_pyo3.unwrap_or_default());
        pytest.env("PYTHONPATH", &self.module)
    }
}

/// Builds the module for this interpreter, and returns the folder to import it from.
pub(crate) fn module(sh: &Shell, python: &Path) -> Result<PathBuf> {
    build(python, cmd!(sh, "cargo build"), &target_of(python), "debug")
}

/// The folder in which cargo builds for this interpreter. All but `python3` have their own: in a shared one they would rebuild
/// each other's dependencies, and two runs with different values of `PYTHON` would replace each other's module.
fn target_of(python: &Path) -> PathBuf {
    let target = target_dir();
    if is_default_interpreter(python) {
        return target;
    }
    target.join(format!("python-{}", key(python, "")))
}

/// Builds the module with a given command, into the folder `built` of `target`, and returns the folder to import it from.
pub(crate) fn build(python: &Path, cargo: Cmd<'_>, target: &Path, built: &str) -> Result<PathBuf> {
    let command = cargo.args(["--quiet", "-p", PACKAGE]);
    let command = command.env("CARGO_TARGET_DIR", target);
    command.env("PYO3_PYTHON", python).run()?;
    place_module(&target.join(built), "dlpack_probe", &target.join("module"))
}

/// Copies a cdylib to a folder under the name that Python expects, and returns that folder.
pub(crate) fn place_module(built: &Path, name: &str, folder: &Path) -> Result<PathBuf> {
    let suffix = if cfg!(windows) { "pyd" } else { "so" };
    let module = folder.join(name).with_extension(suffix);
    replace(&shell()?, &built.join(library(name)), &module)?;
    Ok(folder.to_owned())
}

/// The file name of a cdylib on this system.
fn library(name: &str) -> String {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    format!("{DLL_PREFIX}{name}{DLL_SUFFIX}")
}

/// Builds the driver without a GPU, which needs no Python.
pub(crate) fn driver(sh: &Shell) -> Result<PathBuf> {
    cmd!(sh, "cargo build --quiet -p dlpack-simulator").run()?;
    Ok(target_dir().join("debug").join(library("dlpack_simulator")))
}
