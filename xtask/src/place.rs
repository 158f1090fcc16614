//! Locations: the checkout and its files, built files, the cache folder, and installed programs.

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
    // `cargo run` sets it; a binary that is started directly uses the folder in which it was built.
    let xtask = std::env::var("CARGO_MANIFEST_DIR");
    let xtask = PathBuf::from(xtask.as_deref().unwrap_or(env!("CARGO_MANIFEST_DIR")));
    xtask.parent().expect("a folder above xtask").to_owned()
}

/// The directory that cargo builds into.
pub(crate) fn target_dir() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The folder that a variable names, or one in the user's home.
pub(crate) fn folder(variable: &str, usual: &str) -> Result<PathBuf> {
    let named = std::env::var_os(variable).filter(|folder| !folder.is_empty());
    let at_home = || Some(std::env::home_dir()?.join(usual));
    let folder = named.map(PathBuf::from).or_else(at_home);
    folder.with_context(|| format!("neither {variable} nor HOME is set"))
}

/// The folder for files that outlive a checkout; the same as in `.ci/run`.
pub(crate) fn cache() -> Result<PathBuf> {
    let cache = folder("XDG_CACHE_HOME", ".cache")?.join("dlpack-derive");
    Ok(shell()?.create_dir(cache)?)
}

/// The files of the checkout with these patterns, by their paths in git, and their texts: nothing that was built.
pub(crate) fn texts(sh: &Shell, patterns: &[&str]) -> Result<Vec<(String, String)>> {
    let list = sh.line("git ls-files --cached --others --exclude-standard --deduplicate --");
    let list = list.args(patterns).quiet().read()?;
    // `git ls-files` also lists files that were removed and not committed.
    let paths = list.lines().filter(|path| sh.path_exists(path));
    let read = |path: &str| Ok((path.to_owned(), sh.read_file(path)?));
    paths.map(read).collect()
}

/// The packages of the workspace of which this is true.
pub(crate) fn packages(is: impl Fn(&Package) -> bool) -> Result<Vec<Package>> {
    let mut command = MetadataCommand::new();
    let metadata = command.current_dir(root()).no_deps().exec()?;
    Ok(metadata.packages.into_iter().filter(is).collect())
}

/// Cargo of another toolchain, which only rustup can select.
pub(crate) fn cargo_of<'a>(sh: &'a Shell, toolchain: &str) -> Cmd<'a> {
    let cargo = cmd!(sh, "cargo +{toolchain}");
    // Set by the `cargo run` that started this program; they would make the other cargo use this compiler.
    let ours = ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"];
    ours.into_iter().fold(cargo, Cmd::env_remove)
}

/// Whether the command starts and succeeds, without its output.
pub(crate) fn succeeds(command: Cmd<'_>) -> bool {
    let command = command.quiet().ignore_stdout().ignore_stderr();
    command.run().is_ok()
}

/// The file with the shortest path that matches this pattern below a folder; a dangling link is ignored.
pub(crate) fn find(sh: &Shell, folder: &Path, pattern: &str) -> Option<PathBuf> {
    let pattern = folder.join(pattern);
    let find = cmd!(sh, "find {folder} -path {pattern} -xtype f");
    let found = find.quiet().read().ok()?;
    let path = found.lines().min_by_key(|path| (path.len(), *path));
    path.map(PathBuf::from)
}

/// The path of a cargo subcommand that `cargo install` installs into the cache folder.
pub(crate) fn program(name: &str, version: &str) -> Result<PathBuf> {
    let program = format!(
        "{name}-{version}/bin/{name}{}",
        std::env::consts::EXE_SUFFIX
    );
    Ok(cache()?.join(program))
}

/// A cargo subcommand in the cache folder, which is installed if it is missing.
pub(crate) fn tool(sh: &Shell, name: &str, version: &str) -> Result<PathBuf> {
    let program = program(name, version)?;
    if !program.exists() {
        let folder = cache()?.join(format!("{name}-{version}"));
        let install = sh.line("cargo install --locked --root").arg(folder);
        install.arg(format!("{name}@{version}")).run()?;
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
