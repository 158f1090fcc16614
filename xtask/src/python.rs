//! Python: which interpreter, private environments for it, and extension modules built where it finds them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{Outcome, cargo, run, succeeds, target_dir};

/// The oldest Python that the project supports.
const OLDEST: (u32, u32) = (3, 10);

/// What the tests that always run need: pytest, and the libraries that install in a minute.
/// jax stays below 0.11, which asks for versioned capsules: the older one is what tests the other path.
pub(crate) const TESTED: &[&str] = &[
    "pytest",
    "numpy",
    "jax[cpu]<0.11",
    "apache-tvm-ffi",
    "array-api-strict",
    "pyarrow",
    "ml_dtypes",
    "nanobind",
];

/// The Python to test with: the one that the variable `PYTHON` names, else `python3`.
pub(crate) fn interpreter() -> Result<PathBuf, String> {
    let named = std::env::var_os("PYTHON").filter(|name| !name.is_empty());
    let program = named.map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let found = Found::ask(&program)?;
    if found.version < OLDEST {
        return Err(format!(
            "{} is Python {}.{}, and {}.{} is needed; set PYTHON to a newer one",
            found.path.display(),
            found.version.0,
            found.version.1,
            OLDEST.0,
            OLDEST.1,
        ));
    }
    Ok(found.path)
}

/// A Python of exactly this version, where the machine has one: `python3.N` or one that pyenv installed.
pub(crate) fn interpreter_of(version: (u32, u32)) -> Option<PathBuf> {
    let (major, minor) = version;
    let mut programs = vec![
        PathBuf::from(format!("python{major}.{minor}")),
        PathBuf::from("python3"),
    ];
    let pyenv = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".pyenv")));
    let installed = pyenv.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    for entry in installed.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&format!("{major}.{minor}.")) {
            programs.push(entry.path().join("bin/python"));
        }
    }
    programs
        .iter()
        .filter_map(|program| Found::ask(program).ok())
        .find(|found| found.version == version)
        .map(|found| found.path)
}

/// What an interpreter says of itself.
struct Found {
    path: PathBuf,
    version: (u32, u32),
}

impl Found {
    fn ask(program: &Path) -> Result<Self, String> {
        let script = "import sys; print(*sys.version_info[:2], sys.executable)";
        let told = Command::new(program)
            .args(["-c", script])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("`{}` did not start: {error}", program.display()))?;
        let text = String::from_utf8_lossy(&told.stdout);
        // A shim of pyenv starts, and fails, for every version that it knows.
        Self::parse(&text)
            .ok_or_else(|| format!("`{}` is not a Python that runs", program.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.trim().splitn(3, ' ');
        let major = words.next()?.parse().ok()?;
        let minor = words.next()?.parse().ok()?;
        let path = words.next().filter(|path| !path.is_empty())?;
        Some(Self {
            path: path.into(),
            version: (major, minor),
        })
    }
}

/// A virtual environment outside the checkout.
///
/// Start its programs as modules (`["-m", "pytest"]`): the scripts in its `bin` name a folder that is gone.
pub(crate) struct Venv {
    directory: PathBuf,
}

impl Venv {
    /// The environment's interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        python_in(&self.directory)
    }

    /// The environment's interpreter with these words, in the workspace's root, without standard input.
    pub(crate) fn run(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.python());
        command
            .current_dir(crate::step::root())
            .args(words)
            .stdin(Stdio::null());
        command
    }
}

/// An environment of [`interpreter`] that has these packages, made once and kept in the cache folder.
pub(crate) fn venv(name: &str, requirements: &[&str]) -> Result<Venv, String> {
    venv_of(&interpreter()?, name, requirements)
}

/// The same for a given interpreter.
pub(crate) fn venv_of(
    interpreter: &Path,
    name: &str,
    requirements: &[&str],
) -> Result<Venv, String> {
    let key = key(interpreter, requirements);
    let directory = cache()?.join(format!("venv-{name}-{key}"));
    if works(&directory) {
        return Ok(Venv { directory });
    }
    if directory.exists() {
        std::fs::remove_dir_all(&directory)
            .map_err(|error| format!("cannot remove {}: {error}", directory.display()))?;
    }
    let listed = requirements.join(" ");
    println!(
        "python: installing {listed} into {} (once)",
        directory.display()
    );
    // Made beside its place and moved there when it is whole, so that no half of one is ever used,
    // not by a second run at the same time either.
    let draft = directory.with_extension(std::process::id().to_string());
    let made = install(interpreter, &draft, requirements);
    if made.is_ok() && std::fs::rename(&draft, &directory).is_ok() {
        return Ok(Venv { directory });
    }
    // A draft that cannot be removed only costs space.
    let _ = std::fs::remove_dir_all(&draft);
    made?;
    if works(&directory) {
        return Ok(Venv { directory });
    }
    Err(format!("cannot make {}", directory.display()))
}

fn install(interpreter: &Path, directory: &Path, requirements: &[&str]) -> Result<(), String> {
    let mut make = Command::new(interpreter);
    make.args(["-m", "venv"])
        .arg(directory)
        .stdin(Stdio::null());
    run(make)?;
    if requirements.is_empty() {
        return Ok(());
    }
    let mut pip = Command::new(python_in(directory));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ])
    .args(requirements)
    .stdin(Stdio::null());
    let Outcome::Passed = run(pip)? else {
        return Err("pip was skipped".into());
    };
    Ok(())
}

/// Whether the environment still fits its interpreter, which may have become a newer version at the same place.
fn works(directory: &Path) -> bool {
    let mut command = Command::new(python_in(directory));
    command.args(["-c", "import pip"]);
    succeeds(command)
}

