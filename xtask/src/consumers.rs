//! Let every array library read every kind of tensor, and write the table spec/consumers.md.
//!
//! Installs the libraries into environments of their own in the cache folder, and runs every case of
//! dlpack-pyo3/pytests/consumers with each of them. Fails if a cell is neither right nor known; what is known of each
//! library stands in adapters.py there. The first full run installs 12 GB and takes half an hour, later ones take minutes.
//! usage: `cargo xtask consumers [--quick] [--only NAME]`, both without writing the table
//!   --quick       what CI runs: the libraries that install in a minute, and the tests of the matrix itself
//!   --only NAME   only this library, such as `torch` or `numpy 1.26`

use crate::prelude::*;
use crate::pytests::module;

/// Libraries that can live in one environment: its name, the Python that they need, if it is not the usual one, what is
/// installed, and the columns of the table, each with its adapter in adapters.py if that has another name.
type Group = (&'static str, Option<(u32, u32)>, &'static [&'static str], &'static [&'static str]);

#[rustfmt::skip]
const QUICK: Group = ("test", None, TESTED, &["numpy", "array-api-strict", "jax 0.10=jax", "tvm-ffi", "tvm-ffi call",
    "pyarrow", "nanobind", "nanobind ro"]);

/// What is worth running though some of it cannot be had.
#[rustfmt::skip]
const OTHERS: [Group; 7] = [
    ("newest", Some((3, 12)), &["numpy", "jax", "ml_dtypes"],
        &["numpy on 3.12=numpy", "numpy and ml_dtypes", "jax on 3.12=jax"]),
    ("numpy1", None, &["numpy==1.26.*"], &["numpy 1.26=numpy"]),
    ("torch", None, &["numpy", "torch"], &["torch"]),
    ("tensorflow", None, &["tensorflow"], &["tensorflow"]),
    ("paddle", None, &["numpy", "paddlepaddle"], &["paddle"]),
    ("small", None, &["numpy", "mlx[cpu]", "onnxruntime", "warp-lang", "mpi4py", "mpich", "cuda-core",
        "cuda-bindings", "ml_dtypes"], &["mlx", "onnxruntime", "warp", "mpi4py", "cuda.core"]),
    ("dpnp", None, &["dpnp"], &["dpnp"]),
];

const FOLDER: &str = "dlpack-pyo3/pytests/consumers";

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let quick = args.contains("--quick");
    let only: Option<String> = args.opt_value_from_str("--only")?;
    finish(args)?;
    if quick && only.is_none() {
        return always(sh);
    }
    let groups: Vec<_> = core::iter::once(&QUICK).chain(OTHERS.iter().filter(|_| !quick)).collect();
    check(sh, &groups, only.as_deref(), only.is_none().then_some("spec/consumers.md"))
}

/// The libraries that install quickly, and the tests of the matrix itself, with libraries that lie.
pub(crate) fn always(sh: &Shell) -> Result<()> {
    check(sh, &[&QUICK], None, None)?;
    let python = interpreter()?;
    let tests = venv_of(sh, &python, QUICK.0, QUICK.2)?.pytest(sh, FOLDER);
    Ok(tests.env("PYTHONPATH", module(sh, &python)?).run()?)
}

fn check(sh: &Shell, groups: &[&Group], only: Option<&str>, table: Option<&str>) -> Result<()> {
    let mut run = sh.cmd(interpreter()?).arg(format!("{FOLDER}/run.py"));
    let mut titles = Vec::new();
    for (name, version, requirements, libraries) in groups {
        let libraries = libraries.iter().map(|title| title.split_once('=').unwrap_or((title, title)));
        titles.extend(libraries.clone().map(|(title, _)| title));
        let chosen: Vec<_> = libraries.filter(|(title, _)| only.is_none_or(|only| only == *title)).collect();
        if chosen.is_empty() {
            continue;
        }
        // Why one cannot be had is the reason that the table gives.
        let (venv, module) = match environment(sh, name, *version, requirements) {
            Err(error) if *name != QUICK.0 => {
                let reason = format!("cannot be installed: {error:#}");
                for (title, _) in chosen {
                    run = run.args(["--skipped", title, &reason]);
                }
                continue;
            }
            environment => environment?,
        };
        for (title, adapter) in chosen {
            let mut folders = vec![module.clone()];
            if adapter.starts_with("nanobind") {
                // With the C++ library that takes tensors through it.
                let folder = target_dir().join("python/nanobind");
                venv.run(sh).arg(format!("{FOLDER}/nanobind_build.py")).arg(&folder).run()?;
                folders.push(folder);
            }
            run = run.args(["--library", title, adapter]);
            run = run.arg(venv.python()).arg(std::env::join_paths(folders)?);
        }
    }
    if let Some(only) = only {
        ensure!(titles.contains(&only), "no library `{only}`; there are {}", titles.join(", "));
    }
    Ok(run.args(table.iter().flat_map(|table| ["--table", table])).run()?)
}

/// The environment, and the folder with our module, built for its Python.
fn environment(sh: &Shell, name: &str, version: Option<(u32, u32)>, requirements: &[&str]) -> Result<(Venv, PathBuf)> {
    let special = |version: (u32, u32)| {
        interpreter_of(version).with_context(|| format!("no Python {}.{} here", version.0, version.1))
    };
    let python = version.map_or_else(interpreter, special)?;
    Ok((venv_of(sh, &python, name, requirements)?, module(sh, &python)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_has_a_column_of_its_own_and_an_adapter() {
        let sh = shell().unwrap();
        let adapters = sh.read_file(format!("{FOLDER}/adapters.py")).unwrap();
        let mut seen = std::collections::HashSet::new();
        for (_, _, _, libraries) in core::iter::once(&QUICK).chain(&OTHERS) {
            for library in *libraries {
                let (title, adapter) = library.split_once('=').unwrap_or((library, library));
                assert!(seen.insert(title), "{title} twice");
                assert!(adapters.contains(&format!("    \"{adapter}\": ")), "{title}: no adapter `{adapter}`");
            }
        }
        let error = check(&sh, &[&QUICK], Some("nunpy"), None).unwrap_err().to_string();
        assert!(error.contains("nunpy") && error.contains("pyarrow"), "{error}");
    }
}
