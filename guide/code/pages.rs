//! Takes the programs for Python out of README and guide: the blocks that begin with ```` ```rust,ignore ````, a module a page.

use core::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const FENCE: &str = "```rust,ignore\n";
/// So that stubs can name the class.
const TENSOR: &str = "#[pymodule_export] use dlpack_pyo3::Tensor;\n";
const BEFORE: &str = "#[pymodule_export] use crate::before::python as before;\n";

fn main() -> io::Result<()> {
    let guide = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut paths = vec![guide.join("../README.md")];
    for entry in fs::read_dir(guide.join("src"))? {
        paths.push(entry?.path());
    }
    println!("cargo::rerun-if-changed={}", guide.join("src").display());
    let (mut modules, mut names) = (String::new(), Vec::new());
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
    {
        println!("cargo::rerun-if-changed={}", path.display());
        let (name, program) = (name(path), program(&fs::read_to_string(path)?));
        if !program.is_empty() {
            let module = module(&name, &program);
            writeln!(modules, "mod {name} {{\n{program}\n{module}\n}}").expect("a string");
            names.push(name);
        }
    }
    let exports: String = names
        .iter()
        .map(|name| format!("#[pymodule_export] use super::{name}::python::my_module as {name};\n"))
        .collect();
    let all = format!(
        "{modules}\n#[pyo3::pymodule(name = \"guide\")] mod all {{\n{TENSOR}{exports}{BEFORE}}}\n"
    );
    fs::write(
        PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("pages.rs"),
        all,
    )
}

/// `who-owns-what.md` is the module `who_owns_what`.
fn name(path: &Path) -> String {
    let stem = path.file_stem().expect("a file").to_string_lossy();
    stem.to_lowercase().replace('-', "_")
}

fn program(page: &str) -> String {
    let blocks = page.split(FENCE).skip(1);
    let code = blocks.map(|block| block.split("\n```\n").next().unwrap_or(block));
    code.collect::<Vec<_>>().join("\n\n")
}

/// Exports each class and function to Python.
fn module(page: &str, program: &str) -> String {
    let mut uses = String::new();
    let mut is_next = false;
    for line in program.lines() {
        is_next |= line.starts_with("#[pyclass") || line.starts_with("#[pyfunction");
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let kinds = ["struct ", "enum ", "fn "];
        if let (true, Some(rest)) = (
            is_next,
            kinds.iter().find_map(|kind| line.strip_prefix(kind)),
        ) {
            let end = |letter: char| !letter.is_alphanumeric() && letter != '_';
            let item = rest.split(end).next().unwrap_or(rest);
            writeln!(uses, "#[pymodule_export] use super::super::{item};").expect("a string");
            is_next = false;
        }
    }
    format!(
        "pub(super) mod python {{ #[pyo3::pymodule(name = \"{page}\")] pub(crate) mod my_module {{\n{uses}}} }}"
    )
}
