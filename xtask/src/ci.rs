//! `ci`: what must hold before a change is taken.

use crate::args::Args;
use crate::packages::PUBLISHED;
use crate::step::{Outcome, Step, StepResult, cargo, output, run, run_all};
use crate::{readme, test, unsafe_files, words};

pub(crate) const HELP: &str = "
Runs the checks of the text, formatting, clippy, documentation, everything that `test` runs, and packaging.
.ci/run calls this; run it before you push.

usage: cargo xtask ci [--keep-going]
  --keep-going   run the other steps after one has failed
";

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let keep_going = args.flag("--keep-going");
    args.finish()?;

    let mut steps = vec![
        Step::check("words that must not stay", words::check),
        Step::check("unsafe only where listed", unsafe_files::check),
        Step::check("README shows the quickstart's code", readme::check),
        Step::command("formatting", cargo(&["fmt", "--all", "--check"])),
        Step::command(
            "clippy",
            cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--all-features",
                "--",
                "-D",
                "warnings",
            ]),
        ),
        documentation(),
    ];
    steps.extend(test::steps(keep_going)?);
    steps.push(Step::new("packaging", packaging));
    run_all("ci", steps, keep_going)
}

fn documentation() -> Step {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    command.env("RUSTDOCFLAGS", "-Dwarnings");
    Step::command("documentation", command)
}

/// Packs what is published and builds it from the packed files, each crate against the packed others.
fn packaging() -> StepResult {
    let mut words = vec!["package", "--allow-dirty"];
    for name in PUBLISHED {
        words.extend(["-p", name]);
    }
    for name in PUBLISHED {
        let list = output(cargo(&["package", "--allow-dirty", "--list", "-p", name]))?;
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            if !list.lines().any(|line| line == file) {
                return Err(format!("the package {name} lacks {file}"));
            }
        }
    }
    run(cargo(&words))?;
    Ok(Outcome::Passed)
}
