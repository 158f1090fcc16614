//! Run the Python tests where faults show that an ordinary run hides.
//!
//! Every Python from 3.10 on that is found, with a module of its own and with the one of the stable ABI; debug and
//! free-threaded ones; AddressSanitizer; valgrind; the campaigns of dlpack-pyo3/pytests/campaign, which write spec/campaign.md.
//! usage: `cargo xtask faults [--only WORD] [WORDS]`
//!   --only WORD   only the steps whose name contains the word, such as `campaigns`
//!   WORDS         what the driver of the campaigns understands, such as `--scale short` or `--play threads`

use crate::prelude::*;
use crate::pytest::{Run, STABLE_ABI, build};

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let only: String = args.opt_value_from_str("--only")?.unwrap_or_default();
    let words = args.finish();
    let mut steps = Vec::new();
    for (name, python) in interpreters() {
        let tests = move |sh: &Shell| Ok(Run::new(sh, &python)?.pytest(sh).run()?);
        steps.push(Step::new(format!("Python {name}"), tests));
    }
    steps.extend([
        Step::new("one module for all Pythons (abi3)", stable_abi),
        Step::new("AddressSanitizer in CPython", address_sanitizer),
        Step::new("valgrind over CPython", under_valgrind),
    ]);
    let mut steps: Vec<_> = steps.into_iter().map(|step| step.limit(4 * HOUR)).collect();
    // Each campaign has a time limit of its own.
    let campaigns = Step::new("campaigns", move |sh| campaigns(sh, &words));
    steps.push(campaigns.limit(48 * HOUR));
    let names: Vec<_> = steps.iter().map(|step| step.name.clone()).collect();
    steps.retain(|step| step.name.contains(&only));
    let names = names.join("; ");
    ensure!(!steps.is_empty(), "no `{only}` among the steps: {names}");
    run_all(sh, "faults", steps, true)
}

/// Every installed Python, by name; those with a letter come from `.ci/debian pythons`.
fn interpreters() -> Vec<(String, PathBuf)> {
    let usual = (10..16).map(|minor| Some((format!("3.{minor}"), interpreter_of(minor)?)));
    let special = ["3.13d", "3.14d", "3.13t", "3.14t"];
    let special = special.map(|name| Some((name.to_owned(), cached_interpreter(name)?)));
    usual.chain(special).flatten().collect()
}

/// One module of the stable ABI, built once, on every Python that can load it.
fn stable_abi(sh: &Shell) -> Result<()> {
    let mut pythons = interpreters();
    // A free-threaded Python has an ABI of its own.
    pythons.retain(|(name, _)| !name.ends_with('t'));
    let (_, oldest) = pythons.first().context("no Python is found")?;
    let command = cmd!(sh, "cargo build").args(STABLE_ABI);
    let module = &build(oldest, command, &target_dir().join("abi3"), "debug")?;
    let test = |python| Ok(Run::with_module(sh, python, module)?.pytest(sh).run()?);
    pythons.iter().try_for_each(|(_, python)| test(python))
}

/// The crash itself must end the tests, so pytest catches nothing.
const UNCAUGHT: [&str; 5] = [
    "-p",
    "no:faulthandler",
    "--capture=sys",
    // It does not know the options of the disabled plugin.
    "-W",
    "ignore::pytest.PytestConfigWarning",
];

fn address_sanitizer(sh: &Shell) -> Result<()> {
    let (python, module, library) = sanitized_module(sh)?;
    let pytest = Run::with_module(sh, &python, &module)?.pytest(sh);
    let pytest = pytest.args(UNCAUGHT).env("PYTHONMALLOC", "malloc");
    let pytest = pytest.env("LD_PRELOAD", library);
    // The interpreter never frees all of its memory, so the tests count leaks themselves.
    let options = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096";
    Ok(pytest.env("ASAN_OPTIONS", options).run()?)
}

