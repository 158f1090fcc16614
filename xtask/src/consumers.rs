//! `consumers`: every array library reads every kind of tensor of ours, and a table says what came of it.

use std::path::PathBuf;

use crate::args::Args;
use crate::python::{TESTED, Venv, extension, interpreter, interpreter_of, venv, venv_of};
use crate::step::{Outcome, Step, program, root, run, target_dir};

pub(crate) const HELP: &str = "
Builds the module `dlpack_probe`, installs the libraries into environments of their own in the cache folder,
and runs every case of dlpack-pyo3/pytests/consumers with each of them. Fails if a cell is neither right nor
known; what is known of each library stands in adapters.py there.
The first full run installs 12 GB and takes half an hour, later ones take minutes.

usage: cargo xtask consumers [--quick] [--only NAME]
  --quick       what CI runs: the libraries that install in a minute, and the tests of the matrix itself
  --only NAME   only this library, such as `torch` or `numpy 1.26`
Without these the table spec/consumers.md is written anew.
";

/// Libraries that can live in one environment.
struct Group {
    name: &'static str,
    /// Whether the others are worth running without it.
    may_be_missing: bool,
    /// The Python that its newest versions need; the usual one if unsaid.
    python: Option<(u32, u32)>,
    requirements: &'static [&'static str],
    /// Column of the table, and adapter in adapters.py.
    libraries: &'static [(&'static str, &'static str)],
}

const QUICK: Group = Group {
    name: "test",
    may_be_missing: false,
    python: None,
    requirements: TESTED,
    libraries: &[
        ("numpy", "numpy"),
        ("array-api-strict", "array-api-strict"),
        ("jax 0.10", "jax"),
        ("tvm-ffi", "tvm-ffi"),
        ("tvm-ffi call", "tvm-ffi call"),
        ("pyarrow", "pyarrow"),
        ("nanobind", "nanobind"),
        ("nanobind ro", "nanobind ro"),
    ],
};

const OTHERS: [Group; 7] = [
    Group {
        name: "newest",
        may_be_missing: true,
        python: Some((3, 12)),
        requirements: &["numpy", "jax", "ml_dtypes"],
        libraries: &[
            ("numpy on 3.12", "numpy"),
            ("numpy and ml_dtypes", "numpy and ml_dtypes"),
            ("jax on 3.12", "jax"),
        ],
    },
    Group {
        name: "numpy1",
        may_be_missing: true,
        python: None,
        requirements: &["numpy==1.26.*"],
        libraries: &[("numpy 1.26", "numpy")],
    },
    Group {
        name: "torch",
        may_be_missing: true,
        python: None,
        requirements: &["numpy", "torch"],
        libraries: &[("torch", "torch")],
    },
    Group {
        name: "tensorflow",
        may_be_missing: true,
        python: None,
        requirements: &["tensorflow"],
        libraries: &[("tensorflow", "tensorflow")],
    },
    Group {
        name: "paddle",
        may_be_missing: true,
        python: None,
        requirements: &["numpy", "paddlepaddle"],
        libraries: &[("paddle", "paddle")],
    },
    Group {
        name: "small",
        may_be_missing: true,
        python: None,
        requirements: &[
            "numpy",
            "mlx[cpu]",
            "onnxruntime",
            "warp-lang",
            "mpi4py",
            "mpich",
            "cuda-core",
            "cuda-bindings",
            "ml_dtypes",
        ],
        libraries: &[
            ("mlx", "mlx"),
            ("onnxruntime", "onnxruntime"),
            ("warp", "warp"),
            ("mpi4py", "mpi4py"),
            ("cuda.core", "cuda.core"),
        ],
    },
    Group {
        name: "dpnp",
        may_be_missing: true,
        python: None,
        requirements: &["dpnp"],
        libraries: &[("dpnp", "dpnp")],
    },
];

const FOLDER: &str = "dlpack-pyo3/pytests/consumers";
const TABLE: &str = "spec/consumers.md";

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let quick = args.flag("--quick");
    let only = args.value("--only")?;
    args.finish()?;
    if quick && only.is_none() {
        return always();
    }
    let groups: Vec<_> = core::iter::once(&QUICK)
        .chain(OTHERS.iter().filter(|_| !quick))
        .collect();
    check(&groups, only.as_deref(), only.is_none().then_some(TABLE))
}

/// What `test` runs: skipped, saying so, where there is no Python.
pub(crate) fn step() -> Step {
    Step::new("array libraries", || match interpreter() {
        Err(reason) => Ok(Outcome::Skipped(reason)),
        Ok(_) => always().map(|()| Outcome::Passed),
    })
}

/// The libraries that install quickly, and the matrix's own tests.
fn always() -> Result<(), String> {
    check(&[&QUICK], None, None)?;
    harness()
}

