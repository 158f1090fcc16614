//! Lists the bugs: those of cargo-mutants, and those of `by-hand.txt`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::build::texts;

/// The change of a bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The body of a function returns a fixed value.
    Body,
    /// A binary or unary operator is replaced or omitted.
    Operator,
    /// An arm of a `match` is omitted.
    Arm,
    /// The guard of an arm has a fixed value.
    Guard,
    /// A field of a struct expression keeps the value of the base.
    Field,
    /// An expression is replaced: from `by-hand.txt`.
    ByHand,
    /// Any text is replaced, in a separate build: from `by-hand.txt`.
    Text,
}

#[derive(Clone, Debug)]
pub struct Mutant {
    /// The file, from the root of the workspace.
    pub file: String,
    /// Its name in every run: the file, the function, and the change.
    pub key: String,
    /// Its byte range in the file.
    pub start: usize,
    pub end: usize,
    pub kind: Kind,
    /// The new text.
    pub replacement: String,
    /// A hash of the function's text: a verdict is valid while it is the same.
    pub stamp: u64,
}

impl Mutant {
    /// The name of its function, if it has one.
    pub fn function(&self) -> Option<&str> {
        let (_, change) = self.key.split_once(": ")?;
        if change.starts_with("by hand, ") {
            return None;
        }
        let name = match change.rsplit_once(" in ") {
            Some((_, name)) => name,
            None => change.strip_prefix("replace ")?.split(" -> ").next()?,
        };
        let name = name.split(" (no. ").next()?;
        Some(name.split(" with ()").next()?.trim())
    }
}

/// All bugs of a package in a copy of the workspace, in the order of the source.
pub fn mutants(program: &Path, tree: &Path, package: &str, by_hand: &str) -> Result<Vec<Mutant>> {
    let mut mutants = listed(program, tree, package)?;
    mutants.extend(written(by_hand, tree, package)?);
    mutants.sort_by(|a, b| (&a.file, a.start, a.end).cmp(&(&b.file, b.start, b.end)));
    let mut seen: HashMap<String, usize> = HashMap::new();
    for mutant in &mut mutants {
        let count = seen.entry(mutant.key.clone()).or_default();
        *count += 1;
        if *count > 1 {
            mutant.key = format!("{} (number {count})", mutant.key);
        }
    }
    Ok(mutants)
}

/// cargo-mutants ignores every `unsafe fn`, and does not know `PyResult`, so it gets a source without these words.
fn listed(program: &Path, tree: &Path, package: &str) -> Result<Vec<Mutant>> {
    let texts: HashMap<_, _> = texts(&tree.join(package).join("src"), &["rs"])?
        .into_iter()
        .collect();
    for (path, text) in &texts {
        fs::write(path, simplified(text))?;
    }
    let mut list = Command::new(program);
    list.args([
        "mutants",
        "--list",
        "--json",
        "--no-config",
        "-p",
        package,
        "-d",
    ]);
    let output = list
        .arg(tree)
        .output()
        .context("cannot start cargo-mutants")?;
    for (path, text) in &texts {
        fs::write(path, text)?;
    }
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo-mutants: {error}");
    let list: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let mutants = list.iter().map(|mutant| {
        let file = text_of(&mutant["file"])?;
        let source = texts.get(&tree.join(&file)).context(file.clone())?;
        let kind = match text_of(&mutant["genre"])?.as_str() {
            "FnValue" => Kind::Body,
            "BinaryOperator" | "UnaryOperator" => Kind::Operator,
            "MatchArm" => Kind::Arm,
            "MatchArmGuard" => Kind::Guard,
            "StructField" => Kind::Field,
            other => {
                anyhow::bail!("cargo-mutants lists a {other}, which this program does not know")
            }
        };
        let name = text_of(&mutant["name"])?;
        // "file:line:column: change and function"
        let what = name.split_once(": ").map_or(&*name, |(_, what)| what);
        let (start, end) = range(source, &mutant["span"])?;
        let function = range(source, &mutant["function"]["span"]);
        let body = function.map_or(&source[start..end], |(start, end)| &source[start..end]);
        Ok(Mutant {
            key: format!("{file}: {what}"),
            start,
            end,
            kind,
            replacement: with_paths(&text_of(&mutant["replacement"])?),
            stamp: hash(body),
            file,
        })
    });
    let mut mutants: Vec<Mutant> = mutants.collect::<Result<_>>()?;
    number_equal_keys(&mut mutants);
    Ok(mutants)
}

