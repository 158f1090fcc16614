//! `bench`: the benchmarks of benches/.

use crate::args::Args;
use crate::step::{Step, cargo, program, root, run_all};
use crate::tree::{entries, relative};

pub(crate) const HELP: &str = "
Runs `cargo bench -p benches`, then every Python script that lies directly in benches/. benches/README.md says what
the numbers mean.

usage: cargo xtask bench
";

pub(crate) fn main(args: Args) -> Result<(), String> {
    args.finish()?;
    let mut steps = vec![Step::command(
        "cargo bench",
        cargo(&["bench", "-p", "benches"]),
    )];
    for path in entries(&root().join("benches"))? {
        if path.extension().is_some_and(|extension| extension == "py") {
            let script = relative(&root(), &path);
            steps.push(Step::command(
                script.clone(),
                program("python3", &[&script]),
            ));
        }
    }
    run_all("bench", steps, true)
}
