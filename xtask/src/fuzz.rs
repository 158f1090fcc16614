//! `fuzz`: the targets of fuzz/, through cargo-fuzz.

use crate::args::Args;
use crate::step::{Step, nightly, root, run, run_all, succeeds};
use crate::tree::files;

pub(crate) const HELP: &str = "
Runs the fuzz targets of fuzz/ with the nightly compiler. Installs cargo-fuzz first where it is missing.

usage: cargo xtask fuzz [target] [--seconds N]
  target        one target; all of them in turn when left out
  --seconds N   how long each target runs (default 60)
";

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let seconds = args.value("--seconds")?.unwrap_or_else(|| "60".into());
    let chosen = args.word();
    args.finish()?;
    if seconds.parse::<u32>().is_err() {
        return Err(format!("`{seconds}` is no number of seconds"));
    }

    let known = targets()?;
    let targets = match chosen {
        None => known,
        Some(name) if known.contains(&name) => vec![name],
        Some(name) => {
            return Err(format!(
                "no target `{name}`, there are: {}",
                known.join(", ")
            ));
        }
    };
    if !succeeds(nightly(&["fuzz", "--version"])) {
        println!("cargo-fuzz is not installed; installing it, which takes a minute or two");
        run(nightly(&["install", "cargo-fuzz", "--locked"]))?;
    }
    let steps = targets
        .into_iter()
        .map(|target| {
            let limit = format!("-max_total_time={seconds}");
            // libFuzzer writes what it finds to the first folder, and only reads the others.
            let [found, seeds] = ["corpus", "seeds"].map(|kind| format!("fuzz/{kind}/{target}"));
            std::fs::create_dir_all(root().join(&found)).ok();
            Step::command(
                format!("{target} for {seconds} s"),
                nightly(&["fuzz", "run", &target, &found, &seeds, "--", &limit]),
            )
        })
        .collect();
    run_all("fuzz", steps, true)
}

fn targets() -> Result<Vec<String>, String> {
    let names: Vec<String> = files(&root().join("fuzz/fuzz_targets"), "rs")?
        .iter()
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    if names.is_empty() {
        Err("fuzz/fuzz_targets is empty".into())
    } else {
        Ok(names)
    }
}
