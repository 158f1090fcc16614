//! Run one fuzz target of fuzz/, or all in turn, with the nightly compiler; installs cargo-fuzz where it is missing.
//!
//! usage: `cargo xtask fuzz [target] [--seconds N]`
//!   --seconds N   how long each target runs (default 60)

use crate::prelude::*;

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let seconds: u32 = args.opt_value_from_str("--seconds")?.unwrap_or(60);
    let chosen: String = args.opt_free_from_str()?.unwrap_or_default();
    finish(args)?;
    let mut targets = sh.read_dir("fuzz/fuzz_targets")?;
    targets.retain(|path| chosen.is_empty() || path.file_stem() == Some(chosen.as_ref()));
    ensure!(!targets.is_empty(), "fuzz/fuzz_targets has no `{chosen}`");
    if !succeeds(cargo_of(sh, "nightly").args(["fuzz", "--version"])) {
        let install = cargo_of(sh, "nightly").line("install cargo-fuzz --locked");
        install.run()?;
    }
    let step = |path: PathBuf| {
        let target = PathBuf::from(path.file_stem().unwrap_or_default());
        Step::new(format!("{} for {seconds} s", target.display()), move |sh| {
            // libFuzzer writes what it finds to the first folder, and only reads the others.
            let [found, seeds] =
                ["fuzz/corpus", "fuzz/seeds"].map(|kind| Path::new(kind).join(&target));
            sh.create_dir(&found)?;
            let run = cargo_of(sh, "nightly").args(["fuzz", "run"]);
            let run = run.args([&target, &found, &seeds]).arg("--");
            Ok(run.arg(format!("-max_total_time={seconds}")).run()?)
        })
    };
    run_all(sh, "fuzz", targets.into_iter().map(step).collect(), true)
}
