//! Let every array library read every kind of tensor, and write the table spec/consumers.md.
//!
//! Installs the libraries into environments of their own in the cache folder, and runs every case of
//! dlpack-pyo3/pytests/consumers with each of them. Fails if a cell is neither right nor known; what is known of each
//! library stands in adapters.py there. The first full run installs 12 GB and takes half an hour, later ones take minutes.
//! usage: `cargo xtask consumers [--quick] [--only NAME]`, both without writing the table
//!   --quick       what CI runs: the libraries that install in a minute, and the tests of the matrix itself
//!   --only NAME   only this library, such as `torch` or `numpy 1.26`

use crate::prelude::*;
use crate::pytest::module;

const FOLDER: &str = "dlpack-pyo3/pytests/consumers";
const LIBRARIES: &str = include_str!("../../dlpack-pyo3/pytests/consumers/libraries.tsv");
/// The environment without which nothing is tested; that another cannot be had, the table says.
const QUICK: &str = "test";

/// A line of libraries.tsv, whose head says what the columns are.
struct Group {
    name: &'static str,
    minor: Option<u32>,
    requirements: Vec<&'static str>,
    /// Title and adapter of each.
    libraries: Vec<(&'static str, &'static str)>,
}

fn group(line: &'static str) -> Option<Group> {
    let [name, minor, requirements, libraries] = line.split('\t').collect::<Vec<_>>()[..] else {
        return None;
    };
    let libraries = libraries.split(", ");
    let adapter = |title: &'static str| title.split_once('=').unwrap_or((title, title));
    Some(Group {
        name,
        minor: minor.parse().ok(),
        requirements: requirements.split(' ').collect(),
        libraries: libraries.map(adapter).collect(),
    })
}

impl Group {
    /// The environment, and the folder with our module, built for its Python.
    fn environment(&self, sh: &Shell) -> Result<(Venv, PathBuf)> {
        let special = |minor| interpreter_of(minor).with_context(|| format!("no Python 3.{minor}"));
        let python = self.minor.map_or_else(interpreter, special)?;
        let venv = venv(sh, &python, self.name, &self.requirements)?;
        Ok((venv, module(sh, &python)?))
    }
}

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let quick = args.contains("--quick");
    let only: Option<String> = args.opt_value_from_str("--only")?;
    finish(args)?;
    match quick && only.is_none() {
        true => always(sh),
        false => check(sh, quick, only.as_deref()),
    }
}

/// The libraries that install quickly, and the tests of the matrix itself, with libraries that lie.
pub(crate) fn always(sh: &Shell) -> Result<()> {
    check(sh, true, None)?;
    let (venv, module) = usual(sh)?;
    Ok(venv.pytest(sh, FOLDER).env("PYTHONPATH", module).run()?)
}

/// The environment of the libraries that install quickly.
pub(crate) fn usual(sh: &Shell) -> Result<(Venv, PathBuf)> {
    let group = LIBRARIES.lines().find_map(group);
    group.context("no libraries")?.environment(sh)
}

fn check(sh: &Shell, quick: bool, only: Option<&str>) -> Result<()> {
    let mut run = sh.cmd(interpreter()?).arg(format!("{FOLDER}/run.py"));
    let mut groups: Vec<_> = LIBRARIES.lines().filter_map(group).collect();
    groups.retain(|group| !quick || group.name == QUICK);
    let all = groups.iter().flat_map(|group| &group.libraries);
    let titles: Vec<_> = all.map(|(title, _)| *title).collect();
    if let Some(only) = only {
        let titles = titles.join(", ");
        ensure!(
            titles.contains(&only),
            "no library `{only}`; there are {titles}"
        );
    }
    for mut group in groups {
        group
            .libraries
            .retain(|(title, _)| only.is_none_or(|only| only == *title));
        if group.libraries.is_empty() {
            continue;
        }
        let environment = group.environment(sh);
        if let (Err(error), true) = (&environment, group.name != QUICK) {
            let reason = format!("cannot be installed: {error:#}");
            for (title, _) in group.libraries {
                run = run.args(["--skipped", title, &reason]);
            }
            continue;
        }
        let (venv, module) = environment?;
        for (title, adapter) in group.libraries {
            let mut folders = vec![module.clone()];
            if adapter.starts_with("nanobind") {
                // With the C++ library that takes tensors through it.
                let folder = target_dir().join("python/nanobind");
                let build = venv.run(sh).arg(format!("{FOLDER}/nanobind_build.py"));
                build.arg(&folder).run()?;
                folders.push(folder);
            }
            run = run.args(["--library", title, adapter]);
            run = run.arg(venv.python()).arg(std::env::join_paths(folders)?);
        }
    }
    let writes = !quick && only.is_none();
    let table = writes.then_some(["--table", "spec/consumers.md"]);
    Ok(run.args(table.iter().flatten()).run()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_has_a_column_of_its_own_and_an_adapter() {
        let sh = shell().unwrap();
        let adapters = sh.read_file(format!("{FOLDER}/adapters.py")).unwrap();
        let groups: Vec<_> = LIBRARIES.lines().filter_map(group).collect();
        let lines = LIBRARIES.lines().filter(|line| !line.starts_with('#'));
        assert_eq!((groups.len(), groups[0].name), (lines.count(), QUICK));
        let mut seen = std::collections::HashSet::new();
        for (title, adapter) in groups.into_iter().flat_map(|group| group.libraries) {
            assert!(seen.insert(title), "{title} twice");
            let entry = format!("    \"{adapter}\": ");
            assert!(adapters.contains(&entry), "{title}: no adapter `{adapter}`");
        }
        let error = check(&sh, true, Some("nunpy")).unwrap_err().to_string();
        assert!(error.contains("`nunpy`; there are numpy, "), "{error}");
    }
}
