//! How the tests of each package are built, and where they are.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::build::Tree;
use crate::judge::{Judge, Runner};
use crate::variable;

const PLUGIN: &str = include_str!("planted_tests.py");

/// The arguments with which cargo builds a package as for its tests.
pub fn words(target: &str) -> Result<&'static [&'static str]> {
    Ok(match target {
        // The module that the Python tests use; it has the package in it.
        "pyo3" => &["-p", "dlpack-pytests", "--profile", "mutants"],
        "core" => &[
            "-p",
            "dlpack-core",
            "--all-features",
            "--profile",
            "mutants",
        ],
        "derive" => &[
            "-p",
            "dlpack-derive",
            "--all-features",
            "--profile",
            "mutants",
        ],
        other => bail!("{other} is none of core, derive and pyo3"),
    })
}

/// Builds the tests, and returns cargo's messages.
pub fn build(target: &str, tree: &Tree) -> Result<String> {
    let mut build = match target {
        "pyo3" => tree.cargo(&["build", "--quiet", "--message-format=json"]),
        _ => tree.cargo(&[
            "test",
            "--no-run",
            "--quiet",
            "--tests",
            "--message-format=json",
        ]),
    };
    if target == "core" {
        // The tests of streams.
        build.args(["-p", "dlpack-simulator"]);
    }
    let output = build.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the tests do not build");
    if target == "pyo3" {
        place_module(tree)?;
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Copies the module and the pytest plugin to a folder of Python's path.
fn place_module(tree: &Tree) -> Result<()> {
    let built = tree
        .target
        .join("mutants")
        .join(format!("{DLL_PREFIX}dlpack_probe{DLL_SUFFIX}"));
    let folder = module_folder(tree);
    let module = folder.join("dlpack_probe.so");
    fs::create_dir_all(&folder)?;
    if module.exists() {
        // A process may have mapped the file, so it is removed and not overwritten.
        fs::remove_file(&module)?;
    }
    fs::copy(built, module)?;
    Ok(fs::write(folder.join("planted_tests.py"), PLUGIN)?)
}

fn module_folder(tree: &Tree) -> PathBuf {
    tree.scratch().join("module")
}

/// Builds the tests and finds them.
pub fn judge(target: &str, tree: &Tree, jobs: usize) -> Result<Judge> {
    let messages = build(target, tree)?;
    let (runner, mut groups) = match target {
        "pyo3" => {
            let path = module_folder(tree).display().to_string();
            let python = variable("MUTANTS_PYTHON")?.into();
            (Runner::Pytest { python, path }, python_files(tree)?)
        }
        _ => (Runner::Programs, programs(&messages)?),
    };
    groups.sort();
    Ok(Judge {
        runner,
        groups,
        scratch: tree.scratch(),
        jobs,
        servers: Default::default(),
    })
}

/// The test files, each with the folder in which pytest starts.
fn python_files(tree: &Tree) -> Result<Vec<(PathBuf, PathBuf)>> {
    let folder = tree.root.join("dlpack-pyo3/pytests/tests");
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("test_") && name.ends_with(".py") {
            files.push((path.clone(), folder.clone()));
        }
    }
    Ok(files)
}

/// The programs of tests that cargo has built, each with the folder of its package.
fn programs(messages: &str) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut programs = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line)?;
        let is_test = message["profile"]["test"] == true;
        let (program, manifest) = (
            message["executable"].as_str(),
            message["manifest_path"].as_str(),
        );
        if let (true, Some(program), Some(manifest)) = (is_test, program, manifest) {
            let folder = Path::new(manifest).parent().context("a folder")?;
            programs.push((PathBuf::from(program), folder.to_owned()));
        }
    }
    Ok(programs)
}
