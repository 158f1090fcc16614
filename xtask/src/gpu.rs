//! `gpu`: what the tests claim of streams, on a real GPU; and what can be known of that without one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::python::{TESTED, interpreter, venv};
use crate::step::{
    Outcome, Step, StepResult, cargo, output, program, root, run, run_all, succeeds, target_dir,
};

pub(crate) const HELP: &str = "
Builds the module `dlpack_gpu` (xtask/gpu), and runs the checks of xtask/gpu/run.py with it on the first NVIDIA GPU:
that no consumer reads too early, that no memory is freed too early, that the host does not wait where it need not,
captures, contexts, threads, and what it all costs. PyTorch, CuPy and JAX take part where the Python that the variable
PYTHON names has them. Writes the table spec/gpu.md. Without a GPU nothing is checked, and the last line says so.

usage: cargo xtask gpu [--only CHECK]
       cargo xtask gpu --carry
  --only CHECK   one check, such as `race`; no table is written
  --carry        only build: what a machine with a GPU and without Rust needs, in one folder
";

const SCRIPTS: [&str; 2] = ["xtask/gpu/run.py", "xtask/gpu/calibrate.py"];
const KERNELS: &str = "xtask/gpu/src/kernels.ptx";
const TABLE: &str = "spec/gpu.md";

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let carry = args.flag("--carry");
    let only = args.value("--only")?;
    args.finish()?;
    if carry {
        let folder = build()?;
        println!(
            "\n{folder} works with every Python from 3.10 on; there, run\n    python run.py --table gpu.md",
            folder = folder.display()
        );
        return Ok(());
    }
    let checks = Step::new("checks on a GPU", move || checks(only.as_deref()));
    run_all("gpu", vec![checks], false)
}

/// What `test` runs.
pub(crate) fn steps() -> Vec<Step> {
    vec![
        Step::new("kernels of the checks on a GPU", kernels),
        Step::new("checks on a GPU, with the fake driver", on_the_fake_driver),
        Step::new("checks on a GPU", || checks(Some("race"))),
    ]
}

fn checks(only: Option<&str>) -> StepResult {
    let python = match interpreter() {
        Ok(python) => python,
        Err(reason) => return Ok(Outcome::Skipped(reason)),
    };
    let folder = build()?;
    if let Some(reason) = unusable(&python, &folder)? {
        return Ok(Outcome::Skipped(reason));
    }
    let mut script = python_in_root(&python);
    script.arg(folder.join("run.py"));
    match only {
        Some(check) => script.args(["--only", check]),
        None => script.args(["--table", TABLE]),
    };
    run(script)
}

/// Why the module finds no GPU; nothing if it does. That it cannot even be imported is an error.
fn unusable(python: &Path, folder: &Path) -> Result<Option<String>, String> {
    let script = "
import dlpack_gpu
try:
    dlpack_gpu.describe()
except RuntimeError as error:
    print(error)";
    let mut probe = python_in_root(python);
    probe.args(["-c", script]).env("PYTHONPATH", folder);
    let told = output(probe)?;
    Ok(reason(&told).map(|reason| format!("nothing is checked on a GPU: {reason}")))
}

fn reason(told: &str) -> Option<&str> {
    told.lines().map(str::trim).find(|line| !line.is_empty())
}

/// The module for every Python, beside the scripts that use it.
fn build() -> Result<PathBuf, String> {
    let target = target_dir().join("gpu");
    let mut build = cargo(&[
        "build",
        "--quiet",
        "--release",
        "-p",
        "dlpack-gpu",
        "--features",
        "pyo3/abi3-py310",
    ]);
    build.env("CARGO_TARGET_DIR", &target);
    run(build)?;
    let folder = target.join("carry");
    let module = if cfg!(windows) {
        ("dlpack_gpu.dll", "dlpack_gpu.pyd")
    } else {
        ("libdlpack_gpu.so", "dlpack_gpu.abi3.so")
    };
    copy(&target.join("release").join(module.0), &folder, module.1)?;
    for script in SCRIPTS {
        let path = root().join(script);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        copy(&path, &folder, &name)?;
    }
    Ok(folder)
}

fn copy(from: &Path, folder: &Path, name: &str) -> Result<(), String> {
    // A running Python may have the old file mapped: it is replaced, never written over.
    let draft = folder.join(format!("{name}.{}", std::process::id()));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::copy(from, &draft))
        .and_then(|_| std::fs::rename(&draft, folder.join(name)))
        .map_err(|error| format!("cannot copy {}: {error}", from.display()))
}

fn python_in_root(python: &Path) -> Command {
    let mut command = program(&python.to_string_lossy(), &[]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// NVIDIA's assembler takes the kernels, for each generation of GPUs from the one that they name.
fn kernels() -> StepResult {
    // Without what it needs to compile C++.
    let Ok(venv) = venv("ptxas", &["--no-deps", "nvidia-cuda-nvcc==13.0.*"]) else {
        return Ok(Outcome::Skipped("NVIDIA's assembler cannot be had".into()));
    };
    let script = "
import nvidia, pathlib
print(next(path for root in nvidia.__path__ for path in pathlib.Path(root).rglob('ptxas')))";
    let ptxas = output(venv.run(&["-c", script]))?;
    let assemble = |source: &Path, generation: &str| {
        let mut command = program(ptxas.trim(), &["-arch", generation, "-o"]);
        command.arg(target_dir().join("kernels.cubin")).arg(source);
        command
    };
    for generation in ["sm_75", "sm_80", "sm_90", "sm_100"] {
        run(assemble(&root().join(KERNELS), generation))?;
    }
    // An assembler that takes anything would prove nothing.
    let wrong = target_dir().join("wrong.ptx");
    std::fs::write(&wrong, ".version 7.8\n.target sm_75\nno such word\n")
        .map_err(|error| error.to_string())?;
    if succeeds(assemble(&wrong, "sm_75")) {
        return Err("the assembler takes kernels that are none".into());
    }
    Ok(Outcome::Passed)
}

/// The whole script on the fake driver: what it says of order is true or false there already, and what takes a clock
/// is at least seen to work.
fn on_the_fake_driver() -> StepResult {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("the fake driver is one of Linux".into()));
    }
    if let Err(reason) = interpreter() {
        return Ok(Outcome::Skipped(reason));
    }
    // With NumPy, which reads memory that the host reaches.
    let venv = venv("test", TESTED)?;
    let folder = build()?;
    run(cargo(&["build", "--quiet", "-p", "dlpack-simulator"]))?;
    let fake = target_dir().join("debug/libdlpack_simulator.so");
    let mut script = python_in_root(&venv.python());
    script
        .arg(folder.join("run.py"))
        // For the module, and for core.
        .env("DLPACK_FAKE_LIBCUDA", &fake)
        .env("DLPACK_LIBCUDA", &fake);
    run(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_gpu_says_why() {
        assert_eq!(
            reason("there is no libcuda here\n"),
            Some("there is no libcuda here")
        );
        assert_eq!(reason("\n"), None);
    }
}
