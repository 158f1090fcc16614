//! `pytest` and `faults`: the Python tests of dlpack-pyo3, once quickly and once on everything that finds faults.

mod interpreters;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::python::{Venv, extension, interpreter, library, venv_of};
use crate::step::{
    Outcome, Step, StepResult, cargo, nightly, output, program, root, run, run_all, succeeds,
    target_dir,
};

pub(crate) const HELP: &str = "
Builds the module dlpack_probe and runs the tests of dlpack-pyo3/pytests/tests with it, in an environment of its own
that has pytest and numpy. The variable PYTHON chooses the interpreter.

usage: cargo xtask pytest [-k EXPRESSION] [-x]
  -k EXPRESSION   only the tests whose names fit, as pytest understands it
  -x              stop at the first failure
";

pub(crate) const FAULTS_HELP: &str = "
Runs the same tests where faults show that an ordinary run hides:
  every Python from 3.10 on that is found, with a module of its own and with the one of the stable ABI
  debug and free-threaded Pythons, where `--interpreters` built them
  threads for a minute, processes that end or fork again and again
  AddressSanitizer in CPython, and valgrind
What cannot be done on this machine is skipped, and the last lines say so.

usage: cargo xtask faults [--interpreters] [--seconds N] [--rounds N] [--only WORD]
  --interpreters   first build the debug and free-threaded Pythons that are missing, from the sources that the
                   system's package manager has (Debian; once, a quarter of an hour)
  --seconds N      how long each test with threads runs (default 10: a minute for all of them)
  --rounds N       how often each exit is tried (default 20)
  --only WORD      only the steps whose name contains the word
";

const TESTS: &str = "dlpack-pyo3/pytests/tests";
const PACKAGE: &str = "dlpack-pytests";
const MODULE: &str = "dlpack_probe";
/// The driver without a GPU.
const SIMULATOR: &str = "dlpack-simulator";
const NEEDED: [&str; 2] = ["pytest", "numpy"];

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let mut words = Vec::new();
    if let Some(expression) = args.value("-k")? {
        words.extend(["-k".to_owned(), expression]);
    }
    if args.flag("-x") {
        words.push("-x".to_owned());
    }
    args.finish()?;
    let python = interpreter()?;
    let run = Run::new(&python)?;
    let step = Step::command(
        format!("Python tests with {}", python.display()),
        run.pytest(&words),
    );
    run_all("pytest", vec![step], false)
}

/// What `test` runs: skipped, saying so, where there is no Python.
pub(crate) fn step() -> Step {
    Step::new("Python tests", || match interpreter() {
        Err(reason) => Ok(Outcome::Skipped(reason)),
        Ok(python) => run(Run::new(&python)?.pytest(&[])),
    })
}

/// The same tests with the module that another manifest builds, beside which it is built; nothing where
/// there is no Python.
pub(crate) fn with_manifest(manifest: &Path) -> Result<Option<Command>, String> {
    let Ok(python) = interpreter() else {
        return Ok(None);
    };
    let build = cargo(&["build", "--manifest-path", &manifest.to_string_lossy()]);
    let target = manifest.with_file_name("target");
    let here = Run::built(environment(&python)?, build, &target, "debug")?;
    Ok(Some(here.pytest(&[])))
}

/// One interpreter with its environment and the module built for it, and the driver that all of them use.
struct Run {
    venv: Venv,
    module: PathBuf,
    driver: PathBuf,
}

impl Run {
    fn new(python: &Path) -> Result<Self, String> {
        let venv = environment(python)?;
        let path = venv.python();
        let env = [("PYO3_PYTHON", &*path.to_string_lossy())];
        let module = extension(PACKAGE, MODULE, MODULE, false, &env)?;
        Ok(Self {
            venv,
            module,
            driver: driver()?,
        })
    }

