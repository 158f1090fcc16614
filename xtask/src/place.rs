//! Where things are: the checkout and its files, what was built, the cache folder, and programs that come from elsewhere.

use cargo_metadata::{MetadataCommand, Package};

use crate::prelude::*;

/// A shell in the workspace's root.
pub(crate) fn shell() -> Result<Shell> {
    let sh = Shell::new()?;
    sh.change_dir(root());
    Ok(sh)
}

/// The workspace's root, wherever the command was started.
pub(crate) fn root() -> PathBuf {
    // `cargo run` sets it; a binary started by hand falls back on where it was built.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest).parent().expect("xtask lies inside the workspace").to_owned()
}

/// The directory that cargo builds into.
pub(crate) fn target_dir() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Where this project keeps what outlives a checkout; the same folder as in `.ci/run`.
pub(crate) fn cache() -> Result<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    let base = named.map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let base = base.context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(shell()?.create_dir(base.join("dlpack-derive"))?)
}

/// The files of the checkout with these patterns, by their paths in git, and their texts: nothing that was built.
pub(crate) fn texts(sh: &Shell, patterns: &[&str]) -> Result<Vec<(String, String)>> {
    let list = ["--cached", "--others", "--exclude-standard", "--deduplicate", "--"];
    let list = cmd!(sh, "git ls-files {list...} {patterns...}").quiet().read()?;
    // What was removed and is not committed yet is listed all the same.
    let paths = list.lines().filter(|path| sh.path_exists(path));
    paths.map(|path| Ok((path.to_owned(), sh.read_file(path)?))).collect()
}

/// The packages of the workspace of which this is true.
pub(crate) fn packages(is: impl Fn(&Package) -> bool) -> Result<Vec<Package>> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec()?;
    Ok(metadata.packages.into_iter().filter(is).collect())
}

/// Cargo of another toolchain, which only rustup can choose.
pub(crate) fn cargo_of<'a>(sh: &'a Shell, toolchain: &str) -> Cmd<'a> {
    // Set by the `cargo run` we live in; they would hand our compiler to the other cargo.
    let ours = ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"];
    ours.into_iter().fold(cmd!(sh, "cargo +{toolchain}"), |command, name| command.env_remove(name))
}

/// Whether the command starts and succeeds; its output is of no interest.
pub(crate) fn succeeds(command: Cmd<'_>) -> bool {
    command.quiet().ignore_stdout().ignore_stderr().run().is_ok()
}

/// A cargo subcommand from the registry, installed into the cache folder where it is missing.
pub(crate) fn tool(sh: &Shell, name: &str, version: &str) -> Result<PathBuf> {
    let folder = cache()?.join(format!("{name}-{version}"));
    let program = folder.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        println!("{name} is not installed; installing it (once), which takes a minute or two");
        cmd!(sh, "cargo install --quiet --locked --root {folder} {name}@{version}").run()?;
    }
    Ok(program)
}

/// Copies a file that another program may have open or mapped: it is replaced, never written over.
pub(crate) fn replace(sh: &Shell, from: &Path, to: &Path) -> Result<()> {
    let draft = to.with_extension(std::process::id().to_string());
    sh.create_dir(to.parent().unwrap_or(to))?;
    sh.copy_file(from, &draft)?;
    std::fs::rename(&draft, to).with_context(|| format!("cannot write {}", to.display()))
}
