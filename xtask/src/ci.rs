//! What .ci/run runs: formatting, lints, docs, `test`, the public API, packaging, checks of the text.
//!
//! usage: `cargo xtask ci [--keep-going] [--only WORD]`
//!   --keep-going   run the other steps after one has failed
//!   --only WORD    only the steps whose name contains the word

use cargo_metadata::Package;

use crate::prelude::*;
use crate::{api, floors, test, text};

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let keep_going = args.contains("--keep-going");
    let only: String = args.opt_value_from_str("--only")?.unwrap_or_default();
    finish(args)?;
    let mut steps = vec![
        Step::new("words that must not stay", text::words),
        Step::new("files of 500 lines, or a reason", text::lengths),
        Step::new("unsafe only in files that say so", text::unsafe_code),
        Step::new("imports go up", floors::check),
        Step::line("formatting: cargo fmt --all --check"),
        Step::line("style: cargo fmt --all --check --manifest-path examples/ecosystem/Cargo.toml"),
        Step::line("clippy: cargo clippy --workspace --all-targets --all-features -- -D warnings"),
        Step::new("documentation", |sh| {
            let doc = sh.line("cargo doc --workspace --no-deps --all-features");
            Ok(doc.env("RUSTDOCFLAGS", "-Dwarnings").run()?)
        }),
    ];
    steps.extend(test::steps(keep_going)?);
    steps.push(Step::new("public API", |sh| api::check(sh, false)));
    steps.push(Step::new("packaging", packaging));
    steps.retain(|step| step.name.contains(&only));
    run_all(sh, "ci", steps, keep_going)
}

/// Packs what may be published and builds it from the packed files, each crate against the packed others.
///
/// Cargo takes a version that it knows for the same code, so what an earlier run packed is forgotten first.
fn packaging(sh: &Shell) -> Result<()> {
    let target = target_dir().join("packaging");
    sh.remove_path(&target)?;
    // Where cargo unpacked our own crates, as if they came from a registry.
    let registries = folder("CARGO_HOME", ".cargo")?.join("registry/src");
    let registries = sh.read_dir(registries).unwrap_or_default();
    let mut package = cmd!(sh, "cargo package --allow-dirty").env("CARGO_TARGET_DIR", target);
    for Package { name, version, .. } in packages(|package| package.publish.is_none())? {
        for registry in &registries {
            sh.remove_path(registry.join(format!("{name}-{version}")))?;
        }
        let list = cmd!(sh, "cargo package --allow-dirty --list -p {name}").read()?;
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            let is_there = list.lines().any(|line| line == file);
            ensure!(is_there, "the package {name} lacks {file}");
        }
        package = package.args(["-p", &name]);
    }
    Ok(package.run()?)
}
