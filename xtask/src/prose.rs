//! Counts what makes comments and names of the three crates hard to read, and compares the counts with bounds.
//!
//! The counts find places to look at; no count says that a text is good. Tests are not counted.

use std::collections::{BTreeMap, BTreeSet};

use crate::prelude::*;

/// Words for people, where a comment should name the consumer, the producer, the caller or the thread.
const PEOPLE: [&str; 11] = [
    "who",
    "whom",
    "whose",
    "whoever",
    "somebody",
    "someone",
    "nobody",
    "anybody",
    "anyone",
    "everybody",
    "everyone",
];

/// Beginnings of a doc comment that cannot be read without the one before.
const BACK_REFERENCES: [&str; 8] = [
    "The same ",
    "As that",
    "As those",
    "As above",
    "As before",
    "As [",
    "Likewise",
    "That of ",
];

/// What a SAFETY comment says instead of the condition and the fact that meets it.
const EMPTY_REASONS: [&str; 6] = [
    "passed on",
    "as above",
    "as below",
    "right above",
    "likewise",
    "see above",
];

/// Names of one word that every Rust programmer knows.
const COMMON_NAMES: [&str; 24] = [
    "new", "fmt", "drop", "clone", "default", "from", "into", "eq", "ne", "cmp", "hash", "deref",
    "next", "len", "get", "set", "iter", "index", "borrow", "extract", "source", "main", "push",
    "pop",
];

/// The bounds of one crate.
struct Bounds {
    name: &'static str,
    /// Of 1,000 lines of comments, how many may name people.
    people: usize,
    back_references: usize,
    /// Of 100 SAFETY comments.
    empty_reasons: usize,
    /// Of 100 functions.
    one_word_names: usize,
    /// Free functions that share their name with one of another file.
    shared_names: usize,
    /// Types that share their name with one of another file.
    shared_types: usize,
    /// The words in the names of 100 functions, at least.
    words: usize,
}

const CRATES: [Bounds; 3] = [
    Bounds {
        name: "dlpack-core",
        people: 7,
        back_references: 0,
        empty_reasons: 0,
        one_word_names: 20,
        shared_names: 4,
        shared_types: 0,
        words: 200,
    },
    Bounds {
        name: "dlpack-derive",
        people: 0,
        back_references: 0,
        empty_reasons: 0,
        one_word_names: 14,
        shared_names: 2,
        shared_types: 1,
        words: 198,
    },
    Bounds {
        name: "dlpack-pyo3",
        people: 6,
        back_references: 0,
        empty_reasons: 0,
        one_word_names: 11,
        shared_names: 3,
        shared_types: 1,
        words: 220,
    },
];

pub(crate) fn check(sh: &Shell) -> Result<()> {
    let mut errors = Vec::new();
    for bounds in &CRATES {
        let sources = texts(sh, &[&format!("{}/src/*.rs", bounds.name)])?;
        let mut counts = Counts::default();
        for (path, text) in sources.iter().filter(|(path, _)| !path.contains("tests")) {
            counts.count(path, text);
        }
        errors.extend(counts.compare(bounds));
    }
    none(errors)
}

#[derive(Default)]
struct Counts {
    comment_lines: usize,
    safety_comments: usize,
    functions: usize,
    people: Vec<String>,
    back_references: Vec<String>,
    empty_reasons: Vec<String>,
    one_word_names: Vec<String>,
    /// The words in the names of all functions.
    words: usize,
    /// The files that have a free function of this name.
    free_functions: BTreeMap<String, BTreeSet<String>>,
    /// The files that have a type of this name.
    types: BTreeMap<String, BTreeSet<String>>,
}

