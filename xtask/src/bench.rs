//! Run the benchmarks, one after another; benches/README.md says what the numbers mean.
//!
//!   export         how long an export takes (criterion)
//!   instructions   how many instructions it executes; says so and goes on where valgrind is missing
//!   copies         strided copies beside NumPy and memcpy; installs NumPy into a cache folder where it is missing
//!   compile-time   200 derived structs beside those of serde and thiserror
//!   python         our classes beside NumPy, other crates, nanobind and C; builds them all, and installs NumPy,
//!                  apache-tvm-ffi and nanobind into an environment in the cache folder; about ten minutes
//! usage: `cargo xtask bench [NAME] [--quick]`
//!   NAME      only this one
//!   --quick   python: one build, fewer rounds; to see that it works, not to compare

use crate::prelude::*;

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let quick = args.contains("--quick");
    let only: String = args.opt_free_from_str()?.unwrap_or_default();
    finish(args)?;
    let bench = |name| Step::command(name, format!("cargo bench --quiet -p benches --bench {name}"));
    let mut steps = vec![
        bench("export"),
        bench("instructions"),
        Step::command("copies", "python3 benches/copies.py"),
        Step::command("compile-time", "python3 benches/compile_time.py --trees"),
        Step::new("python", move |sh| {
            let quick = quick.then(|| "--builds thin --processes 1 --rounds 11".split(' '));
            // What it imports, and nanobind, whose sources it compiles.
            let run = venv(sh, "bench", &["numpy", "apache-tvm-ffi", "nanobind"])?.run(sh);
            Ok(run.arg("benches/python/run.py").args(quick.into_iter().flatten()).run()?)
        }),
    ];
    let names: Vec<_> = steps.iter().map(|step| step.name.clone()).collect();
    steps.retain(|step| only.is_empty() || step.name == only);
    ensure!(!steps.is_empty(), "there is no benchmark `{only}`, only {}", names.join(", "));
    run_all(sh, "bench", steps, true)
}
