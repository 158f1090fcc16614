//! `bench`: the benchmarks of benches/.

use crate::args::Args;
use crate::python::venv;
use crate::step::{Step, cargo, program, run, run_all};

pub(crate) const HELP: &str = "
Runs the benchmarks, one after another, and shows what they print; benches/README.md says what the numbers mean.
  export         how long an export takes (criterion)
  instructions   how many instructions it executes; says so and goes on where valgrind is missing
  copies         strided copies beside NumPy and memcpy; installs NumPy into a cache folder where it is missing
  compile-time   200 derived structs beside those of serde and thiserror
  python         our classes beside NumPy, other crates, nanobind and C; builds them all, and installs NumPy,
                 apache-tvm-ffi and nanobind into an environment in the cache folder; about ten minutes

usage: cargo xtask bench [NAME] [--quick]
  NAME      only this one
  --quick   python: one build, fewer rounds; to see that it works, not to compare
";

/// What python/run.py imports, and nanobind, whose sources it compiles.
const REQUIREMENTS: [&str; 3] = ["numpy", "apache-tvm-ffi", "nanobind"];

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let quick = args.flag("--quick");
    let only = args.word();
    args.finish()?;

    let bench = |name| {
        Step::command(
            name,
            cargo(&["bench", "--quiet", "-p", "benches", "--bench", name]),
        )
    };
    let script = |name, words: &[&str]| Step::command(name, program("python3", words));
    let steps = [
        ("export", bench("export")),
        ("instructions", bench("instructions")),
        ("copies", script("copies", &["benches/copies.py"])),
        (
            "compile-time",
            script("compile-time", &["benches/compile_time.py", "--trees"]),
        ),
        ("python", python(quick)),
    ];
    let names = steps.each_ref().map(|(name, _)| *name);
    let wanted: Vec<Step> = steps
        .into_iter()
        .filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
        .map(|(_, step)| step)
        .collect();
    match only {
        Some(only) if wanted.is_empty() => Err(format!(
            "there is no benchmark `{only}`, only {}",
            names.join(", ")
        )),
        _ => run_all("bench", wanted, true),
    }
}

fn python(quick: bool) -> Step {
    Step::new("python", move || {
        let mut words = vec!["benches/python/run.py"];
        if quick {
            words.extend(["--builds", "thin", "--processes", "1", "--rounds", "11"]);
        }
        run(venv("bench", &REQUIREMENTS)?.run(&words))
    })
}
