//! Python: which interpreter, and private environments for it.

use crate::prelude::*;

/// The oldest Python that the project supports.
const OLDEST: (u32, u32) = (3, 10);

/// What the tests that always run need, and installs in a minute. jax from 0.11 on asks for versioned capsules: the older
/// one is what tests the other path.
pub(crate) const TESTED: &[&str] =
    &["pytest", "numpy", "jax[cpu]<0.11", "apache-tvm-ffi", "array-api-strict", "pyarrow", "ml_dtypes", "nanobind"];

/// The Python to test with: the one that the variable `PYTHON` names, else `python3`.
pub(crate) fn interpreter() -> Result<PathBuf> {
    let named = std::env::var_os("PYTHON").filter(|name| !name.is_empty());
    let program = named.map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    match ask(&program) {
        Some((version, path)) if version >= OLDEST => Ok(path),
        Some((version, _)) => skip(format!("this is Python {version:?}; set PYTHON to one from {OLDEST:?} on")),
        None => skip(format!("`{}` is not a Python that runs", program.display())),
    }
}

/// A Python of exactly this version, where the machine has one: `python3.N` or one that pyenv installed.
pub(crate) fn interpreter_of(version: (u32, u32)) -> Option<PathBuf> {
    let name = format!("python{}.{}", version.0, version.1);
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(std::env::home_dir()?.join(".pyenv")))?.join("versions");
    let installed = std::fs::read_dir(pyenv).into_iter().flatten().flatten();
    let mut programs: Vec<PathBuf> = vec![(&name).into(), "python3".into()];
    programs.extend(installed.map(|entry| entry.path().join("bin").join(&name)));
    let found = programs.iter().filter_map(|program| ask(program)).find(|(found, _)| *found == version);
    Some(found?.1)
}

/// What an interpreter says of itself, if it runs. A shim of pyenv starts, and fails, for every version that it knows.
fn ask(program: &Path) -> Option<((u32, u32), PathBuf)> {
    let script = "import sys; print(*sys.version_info[:2], sys.executable)";
    let sh = shell().ok()?;
    let answer = cmd!(sh, "{program} -c {script}").quiet().ignore_stderr().read().ok()?;
    let mut words = answer.splitn(3, ' ');
    let version = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((version, words.next().filter(|path| !path.is_empty())?.into()))
}

/// A virtual environment outside the checkout.
///
/// Start its programs as modules (`-m pytest`): the scripts in its `bin` name a folder that is gone.
pub(crate) struct Venv {
    directory: PathBuf,
}

impl Venv {
    /// The environment's interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        self.directory.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
    }

    /// The environment's interpreter, which writes nothing into the checkout.
    pub(crate) fn run<'a>(&self, sh: &'a Shell) -> Cmd<'a> {
        sh.cmd(self.python()).env("PYTHONDONTWRITEBYTECODE", "1")
    }

    /// pytest without plugins of the user's and without a cache in the checkout.
    pub(crate) fn pytest<'a>(&self, sh: &'a Shell, folder: &str) -> Cmd<'a> {
        self.run(sh).args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder])
    }

    /// Whether it still fits its interpreter, which may have become a newer version at the same place.
    fn works(&self, sh: &Shell) -> bool {
        succeeds(self.run(sh).args(["-c", "import pip"]))
    }
}

/// An environment of [`interpreter`] that has these packages, made once and kept in the cache folder.
pub(crate) fn venv(sh: &Shell, name: &str, requirements: &[&str]) -> Result<Venv> {
    venv_of(sh, &interpreter()?, name, requirements)
}

/// The same for a given interpreter.
pub(crate) fn venv_of(sh: &Shell, interpreter: &Path, name: &str, requirements: &[&str]) -> Result<Venv> {
    let name = format!("venv-{name}-{}", key(interpreter, requirements));
    let venv = Venv { directory: cache()?.join(name) };
    if venv.works(sh) {
        return Ok(venv);
    }
    sh.remove_path(&venv.directory)?;
    println!("python: installing {} into {} (once)", requirements.join(" "), venv.directory.display());
    // Made beside its place and moved there when it is whole: nobody uses half of one, not a second run either.
    let draft = Venv { directory: venv.directory.with_extension(std::process::id().to_string()) };
    let done = install(sh, interpreter, &draft, requirements);
    if done.is_err() || std::fs::rename(&draft.directory, &venv.directory).is_err() {
        // A draft that cannot be removed only costs space.
        let _ = sh.remove_path(&draft.directory);
    }
    done?;
    ensure!(venv.works(sh), "cannot make {}", venv.directory.display());
    Ok(venv)
}

fn install(sh: &Shell, interpreter: &Path, venv: &Venv, requirements: &[&str]) -> Result<()> {
    let directory = &venv.directory;
    cmd!(sh, "{interpreter} -m venv {directory}").run()?;
    let pip = "-m pip install --quiet --disable-pip-version-check";
    Ok(venv.run(sh).args(pip.split(' ')).args(requirements).run()?)
}

/// Stands for interpreter and requirements in a folder's name: FNV-1a, which is the same with every compiler.
pub(crate) fn key(interpreter: &Path, words: &[&str]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for word in core::iter::once(&*interpreter.to_string_lossy()).chain(words.iter().copied()) {
        // The zero keeps `ab c` and `a bc` apart.
        for byte in word.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_that_are_there_stay_in_use() {
        assert_eq!(key(Path::new("python"), &["numpy"]), "96bb183513fbd990");
        assert_ne!(key(Path::new("python"), &["ab", "c"]), key(Path::new("python"), &["a", "bc"]));
    }
}
