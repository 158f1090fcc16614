//! What .ci/run runs: formatting, lints, docs, `test`, the public API, what a release needs, checks of the text.
//!
//! usage: `cargo xtask ci [--keep-going] [--only WORD] [--install]`
//!   --keep-going   run the other steps after one has failed
//!   --only WORD    only the steps whose name contains the word; with one that none has it lists them
//!   --install      first install cargo-deny and cargo-semver-checks, which compile for minutes; else their steps are skipped

use crate::prelude::*;
use crate::{api, bench, floors, miri, models, mutants, prose, release, test, text};

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let keep_going = args.contains("--keep-going");
    let install = args.contains("--install");
    let only: String = args.opt_value_from_str("--only")?.unwrap_or_default();
    finish(args)?;
    for (name, version) in release::TOOLS.into_iter().filter(|_| install) {
        tool(sh, name, version)?;
    }
    let mut steps = vec![
        Step::new("words that must not stay", text::words),
        Step::new("files of 500 lines, or a reason", text::lengths),
        Step::new("prose of the three crates", prose::check),
        Step::new("unsafe only in files that say so", text::unsafe_code),
        Step::new("imports go up", floors::check),
        Step::line("formatting: cargo fmt --all --check"),
        Step::line("style: cargo fmt --all --check --manifest-path examples/ecosystem/Cargo.toml"),
        Step::line("format: cargo fmt --check --manifest-path xtask/mutants/Cargo.toml"),
        Step::line("clippy: cargo clippy --workspace --all-targets --all-features -- -D warnings"),
        Step::new("documentation", |sh| {
            let doc = sh.line("cargo doc --workspace --no-deps --all-features");
            Ok(doc.env("RUSTDOCFLAGS", "-Dwarnings").run()?)
        }),
    ];
    steps.extend(test::steps(keep_going)?);
    steps.push(Step::new("tests of cargo xtask mutants", mutants::test));
    steps.push(Step::new("models of what threads share", models::check));
    steps.push(Step::new("Miri, in short", miri::short));
    steps.push(Step::new("instructions of exports", bench::instructions));
    steps.push(Step::new("clippy of examples/ecosystem", ecosystem));
    steps.push(Step::new("public API", |sh| api::check(sh, false)));
    steps.extend(release::steps());
    let names: Vec<_> = steps.iter().map(|step| step.name.clone()).collect();
    steps.retain(|step| step.name.contains(&only));
    let names = names.join("; ");
    ensure!(!steps.is_empty(), "no `{only}` among the steps: {names}");
    run_all(sh, "ci", steps, keep_going)
}

/// A build by clippy, not a check: it takes from the tests of these examples what they depend on, which is minutes of work.
fn ecosystem(sh: &Shell) -> Result<()> {
    let build =
        sh.line("cargo build --quiet --workspace --manifest-path examples/ecosystem/Cargo.toml");
    let build = build
        .env("CARGO_TARGET_DIR", target_dir())
        .env("PYO3_PYTHON", interpreter()?);
    Ok(build
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        .run()?)
}
