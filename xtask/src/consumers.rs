//! Let every array library read every kind of tensor, and write the table spec/consumers.md.
//!
//! Runs every case of dlpack-pyo3/pytests/consumers with each library, in environments in the cache folder. Fails if a cell
//! is neither right nor known (adapters.py). The first full run installs 12 GB and takes half an hour, later ones minutes.
//! usage: `cargo xtask consumers [--quick] [--only NAME]`, both without writing the table
//!   --quick       what CI runs: the libraries that install in a minute, and the tests of the matrix itself
//!   --only NAME   only this library, such as `torch` or `numpy 1.26`

use crate::prelude::*;
use crate::pytest::module;

const FOLDER: &str = "dlpack-pyo3/pytests/consumers";
const LIBRARIES: &str = include_str!("../../dlpack-pyo3/pytests/consumers/libraries.tsv");
/// The environment that must exist. If another cannot be made, the table says so.
const QUICK: &str = "test";

/// The lines of libraries.tsv, whose head describes the columns.
fn groups() -> impl Iterator<Item = [&'static str; 4]> {
    let lines = LIBRARIES.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let columns: Vec<_> = line.split('\t').collect();
        *columns.first_chunk().expect("4 columns")
    })
}

/// Title and adapter of each library in a line.
fn libraries(column: &str) -> impl Iterator<Item = (&str, &str)> {
    let titles = column.split(", ");
    titles.map(|title| title.split_once('=').unwrap_or((title, title)))
}

/// The environment of a line, and its Python.
fn installed(sh: &Shell, [name, minor, packages, _]: [&str; 4]) -> Result<(Venv, PathBuf)> {
    let python = match minor.parse() {
        Ok(minor) => interpreter_of(minor).with_context(|| format!("no Python 3.{minor}"))?,
        Err(_) => interpreter()?,
    };
    Ok((venv(sh, &python, name, packages)?, python))
}

/// The environment of the libraries that install quickly.
pub(crate) fn quick(sh: &Shell) -> Result<Venv> {
    Ok(installed(sh, groups().next().context("no libraries")?)?.0)
}

/// The environment of a line, and the folder with our module, built for its Python.
fn environment(sh: &Shell, group: [&str; 4]) -> Result<(Venv, PathBuf)> {
    let (venv, python) = installed(sh, group)?;
    Ok((venv, module(sh, &python)?))
}

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let quick = args.contains("--quick");
    let only: Option<String> = args.opt_value_from_str("--only")?;
    finish(args)?;
    match only {
        None if quick => always(sh),
        _ => check(sh, quick, only.as_deref()),
    }
}

/// The libraries that install quickly, and the tests of the matrix itself, with libraries that do something wrong.
pub(crate) fn always(sh: &Shell) -> Result<()> {
    check(sh, true, None)?;
    let (venv, module) = usual(sh)?;
    let tests = pytest(venv.run(sh), FOLDER);
    Ok(tests.env("PYTHONPATH", module).run()?)
}

/// The environment of the libraries that install quickly, and the folder with our module.
pub(crate) fn usual(sh: &Shell) -> Result<(Venv, PathBuf)> {
    Ok((quick(sh)?, module(sh, &interpreter()?)?))
}

fn check(sh: &Shell, quick: bool, only: Option<&str>) -> Result<()> {
    let mut run = sh.cmd(interpreter()?).arg(format!("{FOLDER}/run.py"));
    let mut known = Vec::new();
    for group in groups().filter(|group| !quick || group[0] == QUICK) {
        known.extend(libraries(group[3]).map(|(title, _)| title));
        let mut chosen: Vec<_> = libraries(group[3]).collect();
        chosen.retain(|(title, _)| only.is_none_or(|only| only == *title));
        if chosen.is_empty() {
            continue;
        }
        let environment = environment(sh, group);
        if let (Err(error), true) = (&environment, group[0] != QUICK) {
            let reason = format!("cannot be installed: {error:#}");
            for (title, _) in chosen {
                run = run.args(["--skipped", title, &reason]);
            }
            continue;
        }
        let (venv, module) = environment?;
        for (title, adapter) in chosen {
            let mut folders = vec![module.clone()];
            if adapter.starts_with("nanobind") {
                // With the C++ library that imports tensors by nanobind.
                let folder = target_dir().join("python/nanobind");
                let build = venv.run(sh).arg(format!("{FOLDER}/nanobind_build.py"));
                build.arg(&folder).run()?;
                folders.push(folder);
            }
            run = run.args(["--library", title, adapter]);
            run = run.arg(venv.python()).arg(std::env::join_paths(folders)?);
        }
    }
    let is_known = only.is_none_or(|only| known.contains(&only));
    ensure!(is_known, "no such library; there are {}", known.join(", "));
    let table = (!quick && only.is_none()).then_some(["--table", "spec/consumers.md"]);
    Ok(run.args(table.iter().flatten()).run()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_has_a_column_of_its_own_and_an_adapter() {
        let sh = shell().unwrap();
        let adapters = sh.read_file(format!("{FOLDER}/adapters.py")).unwrap();
        assert_eq!(groups().next().unwrap()[0], QUICK);
        let mut seen = std::collections::HashSet::new();
        for (title, adapter) in groups().flat_map(|group| libraries(group[3])) {
            assert!(seen.insert(title), "{title} twice");
            let entry = format!("    \"{adapter}\": ");
            assert!(adapters.contains(&entry), "{title}: no adapter `{adapter}`");
        }
        let error = check(&sh, true, Some("nunpy")).unwrap_err();
        assert!(error.to_string().contains("there are numpy, "), "{error}");
    }
}