impl Counts {
    fn count(&mut self, path: &str, text: &str) {
        let (mut in_code, mut in_trait_impl, mut after_doc) = (false, false, false);
        let mut lines = text.lines().zip(1..).peekable();
        while let Some((line, number)) = lines.next() {
            let next_is_module = || {
                lines
                    .clone()
                    .next()
                    .is_some_and(|(next, _)| next.starts_with("mod "))
            };
            if line.starts_with("#[cfg(") && line.contains("test") && next_is_module() {
                let is_inline = lines.next().is_some_and(|(next, _)| next.ends_with('{'));
                if is_inline {
                    return;
                }
            }
            let place = || format!("{path}:{number}: {}", line.trim());
            if let Some(comment) = line.trim_start().strip_prefix("//") {
                let is_doc = comment.starts_with('/');
                let comment = comment.trim_start_matches(['/', '!']).trim_start();
                let is_fence = comment.starts_with("```");
                in_code ^= is_fence;
                if !in_code && !is_fence && !comment.starts_with('|') {
                    self.count_comment(comment, is_doc && !after_doc, &place);
                }
                after_doc = is_doc;
                continue;
            }
            after_doc = false;
            if line.starts_with("impl") || line.starts_with("unsafe impl") {
                in_trait_impl = line.contains(" for ");
            } else if line == "}" {
                in_trait_impl = false;
            }
            if let Some(name) = type_name(line) {
                let files = self.types.entry(name.to_owned()).or_default();
                files.insert(path.to_owned());
            }
            if let (false, Some(name)) = (in_trait_impl, function_name(line)) {
                self.functions += 1;
                self.words += name.split('_').count();
                if !name.contains('_') && !COMMON_NAMES.contains(&name) {
                    self.one_word_names.push(place());
                }
                if !line.starts_with(' ') {
                    let files = self.free_functions.entry(name.to_owned()).or_default();
                    files.insert(path.to_owned());
                }
            }
        }
    }

    fn count_comment(&mut self, comment: &str, is_first_of_doc: bool, place: &dyn Fn() -> String) {
        self.comment_lines += 1;
        let lower = comment.to_lowercase();
        let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '_');
        if words.any(|word| PEOPLE.contains(&word)) {
            self.people.push(place());
        }
        if is_first_of_doc && BACK_REFERENCES.iter().any(|it| comment.starts_with(it)) {
            self.back_references.push(place());
        }
        if comment.contains("SAFETY:") {
            self.safety_comments += 1;
            if EMPTY_REASONS.iter().any(|reason| lower.contains(reason)) {
                self.empty_reasons.push(place());
            }
        }
    }

    /// What is above its bound, and where there is most of it.
    fn compare(&self, bounds: &Bounds) -> Vec<String> {
        let shared_names = in_several_files(&self.free_functions);
        let shared_types = in_several_files(&self.types);
        let share = |part: usize, of: usize, whole: usize| part * of / whole.max(1);
        let rows = [
            (
                "of 1,000 lines of comments name people",
                &self.people,
                share(self.people.len(), 1000, self.comment_lines),
                bounds.people,
            ),
            (
                "doc comments refer back to the one before",
                &self.back_references,
                self.back_references.len(),
                bounds.back_references,
            ),
            (
                "of 100 SAFETY comments give no reason",
                &self.empty_reasons,
                share(self.empty_reasons.len(), 100, self.safety_comments),
                bounds.empty_reasons,
            ),
            (
                "of 100 functions have names of one word",
                &self.one_word_names,
                share(self.one_word_names.len(), 100, self.functions),
                bounds.one_word_names,
            ),
            (
                "free functions share a name",
                &shared_names,
                shared_names.len(),
                bounds.shared_names,
            ),
            (
                "types share a name",
                &shared_types,
                shared_types.len(),
                bounds.shared_types,
            ),
        ];
        let above = rows.iter().filter(|(.., found, bound)| found > bound);
        let mut errors: Vec<_> = above
            .map(|(what, places, found, bound)| {
                let worst = worst_files(places);
                format!(
                    "{}: {found} {what}, at most {bound} may; most in {worst}",
                    bounds.name
                )
            })
            .collect();
        let words = share(self.words, 100, self.functions);
        if words < bounds.words {
            let (name, needed) = (bounds.name, bounds.words);
            errors.push(format!(
                "{name}: the names of 100 functions have {words} words, expected {needed}"
            ));
        }
        errors
    }
}

