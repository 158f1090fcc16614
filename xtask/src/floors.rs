//! Imports go up: a file names modules of the floors above its own, and files of its own folder.
//!
//! The floors of a crate are the lines of the block `floors <crate>` in CONTRIBUTING.md; the ground comes first. A name
//! that `lib.rs` hands on counts for the module that it comes from, and so does one that the head of a folder hands on. Comments,
//! tests and `lib.rs` itself are free.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::prelude::*;

/// A path that a file names, from the crate's root on.
struct NamedPath {
    path: String,
    /// The head of a folder only re-exports it: `pub use file::Name`. It does not need that file.
    is_reexport: bool,
}

/// The paths that each file names.
type Files = BTreeMap<String, Vec<NamedPath>>;

/// Heads of folders that files of the folder may need although the head needs them: what defines the methods of a class lies in
/// `class.rs`, and `class/tensor.rs` uses it for the class that those methods return.
const CIRCULAR_HEADS: [&str; 1] = ["class"];

pub(crate) fn check(sh: &Shell) -> Result<()> {
    let mut errors = Vec::new();
    let text = sh.read_file("CONTRIBUTING.md")?;
    for block in text.split("\n```floors ").skip(1) {
        let mut lines = block.lines().take_while(|line| *line != "```");
        let folder = format!("{}/src/", lines.next().context("a block without a name")?);
        let floors: Vec<_> = lines.filter_map(|line| line.split(' ').next()).collect();
        let found = errors_of(&texts(sh, &[&format!("{folder}*.rs")])?, &folder, &floors);
        errors.extend(found.iter().map(|error| format!("{folder}: {error}")));
    }
    none(errors)
}

/// The errors in these files of a crate.
fn errors_of(sources: &[(String, String)], folder: &str, floors: &[&str]) -> Vec<String> {
    let mut files = Files::new();
    for (path, text) in sources.iter().filter(|(path, _)| !path.contains("tests")) {
        let here = path[folder.len()..].trim_end_matches(".rs");
        let here = here.replace('/', "::");
        let found = files.entry(here.clone()).or_default();
        // Its error is neither `Send` nor `Sync`; clippy parses the same files.
        walk(text.parse().expect(path), &here, found);
    }
    let root = files.remove("lib").unwrap_or_default();
    let modules: BTreeSet<_> = files.keys().map(|file| top(file)).collect();
    // The module of a name at the crate's root. The hidden one has a longer name than its file.
    let home = |name: &str| {
        let hidden = name.trim_matches(|c: char| c == '_' || c.is_numeric());
        let paths = root.iter().map(|named| &*named.path);
        let homes = paths.filter(|path| last(path) == name).map(top);
        let mut homes = homes.chain([name, hidden]);
        homes.find_map(|module| modules.get(module).copied())
    };
    let floor = |module: &str| floors.iter().position(|floor| *floor == module);
    let floor_names = floors.iter().copied().collect();
    let strange = modules.symmetric_difference(&floor_names);
    let error = |name| format!("{name} is a module or a floor, but not both");
    let mut errors: Vec<_> = strange.map(error).collect();
    let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, paths) in &files {
        let own = top(file);
        let needed = paths.iter().filter(|named| !named.is_reexport);
        for path in needed.map(|named| &*named.path) {
            match home(top(path)) {
                None => errors.push(format!("{file} names {path}, which lib.rs does not know")),
                Some(module) if module == own => {
                    let named = file_of(path, &files)
                        .filter(|named| named != file && !CIRCULAR_HEADS.contains(named));
                    needs.entry(file).or_default().extend(named);
                }
                Some(module) if floor(module) < floor(own) => {}
                Some(_) => errors.push(format!("{file} names {path}, which is no floor above it")),
            }
        }
    }
    for file in needs.keys() {
        let mut circle = reach(file, &needs);
        circle.retain(|other| reach(other, &needs).contains(file));
        // Up to this many files of one folder may need each other. Each circle is reported once.
        if circle.len() > 3 && circle.first() == Some(file) {
            let (size, names) = (circle.len(), Vec::from_iter(circle).join(", "));
            errors.push(format!("a circle of {size} files: {names}"));
        }
    }
    errors
}

/// The file of a path: that of the longest module in it. If that is the head of a folder, and re-exports the name from a file in the
/// folder, it is that file.
fn file_of<'a>(path: &str, files: &'a Files) -> Option<&'a str> {
    let ends = path.rmatch_indices("::").map(|(end, _)| end);
    let mut prefixes = [path.len()].into_iter().chain(ends).map(|end| &path[..end]);
    let (file, names) = prefixes.find_map(|prefix| files.get_key_value(prefix))?;
    let rest = path.get(file.len() + 2..).map_or("", top);
    let mut reexports = names.iter().filter(|named| named.is_reexport);
    match reexports.find(|named| last(&named.path) == rest) {
        Some(named) => file_of(&named.path, files),
        None => Some(file),
    }
}

/// The module at the crate's root in which a path begins.
fn top(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

/// The name at the end of a path.
fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// The files that a file needs, directly or through others.
fn reach<'a>(file: &'a str, needs: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let (mut found, mut next) = (BTreeSet::new(), vec![file]);
    while let Some(file) = next.pop() {
        let new = needs.get(file).into_iter().flatten();
        next.extend(new.copied().filter(|file| found.insert(*file)));
    }
    found
}

