//! Rules for the text of the sources.

use crate::prelude::*;

/// Promises of later work, and tests that do not run; written so that this file does not match.
const WORDS: &str = r"(^|[^A-Za-z_])TO[D]O([^A-Za-z_]|$)|todo[!]|unimplemented[!]|#\[[i]gnore";

/// IDs of requirements in documentation, whose readers do not have the list.
const NUMBERS: &str = r"^ *//[/!].*\b[A-Z]{3}-[0-9]{2}";

pub(crate) fn words(sh: &Shell) -> Result<()> {
    let mut found = grep(sh, &["-nEe", WORDS], &["*.rs"])?;
    found.extend(grep(sh, &["-nEe", NUMBERS], &WITH_LINT)?);
    none(found)
}

/// The matches of `git grep` in these files.
fn grep(sh: &Shell, words: &[&str], files: &[&str]) -> Result<Vec<String>> {
    let grep = cmd!(sh, "git grep --untracked {words...} -- {files...}");
    let output = grep.quiet().ignore_status().output()?;
    // Status 1 means no match; a higher one is an error of git.
    let has_looked = output.status.code().is_some_and(|code| code < 2);
    ensure!(has_looked, "`git grep` ended with {}", output.status);
    let found = String::from_utf8(output.stdout)?;
    Ok(found.lines().map(str::to_owned).collect())
}

/// Code that users see or copy. Tests, benchmarks and fuzz targets are excluded: they act as foreign producers and need `unsafe`
/// for that.
const WITH_LINT: [&str; 3] = ["dlpack-core/*src/*.rs", "dlpack-pyo3/src", "examples/*.rs"];

/// The lint `unsafe_code` requires a reason in each file, unless the head of its folder gives one.
pub(crate) fn unsafe_code(sh: &Shell) -> Result<()> {
    let silent = grep(sh, &["-Le", "unsafe_code"], &WITH_LINT)?;
    let mut found = grep(sh, &["-lEe", "^[^\"/]*unsafe ([{]|impl)"], &WITH_LINT)?;
    found.retain(|path| silent.contains(path));
    none(found).context("no `expect(unsafe_code, reason = ..)` of its own")
}

const REASON: &str = "Longer than 500 lines because";

pub(crate) fn lengths(sh: &Shell) -> Result<()> {
    let crates = ["core", "derive", "pyo3"].map(|name| format!("dlpack-{name}/src/*.rs"));
    let mut files = texts(sh, &crates.each_ref().map(String::as_str))?;
    files.retain(|(path, text)| !path.contains("/tests/") && is_too_long(text));
    let paths = files.into_iter().map(|(path, _)| path).collect();
    none(paths).context("more than 500 lines, and no `Longer than 500 lines because ..`")
}

fn is_too_long(text: &str) -> bool {
    let head = text.lines().map_while(|line| line.strip_prefix("//!"));
    let head: Vec<_> = head.map(str::trim).collect();
    text.lines().count() > 500 && !head.join(" ").contains(REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_unsafe_code_are_found_where_they_stand() {
        let sh = Shell::new().unwrap();
        let folder = sh.create_temp_dir().unwrap();
        sh.change_dir(folder.path());
        cmd!(sh, "git init --quiet").quiet().run().unwrap();
        for line in include_str!("../cases/text.txt").lines().skip(1) {
            let (expected, text) = line.split_once(' ').unwrap();
            let text = text.replace('+', "\n");
            sh.write_file("examples/a.rs", &text).unwrap();
            assert_eq!(words(&sh).is_err(), expected == "word", "{text}");
            assert_eq!(unsafe_code(&sh).is_err(), expected == "unsafe", "{text}");
        }
        sh.remove_path(".git").unwrap();
        assert!(words(&sh).is_err(), "it passed where git could not look");
    }

    #[test]
    fn a_long_file_gives_a_reason_in_its_head() {
        let code = "\n".repeat(501);
        assert!(is_too_long(&code) && !is_too_long(&code[1..]));
        assert!(is_too_long(&format!("{code}//! {REASON} it is.")));
        let reason = "//! What. Longer than\n//! 500 lines because it is.\n".to_owned();
        assert!(!is_too_long(&(reason + &code)));
    }
}