/// Replaces the names of `std` in a bug by paths, which a crate without `std` needs.
fn with_paths(replacement: &str) -> String {
    let paths = [
        ("vec![", "vec!["),
        ("Vec::", "vec::Vec::"),
        ("Box::", "boxed::Box::"),
        ("String::", "string::String::"),
        ("::std::", ""),
    ];
    let (mut text, mut rest) = (String::new(), replacement);
    while let Some(next) = rest.chars().next() {
        let is_begin =
            !text.ends_with(|before: char| before.is_alphanumeric() || "_:".contains(before));
        let found = paths
            .iter()
            .find(|(name, _)| is_begin && rest.starts_with(name));
        let taken = match found {
            Some((name, path)) => {
                text.push_str("crate::planted::std::");
                text.push_str(path);
                name.len()
            }
            None => {
                text.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    text
}

/// Distinguishes bugs with the same description, such as two operators of one function.
fn number_equal_keys(mutants: &mut [Mutant]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for mutant in mutants {
        let count = counts.entry(mutant.key.clone()).or_default();
        *count += 1;
        if *count > 1 {
            mutant.key.push_str(&format!(" (no. {count})"));
        }
    }
}

fn text_of(value: &Value) -> Result<String> {
    Ok(value
        .as_str()
        .with_context(|| format!("{value} is no text"))?
        .to_owned())
}

/// Converts lines and columns, both counted from 1, to bytes.
fn range(source: &str, span: &Value) -> Result<(usize, usize)> {
    let place = |end: &str| -> Result<usize> {
        let number = |name: &str| -> Result<usize> {
            let number = span[end][name].as_u64().context("a span without numbers")?;
            usize::try_from(number).context("a large number")
        };
        let line: usize = source
            .split_inclusive('\n')
            .take(number("line")? - 1)
            .map(str::len)
            .sum();
        let column = source[line..].char_indices().nth(number("column")? - 1);
        Ok(column.map_or(source.len(), |(column, _)| line + column))
    };
    Ok((place("start")?, place("end")?))
}

/// The text for cargo-mutants, with the same length.
fn simplified(text: &str) -> String {
    let known = [
        ("unsafe fn", "       fn"),
        ("unsafe extern", "       extern"),
        ("PyResult<", "  Result<"),
    ];
    known
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The bugs of a package in `by-hand.txt`, whose head describes them.
fn written(by_hand: &str, tree: &Path, package: &str) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    let (mut file, mut source, mut from, mut original) = ("", String::new(), 0, "");
    let mut kind = Kind::ByHand;
    for line in by_hand
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let (sign, words) = line
            .split_once(' ')
            .with_context(|| format!("by-hand.txt: {line}"))?;
        let of_package = file.starts_with(&format!("{package}/"));
        match sign {
            "file" => {
                file = words;
                source = fs::read_to_string(tree.join(file)).with_context(|| file.to_owned())?;
                from = 0;
            }
            "from" => {
                let at = source.find(words);
                from = at.with_context(|| format!("by-hand.txt: {file} has no `{words}`"))?;
            }
            "-" => (original, kind) = (words, Kind::ByHand),
            "=" => (original, kind) = (words, Kind::Text),
            "+" if !of_package => {}
            "+" => {
                let at = source[from..].find(original);
                let at = at.with_context(|| format!("by-hand.txt: {file} has no `{original}`"))?;
                mutants.push(Mutant {
                    file: file.to_owned(),
                    key: format!("{file}: by hand, {words} instead of {original}"),
                    start: from + at,
                    end: from + at + original.len(),
                    kind,
                    replacement: words.to_owned(),
                    stamp: hash(original),
                });
            }
            _ => anyhow::bail!("by-hand.txt: {line}"),
        }
    }
    Ok(mutants)
}

/// FNV-1a, which does not depend on the compiler.
pub fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_numbered() {
        let keys = ["a: f", "b: f", "a: f", "a: f"];
        let mut mutants = keys.map(|key| Mutant {
            key: key.to_owned(),
            file: String::new(),
            start: 0,
            end: 0,
            kind: Kind::Operator,
            replacement: String::new(),
            stamp: 0,
        });
        number_equal_keys(&mut mutants);
        let numbered = mutants.map(|mutant| mutant.key);
        assert_eq!(numbered, ["a: f", "b: f", "a: f (no. 2)", "a: f (no. 3)"]);
    }

    #[test]
    fn bugs_by_hand_have_their_places() {
        // As it is now: a shared build folder may contain the program of another checkout.
        let root = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
        let root = Path::new(&root).join("../..");
        for package in ["dlpack-core", "dlpack-pyo3"] {
            let mutants = written(crate::BY_HAND, &root, package).unwrap();
            assert!(!mutants.is_empty(), "{package}");
        }
        let gone = "file dlpack-core/src/lib.rs\n- no such text\n+ another\n";
        assert!(written(gone, &root, "dlpack-core").is_err());
        let package = written(
            "file dlpack-core/src/lib.rs\n- extern\n+ x\n",
            &root,
            "dlpack-pyo3",
        );
        assert!(package.unwrap().is_empty(), "it is of another package");
    }

    #[test]
    fn the_function_of_a_bug_is_part_of_its_key() {
        let function = |key: &str| {
            let mutant = Mutant {
                file: String::new(),
                key: key.to_owned(),
                start: 0,
                end: 0,
                kind: Kind::Operator,
                replacement: String::new(),
                stamp: 0,
            };
            mutant.function().map(str::to_owned)
        };
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(function("a.rs: replace > with < in f (no. 2)"), named("f"));
        assert_eq!(
            function("a.rs: replace g<T> -> bool with true"),
            named("g<T>")
        );
        assert_eq!(
            function("a.rs: replace <impl Drop for A>::drop with ()"),
            named("<impl Drop for A>::drop")
        );
        assert_eq!(function("a.rs: by hand, true in 1 instead of false"), None);
    }

    #[test]
    fn names_of_std_get_their_paths() {
        let std = "crate::planted::std::";
        assert_eq!(
            with_paths("Ok((Vec::leak(vec![1]), ::std::iter::empty(), MyBox::new(Box::new(0))))"),
            format!(
                "Ok(({std}vec::Vec::leak({std}vec![1]), {std}iter::empty(), MyBox::new({std}boxed::Box::new(0))))"
            )
        );
    }

    #[test]
    fn columns_count_characters() {
        let place =
            |line: usize, column: usize| serde_json::json!({"line": line, "column": column});
        let span = serde_json::json!({"start": place(2, 3), "end": place(2, 5)});
        let source = "one\né\u{301}+=1\n";
        let (start, end) = range(source, &span).unwrap();
        assert_eq!(&source[start..end], "+=");
    }

    #[test]
    fn what_cargo_mutants_is_shown_is_as_long() {
        let source = "pub unsafe fn f() -> PyResult<u8> { unsafe { g() } }";
        let shown = simplified(source);
        assert_eq!(
            shown,
            "pub        fn f() ->   Result<u8> { unsafe { g() } }"
        );
        assert_eq!(shown.len(), source.len());
    }
}
