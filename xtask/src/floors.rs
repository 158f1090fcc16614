//! Imports go up: a file names modules of the floors above its own, and files of its own folder.
//!
//! The floors of a crate are the lines of the block `floors <crate>` in CONTRIBUTING.md; the ground comes first. A name
//! that `lib.rs` hands on counts for the module that it comes from. Comments, tests and `lib.rs` itself are free.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::prelude::*;

pub(crate) fn check(sh: &Shell) -> Result<()> {
    let mut errors = Vec::new();
    let text = sh.read_file("CONTRIBUTING.md")?;
    for block in text.split("\n```floors ").skip(1) {
        let block = block.split_once("\n```").context("a block of floors has no end")?.0;
        let (name, lines) = block.split_once('\n').context("a block of floors is empty")?;
        let floors: Vec<_> = lines.lines().map(|line| line.split("  ").next().unwrap_or(line)).collect();
        let folder = format!("{name}/src/");
        let mut sources = texts(sh, &[&format!("{folder}*.rs")])?;
        sources.iter_mut().for_each(|(path, _)| *path = path[folder.len()..].to_owned());
        errors.extend(errors_of(&sources, &floors)?.into_iter().map(|error| format!("{name}: {error}")));
    }
    none(errors)
}

fn errors_of(sources: &[(String, String)], floors: &[&str]) -> Result<Vec<String>> {
    let mut files: BTreeMap<&str, Vec<Vec<String>>> = BTreeMap::new();
    for (file, text) in sources.iter().filter(|(file, _)| !file.contains("tests")) {
        let tokens: TokenStream = text.parse().map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
        let file = file.trim_end_matches(".rs");
        let here: Vec<_> = file.split('/').map(str::to_owned).collect();
        walk(tokens, &here, files.entry(file).or_default());
    }
    let root = files.remove("lib").unwrap_or_default();
    let top = |file: &str| file.split('/').next().unwrap_or_default().to_owned();
    let modules: BTreeSet<_> = files.keys().map(|file| top(file)).collect();
    let floor = |module: &str| floors.iter().position(|floor| *floor == module);
    // The module of a name at the crate's root. The hidden one has a longer name than its file.
    let home = |name: &str| -> Option<&String> {
        let mut uses = root.iter().filter(|path| path.last().is_some_and(|last| last == name));
        let hidden = name.trim_start_matches("__").trim_end_matches(char::is_numeric);
        uses.find_map(|path| modules.get(&path[0])).or_else(|| modules.get(hidden))
    };
    let floorless = modules.iter().filter(|module| floor(module).is_none());
    let mut errors: Vec<_> = floorless.map(|module| format!("{module} has no floor")).collect();
    let empty = floors.iter().filter(|floor| !modules.contains(**floor));
    errors.extend(empty.map(|floor| format!("there is no module {floor}")));
    let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, paths) in &files {
        let own = top(file);
        for path in paths.iter().filter(|path| !path.is_empty()) {
            let shown = path.join("::");
            match home(&path[0]) {
                None => errors.push(format!("{file} names {shown}, which lib.rs does not know")),
                Some(module) if *module == own => {
                    let beside = format!("{own}/{}", path.get(1).map_or("", String::as_str));
                    needs.entry(file).or_default().extend(files.keys().find(|other| **other == beside));
                }
                Some(module) if floor(module) >= floor(&own) => {
                    errors.push(format!("{file} names {shown} of {module}, which is no floor above it"));
                }
                Some(_) => {}
            }
        }
    }
    // What a file needs, it needs through others too.
    for _ in 0..needs.len() {
        let through = needs.clone();
        for needed in needs.values_mut() {
            let more: Vec<_> = needed.iter().filter_map(|file| through.get(file)).flatten().copied().collect();
            needed.extend(more);
        }
    }
    let is_needed = |file: &str, by: &str| needs.get(by).is_some_and(|needed| needed.contains(file));
    for (file, needed) in &needs {
        let circle: Vec<_> = needed.iter().copied().filter(|other| is_needed(file, other)).collect();
        // So many files of one folder may need each other; a circle is told once.
        if circle.len() > 3 && circle[0] == *file {
            errors.push(format!("a circle of {} files: {}", circle.len(), circle.join(", ")));
        }
    }
    Ok(errors)
}