/// The interpreter, our module for it built with AddressSanitizer, and the library to preload. A step that needs them is skipped
/// if one is missing.
fn sanitized_module(sh: &Shell) -> Result<(PathBuf, PathBuf, String)> {
    /// Instrumented code needs an explicit target: proc macros and build scripts then stay uninstrumented.
    const SANITIZED: &str = "x86_64-unknown-linux-gnu";
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skip(format!("it is set up for {SANITIZED} only"));
    }
    if !succeeds(cargo_of(sh, "nightly").arg("--version")) {
        return skip("no nightly toolchain here; `rustup toolchain install nightly` adds it");
    }
    let command = cargo_of(sh, "nightly").args(["build", "--target", SANITIZED]);
    let command = command.env("RUSTFLAGS", "-Zsanitizer=address");
    let gcc = cmd!(sh, "gcc -print-file-name=libasan.so").quiet().read();
    // If the library is missing, gcc prints its name.
    let Some(library) = gcc.ok().filter(|path| path.starts_with('/')) else {
        return skip("gcc's libasan.so is not installed");
    };
    let (python, target) = (interpreter()?, target_dir().join("asan-python"));
    let module = build(&python, command, &target, &format!("{SANITIZED}/debug"))?;
    Ok((python, module, library))
}

/// The tests with the most kinds of memory accesses; all tests would take an hour.
const FEW: &str = "(test_capsule or test_exchange or test_import or test_borrow) and not memory";

fn under_valgrind(sh: &Shell) -> Result<()> {
    if !succeeds(cmd!(sh, "valgrind --version")) {
        return skip(
            "valgrind is missing; `apt-get install valgrind` installs it on Debian and Ubuntu",
        );
    }
    let run = Run::new(sh, &interpreter()?)?;
    let known = "--suppressions=dlpack-pyo3/pytests/valgrind.supp";
    let valgrind = sh.line("valgrind --quiet --error-exitcode=9 --leak-check=no");
    let valgrind = valgrind.arg(known).env("PYTHONDONTWRITEBYTECODE", "1");
    let pytest = run.pytest_of(valgrind.arg(run.venv.python()));
    let pytest = pytest.args(UNCAUGHT).args(["-k", FEW]);
    Ok(pytest.env("PYTHONMALLOC", "malloc").run()?)
}

/// On the default Python, and on the newest one of its kind; some also on the newest debug build. A driver in Python runs them,
/// and writes the table.
fn campaigns(sh: &Shell, words: &[std::ffi::OsString]) -> Result<()> {
    let usual = interpreter()?;
    let mut driver = cmd!(sh, "{usual} dlpack-pyo3/pytests/campaign/run.py {words...}");
    let (mut debug, mut pythons) = (interpreters(), interpreters());
    pythons.retain(|(name, _)| !name.ends_with(['d', 't']));
    debug.retain(|(name, _)| name.ends_with('d'));
    let (_, newest) = pythons.pop().context("no Python is found")?;
    let mut played = vec![("--python", usual), ("--python", newest)];
    match debug.pop() {
        Some((_, python)) => played.push(("--debug", python)),
        // The other campaigns run without it, and the table shows that these rows are missing.
        None => println!("SKIPPED the debug build of CPython: `.ci/debian pythons` makes one"),
    }
    for (word, python) in played {
        let run = Run::new(sh, &python)?;
        driver = driver.env("DLPACK_SIMULATOR", &run.driver);
        driver = driver.arg(word).args([run.venv.python(), run.module]);
    }
    // `--play WORD` may leave out the only campaign that needs the sanitizer.
    let is_played =
        |word: &std::ffi::OsString| word.to_str().is_some_and(|word| "records".contains(word));
    if !words.iter().any(|word| word == "--play") || words.iter().any(is_played) {
        match sanitized_module(sh) {
            Ok((python, module, library)) => {
                let run = Run::with_module(sh, &python, &module)?;
                driver = driver
                    .arg("--address")
                    .args([run.venv.python(), run.module]);
                driver = driver.arg(library);
            }
            Err(reason) if reason.is::<Skipped>() => println!("SKIPPED AddressSanitizer: {reason}"),
            Err(error) => return Err(error),
        }
    }
    Ok(driver.run()?)
}
