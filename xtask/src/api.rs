//! Compare the public API with what spec/api says of it, or write it anew.
//!
//! It is what users can name in dlpack-core and dlpack-pyo3, all features on, but for what the documentation hides.
//! usage: `cargo xtask api [--bless]`
//!   --bless   write spec/api anew; read the difference before you commit it

use public_api::Builder;

use crate::prelude::*;

/// The format that `public-api` reads. Another compiler may write another format: then the step is skipped until both are
/// updated.
const FORMAT: &str = "\"format_version\":57";

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let bless = args.contains("--bless");
    finish(args)?;
    Step::new("public API", move |sh| check(sh, bless)).alone(sh, "api")
}

pub(crate) fn check(sh: &Shell, bless: bool) -> Result<()> {
    for name in ["dlpack-core", "dlpack-pyo3"] {
        let folders = [PathBuf::from("spec/api"), target_dir().join("api")];
        let [written, found] = folders.map(|folder| folder.join(format!("{name}.txt")));
        sh.write_file(&found, list(sh, name)?)?;
        if bless {
            sh.copy_file(&found, &written)?;
        }
        let compare = cmd!(sh, "git --no-pager diff --no-index -U0 {written} {found}");
        let hint = "if this is meant: `cargo xtask api --bless`, and a line in CHANGELOG.md";
        compare.run().context(hint)?;
    }
    Ok(())
}

/// One line for each item, sorted.
fn list(sh: &Shell, name: &str) -> Result<String> {
    // A separate folder, because the variable makes build scripts run again.
    let target = target_dir().join("api");
    let rustdoc = cmd!(sh, "cargo rustdoc --quiet -p {name} --lib --all-features");
    let rustdoc = rustdoc.line("-- -Zunstable-options --output-format json --cap-lints allow");
    let rustdoc = rustdoc.env("CARGO_TARGET_DIR", &target);
    rustdoc.env("RUSTC_BOOTSTRAP", "1").run()?;
    let json = target.join(format!("doc/{}.json", name.replace('-', "_")));
    if !sh.read_file(&json)?.contains(FORMAT) {
        return skip("this version of rustdoc writes another format than is read here");
    }
    let api = Builder::from_rustdoc_json(json);
    let api = api.omit_blanket_impls(true).build()?;
    let lines = api.items().map(|item| format!("{item}\n"));
    // Of the auto traits, users depend on `Send` and `Sync`.
    let is_silent = |line: &str| {
        let mut names = ["Freeze", "Unpin", "UnwindSafe"].iter();
        line.starts_with("impl") && names.any(|name| line.contains(name))
    };
    Ok(lines.filter(|line| !is_silent(line)).collect())
}