/// Finds the paths of some code of the module `here`, from the crate's root on, tests apart.
fn walk(tokens: TokenStream, here: &[String], found: &mut Vec<Vec<String>>) {
    let trees: Vec<_> = tokens.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        let before = |back: usize| at.checked_sub(back).map(|at| text(&trees[at])).unwrap_or_default();
        // What stands in a path, or in a list of imports, is read from its beginning.
        let is_inside = before(1) == ":" && before(2) == ":";
        match &trees[at] {
            TokenTree::Group(group) if before(1) == "#" && group.stream().to_string() == "cfg (test)" => {
                at += trees[at..].iter().position(|tree| ["{", ";"].contains(&&*text(tree))).unwrap_or(trees.len());
            }
            TokenTree::Group(group) if !is_inside => {
                let inline = (before(2) == "mod").then(|| before(1));
                walk(group.stream(), &here.iter().cloned().chain(inline).collect::<Vec<_>>(), found);
            }
            // The `$crate` of a macro speaks for the crate that uses it.
            TokenTree::Ident(_) if !is_inside && before(1) != "$" => {
                for path in expand(&trees[at..]) {
                    let ups = path.iter().take_while(|name| *name == "super").count();
                    found.push(match path[0].as_str() {
                        "crate" => path[1..].to_vec(),
                        "super" if ups <= here.len() => [&here[..here.len() - ups], &path[ups..]].concat(),
                        _ if here == ["lib"] => path,
                        _ => continue,
                    });
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The paths that begin here; a list in braces stands for several.
fn expand(trees: &[TokenTree]) -> Vec<Vec<String>> {
    match trees {
        [TokenTree::Ident(word), colon, second, rest @ ..] if text(colon) == ":" && text(second) == ":" => {
            let mut tails = expand(rest);
            tails.resize_with(tails.len().max(1), Vec::new);
            tails.into_iter().map(|tail| [vec![word.to_string()], tail].concat()).collect()
        }
        [TokenTree::Ident(word), ..] => vec![vec![word.to_string()]],
        [TokenTree::Group(group), ..] => {
            let trees: Vec<_> = group.stream().into_iter().collect();
            trees.split(|tree| text(tree) == ",").flat_map(expand).collect()
        }
        _ => vec![],
    }
}

/// A word or a sign; of a group, a brace if it is one.
fn text(tree: &TokenTree) -> String {
    match tree {
        TokenTree::Group(group) => if group.delimiter() == Delimiter::Brace { "{" } else { "" }.into(),
        _ => tree.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a crate of three floors when the second file holds this code.
    fn errors(code: &str) -> Vec<String> {
        let lib = "pub use layout::few::Few; pub use tensor::{View, items::Items}; use error::Error;";
        let files = ["lib.rs", "layout/dims.rs", "layout/few.rs", "error.rs", "tensor.rs", "private.rs"];
        let mut files = files.map(|name| (name.to_owned(), String::new()));
        (files[0].1, files[1].1) = (lib.into(), code.into());
        errors_of(&files, &["error", "layout", "tensor", "private"]).unwrap()
    }

    #[test]
    fn a_planted_import_is_found_in_every_spelling() {
        for code in [
            "use crate::tensor::View;",
            "use super::super::tensor; use crate::{Error, Few};",
            "use crate::{Error, tensor::{self as t}};",
            "fn f() { crate::tensor::g() }",
            "mod inner { use super::super::super::tensor::View; }",
            "macro_rules! m { () => { crate::Items::g() } }",
            "#[cfg(feature = \"a\")] impl crate::View {}",
            "use crate::__private0::x;",
            "use crate::Lost;",
        ] {
            assert_eq!(errors(code).len(), 1, "{code}");
        }
        assert_eq!(errors("crate::View"), ["layout/dims names View of tensor, which is no floor above it"]);
    }

    #[test]
    fn imports_from_above_and_from_the_folder_pass() {
        for code in [
            "use crate::error::Error; use crate::{Error as E, Few, layout::few::Few};",
            "use super::few::Few; use super::Other; use super::super::error; use super::*;",
            "/// [`crate::tensor`]\nfn f() { \"crate::tensor::x\"; core::mem::swap() }",
            "#[cfg(test)] mod tests { use crate::tensor::View; }",
            "mod inner { use super::g; use super::super::few; }",
            "macro_rules! m { () => { $crate::tensor::g() } }",
        ] {
            assert_eq!(errors(code), [""; 0], "{code}");
        }
    }

    #[test]
    fn every_module_has_a_floor_and_four_files_make_no_circle() {
        let next = |name: &str, next: &str| (format!("a/{name}.rs"), format!("use super::{next}::X;"));
        let files = |last| [next("b", "c"), next("c", "d"), next("d", last), next("e", "b")];
        assert_eq!(errors_of(&files("b"), &["a"]).unwrap(), [""; 0]);
        assert_eq!(errors_of(&files("e"), &["a"]).unwrap(), ["a circle of 4 files: a/b, a/c, a/d, a/e"]);
        assert_eq!(errors_of(&files("b"), &["z"]).unwrap(), ["a has no floor", "there is no module z"]);
    }
}
