//! Plant one bug after another in core and derive, and see that a test notices each; spec/mutants.md has the outcome.
//!
//! cargo-mutants makes the bugs. What a test has noticed is not planted again: a run goes on where the last one stopped.
//! usage: `cargo xtask mutants [--only WORD] [WORDS]`
//!   --only WORD   only the steps whose name contains the word: core, streams, derive
//!   WORDS         what cargo-mutants understands, such as `--re tensor/view`, `--shard 0/8` or `--list`

use crate::prelude::*;

/// What is changed, and whose tests then run. Linking those of the fake drivers takes as long as linking all others.
const STEPS: [&str; 3] = [
    "core: -p dlpack-core --test-package dlpack-core -e **/{stream,stream/*,export/copies,export/device,cudarc,cuda}.rs",
    "streams: -p dlpack-core --test-package dlpack-core,dlpack-simulator -f **/{stream,stream/*,export/copies,export/device,cudarc,cuda}.rs",
    "derive: -p dlpack-derive --test-package dlpack-derive",
];

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let only: String = args.opt_value_from_str("--only")?.unwrap_or_default();
    let words = args.finish();
    let chosen = STEPS.iter().filter_map(|line| line.split_once(": "));
    let step = |(name, what): (&str, &'static str)| {
        let (words, folder) = (words.clone(), target_dir().join("mutants").join(name));
        Step::new(name, move |sh| {
            let run = sh.cmd(tool(sh, "cargo-mutants", "27.1.0")?).arg("mutants");
            let run = run.line("--iterate -o").arg(sh.create_dir(&folder)?);
            let run = run.line(what).args(words).env("DLPACK_CASES", "3000");
            Ok(run.env("CARGO_TARGET_DIR", folder.join("target")).run()?)
        })
    };
    let chosen = chosen.filter(|(name, _)| name.contains(&only));
    run_all(sh, "mutants", chosen.map(step).collect(), true)
}