/// Finds the paths of some code of the module `here`, from the crate's root on, tests apart.
fn walk(tokens: TokenStream, here: &str, found: &mut Vec<NamedPath>) {
    let trees: Vec<_> = tokens.into_iter().collect();
    let texts: Vec<_> = trees.iter().map(text).collect();
    let mut is_test = false;
    for (at, tree) in trees.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| &*texts[at]);
        // An item ends in braces or with a semicolon.
        if is_test || before(1) == "#" && texts[at] == "cfg (test)" {
            is_test = !["{", ";"].contains(&&*texts[at]);
        } else if before(1) == ":" && before(2) == ":" {
            // What stands in a path is read from its beginning.
        } else if let TokenTree::Group(group) = tree {
            let inner = format!("{here}::{}", before(1));
            let here = if before(2) == "mod" { &inner } else { here };
            walk(group.stream(), here, found);
        } else if before(1) != "$" {
            // The `$crate` of a macro speaks for the crate that uses it.
            for path in expand(&trees[at..]) {
                let (mut module, mut rest) = (here, &*path);
                while let Some(tail) = rest.strip_prefix("super::") {
                    (module, rest) = (module.rsplit_once("::").unwrap_or_default().0, tail);
                }
                let mut is_reexport = false;
                let path = match path.strip_prefix("crate::") {
                    Some(path) => path.to_owned(),
                    None if rest != path => format!("{module}::{rest}"),
                    None if here == "lib" => path,
                    // Perhaps of a file in the folder that this one is the head of.
                    None if path.contains("::") && !here.contains("::") => {
                        is_reexport = before(1) == "use" && [before(2), before(3)].contains(&"pub");
                        format!("{here}::{path}")
                    }
                    None => continue,
                };
                found.push(NamedPath {
                    path: path.trim_start_matches("::").to_owned(),
                    is_reexport,
                });
            }
        }
    }
}

/// The paths that begin here; a list in braces stands for several.
fn expand(trees: &[TokenTree]) -> Vec<String> {
    match trees {
        [TokenTree::Ident(word), one, two, rest @ ..] if text(one) + &text(two) == "::" => {
            let mut tails = expand(rest);
            tails.resize_with(tails.len().max(1), String::new);
            tails.iter().map(|tail| format!("{word}::{tail}")).collect()
        }
        [TokenTree::Ident(word), ..] => vec![word.to_string()],
        [TokenTree::Group(group), ..] => {
            let trees: Vec<_> = group.stream().into_iter().collect();
            let paths = trees.split(|tree| text(tree) == ",");
            paths.flat_map(expand).collect()
        }
        _ => vec![],
    }
}

/// A word or a sign; of a group, what it holds, or only that it is a brace.
fn text(tree: &TokenTree) -> String {
    match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => "{".into(),
        TokenTree::Group(group) => group.stream().to_string(),
        _ => tree.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::errors_of;

    /// What is found in these files.
    fn errors(files: &[(&str, &str)], floors: &[&str]) -> Vec<String> {
        let owned = |(path, code): &(&str, &str)| (path.to_string(), code.to_string());
        let files: Vec<_> = files.iter().map(owned).collect();
        errors_of(&files, "src/", floors)
    }

    #[test]
    fn a_planted_import_is_found_in_every_spelling() {
        let root = "pub use {layout::few::Few, error::Error, tensor::{View, items::Items}};";
        let names = ["layout/few", "error", "tensor", "private"];
        let names = names.map(|name| format!("src/{name}.rs"));
        for line in include_str!("../cases/floors.txt").lines().skip(1) {
            let (count, code) = line.split_once(' ').unwrap();
            let mut files: Vec<_> = names.iter().map(|name| (&**name, "")).collect();
            files.extend([("src/lib.rs", root), ("src/layout/dims.rs", code)]);
            let errors = errors(&files, &["error", "layout", "tensor", "private"]);
            assert_eq!(errors.len().to_string(), count, "{code}: {errors:?}");
        }
    }

    #[test]
    fn every_module_has_a_floor_and_four_files_make_no_circle() {
        let b = ("src/a/b.rs", "use super::c;");
        let c = ("src/a/c.rs", "use super::d::X;");
        let [d, back] = ["use super::e;", "use super::b;"].map(|code| ("src/a/d.rs", code));
        let e = ("src/a/e.rs", "use super::b::{X};");
        assert_eq!(errors(&[b, c, back, e], &["a"]), [""; 0]);
        let circle = "a circle of 4 files: a::b, a::c, a::d, a::e";
        assert_eq!(errors(&[b, c, d, e], &["a"]), [circle]);
        assert_eq!(errors(&[b, c, back, e], &["z"]).len(), 2);
    }

    #[test]
    fn the_head_of_a_folder_is_a_file_of_a_circle() {
        let files = |head| {
            let b = ("src/a/b.rs", "use crate::a::c::Y;");
            let [c, d] = ["use super::d::X;", "use crate::a::Here;"];
            let [c, d] = [("src/a/c.rs", c), ("src/a/d.rs", d)];
            errors(&[("src/a.rs", head), b, c, d], &["a"])
        };
        let circle = "a circle of 4 files: a, a::b, a::c, a::d";
        assert_eq!(files("use b::Name; pub struct Here;"), [circle]);
        assert_eq!(files("pub(crate) use b::Name; pub struct Here;"), [""; 0]);
        let circle = "a circle of 4 files: a::b, a::c, a::d, a::e";
        let e = ("src/a/e.rs", "use super::b::Name;");
        let d = ("src/a/d.rs", "use crate::a::Here;");
        let through = [
            ("src/a.rs", "pub use e::{Here, Other};"),
            ("src/a/b.rs", "use super::c;"),
        ];
        let c = ("src/a/c.rs", "use super::d::X;");
        assert_eq!(errors(&[through[0], through[1], c, d, e], &["a"]), [circle]);
    }
}