fn check(groups: &[&Group], only: Option<&str>, table: Option<&str>) -> Result<(), String> {
    let mut command = program(&interpreter()?.to_string_lossy(), &[]);
    command.arg(format!("{FOLDER}/run.py"));
    let mut chosen = 0;
    for group in groups {
        let libraries: Vec<_> = group
            .libraries
            .iter()
            .filter(|(title, _)| only.is_none_or(|only| only == *title))
            .collect();
        if libraries.is_empty() {
            continue;
        }
        chosen += libraries.len();
        let venv = match environment(group) {
            Ok(venv) => venv,
            Err(reason) if group.may_be_missing => {
                for (title, _) in libraries {
                    command.args(["--skipped", title, &reason]);
                }
                continue;
            }
            Err(reason) => return Err(reason),
        };
        let probe = probe(group)?;
        for (title, adapter) in libraries {
            let mut folders = vec![probe.clone()];
            if adapter.starts_with("nanobind") {
                folders.push(nanobind(&venv)?);
            }
            let modules = std::env::join_paths(folders).map_err(|error| error.to_string())?;
            command
                .args(["--library", title, adapter])
                .arg(venv.python())
                .arg(modules);
        }
    }
    if chosen == 0 {
        return Err(format!(
            "no library `{}`; there are {}",
            only.unwrap_or_default(),
            titles(groups).join(", ")
        ));
    }
    command.args(table.map_or(vec![], |table| vec!["--table", table]));
    let Outcome::Passed = run(command)? else {
        return Err("nothing was run".into());
    };
    Ok(())
}

/// The tests of the matrix itself, with libraries that lie.
fn harness() -> Result<(), String> {
    let venv = environment(&QUICK)?;
    let mut tests = venv.run(&["-m", "pytest", "-q", "-p", "no:cacheprovider", FOLDER]);
    tests
        .env("PYTHONPATH", probe(&QUICK)?)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    run(tests).map(|_| ())
}

fn titles(groups: &[&Group]) -> Vec<&'static str> {
    let libraries = groups.iter().flat_map(|group| group.libraries);
    libraries.map(|(title, _)| *title).collect()
}

/// Why it cannot be had is the reason that the table gives.
fn environment(group: &Group) -> Result<Venv, String> {
    let made = match group.python {
        None => venv(group.name, group.requirements),
        Some(_) => venv_of(&python(group)?, group.name, group.requirements),
    };
    made.map_err(|error| format!("cannot be installed: {error}"))
}

fn python(group: &Group) -> Result<PathBuf, String> {
    match group.python {
        None => interpreter(),
        Some(version) => interpreter_of(version)
            .ok_or_else(|| format!("no Python {}.{} here", version.0, version.1)),
    }
}

/// The folder with our module, built for the group's Python.
fn probe(group: &Group) -> Result<PathBuf, String> {
    let python = python(group)?;
    let path = python.to_string_lossy();
    // A folder for each version: in one they would build each other's dependencies anew.
    let target = group.python.map(|(major, minor)| {
        let folder = target_dir().join(format!("python-{major}.{minor}"));
        folder.to_string_lossy().into_owned()
    });
    let mut env = vec![];
    if let Some(target) = &target {
        env.extend([("PYO3_PYTHON", &*path), ("CARGO_TARGET_DIR", target)]);
    }
    extension(
        "dlpack-pytests",
        "dlpack_probe",
        "dlpack_probe",
        false,
        &env,
    )
}

/// The folder with the C++ library that takes tensors through nanobind.
fn nanobind(venv: &Venv) -> Result<PathBuf, String> {
    let folder = target_dir().join("python").join("nanobind");
    let script = root().join(FOLDER).join("nanobind_build.py");
    let mut build = venv.run(&[]);
    build.arg(script).arg(&folder);
    run(build)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::read;

    fn every() -> Vec<&'static Group> {
        core::iter::once(&QUICK).chain(&OTHERS).collect()
    }

    #[test]
    fn every_library_has_a_column_of_its_own_and_an_adapter() {
        let titles = titles(&every());
        for (index, title) in titles.iter().enumerate() {
            assert!(!titles[..index].contains(title), "{title} twice");
        }
        let adapters = read(&root().join(FOLDER).join("adapters.py")).unwrap();
        for group in every() {
            assert!(!group.requirements.is_empty(), "{}", group.name);
            for (title, adapter) in group.libraries {
                let entry = format!("    \"{adapter}\": ");
                assert!(adapters.contains(&entry), "{title}: no adapter `{adapter}`");
            }
        }
    }

    #[test]
    fn groups_have_environments_of_their_own() {
        for (index, group) in every().iter().enumerate() {
            let earlier = &every()[..index];
            assert!(
                earlier.iter().all(|other| other.name != group.name),
                "{}",
                group.name
            );
        }
    }

    #[test]
    fn an_unknown_library_is_an_error_that_names_the_known() {
        let message = check(&[&QUICK], Some("nunpy"), None).unwrap_err();
        assert!(
            message.contains("`nunpy`") && message.contains("pyarrow"),
            "{message}"
        );
    }
}
