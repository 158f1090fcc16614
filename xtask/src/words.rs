//! Words that must not stay in the source: promises of later work, and tests that do not run.

use crate::source::has_word;
use crate::step::root;
use crate::tree::{files, read, relative};

/// Spelled in halves, or this file would accuse itself.
const WORDS: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("#[ig", "nore"),
];

pub(crate) fn check() -> Result<(), String> {
    let root = root();
    let mut found = Vec::new();
    for path in files(&root, "rs")? {
        for (line, word) in in_text(&read(&path)?) {
            found.push(format!("{}:{line}: `{word}`", relative(&root, &path)));
        }
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(found.join("\n"))
    }
}

fn in_text(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in WORDS {
            // The borders matter for the first only; the others end in a sign.
            if line.contains(word) && (word.contains(['!', '[']) || has_word(line, word)) {
                found.push((index + 1, word));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found_on_its_line() {
        for word in WORDS {
            assert_eq!(
                in_text(&format!("fn f() {{\n    // {word} x\n}}")),
                [(2, word)]
            );
        }
    }

    #[test]
    fn longer_words_pass() {
        assert!(in_text(&format!("let {}S = 1;", WORDS[0])).is_empty());
        assert!(in_text("// FIXME(#12): when rustc says it better, drop this").is_empty());
    }
}
