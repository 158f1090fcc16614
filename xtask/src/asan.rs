//! `asan`: the tests of core and derive under AddressSanitizer.

use crate::args::Args;
use crate::step::{Outcome, Step, StepResult, nightly, run, run_all, succeeds, target_dir};

pub(crate) const HELP: &str = "
Builds dlpack-core and dlpack-derive with the nightly compiler's AddressSanitizer and runs their tests, leak detection
on. Skips, saying so, where no nightly toolchain is installed.

usage: cargo xtask asan [--cases N]
  --cases N   cases per property test (default 20000; the sanitizer makes each a few times slower)
";

/// Instrumented code needs an explicit target: proc macros and build scripts then stay uninstrumented.
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let cases = args.value("--cases")?.unwrap_or_else(|| "20000".into());
    args.finish()?;
    let steps = vec![Step::new("tests under AddressSanitizer", move || {
        tests(&cases)
    })];
    run_all("asan", steps, false)
}

fn tests(cases: &str) -> StepResult {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Outcome::Skipped(format!("it is set up for {TARGET} only")));
    }
    if !succeeds(nightly(&["--version"])) {
        return Ok(Outcome::Skipped(
            "no nightly toolchain; `rustup toolchain install nightly --profile minimal` adds it"
                .into(),
        ));
    }
    let mut command = nightly(&["test", "--target", TARGET, "--all-features"]);
    command
        .args([
            "-p",
            "dlpack-core",
            "-p",
            "dlpack-derive",
            "--lib",
            "--tests",
        ])
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env(
            "ASAN_OPTIONS",
            "detect_leaks=1:detect_stack_use_after_return=1",
        )
        .env("DLPACK_CASES", cases)
        .env("CARGO_TARGET_DIR", target_dir().join("asan"));
    run(command)
}