    /// With a module that `build` makes below `target`, in the folder `built`.
    fn built(venv: Venv, mut build: Command, target: &Path, built: &str) -> Result<Self, String> {
        build
            .args(["--quiet", "-p", PACKAGE])
            .env("PYO3_PYTHON", venv.python())
            // Or it would want to link what the interpreter brings.
            .env("PYO3_BUILD_EXTENSION_MODULE", "1")
            .env("CARGO_TARGET_DIR", target);
        run(build)?;
        let module = target.join("module");
        let library = target.join(built).join("libdlpack_probe.so");
        std::fs::create_dir_all(&module)
            .and_then(|()| std::fs::copy(&library, module.join("dlpack_probe.so")))
            .map_err(|error| format!("cannot copy {}: {error}", library.display()))?;
        Ok(Self {
            venv,
            module,
            driver: driver()?,
        })
    }

    fn pytest(&self, words: &[String]) -> Command {
        let mut command = self.venv.run(&["-m", "pytest", "-q"]);
        // A plugin of the user's, or a cache in the checkout, is none of our tests' business.
        command.args(["-p", "no:cacheprovider", "--rootdir", TESTS, TESTS]);
        command.args(words);
        command.env("PYTHONPATH", &self.module);
        command.env("DLPACK_SIMULATOR", &self.driver);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// Builds the driver without a GPU, which needs no Python.
fn driver() -> Result<PathBuf, String> {
    run(cargo(&["build", "--quiet", "-p", SIMULATOR]))?;
    Ok(target_dir().join("debug").join(library("dlpack_simulator")))
}

/// numpy is left out where it cannot be had: the tests that need it skip themselves.
fn environment(python: &Path) -> Result<Venv, String> {
    venv_of(python, "pytest", &NEEDED).or_else(|_| venv_of(python, "pytest", &NEEDED[..1]))
}

pub(crate) fn faults(mut args: Args) -> Result<(), String> {
    let build = args.flag("--interpreters");
    let seconds = number(&mut args, "--seconds", 10)?;
    let rounds = number(&mut args, "--rounds", 20)?;
    let only = args.value("--only")?.unwrap_or_default();
    args.finish()?;

    if build {
        // What this builds is found only after it ran.
        run_all("faults: interpreters", interpreters::steps(), true)?;
    }
    let mut steps: Vec<(String, Box<dyn FnOnce() -> StepResult>)> = Vec::new();
    let mut add = |name: String, action: Box<dyn FnOnce() -> StepResult>| {
        if name.contains(&only) {
            steps.push((name, action));
        }
    };
    add(
        "threads, exits and forks, for long".into(),
        Box::new(move || long(&seconds, &rounds)),
    );
    for (name, python) in interpreters::found() {
        let action = move || run(Run::new(&python)?.pytest(&[]));
        add(format!("Python {name}"), Box::new(action));
    }
    add(
        "one module for all Pythons (abi3)".into(),
        Box::new(stable_abi),
    );
    add(
        "AddressSanitizer in CPython".into(),
        Box::new(address_sanitizer),
    );
    add("valgrind over CPython".into(), Box::new(valgrind));
    let steps = steps
        .into_iter()
        .map(|(name, action)| Step::new(name, action));
    run_all("faults", steps.collect(), true)
}

fn number(args: &mut Args, name: &str, usual: u32) -> Result<String, String> {
    let given = args.value(name)?.unwrap_or_else(|| usual.to_string());
    match given.parse::<u32>() {
        Ok(_) => Ok(given),
        Err(_) => Err(format!("`{name} {given}`: a whole number is needed")),
    }
}

/// Threads and exits, for longer than anybody waits before a commit.
fn long(seconds: &str, rounds: &str) -> StepResult {
    let words = ["-k", "threads or exit"].map(str::to_owned);
    let mut command = Run::new(&interpreter()?)?.pytest(&words);
    command
        .env("DLPACK_SECONDS", seconds)
        .env("DLPACK_ROUNDS", rounds)
        .env("DLPACK_FORKS", "200");
    run(command)
}

/// One module of the stable ABI, built once, on every Python that can load it.
fn stable_abi() -> StepResult {
    let mut pythons = interpreters::found();
    // A free-threaded Python has an ABI of its own.
    pythons.retain(|(name, _)| !name.ends_with('t'));
    let Some((_, oldest)) = pythons.first() else {
        return Ok(Outcome::Skipped("no Python is found".into()));
    };
    let build = cargo(&[
        "build",
        "--no-default-features",
        "--features",
        "pyo3/abi3-py310",
    ]);
    let target = target_dir().join("stable-python");
    let built = Run::built(environment(oldest)?, build, &target, "debug")?;
    let Run { module, driver, .. } = built;
    for (_, python) in &pythons {
        let here = Run {
            venv: environment(python)?,
            module: module.clone(),
            driver: driver.clone(),
        };
        run(here.pytest(&[]))?;
    }
    Ok(Outcome::Passed)
}

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn address_sanitizer() -> StepResult {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Outcome::Skipped(format!("it is set up for {TARGET} only")));
    }
    if !succeeds(nightly(&["--version"])) {
        return Ok(Outcome::Skipped("no nightly toolchain is installed".into()));
    }
    let Some(library) = gcc_library("libasan.so") else {
        return Ok(Outcome::Skipped("gcc's libasan.so is not installed".into()));
    };
    let mut build = nightly(&["build", "--target", TARGET]);
    build.env("RUSTFLAGS", "-Zsanitizer=address");
    let target = target_dir().join("asan-python");
    let built = format!("{TARGET}/debug");
    let here = Run::built(environment(&interpreter()?)?, build, &target, &built)?;
    let mut command = here.pytest(&["-p", "no:faulthandler", "--capture=sys"].map(str::to_owned));
    // The interpreter never frees all of its own, so leaks are counted by the tests themselves. What the
    // sanitizer writes must not go where pytest catches it.
    command
        .env("LD_PRELOAD", library)
        .env("PYTHONMALLOC", "malloc")
        .env(
            "ASAN_OPTIONS",
            "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096",
        );
    run(command)
}

