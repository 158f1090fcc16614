//! `bench`: the benchmarks of benches/.

use crate::args::Args;
use crate::step::{Step, cargo, program, run_all};

pub(crate) const HELP: &str = "
Runs the benchmarks, one after another, and shows what they print; benches/README.md says what the numbers mean.
  export         how long an export takes (criterion)
  instructions   how many instructions it executes; says so and goes on where valgrind is missing
  copies         strided copies beside NumPy and memcpy; installs NumPy into a cache folder where it is missing
  compile time   200 derived structs beside those of serde and thiserror

usage: cargo xtask bench
";

pub(crate) fn main(args: Args) -> Result<(), String> {
    args.finish()?;
    let bench = |name| {
        Step::command(
            name,
            cargo(&["bench", "--quiet", "-p", "benches", "--bench", name]),
        )
    };
    let script = |name, words: &[&str]| Step::command(name, program("python3", words));
    let steps = vec![
        bench("export"),
        bench("instructions"),
        script("copies", &["benches/copies.py"]),
        script("compile time", &["benches/compile_time.py", "--trees"]),
    ];
    run_all("bench", steps, true)
}
