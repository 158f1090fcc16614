//! Python: which interpreter, and private environments for it.

use crate::prelude::*;

/// N of the oldest Python 3.N that the project supports.
const OLDEST: u32 = 10;

const DEFAULT: &str = "python3";

/// The program that the variable `PYTHON` names.
fn named_interpreter() -> Option<String> {
    std::env::var("PYTHON").ok().filter(|name| !name.is_empty())
}

/// Whether this is the interpreter that is used unless `PYTHON` names another.
pub(crate) fn is_default_interpreter(python: &Path) -> bool {
    ask(DEFAULT).is_some_and(|(_, default)| default == python)
}

/// The Python to test with: the one that the variable `PYTHON` names, else `python3`.
pub(crate) fn interpreter() -> Result<PathBuf> {
    let program = named_interpreter().unwrap_or_else(|| DEFAULT.to_owned());
    match ask(&program) {
        Some((minor, path)) if minor >= OLDEST => Ok(path),
        Some(_) => skip(format!("`{program}` is older than 3.{OLDEST}; set PYTHON")),
        None => skip(format!("`{program}` is not a Python that runs")),
    }
}

/// A Python 3.N of exactly this N, where the machine has one: `python3.N`, one that pyenv installed, or one that
/// `.ci/debian pythons` placed in the cache.
pub(crate) fn interpreter_of(minor: u32) -> Option<PathBuf> {
    let name = format!("python3.{minor}");
    let pyenv = folder("PYENV_ROOT", ".pyenv").ok()?.join("versions");
    let installed = std::fs::read_dir(pyenv).into_iter().flatten().flatten();
    let installed = installed.map(|entry| entry.path().join("bin").join(&name));
    let programs = [PathBuf::from(&name), "python3".into()].into_iter();
    let programs = programs
        .chain(installed)
        .chain(cached_interpreter(&format!("3.{minor}")));
    let mut found = programs.filter_map(ask);
    Some(found.find(|found| found.0 == minor)?.1)
}

/// The Python of this name, such as `3.14t`, that `.ci/debian pythons` placed in the cache.
pub(crate) fn cached_interpreter(name: &str) -> Option<PathBuf> {
    let python = cache().ok()?.join(format!("python-{name}/bin/python3"));
    python.exists().then_some(python)
}

/// The version and path that an interpreter reports, if it runs. A shim of pyenv exists, and fails, for every version that pyenv
/// knows.
fn ask(program: impl AsRef<Path>) -> Option<(u32, PathBuf)> {
    let script = "import sys; print(sys.version_info[1], sys.executable)";
    let sh = shell().ok()?;
    let ask = sh.cmd(program).args(["-c", script]);
    parse(&ask.quiet().ignore_stderr().read().ok()?)
}

fn parse(answer: &str) -> Option<(u32, PathBuf)> {
    let (minor, path) = answer.split_once(' ')?;
    (!path.is_empty()).then_some((minor.parse().ok()?, path.into()))
}

/// A virtual environment outside the checkout. Start its programs as modules: its scripts name a folder that is gone.
pub(crate) struct Venv(pub(crate) PathBuf);

impl Venv {
    /// The environment's interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        let (windows, unix) = ("Scripts/python.exe", "bin/python");
        self.0.join(if cfg!(windows) { windows } else { unix })
    }

    /// The environment's interpreter, which writes nothing into the checkout.
    pub(crate) fn run<'a>(&self, sh: &'a Shell) -> Cmd<'a> {
        sh.cmd(self.python()).env("PYTHONDONTWRITEBYTECODE", "1")
    }

    /// Whether the environment still fits its interpreter, which may have been upgraded in place.
    fn works(&self, sh: &Shell) -> bool {
        succeeds(self.run(sh).args(["-c", "import pip"]))
    }
}

/// pytest without a cache in the checkout. It prints the stacks of all threads if one test takes ten minutes.
pub(crate) fn pytest<'a>(python: Cmd<'a>, folder: &str) -> Cmd<'a> {
    let pytest =
        python.line("-m pytest -q -p no:cacheprovider -o faulthandler_timeout=600 --rootdir");
    pytest.args([folder, folder])
}

/// An environment of an interpreter that has these packages, made once and kept in the cache folder.
pub(crate) fn venv(sh: &Shell, python: &Path, name: &str, packages: &str) -> Result<Venv> {
    let venv = Venv(cache()?.join(format!("venv-{name}-{}", key(python, packages))));
    if venv.works(sh) {
        return Ok(venv);
    }
    sh.remove_path(&venv.0)?;
    let place = venv.0.display();
    println!("python: installing {packages:?} into {place} (once)");
    // Made in another folder and then moved, so that no run uses an incomplete environment.
    let draft = Venv(venv.0.with_extension(std::process::id().to_string()));
    let done = install(sh, python, &draft, packages);
    if done.is_err() || std::fs::rename(&draft.0, &venv.0).is_err() {
        // A draft that cannot be removed only costs space.
        let _ = sh.remove_path(&draft.0);
    }
    done?;
    ensure!(venv.works(sh), "cannot make {place}");
    Ok(venv)
}

fn install(sh: &Shell, python: &Path, venv: &Venv, packages: &str) -> Result<()> {
    if succeeds(sh.line("uv --version")) {
        let place = &venv.0;
        cmd!(sh, "uv venv --quiet --seed --python {python} {place}").run()?;
        let install = sh
            .line("uv pip install --quiet --python")
            .arg(venv.python());
        return Ok(install.line(packages).run()?);
    }
    sh.cmd(python).line("-m venv").arg(&venv.0).run()?;
    // Without a wheel for this Python, as NumPy 2.5 for 3.13t, the newest version would be compiled for half an hour.
    let pip = "-m pip install --quiet --prefer-binary --disable-pip-version-check";
    Ok(venv.run(sh).line(pip).line(packages).run()?)
}

/// A hash of interpreter and requirements for a folder's name: FNV-1a, which does not depend on the compiler.
pub(crate) fn key(python: &Path, words: &str) -> String {
    let python = python.to_string_lossy();
    let words = core::iter::once(&*python).chain(words.split_whitespace());
    // The zero distinguishes `ab c` from `a bc`.
    let bytes = words.flat_map(|word| word.bytes().chain([0]));
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_tells_its_version_and_place() {
        assert_eq!(parse("11 /a b/python3"), Some((11, "/a b/python3".into())));
        let wrong = ["", "11", "11 ", "pyenv: no 3.9"].map(parse);
        assert_eq!(wrong, [const { None }; 4]);
    }

    #[test]
    fn environments_that_are_there_stay_in_use() {
        let key = |words| key(Path::new("python"), words);
        assert_eq!(key("numpy"), "96bb183513fbd990");
        assert_ne!(key("ab c"), key("a bc"));
    }

    /// As after an upgrade of the interpreter: the packages are in a folder that the new version does not search.
    #[test]
    fn a_broken_environment_is_made_anew() {
        let (sh, Ok(python)) = (shell().unwrap(), interpreter()) else {
            return println!("SKIPPED: no Python here");
        };
        // Tests of another checkout may run at the same time.
        let name = format!("own-test-{}", std::process::id());
        let venv = || venv(&sh, &python, &name, "pip").unwrap();
        let Venv(folder) = venv();
        sh.remove_path(folder.join("lib")).unwrap();
        assert!(!Venv(folder).works(&sh));
        let made_anew = venv();
        assert!(made_anew.works(&sh));
        sh.remove_path(made_anew.0).unwrap();
    }
}
