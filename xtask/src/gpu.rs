//! Check on a real GPU that work on streams is ordered, and write the table spec/gpu.md.
//!
//! Runs xtask/gpu/run.py, whose head says what it checks, on the first NVIDIA GPU, if there is one.
//! usage: `cargo xtask gpu [--only CHECK] [--carry]`
//!   --only CHECK   one check, such as `race`; no table is written
//!   --carry        only build: what a machine with a GPU and without Rust needs, in one folder

use crate::prelude::*;
use crate::pytest::{driver, place_module};

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let carry = args.contains("--carry");
    let only: Option<String> = args.opt_value_from_str("--only")?;
    finish(args)?;
    if carry {
        println!("With Python from 3.10 on, in {}", build(sh)?.display());
        println!("or wherever you take it: python run.py --table gpu.md");
        return Ok(());
    }
    let checks = move |sh: &Shell| checks(sh, only.as_deref());
    Step::new("checks on a GPU", checks).alone(sh, "gpu")
}

pub(crate) fn checks(sh: &Shell, only: Option<&str>) -> Result<()> {
    let (python, folder) = (interpreter()?, build(sh)?);
    let ask = cmd!(sh, "{python} xtask/gpu/ask.py").env("PYTHONPATH", &folder);
    let answer = ask.quiet().read()?;
    if let Some(reason) = answer.trim().lines().next() {
        return skip(format!("nothing is checked on a GPU: {reason}"));
    }
    let words = only.map_or(["--table", "spec/gpu.md"], |check| ["--only", check]);
    // -B: no files are written next to the imported ones.
    let run = cmd!(sh, "{python} -B").arg(folder.join("run.py"));
    Ok(run.args(words).run()?)
}

/// The module for every Python, next to the scripts that use it.
fn build(sh: &Shell) -> Result<PathBuf> {
    let target = target_dir().join("gpu");
    let build = sh.line("cargo build --quiet --release -p dlpack-gpu --features pyo3/abi3-py310");
    build.env("CARGO_TARGET_DIR", &target).run()?;
    let release = target.join("release");
    let folder = place_module(&release, "dlpack_gpu", &target.join("carry"))?;
    for script in [
        "run.py",
        "beside.py",
        "owners.py",
        "devices.py",
        "calibrate.py",
    ] {
        let source = root().join("xtask/gpu").join(script);
        replace(sh, &source, &folder.join(script))?;
    }
    Ok(folder)
}

/// NVIDIA's assembler must accept the kernels, for each generation of GPUs from the one that they name.
pub(crate) fn kernels(sh: &Shell) -> Result<()> {
    // Without the packages that only C++ needs.
    let packages = "--no-deps nvidia-cuda-nvcc==13.0.*";
    let Ok(venv) = venv(sh, &interpreter()?, "ptxas", packages) else {
        return skip("NVIDIA's assembler cannot be had");
    };
    let ptxas = find(sh, &venv.0, "*/bin/ptxas").context("the package holds no ptxas")?;
    let [output, wrong] = ["kernels.cubin", "wrong.ptx"].map(|name| target_dir().join(name));
    let files = "xtask/gpu/src/kernels.ptx examples/cuda-kernel/src/scale.ptx";
    for generation in ["sm_75", "sm_80", "sm_90", "sm_100"] {
        for kernels in files.split(' ') {
            cmd!(sh, "{ptxas} -arch {generation} -o {output} {kernels}").run()?;
        }
    }
    // An assembler that accepts anything would prove nothing.
    sh.write_file(&wrong, ".version 7.8\n.target sm_75\nno such word\n")?;
    let takes_anything = succeeds(cmd!(sh, "{ptxas} -arch sm_75 -o {output} {wrong}"));
    ensure!(!takes_anything, "the assembler takes kernels that are none");
    Ok(())
}

/// Runs the whole script on the simulator, which decides about order; checks that need a clock only run. Then breaks each rule
/// once, which a row must notice.
pub(crate) fn simulated(sh: &Shell) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return skip("the fake driver is one of Linux");
    }
    // With NumPy, which reads memory that the host can access.
    let (venv, _) = crate::consumers::usual(sh)?;
    let (script, fake) = (build(sh)?.join("run.py"), driver(sh)?);
    // For the module, and for core.
    for words in [None, Some("--broken")] {
        let run = venv.run(sh).arg(&script).args(words);
        let run = run
            .env("DLPACK_FAKE_LIBCUDA", &fake)
            .env("DLPACK_LIBCUDA", &fake);
        run.env("DLPACK_LIBAMDHIP64", &fake).run()?;
    }
    Ok(())
}
