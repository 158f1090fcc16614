//! What a release needs: packages, documentation, licences, oldest dependencies, a new project, the kit, hosted CI.
//!
//! The steps of `ci` for it. Tools that take minutes to compile are installed by `ci --install` only.

use cargo_metadata::Package;

use crate::prelude::*;
use crate::{consumers, demo};

const DENY: (&str, &str) = ("cargo-deny", "0.20.2");
const SEMVER: (&str, &str) = ("cargo-semver-checks", "0.51.0");
pub(crate) const TOOLS: [(&str, &str); 2] = [DENY, SEMVER];

pub(crate) fn steps() -> [Step; 8] {
    [
        Step::new("packaging", packaging),
        Step::new("documentation as docs.rs builds it", docs_rs),
        Step::new("dependencies: cargo-deny", deny),
        Step::new("API since the last release: cargo-semver-checks", semver),
        Step::line("oldest dependencies: .ci/ranges oldest"),
        Step::new("a new project from template/", new_project),
        Step::new("conformance kit", kit),
        Step::new("syntax of hosted CI", workflows),
    ]
}

/// A tool that takes minutes to compile, if it is installed.
fn installed<'a>(sh: &'a Shell, (name, version): (&str, &str)) -> Result<Cmd<'a>> {
    let program = program(name, version)?;
    if !program.exists() {
        let hint = "`cargo xtask ci --install` installs it";
        return skip(format!("{name} is missing; {hint}"));
    }
    Ok(sh.cmd(program))
}

/// Packages the crates that may be published, and builds each from the packaged files, against the other packages, in the order
/// of publication.
///
/// Cargo assumes that the same version has the same code, so packages of an earlier run are removed first.
fn packaging(sh: &Shell) -> Result<()> {
    let target = target_dir().join("packaging");
    sh.remove_path(&target)?;
    // The folder in which cargo unpacked our own crates, as if they came from a registry.
    let registries = folder("CARGO_HOME", ".cargo")?.join("registry/src");
    let registries = sh.read_dir(registries).unwrap_or_default();
    let publish = sh.line("cargo publish --dry-run --allow-dirty");
    let mut publish = publish.env("CARGO_TARGET_DIR", target);
    for Package { name, version, .. } in packages(|package| package.publish.is_none())? {
        for registry in &registries {
            sh.remove_path(registry.join(format!("{name}-{version}")))?;
        }
        let list = cmd!(sh, "cargo package --allow-dirty --list -p {name}").read()?;
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            let is_there = list.lines().any(|line| line == file);
            ensure!(is_there, "the package {name} lacks {file}");
        }
        publish = publish.args(["-p", &name]);
    }
    Ok(publish.run()?)
}

/// Builds the documentation with all features, and the required feature at each item.
fn docs_rs(sh: &Shell) -> Result<()> {
    // In the folder of `api`, which sets the same variable.
    let target = target_dir().join("api");
    let doc = sh.line("cargo doc --quiet --no-deps --all-features -p dlpack-core -p dlpack-pyo3");
    let doc = doc.env("CARGO_TARGET_DIR", &target);
    let doc = doc.env("RUSTDOCFLAGS", "-Dwarnings --cfg docsrs");
    doc.env("RUSTC_BOOTSTRAP", "1").run()?;
    let page = sh.read_file(target.join("doc/dlpack_core/index.html"))?;
    ensure!(page.contains("crate feature"), "no item names its feature");
    Ok(())
}

/// Checks licences, sources and versions; and advisories, if their list can be downloaded.
fn deny(sh: &Shell) -> Result<()> {
    let run = |words| installed(sh, DENY).map(|deny| deny.line(words));
    run("--all-features check licenses sources")?.run()?;
    if !succeeds(run("fetch db")?) {
        return skip(
            "only the advisories, whose list on GitHub is out of reach; licences and sources passed",
        );
    }
    Ok(run("--all-features check advisories")?.run()?)
}

fn semver(sh: &Shell) -> Result<()> {
    let check = installed(sh, SEMVER)?;
    let last = sh.line("git describe --tags --abbrev=0 --match v*");
    let Ok(last) = last.ignore_stderr().read() else {
        return skip("there is no release yet: no tag like v0.1.0");
    };
    let check = check.line("semver-checks -p dlpack-core -p dlpack-pyo3 --baseline-rev");
    Ok(check.arg(last).run()?)
}

/// A new project from the template, built and tested against the crates of this checkout.
fn new_project(sh: &Shell) -> Result<()> {
    let parent = sh.create_temp_dir()?;
    let folder = parent.path().join("template");
    for (path, text) in texts(sh, &["template"])? {
        let text = text.replace("{{project-name}}", "my-arrays");
        let text = text.replace("{{crate_name}}", "my_arrays");
        sh.write_file(parent.path().join(path), text)?;
    }
    let mut config = String::from("[patch.crates-io]\n");
    for name in ["dlpack-core", "dlpack-derive", "dlpack-pyo3"] {
        config += &format!("{name}.path = {:?}\n", root().join(name));
    }
    sh.write_file(folder.join(".cargo/config.toml"), config)?;
    // The same dependencies as here, so that they are built once.
    sh.copy_file("Cargo.lock", &folder)?;
    let venv = demo::environment(sh, &interpreter()?)?;
    let _there = sh.push_dir(folder);
    let options = "--generate-stubs --features stubs,abi3";
    let site = demo::built(sh, &venv, "template", options)?;
    let tests = pytest(venv.run(sh), "tests");
    Ok(tests.env("PYTHONPATH", site).run()?)
}

/// The environment for checks of files that no other step reads.
fn environment(sh: &Shell) -> Result<Venv> {
    venv(sh, &interpreter()?, "release", "check-jsonschema hatchling")
}

/// The kit as pip builds it, with its plugin, on the libraries that install quickly.
fn kit(sh: &Shell) -> Result<()> {
    let (builder, folder) = (environment(sh)?, target_dir().join("wheels/conformance"));
    sh.remove_path(&folder)?;
    let words = "-m pip wheel --quiet --no-deps --no-build-isolation ./conformance -w";
    builder.run(sh).line(words).arg(&folder).run()?;
    let site = demo::unpacked(sh, &builder, &folder)?;
    let venv = consumers::quick(sh)?;
    let tests = pytest(venv.run(sh), "conformance/tests");
    Ok(tests.env("PYTHONPATH", site).run()?)
}

fn workflows(sh: &Shell) -> Result<()> {
    let check = environment(sh)?.run(sh);
    let check = check.line("-m check_jsonschema --builtin-schema vendor.github-workflows");
    let files = texts(sh, &["*.github/workflows/*.yml"])?;
    Ok(check.args(files.iter().map(|(path, _)| path)).run()?)
}
