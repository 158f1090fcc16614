//! Unsafe code stays in the files that `spec/unsafe-files.tsv` lists.
//!
//! The lint `unsafe_code` keeps it out of other modules as long as nobody writes one more `#[expect]`. This check makes
//! such a line visible: it needs a row, with a reason, in the list.

use crate::source::{code_only, has_word};
use crate::step::root;
use crate::tree::{files, read, relative};

const LIST: &str = "spec/unsafe-files.tsv";

/// Where users' code begins: tests, benchmarks and fuzz targets play a foreign producer and need `unsafe` for it.
const LOOKED_AT: [&str; 6] = [
    "dlpack-core/simulator/src",
    "dlpack-core/src",
    "dlpack-derive/src",
    "dlpack-pyo3/src",
    "examples",
    "xtask/src",
];

pub(crate) fn check() -> Result<(), String> {
    let root = root();
    let mut sources = Vec::new();
    for directory in LOOKED_AT {
        for path in files(&root.join(directory), "rs")? {
            sources.push((relative(&root, &path), read(&path)?));
        }
    }
    let errors = errors(&read(&root.join(LIST))?, &sources);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors.join("\n"))
    }
}

fn errors(list: &str, sources: &[(String, String)]) -> Vec<String> {
    let mut errors = Vec::new();
    let mut listed = Vec::new();
    for line in list
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        match line.split_once('\t') {
            Some((path, reason)) if reason.trim().len() >= 20 => listed.push(path),
            _ => errors.push(format!("{LIST}: `{line}` needs a path, a tab and a reason")),
        }
    }
    for (path, source) in sources {
        let has_unsafe = has_word(&code_only(source), "unsafe");
        match (has_unsafe, listed.contains(&path.as_str())) {
            (true, false) => {
                errors.push(format!(
                    "{path} has unsafe code and is not listed in {LIST}"
                ));
            }
            (false, true) => errors.push(format!("{LIST}: {path} has no unsafe code any more")),
            _ => {}
        }
    }
    for path in listed {
        if !sources.iter().any(|(known, _)| known == path) {
            errors.push(format!("{LIST}: there is no {path}"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Vec<(String, String)> {
        vec![
            ("a.rs".into(), "fn f() { unsafe { g() } }".into()),
            ("b.rs".into(), "// unsafe\nfn f() {}".into()),
        ]
    }

    #[test]
    fn a_listed_file_passes() {
        assert!(errors("# path\n\na.rs\towns the foreign pointer\n", &sources()).is_empty());
    }

    #[test]
    fn an_unlisted_file_is_an_error() {
        assert!(errors("", &sources())[0].starts_with("a.rs has unsafe code"));
    }

    #[test]
    fn the_list_does_not_outlive_the_code() {
        let list = "a.rs\towns the foreign pointer\nb.rs\towns the foreign pointer\nc.rs\towns the foreign pointer";
        let errors = errors(list, &sources());
        assert!(errors[0].contains("b.rs has no unsafe code"), "{errors:?}");
        assert!(errors[1].contains("there is no c.rs"), "{errors:?}");
    }

    #[test]
    fn a_row_needs_a_reason() {
        assert!(errors("a.rs\tfast", &sources())[0].contains("needs a path"));
    }
}