fn python_in(directory: &Path) -> PathBuf {
    directory.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    })
}

/// Where this project keeps what outlives a checkout; the same folder as in `.ci/run`.
pub(crate) fn cache() -> Result<PathBuf, String> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cache")))
        .ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
    let cache = base.join("dlpack-derive");
    std::fs::create_dir_all(&cache)
        .map_err(|error| format!("cannot make {}: {error}", cache.display()))?;
    Ok(cache)
}

/// Stands for the interpreter and the requirements in a folder's name: FNV-1a, since the standard library's
/// hash may differ from one compiler to the next.
fn key(interpreter: &Path, words: &[&str]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let interpreter = interpreter.to_string_lossy();
    for word in core::iter::once(&*interpreter).chain(words.iter().copied()) {
        // The zero keeps `ab c` and `a bc` apart.
        for byte in word.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

/// Builds the cdylib `lib` of `package` and gives the folder in which Python finds it as `module`.
///
/// `env` is set for the build. A dotted `module` gets folders for what stands before the last dot.
pub(crate) fn extension(
    package: &str,
    lib: &str,
    module: &str,
    release: bool,
    env: &[(&str, &str)],
) -> Result<PathBuf, String> {
    let mut build = cargo(&["build", "--quiet", "-p", package]);
    if release {
        build.arg("--release");
    }
    build.envs(env.iter().copied());
    run(build)?;

    let set = |name| {
        env.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    let target = set("CARGO_TARGET_DIR").map_or_else(target_dir, PathBuf::from);
    let profile = if release { "release" } else { "debug" };
    let mut built = target.clone();
    built.extend(set("CARGO_BUILD_TARGET"));
    let built = built.join(profile).join(library(lib));

    let settings: Vec<&str> = env.iter().flat_map(|(key, value)| [*key, *value]).collect();
    let folder = target.join("python").join(format!(
        "{package}-{profile}-{}",
        key(Path::new(""), &settings)
    ));
    let place = folder.join(file(module));
    let parent = place.parent().expect("the folder stands before it");
    // A running Python may have the old file mapped: it is replaced, never written over.
    let draft = parent.join(format!("{lib}.{}", std::process::id()));
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::copy(&built, &draft))
        .and_then(|_| std::fs::rename(&draft, &place))
        .map_err(|error| {
            format!(
                "cannot copy {} to {}: {error}",
                built.display(),
                place.display()
            )
        })?;
    Ok(folder)
}

/// How cargo names a cdylib here.
pub(crate) fn library(lib: &str) -> String {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    format!("{DLL_PREFIX}{lib}{DLL_SUFFIX}")
}

/// How Python names an extension module here; it takes the plain suffix for any version.
fn file(module: &str) -> PathBuf {
    let suffix = if cfg!(windows) { "pyd" } else { "so" };
    PathBuf::from(format!("{}.{suffix}", module.replace('.', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_says_its_version_and_place() {
        let found = Found::parse("3 11 /opt/with space/python3\n").unwrap();
        assert_eq!(found.version, (3, 11));
        assert_eq!(found.path, Path::new("/opt/with space/python3"));
        for text in ["", "3 11", "3 11 ", "pyenv: python3.9: command not found"] {
            assert!(Found::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn no_interpreter_of_a_version_that_nobody_has() {
        assert_eq!(interpreter_of((3, 999)), None);
    }

    #[test]
    fn a_key_tells_interpreters_and_lists_apart() {
        let of = |path: &str, words: &[&str]| key(Path::new(path), words);
        assert_eq!(of("python", &["numpy"]), of("python", &["numpy"]));
        assert_eq!(of("python", &[]).len(), 16);
        let all = [
            of("python", &[]),
            of("python", &["numpy", "jax"]),
            of("python", &["jax", "numpy"]),
            of("python", &["numpyjax"]),
            of("python", &["nump", "yjax"]),
            of("pythonnumpy", &["jax"]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one), "{index}");
        }
    }

    #[test]
    fn a_module_is_a_file_in_the_folders_of_its_packages() {
        let suffix = if cfg!(windows) { "pyd" } else { "so" };
        assert_eq!(file("probe"), PathBuf::from(format!("probe.{suffix}")));
        assert_eq!(
            file("showcase._native"),
            PathBuf::from(format!("showcase/_native.{suffix}"))
        );
        #[cfg(target_os = "linux")]
        assert_eq!(library("dlpack_probe"), "libdlpack_probe.so");
    }

    /// Without packages no network is needed.
    #[test]
    fn an_environment_is_made_once_and_has_its_own_prefix() {
        if interpreter().is_err() {
            println!("SKIPPED: no Python here");
            return;
        }
        let first = venv("empty", &[]).unwrap();
        let again = venv("empty", &[]).unwrap();
        assert_eq!(first.python(), again.python());
        let prefix =
            crate::step::output(first.run(&["-c", "import sys; print(sys.prefix)"])).unwrap();
        assert_eq!(Path::new(prefix.trim()), first.directory);
    }
    #[test]
    fn an_environment_without_its_packages_does_not_count() {
        let Ok(interpreter) = interpreter() else {
            println!("SKIPPED: no Python here");
            return;
        };
        let directory = std::env::temp_dir().join(format!("xtask-venv-{}", std::process::id()));
        assert!(!works(&directory));
        install(&interpreter, &directory, &[]).unwrap();
        assert!(works(&directory));
        // As after an upgrade of the interpreter: the packages are where the new one does not look.
        std::fs::rename(directory.join("lib"), directory.join("old")).unwrap();
        assert!(!works(&directory));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