/// The names that several files declare.
fn in_several_files(names: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let shared = names.iter().filter(|(_, files)| files.len() > 1);
    shared
        .map(|(name, files)| format!("{}: {name}", Vec::from_iter(files.clone()).join(", ")))
        .collect()
}

/// The three files with most of these places, and an example of each.
fn worst_files(places: &[String]) -> String {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for place in places {
        let (file, rest) = place.split_once(':').unwrap_or((place, ""));
        files.entry(file).or_default().push(rest);
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(_, places)| core::cmp::Reverse(places.len()));
    let texts = files.iter().take(3);
    let texts =
        texts.map(|(file, places)| format!("\n  {file} ({}), as {}", places.len(), places[0]));
    texts.collect()
}

/// The type that a line at the top level of a file declares.
fn type_name(line: &str) -> Option<&str> {
    let mut words = line.split([' ', '<', '(', ';', ':', '{']);
    let kind =
        words.find(|word| !word.starts_with("pub") && *word != "crate)" && *word != "unsafe")?;
    let is_type = matches!(kind, "struct" | "enum" | "trait" | "union" | "type");
    is_type.then(|| words.next()).flatten()
}

/// The function that a line declares.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start();
    loop {
        let (word, rest) = words.split_once(' ')?;
        if word == "fn" {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            return Some(&rest[..end?]);
        }
        let is_qualifier = word.starts_with("pub")
            || matches!(word, "const" | "unsafe" | "extern" | "\"C\"" | "in");
        if !is_qualifier && !word.ends_with(')') {
            return None;
        }
        words = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"//! A file, whose head names people.
/// The same for another type.
// SAFETY: passed on to the caller.
pub(crate) unsafe fn settle() {}
/// Reads it. Nobody else does.
/// The same line of one doc comment refers to nothing.
pub const fn read_all() {
    // ```
    // who
    // ```
}
pub struct Part;
impl Iterator for A {
    fn one() {}
}
impl A {
    fn two(&self) {}
    fn from_parts(&self) {}
}
#[cfg(test)]
mod tests {
    // who
    fn three() {}
}
"#;

    #[test]
    fn what_is_hard_to_read_is_counted() {
        let mut counts = Counts::default();
        counts.count("a.rs", SOURCE);
        counts.count(
            "b.rs",
            "fn settle() {}\nfn other() {}\npub(crate) struct Part<T>(T);\n",
        );
        assert_eq!(counts.comment_lines, 5);
        assert_eq!(counts.people.len(), 2);
        assert_eq!(
            counts.back_references,
            ["a.rs:2: /// The same for another type."]
        );
        assert_eq!((counts.empty_reasons.len(), counts.safety_comments), (1, 1));
        let names: Vec<_> = counts
            .one_word_names
            .iter()
            .map(|it| it.rsplit("fn ").next())
            .collect();
        let expected = ["settle() {}", "two(&self) {}", "settle() {}", "other() {}"];
        assert_eq!(names, expected.map(Some));
        assert_eq!(counts.functions, 6);
        let mut bounds = Bounds {
            name: "a",
            people: 400,
            back_references: 1,
            empty_reasons: 100,
            one_word_names: 66,
            shared_names: 1,
            shared_types: 1,
            words: 133,
        };
        assert_eq!(counts.compare(&bounds), Vec::<String>::new());
        bounds.people = 399;
        bounds.shared_names = 0;
        bounds.shared_types = 0;
        bounds.words = 134;
        let errors = counts.compare(&bounds);
        assert!(
            errors[0].starts_with("a: 400 of 1,000 lines of comments name people, at most 399 may")
        );
        assert!(errors[1].contains("a.rs, b.rs"), "{errors:?}");
        assert!(errors[2].contains("1 types share a name"), "{errors:?}");
        assert!(errors[3].contains("133 words, expected 134"), "{errors:?}");
        assert_eq!(errors.len(), 4);
    }
}