/// Where gcc keeps a library of its own.
fn gcc_library(name: &str) -> Option<PathBuf> {
    let path = output(program("gcc", &[&format!("-print-file-name={name}")])).ok()?;
    // Without it gcc gives the name back.
    let path = PathBuf::from(path.trim());
    path.is_absolute().then_some(path)
}

/// The tests that touch memory in every way; all of them would take an hour.
const UNDER_VALGRIND: &str =
    "(test_capsule or test_exchange or test_import or test_borrow) and not memory";

fn valgrind() -> StepResult {
    if !succeeds(program("valgrind", &["--version"])) {
        return Ok(Outcome::Skipped("valgrind is not installed".into()));
    }
    let here = Run::new(&interpreter()?)?;
    let suppressions = target_dir().join("python.supp");
    std::fs::write(&suppressions, suppressed())
        .map_err(|error| format!("cannot write {}: {error}", suppressions.display()))?;
    let mut command = Command::new("valgrind");
    command
        .current_dir(root())
        .args(["--quiet", "--error-exitcode=9", "--leak-check=no"])
        .arg(format!("--suppressions={}", suppressions.display()))
        .arg(here.venv.python())
        .args([
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:faulthandler",
            "--capture=sys",
        ])
        .args(["--rootdir", TESTS, TESTS, "-k", UNDER_VALGRIND])
        .env("PYTHONPATH", &here.module)
        .env("DLPACK_SIMULATOR", &here.driver)
        .env("PYTHONMALLOC", "malloc")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    run(command)
}

/// The interpreter reads what it has not written, such as the header of a compiled module; we must not.
fn suppressed() -> String {
    let mut text = String::new();
    for kind in ["Cond", "Value8"] {
        for object in ["*/libpython*", "*/bin/python*"] {
            text += &format!("{{\n   {kind}\n   Memcheck:{kind}\n   obj:{object}\n}}\n");
        }
    }
    text
}
