//! Run the benchmarks, one after another; benches/README.md says what the numbers mean.
//!
//!   export, import how long an export takes, an imported array to read, a shared buffer to write (criterion)
//!   loops   how long loops over an imported array take, beside slices and ndarray
//!   slices  a function over slices on memory that a struct keeps, beside `Vec`s
//!   instructions   how many instructions it executes; skipped where valgrind is missing
//!   copies         strided copies beside NumPy and memcpy; installs NumPy into a cache folder where it is missing
//!   compile-time   200 derived structs beside those of serde and thiserror
//!   classes        what 100 classes cost the compiler and the library
//!   sizes          what a class, a view and a result add to a library, in bytes
//!   python         our classes beside NumPy, other crates, nanobind and C; builds them all, in about ten minutes
//!   declarations   `__dlpack__` of each way to declare a tensor, beside the fastest of them and NumPy's own array
//!   trace          the source files that one call passes through, in a debugger
//!   peers          every capability beside all who have it; writes the guide's page of benchmarks, in about ten minutes
//! usage: `cargo xtask bench [NAME] [--quick]`
//!   NAME      only this one
//!   --quick   python, declarations, peers: less, and fewer rounds; to see that it works, not to compare

use crate::prelude::*;

/// What the scripts import, and nanobind, whose sources they compile.
const PACKAGES: &str = "numpy apache-tvm-ffi typing_extensions nanobind jax";

/// Counts the instructions of exports, and compares them with those in benches/README.md.
pub(crate) fn instructions(sh: &Shell) -> Result<()> {
    if !succeeds(cmd!(sh, "valgrind --version")) {
        return skip("valgrind is missing; Debian and Ubuntu have a package of that name");
    }
    let bench = sh.line("cargo bench --quiet -p benches --bench instructions");
    Ok(bench.run()?)
}

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let quick = args.contains("--quick");
    let only: String = args.opt_free_from_str()?.unwrap_or_default();
    finish(args)?;
    let mut steps = vec![
        Step::line("export: cargo bench --quiet -p benches --bench export"),
        Step::line("import: cargo bench --quiet -p benches --bench import"),
        Step::line("loops: cargo bench --quiet -p benches --bench loops"),
        Step::line("slices: cargo bench --quiet -p benches --bench slices"),
        Step::new("instructions", instructions),
        Step::line("copies: python3 benches/copies.py"),
        Step::line("compile-time: python3 benches/compile_time.py --trees"),
        Step::line("classes: python3 benches/classes.py"),
        Step::line("sizes: python3 benches/sizes.py"),
        Step::new("python", move |sh| {
            let venv = venv(sh, &interpreter()?, "bench", PACKAGES)?;
            let run = venv.run(sh).arg("benches/python/run.py");
            let few = "--builds thin --processes 1 --rounds 11";
            Ok(run.line(if quick { few } else { "" }).run()?)
        }),
        Step::new("declarations", move |sh| {
            let venv = venv(sh, &interpreter()?, "bench", PACKAGES)?;
            let run = venv.run(sh).arg("benches/python/run.py");
            let few = "--processes 1 --rounds 11";
            let words = run.arg("--declarations").line(if quick { few } else { "" });
            Ok(words.run()?)
        }),
        Step::new("trace", move |sh| {
            let venv = venv(sh, &interpreter()?, "bench", PACKAGES)?;
            Ok(venv.run(sh).arg("benches/trace.py").run()?)
        }),
        Step::new("peers", move |sh| {
            let python = venv(sh, &interpreter()?, "bench", PACKAGES)?;
            let mut run = python.run(sh).arg("benches/peers.py");
            if let Some(free) = cached_interpreter("3.14t") {
                let free = venv(sh, &free, "bench", "numpy nanobind")?;
                run = run.arg("--free-threaded").arg(free.python());
            }
            Ok(run.line(if quick { "--quick" } else { "" }).run()?)
        }),
    ];
    steps.retain(|step| only.is_empty() || step.name == only);
    ensure!(!steps.is_empty(), "no `{only}`; `--help` lists all");
    let steps = steps.into_iter().map(|step| step.limit(4 * HOUR)).collect();
    run_all(sh, "bench", steps, true)
}
