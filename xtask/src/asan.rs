//! Run the tests of core and derive under AddressSanitizer, leaks included.
//!
//! usage: `cargo xtask asan [--cases N]`
//!   --cases N   cases per property test (default 20000; the sanitizer makes each a few times slower)

use crate::prelude::*;

/// Instrumented code needs an explicit target: proc macros and build scripts then stay uninstrumented.
pub(crate) const SANITIZED: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let cases: Option<u64> = args.opt_value_from_str("--cases")?;
    finish(args)?;
    let step = Step::new("tests under AddressSanitizer", move |sh| {
        let tests = nightly(sh)?.line("test --all-features -p dlpack-core -p dlpack-derive");
        let tests = tests.args(["--lib", "--tests", "--target", SANITIZED]);
        let options = "detect_leaks=1:detect_stack_use_after_return=1";
        let tests = tests.env("ASAN_OPTIONS", options);
        let tests = tests.env("DLPACK_CASES", cases.unwrap_or(20_000).to_string());
        let tests = tests.env("CARGO_TARGET_DIR", target_dir().join("asan"));
        Ok(tests.env("RUSTFLAGS", "-Zsanitizer=address").run()?)
    });
    step.alone(sh, "asan")
}

/// The compiler that has the sanitizers.
pub(crate) fn nightly(sh: &Shell) -> Result<Cmd<'_>> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skip(format!("it is set up for {SANITIZED} only"));
    }
    if !succeeds(cargo_of(sh, "nightly").arg("--version")) {
        return skip("no nightly toolchain here; `rustup toolchain install nightly` adds it");
    }
    Ok(cargo_of(sh, "nightly"))
}
