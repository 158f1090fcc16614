//! Which Pythons there are to test with, and how to build those that no package manager installs: a debug build notices
//! what a release build lets pass, such as a count changed without the GIL or a call with an exception pending, and a
//! free-threaded one has no GIL that would hide a race. Both come from Debian's sources, or from some in the cache folder.

use crate::prelude::*;

/// Name, minor version, and how it is configured. `t` at the end: no GIL.
const SPECIAL: [(&str, u32, &str); 3] = [
    ("3.13d", 13, "--with-pydebug"),
    ("3.14d", 14, "--with-pydebug"),
    ("3.14t", 14, "--disable-gil"),
];

/// Every Python found, by name.
pub(crate) fn found() -> Vec<(String, PathBuf)> {
    let usual = (10..16).map(|minor| Some((format!("3.{minor}"), interpreter_of(minor)?)));
    let special = SPECIAL.map(|(name, ..)| Some((name.to_owned(), special(name)?)));
    usual.chain(special).flatten().collect()
}

/// A Python that was built before.
fn special(name: &str) -> Option<PathBuf> {
    let python = cache().ok()?.join(format!("python-{name}/bin/python3"));
    python.exists().then_some(python)
}

/// One step for each that is missing.
pub(crate) fn steps() -> Vec<Step> {
    let mut missing = SPECIAL.to_vec();
    missing.retain(|(name, ..)| special(name).is_none());
    let step = |(name, minor, option)| {
        let build = move |sh: &Shell| build(sh, name, minor, option);
        Step::new(format!("build Python {name}"), build)
    };
    missing.into_iter().map(step).collect()
}

fn build(sh: &Shell, name: &str, minor: u32, option: &str) -> Result<()> {
    let sources = sh.create_dir(cache()?.join("python-sources"))?;
    let configure = || find(sh, &sources, &format!("Python-3.{minor}.*/configure"));
    if configure().is_none() {
        let fetched = fetch(sh, &sources, &format!("python3.{minor}"));
        fetched.with_context(|| format!("unpack them into {} by hand", sources.display()))?;
    }
    let configure = configure().context("the archive holds no Python")?;
    let place = sh.create_dir(sources.join(format!("build-{name}")))?;
    let prefix = cache()?.join(format!("python-{name}"));
    let there = sh.push_dir(&place);
    let words = ["--quiet", "--with-ensurepip=install", option];
    let configure = cmd!(sh, "{configure} --prefix={prefix} {words...}");
    let [make, install] = ["make -j2", "make install"].map(|words| sh.cmd("nice").line(words));
    for command in [configure, make, install] {
        command.ignore_stdout().ignore_stderr().run()?;
    }
    drop(there);
    // The objects are ten times the size of what was installed.
    Ok(sh.remove_path(&place)?)
}

/// Fetches the archive of the original source, as the newest suite that still has it holds it, and unpacks it.
fn fetch(sh: &Shell, sources: &Path, package: &str) -> Result<()> {
    let suites = "deb-src {} sid main\ndeb-src {} trixie main\n";
    let archive = Archive::open(sh, sources, suites)?;
    let listed = archive.apt("apt-cache", "showsrc").arg(package).read()?;
    let _there = sh.push_dir(sources);
    let lines = listed.lines();
    // An index may name what its archive has replaced since.
    for version in lines.filter_map(|line| line.strip_prefix("Version: ")) {
        let source = archive.apt("apt-get", "source --download-only --only-source");
        // The original source may come though Debian's patches do not, and is all that is needed.
        let _ = source.arg(format!("{package}={version}")).run();
        if let Some(source) = find(sh, sources, &format!("{package}_*.orig.tar.xz")) {
            return Ok(cmd!(sh, "tar xf {source}").run()?);
        }
    }
    bail!("the archive has no source of {package}")
}
